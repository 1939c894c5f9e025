/* Constructor and destructor of a preloaded (or linked) client. Room: client. Context: the
 * constructor runs before every other one of the process (-z initfirst in libmemlog.so, or
 * first.c), with one thread.
 *
 * One rule: everything that needs more than write, fstat and poll happens here, dormant or not. */
#include <sys/auxv.h>

#include "client/hooks/next.h"
#include "client/hooks/preload.h"
#include "client/memlog.h"
#include "client/patch/patch.h"
#include "client/recording/lifecycle.h"
#include "client/recording/loader.h"
#include "client/recording/past.h"
#include "client/startup/aside.h"
#include "client/startup/exec_preload.h"
#include "client/startup/libc.h"
#include "client/state/process.h"
#include "client/state/visible.h"
#include "client/symbols/symbols.h"

/* Of an allocator inside the executable, and of what others have beside libc's functions. */
static void hook_entries(void) {
    const struct ml_control_page *control = ml_process.control;
    struct ml_patch_report report;
    if (control->hooks_entries != 0) {
        ml_patch_all(control->allocators, &report);
        ml_next_follow(ml_patch_unhooked);
        ml_next_follow_new(ml_patch_unhooked);
        ml_past_entries(report.functions, report.refused);
        if (report.is_inlined) {
            ml_past_inlined();
        }
    }
}

/* The program's own code runs. */
static bool has_begun;

void ml_preload_begin(char **arguments, char **environment) {
    if (has_begun) {
        return;
    }
    ml_symbols_keep(true);
    const char *socket_path = environment != NULL ? ml_exec_preload_take(environment) : NULL;
    if (ml_exec_preload_was_found() && ml_aside_is_needed()) {
        ml_aside_step(socket_path, ml_exec_preload_take_left(), arguments, environment);
    }
    ml_next_resolve();
    ml_next_resolve_new();
    ml_libc_resolve();
    ml_loader_find();
    /* The user who starts a setuid program chooses its environment, and must not become its
     * host. */
    if (socket_path != NULL && getauxval(AT_SECURE) == 0 && memlog_start(socket_path) == 0) {
        hook_entries();
    }
    ml_symbols_keep(false);
    has_begun = true;
}

__attribute__((constructor)) static void begin(int count, char **arguments, char **environment) {
    (void)count;
    ml_preload_begin(arguments, environment);
}

__attribute__((destructor)) static void end(void) {
    ml_lifecycle_end(ML_END_EXIT);
}

/* ---- as a library: here, so that linking memlog_start links the constructor too ---- */

ML_VISIBLE int memlog_start(const char *socket_path) {
    struct ml_thread *thread = ml_this_thread();
    if (ml_process.connected) { /* the constructor was there first */
        return 0;
    }
    thread->hook_frame = (uintptr_t)__builtin_frame_address(0);
    thread->phase = ML_PHASE_RECORD;
    const bool connected = socket_path != NULL && ml_lifecycle_connect(socket_path);
    if (connected && has_begun) {
        ml_past_began_late();
    }
    thread->phase = ML_PHASE_NONE;
    thread->hook_frame = 0;
    return connected ? 0 : -1;
}

ML_VISIBLE int memlog_recording(void) {
    return ml_process_state() == ML_GATE_RECORDING && (ml_process.filters & ML_FILTERS_CLOSED) == 0;
}

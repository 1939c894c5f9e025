/* The other hooks: ends of processes, thread names, dlclose. Room: client. Context: any.
 *
 * One rule: the real function runs with the program's own arguments and its answer is the
 * program's. */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/hooks/next.h"
#include "client/recording/hook.h"
#include "client/recording/lifecycle.h"
#include "client/recording/mapping.h"
#include "client/recording/past.h"
#include "client/recording/record.h"
#include "client/startup/seccomp_probe.h"
#include "client/startup/libc.h"
#include "client/state/visible.h"
#include "client/symbols/symbols.h"

/* A killed child is subtracted from the tree's total no later than at its parent's wait. Memory
 * that the kernel has just written can be read; where the caller passes none, ours is used. */
ML_VISIBLE pid_t wait4(pid_t pid, int *out_status, int options, struct rusage *usage) {
    ML_LIBC_READY(wait4);
    int own = 0;
    const int *status = out_status != NULL ? out_status : &own;
    const pid_t got = ml_libc.wait4(pid, out_status != NULL ? out_status : &own, options, usage);
    if (got > 0 && (WIFEXITED(*status) || WIFSIGNALED(*status))) {
        ml_lifecycle_reaped((uint32_t)got);
    }
    return got;
}

ML_VISIBLE pid_t wait3(int *out_status, int options, struct rusage *usage) {
    return wait4(-1, out_status, options, usage);
}

ML_VISIBLE pid_t waitpid(pid_t pid, int *out_status, int options) {
    return wait4(pid, out_status, options, NULL);
}

ML_VISIBLE pid_t wait(int *out_status) {
    return wait4(-1, out_status, 0, NULL);
}

ML_VISIBLE int waitid(idtype_t kind, id_t id, siginfo_t *out_info, int options) {
    ML_LIBC_READY(wait4);
    siginfo_t own;
    siginfo_t *info = out_info != NULL ? out_info : &own;
    own.si_pid = 0;
    const int result = ml_libc.waitid(kind, id, info, options);
    /* The same call also reports stopped and continued children. One that was only peeked at
     * (WNOWAIT) has ended too. */
    if (result == 0 && info->si_pid > 0 &&
        (info->si_code == CLD_EXITED || info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED
        )) {
        ml_lifecycle_reaped((uint32_t)info->si_pid);
    }
    return result;
}

ML_VISIBLE __attribute__((noreturn)) void _exit(int code) {
    ML_LIBC_READY(wait4);
    ml_lifecycle_end(ML_END_EXIT);
    ml_libc.exit_now(code);
}

ML_VISIBLE __attribute__((noreturn)) void _Exit(int code) {
    _exit(code);
}

/* PR_SET_VMA and PR_SET_VMA_ANON_NAME of Linux 5.17. */
enum { SET_VMA = 0x53564d41, SET_VMA_ANON_NAME = 0 };

static int call_prctl(int operation, const unsigned long given[4]) {
    ML_LIBC_READY(wait4);
    if (operation == PR_SET_SECCOMP) {
        ml_seccomp_probe_before();
    }
    const int result = ml_libc.prctl(operation, given[0], given[1], given[2], given[3]);
    if (operation == PR_SET_NAME && result == 0) {
        ml_lifecycle_renamed();
    } else if (operation == SET_VMA && given[0] == SET_VMA_ANON_NAME) {
        /* Refused by a kernel without such names, it still says what the memory is for. */
        ml_mapping_name((const void *)given[1], given[2], (const char *)given[3]);
    } else if (operation == PR_SET_SECCOMP && result == 0) {
        if (given[0] == SECCOMP_MODE_FILTER) {
            ml_seccomp_probe_filter((const struct sock_fprog *)given[1]);
        } else {
            ml_seccomp_probe_closed();
        }
    } else if (operation == PR_SET_SYSCALL_USER_DISPATCH && result == 0 && given[0] != PR_SYS_DISPATCH_OFF) {
        ml_seccomp_probe_closed();
    }
    return result;
}

ML_VISIBLE int prctl(int operation, ...) {
    va_list rest;
    unsigned long given[4];
    va_start(rest, operation);
    given[0] = va_arg(rest, unsigned long);
    given[1] = va_arg(rest, unsigned long);
    given[2] = va_arg(rest, unsigned long);
    given[3] = va_arg(rest, unsigned long);
    va_end(rest);
    return call_prctl(operation, given);
}

bool ml_seccomp_probe_wants(long prctl_operation) {
    return prctl_operation == PR_SET_SECCOMP || prctl_operation == PR_SET_SYSCALL_USER_DISPATCH;
}

/* Not by prctl's own name: a program that has a function of that name may be the caller. */
long ml_seccomp_probe_syscall(long number, long operation, long a, long b, long c, long d) {
    const unsigned long given[4] = {
        (unsigned long)a, (unsigned long)b, (unsigned long)c, (unsigned long)d};
    (void)number;
    return call_prctl((int)operation, given);
}

ML_VISIBLE int pthread_setname_np(pthread_t thread, const char *name) {
    ML_LIBC_READY(wait4);
    if (ml_libc.pthread_setname_np == NULL) { /* it may have come since */
        *(void **)&ml_libc.pthread_setname_np =
            ml_symbol_of_library("libpthread.so.0", "pthread_setname_np").address;
    }
    if (ml_libc.pthread_setname_np == NULL) {
        return ENOSYS;
    }
    const int result = ml_libc.pthread_setname_np(thread, name);
    if (result == 0 && pthread_equal(thread, pthread_self())) {
        ml_lifecycle_renamed();
    }
    return result;
}

/* A client in a running process stands in front of no operator new by its name. */
static void forget_late_new(void) {
    if (!ML_ATTACHED) {
        ml_next_forget_late_new();
    }
}

/* Recipes and cached stacks die with their module; see client/unwind/unwind.h. */
ML_VISIBLE int dlclose(void *handle) {
    ML_LIBC_READY(wait4);
    const bool connected = ml_process.connected && ml_process_state() != ML_GATE_FRESH &&
                           (ml_process.filters & ML_FILTERS_CLOSED) == 0;
    if (connected) {
        ml_unwind_unload_begin(ml_process.unwind);
    }
    forget_late_new();
    const uint32_t closing = ml_past_closing(handle);
    const int result = ml_libc.dlclose(handle);
    ml_past_closed(closing);
    forget_late_new();
    if (connected) {
        struct ml_thread *thread = ml_this_thread();
        const struct ml_hook hook =
            ml_hook_enter(thread, (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *));
        const uint32_t phase = ml_hook_recording(thread);
        ml_unwind_unload_end(
            ml_process.unwind, hook.lane != NULL ? ml_record_unload : NULL, hook.lane
        );
        ml_hook_calling(thread, phase);
        ml_hook_leave(thread, &hook);
    }
    return result;
}

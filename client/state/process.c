#include "client/state/process.h"

#include <sys/stat.h>

/* Until there is a host: a gate that says OFF and a control page that never changes. */
static struct ml_gate_page no_gate = {.gate = ML_GATE_OFF};
static const struct ml_control_page no_control = {.generation = 1};
static struct ml_lease_page no_lease;

struct ml_process ml_process = {
    .gate_page = &no_gate,
    .control = &no_control,
    .lease = &no_lease,
    .pipe_fd = -1,
    .socket_fd = -1,
};

#if !ML_ATTACHED
/* Gates that no process has, so that a thread's first hook takes the slow path. */
__thread struct ml_thread ml_thread __attribute__((tls_model("initial-exec"))
) = {.gate = UINT64_MAX, .idle_gate = UINT64_MAX, .sampling_gate = UINT64_MAX};
#endif

void ml_process_set_state(enum ml_gate_state state) {
    atomic_store_explicit(
        &ml_process.gate_page->gate,
        ml_gate_value(ml_process.generation, state),
        memory_order_release
    );
}

void ml_process_off(void) {
    ml_process_set_state(ML_GATE_OFF);
}

void ml_process_forget(void) {
    ml_process.connected = false;
    ml_process.gate_page = &no_gate;
    ml_process.control = &no_control;
    ml_process.lease = &no_lease;
    ml_process.unwind = NULL;
    ml_process.staging = NULL;
}

bool ml_process_file(int fd, struct ml_file *out_file) {
    struct stat about;
    if (fd < 0 || ml_sys3(SYS_fstat, fd, (long)&about, 0) != 0) {
        return false;
    }
    *out_file = (struct ml_file){.device = about.st_dev, .inode = about.st_ino};
    return true;
}

bool ml_process_is_file(int fd, const struct ml_file *file) {
    struct ml_file now;
    return ml_process_file(fd, &now) && now.device == file->device && now.inode == file->inode;
}

#include "client/startup/seccomp_probe.h"

#include <linux/audit.h>
#include <asm-generic/ioctls.h>
#include <linux/fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/seccomp/filter.h"
#include "client/state/process.h"
#include "client/stream/arena.h"
#include "client/stream/lane.h"
#include "client/stream/pipe.h"

/* A call of ours, with those of its arguments that filters look at. */
struct own_call {
    int number;
    uint64_t arguments[4];
};

static uint32_t answer_of(const struct sock_fprog *program, const struct own_call *own) {
    const struct seccomp_data call = {
        .nr = own->number,
        .arch = AUDIT_ARCH_X86_64,
        .args = {own->arguments[0], own->arguments[1], own->arguments[2], own->arguments[3]}};
    return ml_filter_answer(program->filter, program->len, &call);
}

/* Whether the call is made, or fails with an errno, which each caller of ours handles. Any other
 * answer is noticed: a signal, a tracer, death. */
static bool is_let_through(const struct sock_fprog *program, const struct own_call *own) {
    switch (answer_of(program, own) & SECCOMP_RET_ACTION_FULL) {
    case SECCOMP_RET_ALLOW:
    case SECCOMP_RET_LOG:
    case SECCOMP_RET_ERRNO:
        return true;
    default:
        return false;
    }
}

static bool
are_let_through(const struct sock_fprog *program, const struct own_call *calls, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!is_let_through(program, &calls[i])) {
            return false;
        }
    }
    return true;
}

/* From <sys/socket.h>, which this target may not include. */
enum { UNIX_FAMILY = 1, SEQPACKET = 5, SOCKET_LEVEL = 1, PASS_CREDENTIALS = 16, PASS_PIDFD = 76 };

/* MFD_EXEC, as client/patch/near.c has it. */
enum { MEMFD_EXECUTABLE = 0x10 };

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

/* End recording. The next event notices and counts that. A program that allocates nothing behind
 * its filters, or with an allocator of its own, has lost nothing. A forked child without an event
 * finds no host at its first one.
 */
static void close_down(void) {
    const enum ml_gate_state state = ml_process_state();
    ml_process.filters |= ML_FILTERS_NO_HOST | ML_FILTERS_NO_PID;
    if (state == ML_GATE_RECORDING) {
        ml_process.filters |= ML_FILTERS_CLOSED;
        ml_process_stir();
    } else if (state == ML_GATE_FRESH) {
        ml_process.filters |= ML_FILTERS_CLOSED;
    } else {
        ml_process_off();
    }
}

/* Whether the kernel itself answers. A filter's errno would be taken for the kernel's. */
static bool comes_to_kernel(const struct sock_fprog *program, const struct own_call *own) {
    const uint32_t answer = answer_of(program, own) & SECCOMP_RET_ACTION_FULL;
    return answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_LOG;
}

/* Whether who makes the call may not live on: the answer is neither the kernel's nor an errno. */
static bool ends_caller(const struct sock_fprog *program, const struct own_call *own) {
    return !comes_to_kernel(program, own) &&
           (answer_of(program, own) & SECCOMP_RET_ACTION_FULL) != SECCOMP_RET_ERRNO;
}

void ml_seccomp_probe_before(void) {
    ml_arena_stock();
}

void ml_seccomp_probe_closed(void) {
    if (ml_process.connected) {
        close_down();
    }
}

/* ML_FILTERS_* for the calls that recording does not need, and that are not let through. */
static uint32_t needless_of(const struct sock_fprog *program, uint64_t fd, uint64_t socket_fd) {
    const struct own_call name[] = {{SYS_prctl, {PR_GET_NAME}}};
    const struct own_call pid[] = {{SYS_getpid, {0}}};
    const struct own_call limits[] = {
        {SYS_prlimit64, {0, RLIMIT_AS}}, {SYS_prlimit64, {0, RLIMIT_DATA}}};
    /* What forked children and other programs need to come to the host. */
    const struct own_call of_handshake[] = {
        {SYS_socket, {UNIX_FAMILY, SEQPACKET | O_CLOEXEC}},
        {SYS_connect, {socket_fd}},
        {SYS_setsockopt, {socket_fd, SOCKET_LEVEL, PASS_CREDENTIALS}},
        {SYS_sendmsg, {socket_fd}},
        {SYS_recvmsg, {socket_fd}},
        {SYS_shutdown, {socket_fd}},
        {SYS_openat, {(uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC}},
        {SYS_read, {fd}},
        {SYS_close, {fd}},
        {SYS_fcntl, {fd, F_DUPFD_CLOEXEC}},
        {SYS_fcntl, {fd, F_ADD_SEALS}},
        {SYS_prlimit64, {0, RLIMIT_NOFILE}},
        {SYS_memfd_create, {0, MFD_CLOEXEC | MFD_ALLOW_SEALING}},
        {SYS_ftruncate, {fd}},
        {SYS_pread64, {fd}},
        {SYS_pwrite64, {fd}},
        {SYS_pipe2, {0, O_CLOEXEC | O_NONBLOCK}},
        {SYS_mmap, {0, 0, PROT_READ, MAP_SHARED}},
        {SYS_mmap, {0, 0, PROT_READ | PROT_WRITE, MAP_SHARED}},
        {SYS_mmap, {0, 0, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED}}, /* of a forked child */
        {SYS_mmap, {0, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE}},
        {SYS_munmap, {0}},
        {SYS_madvise, {0, 0, MADV_WIPEONFORK}},
        {SYS_access, {0}},
        {SYS_faccessat, {(uint64_t)AT_FDCWD}},
        {SYS_getppid, {0}},
        {SYS_geteuid, {0}},
        {SYS_getegid, {0}},
        {SYS_getpid, {0}}};
    /* Of looking at a program's file, of the loader (for $PLATFORM in LD_PRELOAD), and of the
     * constructor, which may have an allocator's entries to hook. */
    const struct own_call of_exec_preload[] = {
        {SYS_fgetxattr, {fd}},
        {SYS_readlink, {0}},
        {SYS_pwritev2, {fd, 0, 1}},
        {SYS_openat, {(uint64_t)AT_FDCWD, 0, O_RDONLY | O_CLOEXEC | O_NONBLOCK}},
        {SYS_openat, {(uint64_t)AT_FDCWD, 0, O_RDWR | O_CLOEXEC}},
        {SYS_prlimit64, {0, RLIMIT_FSIZE}},
        {SYS_memfd_create, {0, MFD_CLOEXEC | MEMFD_EXECUTABLE}},
        {SYS_memfd_create, {0, MFD_CLOEXEC}},
        {SYS_mmap, {0, 0, PROT_READ | PROT_EXEC}}};
    const struct own_call of_lending[] = {
        {SYS_fcntl, {socket_fd, F_SETFD}},
        {SYS_socketpair, {UNIX_FAMILY, SEQPACKET | O_CLOEXEC}},
        {SYS_setsockopt, {fd, SOCKET_LEVEL, PASS_CREDENTIALS}},
        {SYS_setsockopt, {fd, SOCKET_LEVEL, PASS_PIDFD}}};
    const struct {
        const struct own_call *calls;
        size_t count;
        uint32_t filter; /* where one of them is not let through */
    } needs[] = {
        {name, COUNT_OF(name), ML_FILTERS_NO_NAME},
        {pid, COUNT_OF(pid), ML_FILTERS_NO_PID},
        {limits, COUNT_OF(limits), ML_FILTERS_NO_LIMITS},
        {of_handshake, COUNT_OF(of_handshake), ML_FILTERS_NO_HOST},
        {of_exec_preload, COUNT_OF(of_exec_preload), ML_FILTERS_NO_PRELOAD},
        {of_lending, COUNT_OF(of_lending), ML_FILTERS_NO_LENDING}};
    /* By mremap the client's memory grows. */
    const struct own_call growth = {
        SYS_mremap, {(uint64_t)(uintptr_t)ml_process.memory.arena.start}};
    const struct own_call pending = {SYS_rt_sigpending, {0}};
    const struct own_call consume = {SYS_rt_sigtimedwait, {0}};
    uint32_t filters = comes_to_kernel(program, &growth) ? 0 : ML_FILTERS_NO_GROWTH;
    filters |= ends_caller(program, &growth) ? ML_FILTERS_GROWTH_ENDS : 0;
    filters |= ends_caller(program, &name[0]) ? ML_FILTERS_NAME_ENDS : 0;
    filters |= comes_to_kernel(program, &pending) ? 0 : ML_FILTERS_NO_PENDING;
    filters |= comes_to_kernel(program, &consume) ? 0 : ML_FILTERS_NO_CONSUME;
    for (size_t i = 0; i < COUNT_OF(needs); i++) {
        if (!are_let_through(program, needs[i].calls, needs[i].count)) {
            filters |= needs[i].filter;
        }
    }
    return filters;
}

uint32_t ml_seccomp_probe_judge(
    const struct sock_fprog *program, int pipe_fd, int socket_fd, bool no_sigpipe
) {
    const uint64_t fd = (uint64_t)(unsigned)pipe_fd;
    /* client/CALLS.md lists them. */
    const struct own_call of_recording[] = {
        {SYS_fstat, {fd}},
        {SYS_poll, {0, 1, 1000}},
        {SYS_clock_gettime, {1}},
        {SYS_gettid, {0}},
        {SYS_sigaltstack, {0}},
        {SYS_rt_sigprocmask, {UINT64_MAX}}}; /* is a page of stack there? */
    const struct own_call of_guarded_write[] = {
        {SYS_write, {fd, 0, ML_FRAME_MAX_BYTES}},
        {SYS_rt_sigprocmask, {0}},
        {SYS_rt_sigprocmask, {2}},
        {SYS_rt_sigaction, {13}}};
    const struct own_call without_sigpipe = {SYS_pwritev2, {fd, 0, 1}};
    const struct own_call fill = {SYS_ioctl, {fd, FIONREAD}};
    const struct own_call size = {SYS_fcntl, {fd, F_GETPIPE_SZ}};
    /* By it the kernel goes on with a poll that a stop has interrupted. */
    const struct own_call restart = {SYS_restart_syscall, {0}};
    uint32_t filters = comes_to_kernel(program, &without_sigpipe) ? 0 : ML_FILTERS_NO_SILENCE;
    filters |= comes_to_kernel(program, &size) ? 0 : ML_FILTERS_NO_PIPE_SIZE;
    filters |= comes_to_kernel(program, &restart) ? 0 : ML_FILTERS_NO_RESTART;
    no_sigpipe = no_sigpipe && (filters & ML_FILTERS_NO_SILENCE) == 0;
    /* Where an error is all that comes of a write, what is staged by now is kept. */
    const bool can_write = comes_to_kernel(program, &of_recording[0]) &&
                           (no_sigpipe || comes_to_kernel(program, &of_guarded_write[0]));
    if (!can_write || !are_let_through(program, of_recording, COUNT_OF(of_recording)) ||
        (!no_sigpipe && !are_let_through(program, of_guarded_write, COUNT_OF(of_guarded_write))) ||
        (ml_process.control->overrun != 0 && !is_let_through(program, &fill))) {
        return filters | ML_FILTERS_CLOSED;
    }
    filters |= needless_of(program, fd, (uint64_t)(unsigned)socket_fd);
    return no_sigpipe || ml_pipe_may_put(filters) ? filters : filters | ML_FILTERS_CLOSED;
}

void ml_seccomp_probe_filter(const struct sock_fprog *program) {
    if (!ml_process.connected || program == NULL) {
        return;
    }
    const uint32_t filters = ml_seccomp_probe_judge(
        program,
        atomic_load(&ml_process.pipe_fd),
        atomic_load(&ml_process.socket_fd),
        ml_process.no_sigpipe
    );
    ml_process.no_sigpipe = ml_process.no_sigpipe && (filters & ML_FILTERS_NO_SILENCE) == 0;
    ml_process.filters |= filters & ~(uint32_t)ML_FILTERS_CLOSED;
    if ((filters & ML_FILTERS_CLOSED) != 0) {
        close_down();
    }
}

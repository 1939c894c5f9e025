#include "client/stream/pipe.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include "client/state/process.h"

enum {
    FLAG_NOSIGNAL = 0x100, /* RWF_NOSIGNAL, Linux 6.18 */
    NS_PER_MS = 1000000,
    SIGSET_BYTES = 8,
    SIGPIPE_BIT = 12 /* SIGPIPE is 13, bits count from signal 1 */
};

/* Whether SIGPIPE is ignored: then none comes. */
static bool ignores_sigpipe(void) {
    enum { SIGPIPE_NUMBER = SIGPIPE_BIT + 1, IGNORED = 1 };
    uint64_t action[4] = {0}; /* the kernel's struct sigaction; the handler is first */
    return ml_sys4(SYS_rt_sigaction, SIGPIPE_NUMBER, 0, (long)action, SIGSET_BYTES) == 0 &&
           action[0] == IGNORED;
}

/* A write without SIGPIPE, on kernels that have no flag for that: block the signal, write, consume
 * it.
 *
 * One that the program itself holds back must stay. A thread that had not blocked the signal has
 * none waiting. Of one that had, a filter may keep the answer from us (Chromium's renderers'): then
 * the program's own is consumed with ours, but only where no reader of the pipe is left. */
static long write_guarded(int fd, const void *bytes, size_t count_bytes) {
    const uint64_t sigpipe = (uint64_t)1 << SIGPIPE_BIT;
    uint64_t before = 0;
    uint64_t pending_before = 0;
    (void
    )ml_sys4(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&sigpipe, (long)&before, SIGSET_BYTES);
    if ((before & sigpipe) != 0 && (ml_process.filters & ML_FILTERS_NO_PENDING) == 0) {
        (void)ml_sys3(SYS_rt_sigpending, (long)&pending_before, SIGSET_BYTES, 0);
    }
    const long result = ml_sys3(SYS_write, fd, (long)bytes, (long)count_bytes);
    if (result == -EPIPE && (pending_before & sigpipe) == 0) {
        const int64_t no_time[2] = {0, 0};
        (void)ml_sys4(SYS_rt_sigtimedwait, (long)&sigpipe, 0, (long)no_time, SIGSET_BYTES);
    }
    (void)ml_sys4(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&before, 0, SIGSET_BYTES);
    return result;
}

/* False: the kernel, or a filter, has nothing for the flag. */
static bool write_flagged(int fd, void *bytes, size_t count_bytes, long *out_result) {
    const struct iovec piece = {.iov_base = bytes, .iov_len = count_bytes};
    *out_result = ml_sys6(SYS_pwritev2, fd, (long)&piece, 1, -1, -1, FLAG_NOSIGNAL);
    return *out_result != -EOPNOTSUPP && *out_result != -EINVAL && *out_result != -ENOSYS &&
           *out_result != -EPERM;
}

bool ml_pipe_is_silent(int fd) {
    /* The kernel checks flags before it reads the bytes, and nothing is mapped at that address. */
    long result = 0;
    return write_flagged(fd, NULL, 1, &result);
}

bool ml_pipe_may_put(uint32_t filters) {
    return (filters & ML_FILTERS_NO_CONSUME) == 0 || ignores_sigpipe();
}

static long write_silently(int fd, void *bytes, size_t count_bytes) {
    if (ml_process.no_sigpipe) {
        long result = 0;
        if (write_flagged(fd, bytes, count_bytes, &result)) {
            return result;
        }
        ml_process.no_sigpipe = false;
    }
    if ((ml_process.filters & ML_FILTERS_NO_CONSUME) == 0) {
        return write_guarded(fd, bytes, count_bytes);
    }
    /* A program whose filter keeps the consuming call from us, and which has begun to catch the
     * signal: it would see ours. */
    return ignores_sigpipe() ? ml_sys3(SYS_write, fd, (long)bytes, (long)count_bytes) : -EPIPE;
}

enum ml_pipe_answer ml_pipe_put(void *frame, size_t count_bytes) {
    for (;;) {
        const int fd = atomic_load_explicit(&ml_process.pipe_fd, memory_order_relaxed);
        if (!ml_process_is_file(fd, &ml_process.pipe)) {
            return ML_PIPE_GONE;
        }
        const long result = write_silently(fd, frame, count_bytes);
        if (result == (long)count_bytes) {
            return ML_PIPE_TAKEN;
        }
        if (result == -EAGAIN) {
            return ML_PIPE_FULL;
        }
        if (result != -EINTR) {
            ml_process_off();
            return ML_PIPE_GONE;
        }
    }
}

uint64_t ml_pipe_fill_bytes(void) {
    const int fd = atomic_load_explicit(&ml_process.pipe_fd, memory_order_relaxed);
    int bytes = 0;
    return fd >= 0 && ml_sys3(SYS_ioctl, fd, FIONREAD, (long)&bytes) == 0 && bytes > 0
               ? (uint64_t)bytes
               : 0;
}

bool ml_pipe_wait(uint64_t now_ns, uint64_t deadline_ns) {
    _Atomic uint64_t *full_since = &ml_process.gate_page->full_since_ns;
    uint64_t since_ns = 0;
    if (atomic_compare_exchange_strong(full_since, &since_ns, now_ns)) {
        since_ns = now_ns;
    }
    if (since_ns + ML_PIPE_WAIT_MAX_NS < deadline_ns) {
        deadline_ns = since_ns + ML_PIPE_WAIT_MAX_NS;
    }
    if (now_ns >= deadline_ns) {
        return false;
    }
    if ((ml_process.filters & ML_FILTERS_NO_RESTART) != 0) {
        ml_sys_linger();
        return true;
    }
    /* poll ends at once when the last reader closes; the next put notices. */
    struct pollfd wanted = {
        .fd = atomic_load_explicit(&ml_process.pipe_fd, memory_order_relaxed), .events = POLLOUT};
    (void)ml_sys3(SYS_poll, (long)&wanted, 1, (long)((deadline_ns - now_ns) / NS_PER_MS + 1));
    return true;
}

void ml_pipe_moves(void) {
    _Atomic uint64_t *full_since = &ml_process.gate_page->full_since_ns;
    if (ml_unlikely(atomic_load_explicit(full_since, memory_order_relaxed) != 0)) {
        atomic_store_explicit(full_since, 0, memory_order_relaxed);
    }
}

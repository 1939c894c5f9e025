/* Protects our descriptors from programs that close every number they can think of. Room: client.
 * Context: any, between fork and exec too.
 *
 * One rule: a program that wants one of our numbers gets it; ours moves away first. A program that
 * closes one gets the answer it would get without memlog: the number is not open. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client/startup/handshake.h"
#include "client/startup/libc.h"
#include "client/state/process.h"
#include "client/state/visible.h"

static _Atomic int *const ours[] = {&ml_process.pipe_fd, &ml_process.socket_fd};
enum { OURS_COUNT = sizeof(ours) / sizeof(ours[0]) };

/* Ours, and still the same file: a number that the program took by a bare system call is its
 * own. */
static bool is_ours(int fd) {
    if (ml_likely(
            fd < 0 || (fd != atomic_load_explicit(&ml_process.pipe_fd, memory_order_relaxed) &&
                       fd != atomic_load_explicit(&ml_process.socket_fd, memory_order_relaxed))
        )) {
        return false;
    }
    return ml_process_is_file(fd, &ml_process.pipe) || ml_process_is_file(fd, &ml_process.socket);
}

/* The program makes `to` a duplicate of `from`: if that is a number of ours, it moves to another.
 */
static void make_way(int from, int to) {
    if (!is_ours(to) || from == to || fcntl(from, F_GETFD) < 0) {
        return;
    }
    for (int i = 0; i < OURS_COUNT; i++) {
        if (atomic_load(ours[i]) == to) {
            const long moved = ml_sys3(SYS_fcntl, to, F_DUPFD_CLOEXEC, ML_FD_LOWEST);
            atomic_store(ours[i], moved < 0 ? -1 : (int)moved);
        }
    }
}

ML_VISIBLE int close(int fd) {
    if (is_ours(fd)) {
        errno = EBADF;
        return -1;
    }
    ML_LIBC_READY(close);
    return ml_libc.close(fd);
}

ML_VISIBLE int dup2(int from, int to) {
    ML_LIBC_READY(dup2);
    make_way(from, to);
    return ml_libc.dup2(from, to);
}

ML_VISIBLE int dup3(int from, int to, int flags) {
    ML_LIBC_READY(dup3);
    make_way(from, to);
    return ml_libc.dup3(from, to, flags);
}

/* The lowest of our descriptors in [first, last]; UINT_MAX when there is none. */
static unsigned next_of_ours(unsigned first, unsigned last) {
    unsigned found = ~0u;
    for (int i = 0; i < OURS_COUNT; i++) {
        const int fd = atomic_load(ours[i]);
        if (fd >= 0 && (unsigned)fd >= first && (unsigned)fd <= last && (unsigned)fd < found &&
            is_ours(fd)) {
            found = (unsigned)fd;
        }
    }
    return found;
}

/* close_range around ours: one call for each stretch between them. */
static int close_around(unsigned first, unsigned last, int flags) {
    /* An empty range too: the kernel checks the flags and unshares the descriptor table even if
     * there is nothing to close. */
    const long tried = ml_sys3(SYS_close_range, ~0u, ~0u, flags);
    if (tried < 0) {
        return (int)tried;
    }
    for (;;) {
        const unsigned skip = next_of_ours(first, last);
        if (skip == ~0u) {
            return (int)ml_sys3(SYS_close_range, first, last, flags);
        }
        if (skip > first) {
            const long result = ml_sys3(SYS_close_range, first, skip - 1, flags);
            if (result < 0) {
                return (int)result;
            }
        }
        if (skip == last) {
            return 0;
        }
        first = skip + 1;
    }
}

ML_VISIBLE int close_range(unsigned first, unsigned last, int flags) {
    if (first > last || next_of_ours(first, last) == ~0u) {
        const long plain = ml_sys3(SYS_close_range, first, last, flags);
        if (plain < 0) {
            errno = (int)-plain;
            return -1;
        }
        return 0;
    }
    const int result = close_around(first, last, flags);
    if (result < 0) {
        errno = -result;
        return -1;
    }
    return 0;
}

/* A program may have found the name where its libc, before 2.34, has no such function. */
static void close_each(unsigned first) {
    struct rlimit limit = {.rlim_max = 0};
    (void)ml_sys4(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit);
    for (unsigned fd = first; fd < limit.rlim_max && fd <= INT_MAX; fd++) {
        if (!is_ours((int)fd)) {
            ml_sys_close((int)fd);
        }
    }
}

ML_VISIBLE void closefrom(int lowest) {
    const unsigned first = lowest < 0 ? 0 : (unsigned)lowest;
    ML_LIBC_READY(closefrom);
    const bool real = ml_libc.closefrom != NULL;
    if ((real && next_of_ours(first, ~0u - 1) == ~0u) || close_around(first, ~0u, 0) < 0) {
        if (real) {
            ml_libc.closefrom(lowest);
        } else {
            close_each(first);
        }
    }
}

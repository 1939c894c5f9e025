#include "tracer/filters.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/seccomp/filter.h"
#include "base/seccomp/restart.h"
#include "tracer/process/target.h"

enum {
    GET_FILTER = 0x420c, /* PTRACE_SECCOMP_GET_FILTER */
    DEPTH_MAX = 1024,    /* filters of one thread */
    OWN_FD = 900         /* as the client's descriptors are numbered */
};

/* ---- reading */

bool ml_filters_watch(pid_t pid) {
    pid_t *ids = malloc(ML_THREADS_TRACED_MAX * sizeof(*ids));
    const size_t count = ids != NULL ? ml_threads_list(pid, ids, ML_THREADS_TRACED_MAX) : 0;
    bool watched = ids == NULL;
    for (size_t i = 0; i < count && !watched; i++) {
        watched = ml_target_seccomp(pid, ids[i]) != 0;
    }
    free(ids);
    return watched;
}

static bool
is_known(const struct ml_attach_filters *filters, const struct sock_filter *lines, uint32_t count) {
    const struct sock_filter *at = filters->lines;
    for (uint32_t i = 0; i < filters->count; i++) {
        if (filters->counts[i] == count && memcmp(at, lines, count * sizeof(*lines)) == 0) {
            return true;
        }
        at += filters->counts[i];
    }
    return false;
}

/* One filter of a stopped thread; 0: it has no such one; -1: it cannot be read. */
static int read_one(const struct ml_traced *thread, uint32_t index, struct sock_filter *out_lines) {
    const enum __ptrace_request request = (enum __ptrace_request)GET_FILTER;
    void *const place = (void *)(uintptr_t)index;
    const long count = ptrace(request, thread->id, place, NULL);
    if (count < 0) {
        return errno == ENOENT ? 0 : -1;
    }
    if (count == 0 || count > BPF_MAXINSNS) {
        return -1;
    }
    return (int)ptrace(request, thread->id, place, out_lines) == (int)count ? (int)count : -1;
}

static bool add(struct ml_attach_filters *filters, const struct sock_filter *lines, int count) {
    if (filters->count == ML_ATTACH_FILTERS_MAX ||
        filters->lines_count + (uint32_t)count > ML_ATTACH_FILTER_LINES_MAX) {
        return false;
    }
    memcpy(filters->lines + filters->lines_count, lines, (size_t)count * sizeof(*lines));
    filters->counts[filters->count++] = (uint32_t)count;
    filters->lines_count += (uint32_t)count;
    return true;
}

/* Those of one thread that are not known yet are added where they may be. What failed; NULL:
 * nothing. */
static const char *read_thread(
    const struct ml_traced *thread,
    const struct ml_attach_filters *known,
    struct ml_attach_filters *added,
    struct sock_filter *lines
) {
    for (uint32_t i = 0; i < DEPTH_MAX; i++) {
        const int count = read_one(thread, i, lines);
        if (count == 0) {
            return NULL;
        }
        if (count < 0) {
            return "its seccomp filter cannot be read";
        }
        if (!is_known(known, lines, (uint32_t)count) &&
            (added == NULL || !add(added, lines, count))) {
            return "more seccomp filters watch its calls than memlog looks at: start it under "
                   "memlog run";
        }
    }
    return "its seccomp filters have no end";
}

static const char *read_all(
    const struct ml_threads *stopped,
    const struct ml_attach_filters *known,
    struct ml_attach_filters *added
) {
    struct sock_filter *lines = malloc(BPF_MAXINSNS * sizeof(*lines));
    const char *why = lines != NULL ? NULL : "memory ran out";
    for (size_t i = 0; i < stopped->count && why == NULL; i++) {
        const struct ml_traced *thread = &stopped->list[i];
        const int mode =
            thread->state == ML_TRACED_STOPPED ? ml_target_seccomp(stopped->pid, thread->id) : 0;
        if (mode == SECCOMP_MODE_STRICT) {
            why =
                "seccomp's strict mode kills for each call of memlog's: start it under memlog run";
        } else if (mode != 0) {
            why = read_thread(thread, known, added, lines);
        }
    }
    free(lines);
    return why;
}

bool ml_filters_read(
    const struct ml_threads *stopped,
    struct ml_attach_filters *out_filters,
    struct ml_error_message *error
) {
    out_filters->count = 0;
    out_filters->lines_count = 0;
    const char *why = read_all(stopped, out_filters, out_filters);
    if (why != NULL) {
        ml_error_set(error, "%s", why);
    }
    return why == NULL;
}

bool ml_filters_are(const struct ml_threads *stopped, const struct ml_attach_filters *filters) {
    return read_all(stopped, filters, NULL) == NULL;
}

/* ---- what they say */

struct own_call {
    const char *name;
    int number;
    uint64_t arguments[4];
    bool may_fail; /* an error of the filter's is as good as the kernel's */
};

/* All calls of a borrowed thread: the tracer's for it, and those of client/attached up to the end
 * of the start. tests/e2e/attach_test.py holds a filter of these alone against a start. */
static const struct own_call calls[] = {
    {"mmap", SYS_mmap, {4096, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS}, false},
    {"mmap",
     SYS_mmap,
     {4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED},
     false},
    {"mmap", SYS_mmap, {4096, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS}, false},
    {"mmap",
     SYS_mmap,
     {4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED},
     false},
    {"mmap",
     SYS_mmap,
     {4096, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE},
     false},
    {"mmap", SYS_mmap, {0, 4096, PROT_READ, MAP_SHARED}, false},
    {"mmap", SYS_mmap, {4096, 4096, PROT_READ | PROT_WRITE, MAP_SHARED}, false},
    {"munmap", SYS_munmap, {4096, 4096}, false},
    {"madvise", SYS_madvise, {4096, 4096, 18 /* MADV_WIPEONFORK */}, true},
    {"madvise", SYS_madvise, {4096, 4096, MADV_DONTDUMP}, true},
    {"madvise", SYS_madvise, {4096, 4096, MADV_NOHUGEPAGE}, true},
    {"rt_sigprocmask", SYS_rt_sigprocmask, {UINT64_MAX, 4096}, true},
    {"rt_sigreturn", SYS_rt_sigreturn, {0}, false},
    {"gettid", SYS_gettid, {0}, false},
    {"getpid", SYS_getpid, {0}, false},
    {"getppid", SYS_getppid, {0}, true},
    {"poll", SYS_poll, {4096, 1, 2000}, false},
    {"poll", SYS_poll, {0, 0, 1}, true},
    {"clock_gettime", SYS_clock_gettime, {CLOCK_MONOTONIC, 4096}, false},
    {"socketpair", SYS_socketpair, {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC}, false},
    {"fcntl", SYS_fcntl, {3, F_DUPFD_CLOEXEC, OWN_FD}, false},
    {"sendmsg", SYS_sendmsg, {OWN_FD, 4096, MSG_NOSIGNAL}, false},
    {"recvmsg", SYS_recvmsg, {OWN_FD, 4096, MSG_CMSG_CLOEXEC | MSG_DONTWAIT}, false},
    {"recvmsg", SYS_recvmsg, {OWN_FD, 4096, MSG_PEEK | MSG_DONTWAIT}, false},
    {"shutdown", SYS_shutdown, {OWN_FD, SHUT_RD}, true},
    {"close", SYS_close, {3}, false},
    {"fstat", SYS_fstat, {OWN_FD, 4096}, false},
    {"openat", SYS_openat, {(uint64_t)AT_FDCWD, 4096, O_RDONLY | O_CLOEXEC}, true},
    {"read", SYS_read, {3, 4096, 1024}, true},
    {"prlimit64", SYS_prlimit64, {0, RLIMIT_NOFILE, 0, 4096}, true},
    {"prlimit64", SYS_prlimit64, {0, RLIMIT_AS, 0, 4096}, true},
    {"prlimit64", SYS_prlimit64, {0, RLIMIT_DATA, 0, 4096}, true},
};

static bool
is_permitted(const struct sock_filter *lines, uint32_t count, const struct own_call *own) {
    struct seccomp_data call = {.nr = own->number, .arch = AUDIT_ARCH_X86_64};
    for (size_t i = 0; i < sizeof(own->arguments) / sizeof(own->arguments[0]); i++) {
        call.args[i] = own->arguments[i];
    }
    const uint32_t answer = ml_filter_answer(lines, count, &call) & SECCOMP_RET_ACTION_FULL;
    return answer == SECCOMP_RET_ALLOW || answer == SECCOMP_RET_LOG ||
           (own->may_fail && answer == SECCOMP_RET_ERRNO);
}

static bool all_permit(const struct ml_attach_filters *filters, const struct own_call *own) {
    const struct sock_filter *lines = filters->lines;
    for (uint32_t i = 0; i < filters->count; i++) {
        if (!is_permitted(lines, filters->counts[i], own)) {
            return false;
        }
        lines += filters->counts[i];
    }
    return true;
}

void ml_filters_mend_waits(const struct ml_threads *stopped) {
    for (size_t i = 0; i < stopped->count; i++) {
        if (stopped->list[i].state == ML_TRACED_STOPPED) {
            ml_seccomp_mend_wait(stopped->list[i].id);
        }
    }
}

bool ml_filters_permit(const struct ml_attach_filters *filters, struct ml_error_message *error) {
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        if (!all_permit(filters, &calls[i])) {
            ml_error_set(
                error,
                "its seccomp filter forbids %s, which memlog needs: start it under memlog run",
                calls[i].name
            );
            return false;
        }
    }
    return true;
}

void ml_filters_suspend(const struct ml_traced *thread) {
    enum { SUSPEND = 1 << 21 /* PTRACE_O_SUSPEND_SECCOMP */ };
    (void
    )ptrace(PTRACE_SETOPTIONS, thread->id, NULL, (void *)(long)(PTRACE_O_TRACESYSGOOD | SUSPEND));
}

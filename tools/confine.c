#include "tools/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/landlock.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

/* AddressSanitizer's leak check at the end is a process that traces this one. */
#ifdef __SANITIZE_ADDRESS__
enum { CONFINE_CALLS = 0 };
#else
enum { CONFINE_CALLS = 1 };
#endif

/* Everything that changes the file system, as of Landlock's first version; later ones add to it. */
static const uint64_t writing =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
    LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
    LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |
    LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_EXECUTE;

/* What convert does to its output: write a new file, rename it over the old one or remove it. */
static const uint64_t writing_output =
    LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG;

static void permit_folder_of(int ruleset_fd, const char *path) {
    const char *slash = strrchr(path, '/');
    char folder[PATH_MAX] = ".";
    struct landlock_path_beneath_attr rule = {.allowed_access = writing_output, .parent_fd = -1};

    if (slash) {
        snprintf(folder, sizeof folder, "%.*s", slash == path ? 1 : (int)(slash - path), path);
    }
    rule.parent_fd = open(folder, O_PATH | O_CLOEXEC | O_DIRECTORY);
    if (rule.parent_fd >= 0) {
        syscall(SYS_landlock_add_rule, ruleset_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
        close(rule.parent_fd);
    }
}

static void confine_files(const char *output_path) {
    const struct landlock_ruleset_attr attributes = {.handled_access_fs = writing};
    int ruleset_fd = (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);

    if (ruleset_fd < 0) {
        return;
    }
    if (output_path) {
        permit_folder_of(ruleset_fd, output_path);
    }
    syscall(SYS_landlock_restrict_self, ruleset_fd, 0);
    close(ruleset_fd);
}

/* A call that is permitted; with a mask, if (argument & mask) == value. */
struct permitted {
    int call;
    unsigned argument;
    uint64_t mask, value;
};

/* Argument `number_` must be `value_`. Descriptors, flags and pids are 32 bits wide. */
#define ONLY(call_, number_, value_)                                                               \
    { SCMP_SYS(call_), (number_), UINT32_MAX, (value_) }
/* None of `flags_` may be set in argument `number_`. */
#define WITHOUT(call_, number_, flags_)                                                            \
    { SCMP_SYS(call_), (number_), (flags_), 0 }
#define ANY(call_)                                                                                 \
    { SCMP_SYS(call_), 0, 0, 0 }

/* What reading files, working on them and saying the outcome needs, and what libc needs for it. The
 * rest is refused with EPERM: a library that asks for more goes on without. */
static const struct permitted permitted[] = {
    /* files */
    ANY(read),
    ANY(readv),
    ANY(pread64),
    ANY(lseek),
    ANY(close),
    ANY(stat),
    ANY(lstat),
    ANY(fstat),
    ANY(newfstatat),
    ANY(statx),
    ANY(access),
    ANY(faccessat),
    ANY(faccessat2),
    ANY(readlink),
    ANY(readlinkat),
    ANY(getcwd),
    ANY(getdents64),
    ANY(fadvise64),
    /* what is said; the descriptors are those that it was started with, and the output's */
    ANY(write),
    ANY(writev),
    ONLY(ioctl, 1, TCGETS),
    ONLY(ioctl, 1, TIOCGWINSZ),
    ONLY(fcntl, 1, F_GETFD),
    ONLY(fcntl, 1, F_SETFD),
    ONLY(fcntl, 1, F_GETFL),
    ONLY(fcntl, 1, F_DUPFD_CLOEXEC),
    /* memory, but no code: libdw would load libdebuginfod and libcurl into this process */
    ANY(brk),
    WITHOUT(mmap, 2, PROT_EXEC),
    WITHOUT(mprotect, 2, PROT_EXEC),
    ANY(mremap),
    ANY(munmap),
    ANY(madvise),
    /* libc: locks, random numbers for its tables, how much memory there is, time, who are we */
    ANY(futex),
    ANY(getrandom),
    ANY(sysinfo),
    ANY(clock_gettime),
    ANY(gettimeofday),
    ANY(time),
    ANY(getpid),
    ANY(gettid),
    ANY(getuid),
    ANY(geteuid),
    ANY(getgid),
    ANY(getegid),
    ANY(uname),
    /* the answers of the fetcher, and its end */
    ANY(poll),
    ANY(ppoll),
    ANY(wait4),
    /* abort(), signal handlers of sanitizers, and the end */
    ANY(rt_sigaction),
    ANY(rt_sigprocmask),
    ANY(rt_sigreturn),
    ANY(sigaltstack),
    ANY(restart_syscall),
    ANY(exit),
    ANY(exit_group),
};

/* Without an output nothing is opened for writing, whatever Landlock says. */
static const struct permitted permitted_to_read[] = {
    WITHOUT(open, 1, O_ACCMODE | O_CREAT | O_TRUNC),
    WITHOUT(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC),
};
static const struct permitted permitted_to_write[] = {
    ANY(open),
    ANY(openat),
    ANY(rename),
    ANY(renameat),
    ANY(renameat2),
    ANY(unlink),
    ANY(unlinkat),
};

static bool permit(scmp_filter_ctx filter, const struct permitted *list, size_t count) {
    bool done = true;

    for (size_t i = 0; done && i < count; i++) {
        const struct scmp_arg_cmp compared = {
            .arg = list[i].argument,
            .op = SCMP_CMP_MASKED_EQ,
            .datum_a = list[i].mask,
            .datum_b = list[i].value,
        };
        /* Negative: this architecture has no such call, so nobody can make it. */
        if (list[i].call >= 0) {
            done = seccomp_rule_add_array(
                       filter, SCMP_ACT_ALLOW, list[i].call, list[i].mask != 0 ? 1 : 0, &compared
                   ) == 0;
        }
    }
    return done;
}

#define COUNT_OF(list_) (sizeof(list_) / sizeof((list_)[0]))

static void confine_calls(bool writes) {
    const struct permitted abort_itself = ONLY(tgkill, 0, (uint64_t)getpid());
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    bool done = filter != NULL;

    done = done && seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) == 0;
    done = done && permit(filter, permitted, COUNT_OF(permitted));
    done = done && permit(filter, &abort_itself, 1);
    done = done && (writes ? permit(filter, permitted_to_write, COUNT_OF(permitted_to_write))
                           : permit(filter, permitted_to_read, COUNT_OF(permitted_to_read)));
    if (done) {
        (void)seccomp_load(filter);
    }
    seccomp_release(filter);
}

void ml_confine(const char *output_path) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return;
    }
    confine_files(output_path);
    if (CONFINE_CALLS) {
        confine_calls(output_path != NULL);
    }
}

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
#include <sys/prctl.h>
#include <sys/syscall.h>
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

/* Calls that no reader of files needs, by what they would give away. */
static const int refused_calls[] = {
    /* other programs and processes */
    SCMP_SYS(execve),
    SCMP_SYS(execveat),
    SCMP_SYS(fork),
    SCMP_SYS(vfork),
    SCMP_SYS(clone),
    SCMP_SYS(clone3),
    SCMP_SYS(kill),
    SCMP_SYS(tkill),
    SCMP_SYS(pidfd_open),
    SCMP_SYS(pidfd_getfd),
    SCMP_SYS(pidfd_send_signal),
    SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv),
    SCMP_SYS(process_vm_writev),
    /* the network, and daemons on local sockets */
    SCMP_SYS(socket),
    SCMP_SYS(socketpair),
    SCMP_SYS(connect),
    SCMP_SYS(bind),
    SCMP_SYS(listen),
    SCMP_SYS(accept),
    SCMP_SYS(accept4),
    SCMP_SYS(sendto),
    SCMP_SYS(sendmsg),
    SCMP_SYS(sendmmsg),
    /* the kernel's wider surface */
    SCMP_SYS(bpf),
    SCMP_SYS(io_uring_setup),
    SCMP_SYS(userfaultfd),
    SCMP_SYS(perf_event_open),
    SCMP_SYS(keyctl),
    SCMP_SYS(add_key),
    SCMP_SYS(request_key),
    SCMP_SYS(unshare),
    SCMP_SYS(setns),
    SCMP_SYS(mount),
    SCMP_SYS(umount2),
    SCMP_SYS(pivot_root),
    SCMP_SYS(chroot),
    /* what Landlock's first version does not cover */
    SCMP_SYS(truncate),
    SCMP_SYS(chmod),
    SCMP_SYS(fchmodat),
    SCMP_SYS(chown),
    SCMP_SYS(lchown),
    SCMP_SYS(fchownat),
    SCMP_SYS(setxattr),
    SCMP_SYS(lsetxattr),
    SCMP_SYS(removexattr),
    SCMP_SYS(lremovexattr),
};

static void confine_calls(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    bool done = filter != NULL;

    for (size_t i = 0; done && i < sizeof refused_calls / sizeof refused_calls[0]; i++) {
        done = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), refused_calls[i], 0) == 0;
    }
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
        confine_calls();
    }
}

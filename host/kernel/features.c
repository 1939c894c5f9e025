#include "host/kernel/features.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A name at no address is all that the kernel minds. */
static bool has_memfd(void) {
    return syscall(SYS_memfd_create, NULL, MFD_CLOEXEC | MFD_ALLOW_SEALING) < 0 && errno == EFAULT;
}

/* Of nothing. */
static bool has_wipe_on_fork(void) {
    return madvise(NULL, 0, MADV_WIPEONFORK) == 0;
}

static bool has_seccomp(void) {
    const uint32_t kill = SECCOMP_RET_KILL_PROCESS;
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &kill) == 0;
}

/* In a child: it cannot be taken back. */
static bool has_no_new_privs(void) {
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        _exit(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 ? 0 : 1);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static bool has_landlock(void) {
    return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) >= 1;
}

/* Who may not mount hears EPERM before anything else is looked at, and may in a namespace of his
 * own: a filter that says the same is not told from that. */
static bool has_mounts(void) {
    return syscall(SYS_fsopen, NULL, 0) < 0 && errno != ENOSYS;
}

/* As AppArmor, or a kernel without CONFIG_PROC_PAGE_MONITOR, refuses them. */
static bool may_open(const char *path) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
    }
    return fd >= 0;
}

static bool has_pagemap(void) {
    return may_open("/proc/self/pagemap");
}

static bool has_smaps(void) {
    return may_open("/proc/self/smaps");
}

static bool has_rollup(void) {
    return may_open("/proc/self/smaps_rollup");
}

static bool has_pidfds(void) {
    const int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
    const int taken = own >= 0 ? (int)syscall(SYS_pidfd_getfd, own, own, 0) : -1;
    if (taken >= 0) {
        (void)close(taken);
    }
    if (own >= 0) {
        (void)close(own);
    }
    return taken >= 0;
}

const struct ml_kernel_feature *ml_kernel_features(size_t *out_count) {
    static const struct ml_kernel_feature features[] = {
        {"memfd_create", "3.17", "nothing is recorded", true, false, has_memfd},
        {"MADV_WIPEONFORK", "4.14", "nothing is recorded", true, false, has_wipe_on_fork},
        {"seccomp filters",
         "4.14",
         "memlog-service runs with --sandbox=none alone, and what is sent is read without this "
         "wall",
         true,
         true,
         has_seccomp},
        {"no_new_privs",
         "3.5",
         "memlog-service runs with --sandbox=none alone, and memlog-analyzer reads dumps without "
         "any wall",
         true,
         true,
         has_no_new_privs},
        {"pidfd_open and pidfd_getfd",
         "5.6",
         "memlog attaches to no process, and looks for ends by /proc",
         false,
         false,
         has_pidfds},
        {"mount API (fsopen)",
         "5.2",
         "memlog-service keeps its view of the file system",
         false,
         false,
         has_mounts},
        {"/proc/PID/smaps",
         "2.6.14",
         "no dump says what memory is made of",
         false,
         false,
         has_smaps},
        {"/proc/PID/smaps_rollup",
         "4.14",
         "private memory is known at dumps alone, and no --threshold makes one",
         false,
         false,
         has_rollup},
        {"/proc/PID/pagemap",
         "2.6.25",
         "which of a heap's pages are resident is estimated",
         false,
         false,
         has_pagemap},
        {"Landlock",
         "5.13",
         "memlog-service and memlog-analyzer go without this wall",
         false,
         true,
         has_landlock},
    };
    *out_count = sizeof(features) / sizeof(features[0]);
    return features;
}

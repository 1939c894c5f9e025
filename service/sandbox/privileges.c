/* Landlock, privileges and limits: they forbid the use of what exists. */
#include <errno.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "service/sandbox/internal.h"

/* The kernel's struct as of ABI 6; the headers of Linux 6.1 have its first field alone. Older
 * kernels accept a longer struct if its end is zero. */
struct ruleset_attributes {
    uint64_t handled_access_fs;
    uint64_t handled_access_net;
    uint64_t scoped;
};

/* What a version of Landlock (linux/landlock.h, "ABI") can deny beyond the version before. */
struct landlock_step {
    int abi;
    struct ruleset_attributes denies;
};

static const struct landlock_step landlock_steps[] = {
    {1, {(UINT64_C(1) << 13) - 1, 0, 0}}, /* execute .. make_sym */
    {2, {UINT64_C(1) << 13, 0, 0}},       /* refer */
    {3, {UINT64_C(1) << 14, 0, 0}},       /* truncate */
    {4, {0, 3, 0}},                       /* bind and connect of TCP */
    {5, {UINT64_C(1) << 15, 0, 0}},       /* ioctl of devices */
    {6, {0, 0, 3}},                       /* abstract UNIX sockets, signals */
};

bool ml_sandbox_landlock(struct ml_sandbox_report *report) {
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (abi < 1) {
        ml_sandbox_miss(report, "Landlock", errno);
        return false;
    }
    struct ruleset_attributes denied = {0};
    for (size_t i = 0; i < sizeof(landlock_steps) / sizeof(landlock_steps[0]); i++) {
        if (landlock_steps[i].abi <= abi) {
            denied.handled_access_fs |= landlock_steps[i].denies.handled_access_fs;
            denied.handled_access_net |= landlock_steps[i].denies.handled_access_net;
            denied.scoped |= landlock_steps[i].denies.scoped;
        }
    }
    /* No rule is added, so everything that is handled is denied everywhere. */
    const long ruleset_fd = syscall(SYS_landlock_create_ruleset, &denied, sizeof(denied), 0);
    if (ruleset_fd < 0) {
        ml_sandbox_miss(report, "Landlock", errno);
        return false;
    }
    const bool done = syscall(SYS_landlock_restrict_self, ruleset_fd, 0) == 0;
    if (!done) {
        ml_sandbox_miss(report, "Landlock", errno);
    }
    (void)close((int)ruleset_fd);
    return done;
}

bool ml_sandbox_privileges(struct ml_sandbox_report *report) {
    bool complete = true;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        ml_sandbox_miss(report, "no_new_privs", errno);
        complete = false;
    }
    /* Without this, root outside a user namespace keeps its power over other processes. */
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    if (syscall(SYS_capset, &header, none) != 0) {
        ml_sandbox_miss(report, "dropping of capabilities", errno);
        complete = false;
    }
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        ml_sandbox_miss(report, "protection from tracing", errno);
        complete = false;
    }
    return complete;
}

static bool
limit(__rlimit_resource_t which, rlim_t value, const char *name, struct ml_sandbox_report *report) {
    const struct rlimit both = {.rlim_cur = value, .rlim_max = value};
    if (setrlimit(which, &both) != 0) {
        ml_sandbox_miss(report, name, errno);
        return false;
    }
    return true;
}

bool ml_sandbox_limits(struct ml_sandbox_report *report) {
    bool complete = limit(RLIMIT_NPROC, 0, "limit of processes", report);
    complete = limit(RLIMIT_CORE, 0, "limit of core files", report) && complete;
    complete = limit(RLIMIT_MSGQUEUE, 0, "limit of message queues", report) && complete;
    complete = limit(RLIMIT_MEMLOCK, 0, "limit of locked memory", report) && complete;
    /* FSIZE has no limit: a dump file may grow as long as it must. */
    return complete;
}

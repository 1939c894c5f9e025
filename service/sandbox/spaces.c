/* Namespaces and the empty root: what does not exist cannot be reached. */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "service/sandbox/internal.h"

bool ml_sandbox_namespaces(struct ml_sandbox_report *report, bool *out_own_mounts) {
    /* One by one, so that a refusal of some leaves the others. The user namespace comes first: it
     * gives the right to make the rest. No user is mapped into it, so files belong to nobody. A pid
     * namespace would need a fork; seccomp, Landlock and the limits forbid what it would. */
    static const struct {
        int flag;
        const char *name;
    } spaces[] = {
        {CLONE_NEWUSER, "user namespace"},
        {CLONE_NEWNS, "mount namespace"},
        {CLONE_NEWNET, "network namespace"},
        {CLONE_NEWIPC, "IPC namespace"},
        {CLONE_NEWUTS, "UTS namespace"},
        {CLONE_NEWCGROUP, "cgroup namespace"},
    };
    bool complete = true;
    *out_own_mounts = false;
    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++) {
        if (unshare(spaces[i].flag) != 0) {
            ml_sandbox_miss(report, spaces[i].name, errno);
            complete = false;
        } else if (spaces[i].flag == CLONE_NEWNS) {
            *out_own_mounts = true;
        }
    }
    return complete;
}

/* An empty read-only file system, not mounted yet; -1 and errno. */
static int make_empty_root(void) {
    const int context_fd = fsopen("tmpfs", FSOPEN_CLOEXEC);
    if (context_fd < 0) {
        return -1;
    }
    int mount_fd = -1;
    if (fsconfig(context_fd, FSCONFIG_SET_STRING, "mode", "0555", 0) == 0 &&
        fsconfig(context_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0) {
        mount_fd = fsmount(
            context_fd,
            FSMOUNT_CLOEXEC,
            MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC
        );
    }
    const int error = errno;
    (void)close(context_fd);
    errno = error;
    return mount_fd;
}

bool ml_sandbox_root(bool own_mounts, struct ml_sandbox_report *report) {
    if (!own_mounts) {
        ml_sandbox_miss(report, "empty root", 0);
        return false;
    }
    /* The mounts become private first: in a shared tree the new root would appear outside as
     * well. */
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        ml_sandbox_miss(report, "empty root", errno);
        return false;
    }
    const int root_fd = make_empty_root();
    if (root_fd < 0) {
        ml_sandbox_miss(report, "empty root", errno);
        return false;
    }
    /* Mounted over the old root, then put in its place. pivot_root(".", ".") needs no directory for
     * the old root: it then lies on top of the new one and is unmounted. -1 stands for AT_FDCWD, as
     * the path is absolute. */
    const bool done = move_mount(root_fd, "", -1, "/", MOVE_MOUNT_F_EMPTY_PATH) == 0 &&
                      fchdir(root_fd) == 0 && syscall(SYS_pivot_root, ".", ".") == 0 &&
                      umount2(".", MNT_DETACH) == 0 && chdir("/") == 0;
    if (!done) {
        ml_sandbox_miss(report, "empty root", errno);
    }
    (void)close(root_fd);
    return done;
}

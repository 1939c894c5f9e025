#include "tests/service/container.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/mount.h>

static int forbid(const int *numbers, size_t count) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL) {
        return -1;
    }
    int answer = 0;
    for (size_t i = 0; answer == 0 && i < count; i++) {
        answer = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), numbers[i], 0);
    }
    if (answer == 0) {
        answer = seccomp_load(filter);
    }
    seccomp_release(filter);
    return answer;
}

int container_enter(void) {
    static const int forbidden[] = {
        SCMP_SYS(unshare),
        SCMP_SYS(mount),
        SCMP_SYS(fsopen),
        SCMP_SYS(pivot_root),
        SCMP_SYS(move_mount),
        SCMP_SYS(landlock_create_ruleset),
    };
    return forbid(forbidden, sizeof(forbidden) / sizeof(forbidden[0]));
}

int container_enter_without_unshare(void) {
    static const int forbidden[] = {SCMP_SYS(unshare)};
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return -1;
    }
    return forbid(forbidden, 1);
}

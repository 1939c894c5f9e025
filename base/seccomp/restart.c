#include "base/seccomp/restart.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <unistd.h>

#include "base/seccomp/filter.h"

enum {
    GET_FILTER = 0x420c, /* PTRACE_SECCOMP_GET_FILTER */
    DEPTH_MAX = 1024,    /* filters of one thread */
    /* Of the kernel: by restart_syscall; as it was made at first. */
    ANSWER_RESTART_BLOCK = -516,
    ANSWER_RESTART_NO_HAND = -514
};

/* False, too: one cannot be read. */
static bool lets_through(pid_t tid, const struct seccomp_data *call) {
    static struct sock_filter lines[BPF_MAXINSNS];
    const enum __ptrace_request request = (enum __ptrace_request)GET_FILTER;
    for (uintptr_t i = 0; i < DEPTH_MAX; i++) {
        const long count = ptrace(request, tid, (void *)i, NULL);
        if (count < 0) {
            return errno == ENOENT || errno == EINVAL; /* it has no more, or none */
        }
        if (count > BPF_MAXINSNS || ptrace(request, tid, (void *)i, lines) != count) {
            return false;
        }
        const uint32_t answer =
            ml_filter_answer(lines, (uint32_t)count, call) & SECCOMP_RET_ACTION_FULL;
        if (answer != SECCOMP_RET_ALLOW && answer != SECCOMP_RET_LOG) {
            return false;
        }
    }
    return false;
}

void ml_seccomp_mend_wait(pid_t tid) {
    static const struct seccomp_data restart = {
        .nr = SYS_restart_syscall, .arch = AUDIT_ARCH_X86_64};
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, tid, NULL, &registers) == 0 &&
        (long)registers.rax == ANSWER_RESTART_BLOCK && !lets_through(tid, &restart)) {
        registers.rax = (unsigned long long)ANSWER_RESTART_NO_HAND;
        (void)ptrace(PTRACE_SETREGS, tid, NULL, &registers);
    }
}

bool ml_seccomp_filters_are_readable(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};
    return syscall(SYS_capget, &header, sets) == 0 && (sets[0].effective >> CAP_SYS_ADMIN & 1) != 0;
}

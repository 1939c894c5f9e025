/* Forks that bypass pthread_atfork: _Fork, clone and the bare system call. Room: client. Context:
 * any.
 *
 * One rule: where the call may return a second time, in a new process on another stack, the real
 * function runs in the caller's frame: these hooks jump to it and leave no frame of their own.
 */
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "client/recording/lifecycle.h"
#include "client/startup/seccomp_probe.h"
#include "client/startup/exec_preload.h"
#include "client/startup/libc.h"
#include "client/state/visible.h"
#include "client/symbols/symbols.h"
#include "client/unwind/foreign.h"

/* Whether that system call creates a process with its own address space. clone3's flags lie in
 * memory. */
static bool forks(long number, long first) {
    struct ml_foreign foreign = {0};
    const void *memory = (const void *)first;
    uint64_t flags = 0;
    if (number == SYS_fork) {
        return true;
    }
    if (number == SYS_clone) {
        flags = (uint64_t)first;
    } else if (number == SYS_clone3 && ml_foreign_readable(&foreign, memory, sizeof(flags))) {
        __builtin_memcpy(&flags, memory, sizeof(flags));
    } else {
        return false;
    }
    return (flags & (CLONE_VM | CLONE_THREAD)) == 0;
}

/* seccomp(2), which libc does not wrap. It returns once, so it may be called. */
static long call_seccomp(long number, long operation, long flags, const void *given) {
    long (*const real)(long, ...) = (long (*)(long, ...))ml_libc.syscall;
    if (operation == SECCOMP_SET_MODE_FILTER) {
        ml_seccomp_probe_before();
    }
    const long result = real(number, operation, flags, given);
    /* Above 0: the new listener, or a thread that could not be synchronized; then no filter is
     * installed. */
    const bool taken =
        result == 0 || (result > 0 && ((unsigned long)flags & SECCOMP_FILTER_FLAG_TSYNC) == 0);
    if (taken && operation == SECCOMP_SET_MODE_FILTER) {
        ml_seccomp_probe_filter(given);
    } else if (result == 0 && operation == SECCOMP_SET_MODE_STRICT) {
        ml_seccomp_probe_closed();
    }
    return result;
}

/* The child of a fork in a signal handler may continue a hook that the handler interrupted. It runs
 * on the same stack, so these may return twice. */
static pid_t fork_and_look(void) {
    const pid_t pid = ((pid_t(*)(void))ml_libc.fork)();
    if (pid == 0) {
        ml_lifecycle_after_fork_in_child();
    } else {
        ml_lifecycle_after_fork_in_parent();
    }
    return pid;
}

static long syscall_and_look(long number, long a, long b, long c, long d, long e, long f) {
    long (*const real)(long, ...) = (long (*)(long, ...))ml_libc.syscall;
    const long result = real(number, a, b, c, d, e, f);
    if (result == 0) {
        ml_lifecycle_after_fork_in_child();
    } else {
        ml_lifecycle_after_fork_in_parent();
    }
    return result;
}

/* Called by the stubs below, which keep the caller's registers. Returns where to go on. */
static __attribute__((used)) void *before_syscall(long number, long first, long second) {
    ML_LIBC_READY(syscall);
    if (__builtin_expect(forks(number, first), 0)) {
        ml_lifecycle_before_fork();
        if (number == SYS_fork || (number == SYS_clone && second == 0)) {
            return (void *)syscall_and_look;
        }
    }
    if ((__builtin_expect(number == SYS_execve, 0) && (!ML_ATTACHED || ml_libc.execve != NULL)) ||
        __builtin_expect(number == SYS_execveat && ml_libc.execveat != NULL, 0)) {
        return (void *)ml_exec_preload_syscall;
    }
    if (__builtin_expect(number == SYS_seccomp, 0)) {
        return (void *)call_seccomp;
    }
    if (__builtin_expect(number == SYS_prctl, 0) && ml_seccomp_probe_wants(first)) {
        return (void *)ml_seccomp_probe_syscall;
    }
    return ml_libc.syscall;
}

static __attribute__((used)) void *before_clone(long function, long stack, long flags) {
    (void)function;
    (void)stack;
    ML_LIBC_READY(clone);
    if ((flags & (CLONE_VM | CLONE_THREAD)) == 0) {
        ml_lifecycle_before_fork();
    }
    return ml_libc.clone;
}

static __attribute__((used)) void *before_fork(void) {
    ML_LIBC_READY(fork);
    if (ml_libc.fork ==
        NULL) { /* before 2.34 libc has one fork, which calls its handlers, ours too */
        return ml_symbol_next("fork").address;
    }
    ml_lifecycle_before_fork();
    return fork_and_look;
}

/* Keep the six argument registers and rax (the count of vector registers of a variadic call) over a
 * call of `before`, then jump to what it answers. */
#define STUB(name, before)                                                                         \
    __asm__(".text\n"                                                                              \
            ".globl " name "\n"                                                                    \
            ".type " name ", @function\n" name ":\n"                                               \
            ".cfi_startproc\n"                                                                     \
            "push %rdi\n push %rsi\n push %rdx\n push %rcx\n push %r8\n push %r9\n push %rax\n"    \
            ".cfi_adjust_cfa_offset 56\n"                                                          \
            "call " before "\n"                                                                    \
            "mov %rax, %r11\n"                                                                     \
            "pop %rax\n pop %r9\n pop %r8\n pop %rcx\n pop %rdx\n pop %rsi\n pop %rdi\n"           \
            ".cfi_adjust_cfa_offset -56\n"                                                         \
            "jmp *%r11\n"                                                                          \
            ".cfi_endproc\n"                                                                       \
            ".size " name ", . - " name "\n")

STUB("syscall", "before_syscall");
STUB("clone", "before_clone");
STUB("_Fork", "before_fork");

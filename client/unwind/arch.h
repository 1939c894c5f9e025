/* The processor-specific part of the unwinder. Room: client. Context: any.
 *
 * One rule: everything specific to x86-64 is here; a port adds its numbers and its three pieces of
 * assembly and changes nothing else. */
#ifndef MEMLOG_CLIENT_UNWIND_ARCH_H
#define MEMLOG_CLIENT_UNWIND_ARCH_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "ipc/wire/ml_status.h"

#if !defined(__x86_64__) || defined(__ILP32__)
#    error "the unwinder is written for x86-64 (LP64)"
#endif

/* DWARF register numbers, System V ABI, AMD64 supplement, figure 3.36. */
enum {
    ML_ARCH_RBX = 3,
    ML_ARCH_FP = 6, /* rbp */
    ML_ARCH_SP = 7, /* rsp */
    ML_ARCH_R12 = 12,
    ML_ARCH_R13 = 13,
    ML_ARCH_R14 = 14,
    ML_ARCH_R15 = 15,
    ML_ARCH_RA = 16,
    ML_ARCH_CFI_REGISTERS = 17,
    ML_ARCH_WORD_BYTES = 8,
    ML_ARCH_PAGE_BYTES =
        4096, /* the smallest page there is: probing by it is right for larger ones */
    ML_ARCH_RED_ZONE_BYTES = 128 /* live memory below rsp in a leaf that a signal interrupted */
};

/* Registers that a function hands back unchanged: known in every frame without a rule. */
#define ML_ARCH_CALLEE_SAVED                                                                       \
    ((UINT32_C(1) << ML_ARCH_RBX) | (UINT32_C(1) << ML_ARCH_FP) | (UINT32_C(1) << ML_ARCH_R12) |   \
     (UINT32_C(1) << ML_ARCH_R13) | (UINT32_C(1) << ML_ARCH_R14) | (UINT32_C(1) << ML_ARCH_R15))

/* User addresses that recipes are cached for; beyond (5-level paging, asked for explicitly) the
 * stack is walked without cache. */
#define ML_ARCH_ADDRESS_BITS 48

/* The calling function's own registers at this very point: pc, sp, fp and the other callee-saved
 * ones. Always inline, so that they are those of the frame it stands in. */
static inline __attribute__((always_inline)) void
ml_arch_capture(uint64_t registers[ML_ARCH_CFI_REGISTERS]) {
    __asm__ volatile("leaq 0(%%rip), %%rax\n\t"
                     "movq %%rax, 128(%0)\n\t"
                     "movq %%rbx, 24(%0)\n\t"
                     "movq %%rbp, 48(%0)\n\t"
                     "movq %%rsp, 56(%0)\n\t"
                     "movq %%r12, 96(%0)\n\t"
                     "movq %%r13, 104(%0)\n\t"
                     "movq %%r14, 112(%0)\n\t"
                     "movq %%r15, 120(%0)"
                     :
                     : "r"(registers)
                     : "rax", "memory");
}

/* The thread control block. glibc puts it at the outer end of the stacks it makes for threads. */
static inline uintptr_t ml_arch_thread_pointer(void) {
    uintptr_t self;
    __asm__("movq %%fs:0, %0" : "=r"(self));
    return self;
}

/* The one place that reads stack memory; the caller has made sure that it may. Sanitizers are off
 * for it: it reads other functions' frames. */
__attribute__((no_sanitize("address", "thread", "undefined"))) static inline uintptr_t
ml_unwind_load(uintptr_t address) {
    return *(const uintptr_t *)address; /* not volatile: comparing a word may be its load */
}

/* Can the word at `address` be read? One rt_sigprocmask with a `how` that does not exist: the
 * kernel copies the set from `address` first (EFAULT: no) and then refuses (EINVAL: yes), so
 * nothing changes. errno is not touched. Every sandbox that permits threads permits the call. */
static inline bool ml_arch_readable(uintptr_t address) {
    long result = SYS_rt_sigprocmask;
    register long size __asm__("r10") = 8; /* sizeof the kernel's sigset_t */
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(~0L), "S"(address), "d"(0L), "r"(size)
                     : "rcx", "r11", "memory");
    return address != 0 && result == -22; /* EINVAL; anything else, a filter's EPERM too, is a no */
}

#endif

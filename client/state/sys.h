/* System calls without libc. Room: client. Context: the malloc path, signal handlers, forked
 * children.
 *
 * One rule: nothing here touches errno, is a cancellation point, or goes through a symbol that
 * somebody may have interposed. Results are the kernel's: a negative errno on failure. */
#ifndef MEMLOG_CLIENT_STATE_SYS_H
#define MEMLOG_CLIENT_STATE_SYS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#if !defined(__x86_64__)
#    error "memlog's client knows x86-64 alone so far"
#endif

static inline long ml_sys6(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static inline long ml_sys4(long number, long a, long b, long c, long d) {
    return ml_sys6(number, a, b, c, d, 0, 0);
}

static inline long ml_sys3(long number, long a, long b, long c) {
    return ml_sys6(number, a, b, c, 0, 0, 0);
}

static inline long ml_sys1(long number, long a) {
    return ml_sys6(number, a, 0, 0, 0, 0, 0);
}

static inline long ml_sys0(long number) {
    return ml_sys6(number, 0, 0, 0, 0, 0, 0);
}

/* Of a descriptor of ours; -1: there is none. */
static inline void ml_sys_close(int fd) {
    if (fd >= 0) {
        (void)ml_sys1(SYS_close, fd);
    }
}

/* Some 20 us, without a system call. */
static inline void ml_sys_linger(void) {
    enum { PAUSES = 1000 };
    for (int i = 0; i < PAUSES; i++) {
        __builtin_ia32_pause();
    }
}

/* CLOCK_MONOTONIC by the system call itself: a program may have interposed clock_gettime. */
static inline uint64_t ml_sys_monotonic_ns(void) {
    int64_t now[2] = {0, 0};
    (void)ml_sys3(SYS_clock_gettime, 1, (long)now, 0);
    return (uint64_t)now[0] * 1000000000u + (uint64_t)now[1];
}

/* The stamp of an event among several threads: ordered behind everything before it, so that what
 * another core does after having seen our stores is stamped later. Not by rdtscp: not every
 * processor and virtual machine grants it. */
static inline uint64_t ml_sys_tsc_ordered(void) {
    uint32_t low;
    uint32_t high;
    __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

/* The same clock, unordered: the processor may read it up to a few hundred instructions early. It
 * costs 6 ns less, and the code around it need not wait. */
static inline uint64_t ml_sys_tsc(void) {
    uint32_t low;
    uint32_t high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}

#endif

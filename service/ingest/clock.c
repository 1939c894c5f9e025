#include "service/ingest/clock.h"

#include <time.h>

/* No processor ticks faster; used until the rate is measured. */
enum { TICKS_PER_NS_MAX = 10, LEARNING_NS = 1000000 };

uint64_t ml_clock_monotonic_ns(void) {
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t ml_clock_ticks(const struct ml_clock_source *clock) {
#ifdef __x86_64__
    if (clock->kind == ML_CLOCK_TSC) {
        uint32_t low = 0;
        uint32_t high = 0;
        /* As clients stamp: ordered after all earlier loads and stores of this thread. */
        __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
        return (uint64_t)high << 32 | low;
    }
#endif
    return ml_clock_monotonic_ns();
}

uint64_t ml_clock_ticks_of_ns(const struct ml_clock_source *clock, uint64_t ns) {
    if (clock->kind != ML_CLOCK_TSC) {
        return ns;
    }
    const uint64_t ticks = ml_clock_ticks(clock);
    const uint64_t now_ns = ml_clock_monotonic_ns();
    if (ticks <= clock->start.ticks || now_ns < clock->start.monotonic_ns + LEARNING_NS) {
        return ns * TICKS_PER_NS_MAX;
    }
    const double rate =
        (double)(ticks - clock->start.ticks) / (double)(now_ns - clock->start.monotonic_ns);
    return rate > TICKS_PER_NS_MAX ? ns * TICKS_PER_NS_MAX : (uint64_t)((double)ns * rate) + 1;
}

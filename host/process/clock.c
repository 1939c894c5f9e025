#include "host/process/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#    include <x86intrin.h>
#endif

static uint64_t read_clock(clockid_t id) {
    struct timespec now = {.tv_sec = 0};
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

enum ml_clock ml_clock_decide(const char *source_path) {
    enum ml_clock clock = ML_CLOCK_MONOTONIC;
#if defined(__x86_64__)
    FILE *file = fopen(source_path, "re");
    char name[16] = "";
    if (file != NULL && fgets(name, sizeof(name), file) != NULL && strcmp(name, "tsc\n") == 0) {
        clock = ML_CLOCK_TSC;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
#else
    (void)source_path;
#endif
    return clock;
}

static uint64_t read_ticks(enum ml_clock clock) {
#if defined(__x86_64__)
    if (clock == ML_CLOCK_TSC) {
        _mm_lfence(); /* as clients stamp */
        return __rdtsc();
    }
#else
    (void)clock;
#endif
    return read_clock(CLOCK_MONOTONIC);
}

struct memlog_service_moment ml_clock_timestamp(enum ml_clock clock) {
    /* Ticks on both sides of the others: their middle belongs to the others' moment, whatever the
     * scheduler does in between. */
    uint64_t before = read_ticks(clock);
    struct memlog_service_moment timestamp = {
        .monotonic_ns = read_clock(CLOCK_MONOTONIC),
        .realtime_ns = read_clock(CLOCK_REALTIME),
        .boottime_ns = read_clock(CLOCK_BOOTTIME),
    };
    uint64_t after = read_ticks(clock);
    timestamp.ticks = before + (after - before) / 2;
    if (clock == ML_CLOCK_MONOTONIC) {
        timestamp.ticks = timestamp.monotonic_ns;
    }
    return timestamp;
}

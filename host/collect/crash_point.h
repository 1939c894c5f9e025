/* Named moments between two steps of the collector, at which a test lets it die. Room: host.
 * Context: any thread.
 *
 * One rule: nobody defines ml_crash_point_reached but a test's own program
 * (tests/host/collect/dying): elsewhere a point is a comparison with nothing, and no environment
 * has a say. */
#ifndef MEMLOG_HOST_COLLECT_CRASH_POINT_H
#define MEMLOG_HOST_COLLECT_CRASH_POINT_H

#include <stddef.h>

__attribute__((weak)) void ml_crash_point_reached(const char *name);

static inline void ml_crash_point(const char *name) {
    if (ml_crash_point_reached != NULL) {
        ml_crash_point_reached(name);
    }
}

#endif

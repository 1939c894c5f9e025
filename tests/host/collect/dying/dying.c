/* A collector that dies at a named moment: MEMLOG_TEST_CRASH_POINT=NAME:N, when it comes there for
 * the Nth time. Room: tests. */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/crash_point.h"

void ml_crash_point_reached(const char *name) {
    static atomic_ulong reached;
    const char *wanted = getenv("MEMLOG_TEST_CRASH_POINT");
    const size_t count = strlen(name);
    if (wanted != NULL && strncmp(wanted, name, count) == 0 && wanted[count] == ':' &&
        atomic_fetch_add(&reached, 1) + 1 == strtoul(wanted + count + 1, NULL, 10)) {
        (void)raise(SIGKILL);
    }
}

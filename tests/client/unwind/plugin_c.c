#include <stdint.h>
#include <stdlib.h>

#include "tests/client/unwind/plugin.h"

/* Calls what the variable says while the loader loads it. */
__attribute__((constructor)) static void loaded(void) {
    const char *address = getenv(ML_PLUGIN_VARIABLE);
    if (address != NULL) {
        ((ml_plugin_probe *)(uintptr_t)strtoull(address, NULL, 16))(NULL);
    }
}

/* Compiled with frame pointers and without unwind tables, as large browsers are. */
__attribute__((noinline)) static long deeper(ml_plugin_probe *probe, void *context, long depth) {
    long below = 0;
    if (depth > 0) {
        below = deeper(probe, context, depth - 1);
    }
    probe(context);
    return below + 1;
}

__attribute__((visibility("default"))) long
ml_plugin_run(ml_plugin_probe *probe, void *context, long depth) {
    return deeper(probe, context, depth) + 1;
}

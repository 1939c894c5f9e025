#include "ipc/trace/heap_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Names that say something by themselves: to Perfetto, and of malloc's heap to people. */
static const char *const taken[] = {ML_TRACE_MALLOC_HEAP, "com.android.art", "malloc"};

static const char *taken_name(const char *name, size_t count_bytes) {
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        if (strlen(taken[i]) == count_bytes && memcmp(taken[i], name, count_bytes) == 0) {
            return taken[i];
        }
    }
    return NULL;
}

void ml_trace_heap_name(
    uint32_t heap, const char *name, size_t count_bytes, struct ml_trace_heap_name *out_name
) {
    const char *of_another = NULL;
    int count = 0;

    *out_name = (struct ml_trace_heap_name){.bytes = name, .count_bytes = count_bytes};
    if (heap == 0) {
        out_name->bytes = ML_TRACE_MALLOC_HEAP;
        out_name->count_bytes = sizeof ML_TRACE_MALLOC_HEAP - 1;
        return;
    }
    if (count_bytes == 0) {
        count = snprintf(out_name->buffer, sizeof out_name->buffer, "heap %" PRIu32, heap);
    } else {
        of_another = taken_name(name, count_bytes);
        if (!of_another) {
            return;
        }
        count =
            snprintf(out_name->buffer, sizeof out_name->buffer, "[%s, as reported]", of_another);
    }
    out_name->bytes = out_name->buffer;
    out_name->count_bytes = (size_t)count;
}

/* What a heap is called among Perfetto's. Room: ipc (:trace). Context: any.
 *
 * One rule: no two heaps of a process have one name. trace_processor adds up what has the same
 * name, and leaves out what was freed of com.android.art, which reports no frees. */
#ifndef MEMLOG_IPC_TRACE_HEAP_NAME_H
#define MEMLOG_IPC_TRACE_HEAP_NAME_H

#include <stddef.h>
#include <stdint.h>

#define ML_TRACE_MALLOC_HEAP "libc.malloc"

enum { ML_TRACE_HEAP_NAME_BYTES = 64 };

struct ml_trace_heap_name {
    const char *bytes; /* the name that was given, or `buffer` */
    size_t count_bytes;
    char buffer[ML_TRACE_HEAP_NAME_BYTES];
};

/* Shape:  heap: its id, 0: malloc's. name: what the program calls it; count_bytes 0: nothing.
 * Owner:  name is borrowed, for as long as *out_name is used. */
void ml_trace_heap_name(
    uint32_t heap, const char *name, size_t count_bytes, struct ml_trace_heap_name *out_name
);

#endif

/* What the host saw of a process: its threads, and what its memory is. Room: service. Context: one
 * thread.
 *
 * One rule: it never changes. Whoever keeps it holds a reference; a newer one takes its place. */
#ifndef MEMLOG_SERVICE_SNAPSHOT_HOST_VIEW_H
#define MEMLOG_SERVICE_SNAPSHOT_HOST_VIEW_H

#include <stddef.h>
#include <stdint.h>

/* TASK_COMM_LEN, its NUL included, and as much again for kernels that allow more. */
enum { ML_HOST_VIEW_NAME_BYTES = 32 };

struct ml_host_view_thread {
    uint32_t tid;
    char name[ML_HOST_VIEW_NAME_BYTES];
};

/* All mappings of one name. */
struct ml_host_view_memory {
    char *name;
    uint64_t size_kb;
    uint64_t private_clean_kb, private_dirty_kb, shared_clean_kb, shared_dirty_kb;
    uint64_t proportional_kb, swap_kb;
};

struct ml_host_view {
    uint32_t references;
    uint32_t threads_room, memory_room;
    uint64_t boottime_ns; /* when it was seen */
    struct ml_host_view_thread *threads;
    uint32_t threads_count;
    struct ml_host_view_memory *memory;
    uint32_t memory_count;
};

/* An empty one with room for so many, and one reference. NULL: no memory. */
struct ml_host_view *ml_host_view_new(uint32_t threads, uint32_t memory);

/* One reference more; NULL stays NULL. */
struct ml_host_view *ml_host_view_keep(struct ml_host_view *view);

/* One less: the last frees it. NULL is allowed. */
void ml_host_view_free(struct ml_host_view *take_view);

/* Add one; the text is copied, and cut. Beyond the room, or without memory, it is left out. */
void ml_host_view_thread(
    struct ml_host_view *view, uint32_t tid, const char *name, size_t name_bytes
);
void ml_host_view_memory(
    struct ml_host_view *view,
    const struct ml_host_view_memory *figures,
    const char *name,
    size_t name_bytes
);

#endif

#include "service/control/view_of.h"

struct ml_host_view *ml_view_of(const struct memlog_service_process_view *message) {
    struct ml_host_view *view = ml_host_view_new(message->threads.count, message->memory.count);
    if (view == NULL) {
        return NULL;
    }
    view->boottime_ns = message->boottime_ns;
    for (uint32_t i = 0; i < message->threads.count; i++) {
        const struct memlog_service_thread_view *thread = &message->threads.items[i];
        ml_host_view_thread(view, thread->tid, thread->name.data, thread->name.count_bytes);
    }
    for (uint32_t i = 0; i < message->memory.count; i++) {
        const struct memlog_service_memory_view *memory = &message->memory.items[i];
        const struct ml_host_view_memory figures = {
            .size_kb = memory->size_kb,
            .private_clean_kb = memory->private_clean_kb,
            .private_dirty_kb = memory->private_dirty_kb,
            .shared_clean_kb = memory->shared_clean_kb,
            .shared_dirty_kb = memory->shared_dirty_kb,
            .proportional_kb = memory->proportional_kb,
            .swap_kb = memory->swap_kb,
        };
        ml_host_view_memory(view, &figures, memory->name.data, memory->name.count_bytes);
    }
    return view;
}

#include "service/snapshot/host_view.h"

#include <stdlib.h>
#include <string.h>

struct ml_host_view *ml_host_view_new(uint32_t threads, uint32_t memory) {
    struct ml_host_view *view = calloc(1, sizeof(*view));
    if (view == NULL) {
        return NULL;
    }
    *view = (struct ml_host_view){
        .references = 1,
        .threads_room = threads,
        .memory_room = memory,
        .threads = calloc((size_t)threads + 1, sizeof(*view->threads)),
        .memory = calloc((size_t)memory + 1, sizeof(*view->memory)),
    };
    if (view->threads == NULL || view->memory == NULL) {
        ml_host_view_free(view);
        return NULL;
    }
    return view;
}

struct ml_host_view *ml_host_view_keep(struct ml_host_view *view) {
    if (view != NULL) {
        view->references++;
    }
    return view;
}

void ml_host_view_free(struct ml_host_view *take_view) {
    if (take_view == NULL || --take_view->references > 0) {
        return;
    }
    for (uint32_t i = 0; i < take_view->memory_count; i++) {
        free(take_view->memory[i].name);
    }
    free(take_view->memory);
    free(take_view->threads);
    free(take_view);
}

void ml_host_view_thread(
    struct ml_host_view *view, uint32_t tid, const char *name, size_t name_bytes
) {
    if (view->threads_count == view->threads_room) {
        return;
    }
    struct ml_host_view_thread *thread = &view->threads[view->threads_count++];
    thread->tid = tid;
    memcpy(
        thread->name,
        name,
        name_bytes < sizeof(thread->name) ? name_bytes : sizeof(thread->name) - 1
    );
}

void ml_host_view_memory(
    struct ml_host_view *view,
    const struct ml_host_view_memory *figures,
    const char *name,
    size_t name_bytes
) {
    char *copy = view->memory_count < view->memory_room ? calloc(1, name_bytes + 1) : NULL;
    if (copy == NULL) {
        return;
    }
    memcpy(copy, name, name_bytes);
    view->memory[view->memory_count] = *figures;
    view->memory[view->memory_count++].name = copy;
}

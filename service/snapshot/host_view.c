#include "service/snapshot/host_view.h"

#include <stdlib.h>
#include <string.h>

/* A copy of the text at *at, which moves behind it. */
static struct ml_string copy_text(char **at, struct ml_string text) {
    const struct ml_string copy = {.data = *at, .count_bytes = text.count_bytes};
    memcpy(*at, text.data, text.count_bytes);
    *at += text.count_bytes;
    return copy;
}

struct ml_host_view *ml_host_view_of(const struct memlog_service_process_view *seen) {
    struct memlog_service_thread_view *threads = NULL;
    struct memlog_service_memory_view *memory = NULL;
    size_t bytes = sizeof(struct ml_host_view) + seen->threads.count * sizeof(*threads) +
                   seen->memory.count * sizeof(*memory);
    for (uint32_t i = 0; i < seen->threads.count; i++) {
        bytes += seen->threads.items[i].name.count_bytes;
    }
    for (uint32_t i = 0; i < seen->memory.count; i++) {
        bytes += seen->memory.items[i].name.count_bytes;
    }
    struct ml_host_view *view = malloc(bytes);
    if (view == NULL) {
        return NULL;
    }
    threads = (void *)(view + 1);
    memory = (void *)(threads + seen->threads.count);
    char *at = (char *)(memory + seen->memory.count);
    for (uint32_t i = 0; i < seen->threads.count; i++) {
        threads[i] = seen->threads.items[i];
        threads[i].name = copy_text(&at, threads[i].name);
    }
    for (uint32_t i = 0; i < seen->memory.count; i++) {
        memory[i] = seen->memory.items[i];
        memory[i].name = copy_text(&at, memory[i].name);
    }
    *view = (struct ml_host_view){.references = 1, .seen = *seen};
    view->seen.threads.items = threads;
    view->seen.memory.items = memory;
    return view;
}

struct ml_host_view *ml_host_view_keep(struct ml_host_view *view) {
    if (view != NULL) {
        view->references++;
    }
    return view;
}

void ml_host_view_free(struct ml_host_view *take_view) {
    if (take_view != NULL && --take_view->references == 0) {
        free(take_view);
    }
}

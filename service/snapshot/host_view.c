#include "service/snapshot/host_view.h"

#include <stdlib.h>

#include "ipc/channel/channel.h"

static void measure(struct ml_host_view *view) {
    const struct memlog_service_process_view *seen = &view->message->view;
    view->bytes = sizeof(*view) + sizeof(*view->message) +
                  seen->threads.count * sizeof(*seen->threads.items) +
                  seen->regions.count * sizeof(*seen->regions.items) +
                  seen->pages.count * sizeof(*seen->pages.items);
    for (uint32_t i = 0; i < seen->threads.count; i++) {
        view->bytes += seen->threads.items[i].name.count_bytes;
    }
    for (uint32_t i = 0; i < seen->regions.count; i++) {
        const struct memlog_service_memory_region *region = &seen->regions.items[i];
        view->bytes += region->name.count_bytes;
        view->private_kb += region->private_clean_kb + region->private_dirty_kb + region->swap_kb;
    }
}

/* What a mapping of a file has of its own: code that the loader has written into, data. */
static bool is_of_file(const struct memlog_service_memory_region *region) {
    return region->name.count_bytes > 0 && region->name.data[0] == '/';
}

void ml_host_view_count_files(struct ml_host_view *view) {
    enum { KIB = 1024 };
    const struct memlog_service_process_view *seen = &view->message->view;
    uint64_t bytes = 0;
    uint64_t shared_bytes = 0;
    for (uint32_t i = 0; i < seen->regions.count; i++) {
        const struct memlog_service_memory_region *region = &seen->regions.items[i];
        if (is_of_file(region)) {
            bytes += KIB * (region->private_clean_kb + region->private_dirty_kb);
            shared_bytes += KIB * (region->shared_clean_kb + region->shared_dirty_kb);
        }
    }
    for (uint32_t i = 0; i < view->holdings.count; i++) {
        const struct ml_holding *holding = &view->holdings.items[i];
        const uint64_t held_bytes = holding->bytes.private;
        const bool is_theirs = is_of_file(&seen->regions.items[holding->region]);
        bytes -= is_theirs ? (held_bytes < bytes ? held_bytes : bytes) : 0;
    }
    view->files_bytes = bytes;
    view->shared_files_bytes = shared_bytes;
}

struct ml_host_view *ml_host_view_of(const struct memlog_service_show_process_request *message) {
    struct ml_host_view *view = malloc(sizeof(*view));
    void *copy = ml_message_copy(&memlog_service_show_process_request_type, message);
    if (view == NULL || copy == NULL) {
        free(view);
        free(copy);
        return NULL;
    }
    *view = (struct ml_host_view){.references = 1, .message = copy};
    measure(view);
    return view;
}

struct ml_host_view *ml_host_view_brief(const struct ml_host_view *view) {
    struct memlog_service_show_process_request message = *view->message;
    message.view.threads.count = 0;
    message.view.regions.count = 0;
    message.view.pages.count = 0;
    message.view.trouble = ml_string_of("memlog-service had no room for its mappings");
    return ml_host_view_of(&message);
}

struct ml_host_view *ml_host_view_keep(struct ml_host_view *view) {
    if (view != NULL) {
        view->references++;
    }
    return view;
}

void ml_host_view_free(struct ml_host_view *take_view) {
    if (take_view != NULL && --take_view->references == 0) {
        ml_overlay_fini(&take_view->overlay);
        ml_holdings_fini(&take_view->holdings);
        free(take_view->message);
        free(take_view);
    }
}

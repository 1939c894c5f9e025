#include "service/snapshot/host_view.h"

#include <stdlib.h>

#include "ipc/channel/channel.h"

struct ml_host_view *ml_host_view_of(const struct memlog_service_show_process_request *message) {
    struct ml_host_view *view = malloc(sizeof(*view));
    void *copy = ml_message_copy(&memlog_service_show_process_request_type, message);
    if (view == NULL || copy == NULL) {
        free(view);
        free(copy);
        return NULL;
    }
    *view = (struct ml_host_view){.references = 1, .message = copy};
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
        free(take_view->message);
        free(take_view);
    }
}

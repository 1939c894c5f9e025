#include "service/control/requests.h"

#include <stdlib.h>
#include <unistd.h>

#include "ipc/channel/channel.h"
#include "service/control/answer.h"

enum {
    /* Far more than the requests of a host that waits for its answers. */
    REQUESTS_MAX = 256,
    /* Figures have no deadline of their own. A page that asks twice a second must not pile up. */
    FIGURES_DEADLINE_MS = 200,
    /* A process that is held waits for its view. A thread of it that was stopped in the middle of
     * an event is waited for 200 ms (connection.c). */
    VIEW_DEADLINE_MS = 500
};

struct request {
    struct request *next;
    struct ml_call call;
    uint64_t target_ticks;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC */
    void *message;        /* a copy of the request, of the type that call.method has */
};

struct ml_requests {
    struct ml_requests_options options;
    struct request *first;
    struct request **last; /* where the next one is linked */
    uint32_t count;
    bool serving; /* rounds go on while a dump is written */
};

struct ml_requests *ml_requests_new(const struct ml_requests_options *options) {
    struct ml_requests *requests = calloc(1, sizeof(*requests));
    if (requests != NULL) {
        requests->options = *options;
        requests->last = &requests->first;
    }
    return requests;
}

static void free_request(struct request *request) {
    if (request->call.method == MEMLOG_SERVICE_SERVICE_METHOD_DUMP) {
        (void)close(((const struct memlog_service_dump_request *)request->message)->file);
    }
    free(request->message);
    free(request);
}

static uint32_t deadline_ms_of(uint32_t method, const void *message) {
    switch (method) {
    case MEMLOG_SERVICE_SERVICE_METHOD_DUMP:
        return ((const struct memlog_service_dump_request *)message)->order.deadline_ms;
    case MEMLOG_SERVICE_SERVICE_METHOD_DRAIN:
        return ((const struct memlog_service_drain_request *)message)->deadline_ms;
    case MEMLOG_SERVICE_SERVICE_METHOD_SHOW_PROCESS:
        return VIEW_DEADLINE_MS;
    default:
        return FIGURES_DEADLINE_MS;
    }
}

/* Every client is read up to this moment before the request is answered. */
static uint64_t
target_ticks_of(const struct ml_requests *requests, uint32_t method, const void *message) {
    const uint64_t now = ml_clock_ticks(requests->options.clock);
    if (method == MEMLOG_SERVICE_SERVICE_METHOD_SHOW_PROCESS) {
        const uint64_t seen =
            ((const struct memlog_service_show_process_request *)message)->view.ticks;
        return seen < now ? seen : now;
    }
    if (method != MEMLOG_SERVICE_SERVICE_METHOD_DUMP) {
        return now;
    }
    const uint64_t wanted = ((const struct memlog_service_dump_request *)message)->order.now.ticks;
    return wanted < now ? wanted : now; /* a later moment would only delay the answer */
}

static bool is_view(const struct request *request) {
    return request->call.method == MEMLOG_SERVICE_SERVICE_METHOD_SHOW_PROCESS;
}

static bool is_dump(const struct request *request) {
    return request->call.method == MEMLOG_SERVICE_SERVICE_METHOD_DUMP;
}

/* A newer view of the same process takes its place, but not where a dump waits behind it: that one
 * would be written without a view. */
static void
drop_view(struct ml_requests *requests, const struct memlog_service_show_process_request *newer) {
    struct request **found = NULL;
    for (struct request **at = &requests->first; *at != NULL; at = &(*at)->next) {
        const struct memlog_service_show_process_request *view = (*at)->message;
        if (is_dump(*at)) {
            found = NULL;
        } else if (is_view(*at) && view->view.id == newer->view.id) {
            found = at;
        }
    }
    if (found == NULL) {
        return;
    }
    struct request *older = *found;
    *found = older->next;
    if (requests->last == &older->next) {
        requests->last = found;
    }
    const struct memlog_service_show_process_reply reply = {.laid = false};
    (void)!memlog_service_show_process_answer(&older->call, &reply);
    free_request(older);
}

enum ml_status ml_requests_add(
    struct ml_requests *requests,
    const struct ml_call *call,
    const struct ml_message_type *type,
    const void *message
) {
    /* Views are one a process, and one more for each dump: so many may wait. */
    const bool is_shown = call->method == MEMLOG_SERVICE_SERVICE_METHOD_SHOW_PROCESS;
    if (is_shown) {
        drop_view(requests, message);
    } else if (requests->count >= REQUESTS_MAX) {
        return ML_PEER_LIMIT;
    }
    struct request *request = calloc(1, sizeof(*request));
    void *copy = ml_message_copy(type, message);
    if (request == NULL || copy == NULL) {
        free(request);
        free(copy);
        return ML_ENV_MEMORY;
    }
    const uint64_t wait_ns = (uint64_t)deadline_ms_of(call->method, message) * 1000000;
    *request = (struct request
    ){.call = *call,
      .target_ticks = target_ticks_of(requests, call->method, message),
      .deadline_ns = ml_clock_monotonic_ns() + wait_ns,
      .message = copy};
    *requests->last = request;
    requests->last = &request->next;
    requests->count += is_shown ? 0 : 1;
    return ML_OK;
}

bool ml_requests_waiting(const struct ml_requests *requests) {
    return requests->first != NULL;
}

static enum ml_status answer(
    struct ml_requests *requests, struct request *request, struct ml_readers *readers, bool known
) {
    const struct ml_answer_scene scene = {
        .session = requests->options.session,
        .readers = readers,
        .target_ticks = request->target_ticks,
        .sandbox_missing = requests->options.sandbox_missing,
        .triggers = requests->options.triggers};
    switch (request->call.method) {
    case MEMLOG_SERVICE_SERVICE_METHOD_DUMP:
        return ml_answer_dump(&scene, &request->call, request->message);
    case MEMLOG_SERVICE_SERVICE_METHOD_FIGURES:
        return ml_answer_figures(&scene, &request->call);
    case MEMLOG_SERVICE_SERVICE_METHOD_OBSERVE: {
        const struct memlog_service_observe_request *observe = request->message;
        return ml_answer_observe(&scene, &request->call, &observe->observation);
    }
    case MEMLOG_SERVICE_SERVICE_METHOD_SHOW_PROCESS:
        return ml_answer_show(&scene, &request->call, request->message, known);
    default: {
        const struct memlog_service_drain_reply reply = {.complete = known};
        return memlog_service_drain_answer(&request->call, &reply);
    }
    }
}

void ml_requests_serve(
    struct ml_requests *requests, struct ml_readers *readers, uint64_t known_ticks
) {
    if (requests->serving) {
        return;
    }
    requests->serving = true;
    const bool ends_read = ml_readers_ends_read(readers);
    const uint64_t now_ns = ml_clock_monotonic_ns();
    struct request **at = &requests->first;
    while (*at != NULL) {
        struct request *request = *at;
        const bool known = ends_read && known_ticks >= request->target_ticks;
        if (!known && now_ns < request->deadline_ns) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        requests->count -= is_view(request) ? 0 : 1;
        /* An error means that the host is gone or will be. The loop sees its end. */
        const enum ml_status status = answer(requests, request, readers, known);
        if (ml_status_family(status) == ML_FAMILY_BUG) {
            abort();
        }
        free_request(request);
    }
    requests->last = at;
    requests->serving = false;
}

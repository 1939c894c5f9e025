#include "service/control/requests.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/control/answer.h"

enum {
    /* Far more than a host that waits for its answers has under way. */
    REQUESTS_MAX = 256,
    /* Figures carry no deadline of their own: a page that asks twice a second must not pile up. */
    FIGURES_DEADLINE_MS = 200
};

struct request {
    struct request *next;
    enum { REQUEST_DUMP, REQUEST_FIGURES, REQUEST_DRAIN, REQUEST_OBSERVE } kind;
    struct ml_call call;
    uint64_t target_ticks;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC */
    struct ml_dump_request *dump;
    struct ml_observation *observation;
};

struct ml_requests {
    struct ml_requests_options options;
    struct request *first;
    struct request **last; /* where the next one is hung in */
    uint32_t count;
    bool serving; /* a dump lets rounds happen while it is written */
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
    ml_dump_request_free(request->dump);
    ml_observation_free(request->observation);
    free(request);
}

/* Queue a request: it is answered when everything up to this moment is known, or at its deadline.
 */
static enum ml_status
add(struct ml_requests *requests,
    const struct ml_call *call,
    uint32_t deadline_ms,
    struct request **out) {
    if (requests->count >= REQUESTS_MAX) {
        return ML_PEER_LIMIT;
    }
    struct request *request = calloc(1, sizeof(*request));
    if (request == NULL) {
        return ML_ENV_MEMORY;
    }
    request->call = *call;
    request->target_ticks = ml_clock_ticks(requests->options.clock);
    request->deadline_ns = ml_clock_monotonic_ns() + (uint64_t)deadline_ms * 1000000;
    *requests->last = request;
    requests->last = &request->next;
    requests->count++;
    *out = request;
    return ML_OK;
}

enum ml_status ml_requests_dump(
    struct ml_requests *requests,
    const struct ml_call *call,
    const struct memlog_service_dump_order *request,
    int take_file_fd
) {
    struct ml_dump_request *dump = ml_dump_request_new(request, take_file_fd);
    if (dump == NULL) {
        return ML_ENV_MEMORY;
    }
    struct request *added = NULL;
    const enum ml_status status = add(requests, call, request->deadline_ms, &added);
    if (status != ML_OK) {
        ml_dump_request_free(dump);
        return status;
    }
    added->kind = REQUEST_DUMP;
    added->dump = dump;
    /* A moment that is still to come would only be waited for in vain. */
    if (request->now.ticks < added->target_ticks) {
        added->target_ticks = request->now.ticks;
    }
    return ML_OK;
}

enum ml_status ml_requests_figures(struct ml_requests *requests, const struct ml_call *call) {
    struct request *added = NULL;
    const enum ml_status status = add(requests, call, FIGURES_DEADLINE_MS, &added);
    if (status == ML_OK) {
        added->kind = REQUEST_FIGURES;
    }
    return status;
}

enum ml_status
ml_requests_drain(struct ml_requests *requests, const struct ml_call *call, uint32_t deadline_ms) {
    struct request *added = NULL;
    const enum ml_status status = add(requests, call, deadline_ms, &added);
    if (status == ML_OK) {
        added->kind = REQUEST_DRAIN;
    }
    return status;
}

enum ml_status ml_requests_observe(
    struct ml_requests *requests,
    const struct ml_call *call,
    const struct memlog_service_observation *observation
) {
    struct ml_observation *copy = ml_observation_new(observation);
    if (copy == NULL) {
        return ML_ENV_MEMORY;
    }
    struct request *added = NULL;
    const enum ml_status status = add(requests, call, FIGURES_DEADLINE_MS, &added);
    if (status != ML_OK) {
        ml_observation_free(copy);
        return status;
    }
    added->kind = REQUEST_OBSERVE;
    added->observation = copy;
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
        .run_start = requests->options.run_start,
        .sandbox_missing = requests->options.sandbox_missing,
        .triggers = requests->options.triggers};
    switch (request->kind) {
    case REQUEST_DUMP:
        return ml_answer_dump(&scene, &request->call, request->dump);
    case REQUEST_FIGURES:
        return ml_answer_figures(&scene, &request->call);
    case REQUEST_OBSERVE:
        return ml_answer_observe(&scene, &request->call, request->observation);
    case REQUEST_DRAIN:
        break;
    }
    const struct memlog_service_drain_reply reply = {.complete = known};
    return memlog_service_drain_answer(&request->call, &reply);
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
        requests->count--;
        /* A host that cannot be answered is gone, or as good as: its end is seen by the loop. */
        const enum ml_status status = answer(requests, request, readers, known);
        if (ml_status_family(status) == ML_FAMILY_BUG) {
            abort();
        }
        free_request(request);
    }
    requests->last = at;
    requests->serving = false;
}

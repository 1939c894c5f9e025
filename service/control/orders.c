#include "service/control/orders.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/control/answer.h"

enum {
    /* Far more than a host that waits for its answers has under way. */
    ORDERS_MAX = 256,
    /* Figures carry no deadline of their own: a page that asks twice a second must not pile up. */
    FIGURES_DEADLINE_MS = 200
};

struct order {
    struct order *next;
    enum { ORDER_DUMP, ORDER_FIGURES, ORDER_DRAIN, ORDER_OBSERVE } kind;
    struct ml_call call;
    uint64_t target_ticks;
    uint64_t deadline_ns; /* CLOCK_MONOTONIC */
    struct ml_dump_request *dump;
    struct ml_observation *observation;
};

struct ml_orders {
    struct ml_orders_options options;
    struct order *first;
    struct order **last; /* where the next one is hung in */
    uint32_t count;
    bool serving; /* a dump lets rounds happen while it is written */
};

struct ml_orders *ml_orders_new(const struct ml_orders_options *options) {
    struct ml_orders *orders = calloc(1, sizeof(*orders));
    if (orders != NULL) {
        orders->options = *options;
        orders->last = &orders->first;
    }
    return orders;
}

static void free_order(struct order *order) {
    ml_dump_request_free(order->dump);
    ml_observation_free(order->observation);
    free(order);
}

void ml_orders_free(struct ml_orders *take_orders) {
    if (take_orders == NULL) {
        return;
    }
    while (take_orders->first != NULL) {
        struct order *order = take_orders->first;
        take_orders->first = order->next;
        free_order(order);
    }
    free(take_orders);
}

/* Queue an order: it is answered when everything up to this moment is known, or at its deadline. */
static enum ml_status
add(struct ml_orders *orders, const struct ml_call *call, uint32_t deadline_ms, struct order **out
) {
    if (orders->count >= ORDERS_MAX) {
        return ML_PEER_LIMIT;
    }
    struct order *order = calloc(1, sizeof(*order));
    if (order == NULL) {
        return ML_ENV_MEMORY;
    }
    order->call = *call;
    order->target_ticks = ml_clock_ticks(orders->options.clock);
    order->deadline_ns = ml_clock_monotonic_ns() + (uint64_t)deadline_ms * 1000000;
    *orders->last = order;
    orders->last = &order->next;
    orders->count++;
    *out = order;
    return ML_OK;
}

enum ml_status ml_orders_dump(
    struct ml_orders *orders,
    const struct ml_call *call,
    const struct memlog_service_dump_order *order,
    int take_file_fd
) {
    struct ml_dump_request *request = ml_dump_request_new(order, take_file_fd);
    if (request == NULL) {
        return ML_ENV_MEMORY;
    }
    struct order *added = NULL;
    const enum ml_status status = add(orders, call, order->deadline_ms, &added);
    if (status != ML_OK) {
        ml_dump_request_free(request);
        return status;
    }
    added->kind = ORDER_DUMP;
    added->dump = request;
    /* A moment that is still to come would only be waited for in vain. */
    if (order->now.ticks < added->target_ticks) {
        added->target_ticks = order->now.ticks;
    }
    return ML_OK;
}

enum ml_status ml_orders_figures(struct ml_orders *orders, const struct ml_call *call) {
    struct order *added = NULL;
    const enum ml_status status = add(orders, call, FIGURES_DEADLINE_MS, &added);
    if (status == ML_OK) {
        added->kind = ORDER_FIGURES;
    }
    return status;
}

enum ml_status
ml_orders_drain(struct ml_orders *orders, const struct ml_call *call, uint32_t deadline_ms) {
    struct order *added = NULL;
    const enum ml_status status = add(orders, call, deadline_ms, &added);
    if (status == ML_OK) {
        added->kind = ORDER_DRAIN;
    }
    return status;
}

enum ml_status ml_orders_observe(
    struct ml_orders *orders,
    const struct ml_call *call,
    const struct memlog_service_observation *observation
) {
    struct ml_observation *copy = ml_observation_new(observation);
    if (copy == NULL) {
        return ML_ENV_MEMORY;
    }
    struct order *added = NULL;
    const enum ml_status status = add(orders, call, FIGURES_DEADLINE_MS, &added);
    if (status != ML_OK) {
        ml_observation_free(copy);
        return status;
    }
    added->kind = ORDER_OBSERVE;
    added->observation = copy;
    return ML_OK;
}

bool ml_orders_waiting(const struct ml_orders *orders) {
    return orders->first != NULL;
}

static enum ml_status
answer(struct ml_orders *orders, struct order *order, struct ml_readers *readers, bool known) {
    const struct ml_answer_scene scene = {
        .session = orders->options.session,
        .readers = readers,
        .target_ticks = order->target_ticks,
        .run_start = orders->options.run_start,
        .sandbox_missing = orders->options.sandbox_missing,
        .triggers = orders->options.triggers};
    switch (order->kind) {
    case ORDER_DUMP:
        return ml_answer_dump(&scene, &order->call, order->dump);
    case ORDER_FIGURES:
        return ml_answer_figures(&scene, &order->call);
    case ORDER_OBSERVE:
        return ml_answer_observe(&scene, &order->call, order->observation);
    case ORDER_DRAIN:
        break;
    }
    const struct memlog_service_drain_reply reply = {.complete = known};
    return memlog_service_drain_answer(&order->call, &reply);
}

void ml_orders_serve(struct ml_orders *orders, struct ml_readers *readers, uint64_t known_ticks) {
    if (orders->serving) {
        return;
    }
    orders->serving = true;
    const bool ends_read = ml_readers_ends_read(readers);
    const uint64_t now_ns = ml_clock_monotonic_ns();
    struct order **at = &orders->first;
    while (*at != NULL) {
        struct order *order = *at;
        const bool known = ends_read && known_ticks >= order->target_ticks;
        if (!known && now_ns < order->deadline_ns) {
            at = &order->next;
            continue;
        }
        *at = order->next;
        orders->count--;
        /* A host that cannot be answered is gone, or as good as: its end is seen by the loop. */
        const enum ml_status status = answer(orders, order, readers, known);
        if (ml_status_family(status) == ML_FAMILY_BUG) {
            abort();
        }
        free_order(order);
    }
    orders->last = at;
    orders->serving = false;
}

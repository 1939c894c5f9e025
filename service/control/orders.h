/* What the host has asked for and waits for: dumps, figures, drains. Room: service. Context: one
 * thread, on its libev loop.
 *
 * One rule: an order is answered once everybody is read up to its moment, and at its deadline in
 * any case; who was not read by then is named in the answer. */
#ifndef MEMLOG_SERVICE_CONTROL_ORDERS_H
#define MEMLOG_SERVICE_CONTROL_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/message.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/ingest/clock.h"
#include "service/ingest/readers.h"
#include "service/session/session.h"

struct ml_orders;
struct ml_triggers;

struct ml_orders_options {
    struct ml_session *session;          /* these outlive the orders */
    const struct ml_clock_source *clock; /* */
    struct ml_moment run_start;
    const char *sandbox_missing;
    struct ml_triggers *triggers;
};

/* NULL when there is no memory. */
struct ml_orders *ml_orders_new(const struct ml_orders_options *options);

/* Orders that wait are forgotten, their files closed. */
void ml_orders_free(struct ml_orders *take_orders);

/* Take an order on; answered later, from ml_orders_serve.
 *
 * Errors: ML_ENV_MEMORY; ML_PEER_LIMIT beyond the orders that may wait; nothing was answered then.
 * Owner:  the request is copied; take_file_fd is closed once written, also on failure. */
ML_NODISCARD enum ml_status ml_orders_dump(
    struct ml_orders *orders,
    const struct ml_call *call,
    const struct memlog_service_dump_order *order,
    int take_file_fd
);
ML_NODISCARD enum ml_status ml_orders_figures(struct ml_orders *orders, const struct ml_call *call);
ML_NODISCARD enum ml_status
ml_orders_drain(struct ml_orders *orders, const struct ml_call *call, uint32_t deadline_ms);

ML_NODISCARD enum ml_status ml_orders_observe(
    struct ml_orders *orders,
    const struct ml_call *call,
    const struct memlog_service_observation *observation
);

/* A round is over: answer what can or must be answered. */
void ml_orders_serve(struct ml_orders *orders, struct ml_readers *readers, uint64_t known_ticks);

/* Whether any order waits: rounds are then made without pause. */
bool ml_orders_waiting(const struct ml_orders *orders);

#endif

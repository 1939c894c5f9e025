/* Requests that wait for their answers: dumps, figures, drains, observations. Room: service.
 * Context: one thread, on its libev loop.
 *
 * One rule: a request is answered once every client is read up to its moment, and at its deadline
 * in any case. The answer names the clients that were not read by then. */
#ifndef MEMLOG_SERVICE_CONTROL_REQUESTS_H
#define MEMLOG_SERVICE_CONTROL_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/wire/message.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/ingest/clock.h"
#include "service/ingest/readers.h"

struct ml_requests;
struct ml_triggers;

struct ml_requests_options {
    struct ml_session *session;          /* these outlive the requests */
    const struct ml_clock_source *clock; /* */
    const char *sandbox_missing;
    struct ml_triggers *triggers;
};

/* NULL when there is no memory. */
struct ml_requests *ml_requests_new(const struct ml_requests_options *options);

/* Take on a Dump, Figures, Drain or Observe, whose message is of that type. ml_requests_serve
 * answers it.
 *
 * Errors: ML_ENV_MEMORY; ML_PEER_LIMIT beyond the requests that may wait; nothing is answered then.
 * Owner:  the message is copied. Its file is taken on ML_OK, and closed once it is answered. */
ML_NODISCARD enum ml_status ml_requests_add(
    struct ml_requests *requests,
    const struct ml_call *call,
    const struct ml_message_type *type,
    const void *message
);

/* Called after a round: answer the requests that can or must be answered. */
void ml_requests_serve(
    struct ml_requests *requests, struct ml_readers *readers, uint64_t known_ticks
);

/* Whether any request waits. Rounds then follow each other without a pause. */
bool ml_requests_waiting(const struct ml_requests *requests);

#endif

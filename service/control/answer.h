/* The answers to requests: a dump written, figures counted. Room: service. Context: one thread.
 *
 * One rule: clients that were not read up to now are named in the answer as incomplete; they are
 * not held against anybody later. */
#ifndef MEMLOG_SERVICE_CONTROL_ANSWER_H
#define MEMLOG_SERVICE_CONTROL_ANSWER_H

#include "ipc/wire/message.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/ingest/readers.h"
#include "service/triggers/triggers.h"

struct ml_answer_scene {
    struct ml_session *session;
    struct ml_readers *readers;
    uint64_t target_ticks; /* everybody should be read up to here */
    struct ml_timestamp run_start;
    const char *sandbox_missing;
    struct ml_triggers *triggers; /* NULL: none */
};

/* A dump request that outlives its message, with its file. */
struct ml_dump_request;

/* NULL when there is no memory. Owner: take_file_fd is the request's, also on failure. */
struct ml_dump_request *
ml_dump_request_new(const struct memlog_service_dump_order *order, int take_file_fd);
void ml_dump_request_free(struct ml_dump_request *take_request);

/* Write the dump and say how it went. Pipes go on being drained meanwhile.
 *
 * Errors: of the answer's sending; trouble with the dump is part of the answer. */
ML_NODISCARD enum ml_status ml_answer_dump(
    const struct ml_answer_scene *scene,
    const struct ml_call *call,
    const struct ml_dump_request *request
);

/* Errors: of the answer's sending; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_answer_figures(const struct ml_answer_scene *scene, const struct ml_call *call);

/* What the host has read, outliving its message. NULL when there is no memory. */
struct ml_observation;
struct ml_observation *ml_observation_new(const struct memlog_service_observation *observation);
void ml_observation_free(struct ml_observation *take_observation);

/* Let the triggers decide. Errors: of the answer's sending; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_answer_observe(
    const struct ml_answer_scene *scene,
    const struct ml_call *call,
    const struct ml_observation *observation
);

#endif

/* The answers to requests: a dump written, figures counted. Room: service. Context: one thread.
 *
 * One rule: a client that was not read up to the request's moment is marked incomplete in its
 * answer. Later answers do not remember it. */
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
    uint64_t target_ticks; /* every client should be read up to this moment */
    const char *sandbox_missing;
    struct ml_triggers *triggers; /* NULL: none */
};

/* Write the dump and answer how it went. Pipes are drained meanwhile.
 *
 * Errors: those of sending the answer. Trouble with the dump is part of the answer. */
ML_NODISCARD enum ml_status ml_answer_dump(
    const struct ml_answer_scene *scene,
    const struct ml_call *call,
    const struct memlog_service_dump_request *request
);

/* Errors: those of sending the answer; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_answer_figures(const struct ml_answer_scene *scene, const struct ml_call *call);

/* Let the triggers decide. Errors: those of sending the answer; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_answer_observe(
    const struct ml_answer_scene *scene,
    const struct ml_call *call,
    const struct memlog_service_observation *observation
);

/* Keep what the host saw of a process, and lay its live blocks over it: if they are `known` up to
 * that moment, else nothing is laid. Pipes are emptied meanwhile.
 * Errors: those of sending the answer. */
ML_NODISCARD enum ml_status ml_answer_show(
    const struct ml_answer_scene *scene,
    const struct ml_call *call,
    const struct memlog_service_show_process_request *request,
    bool known
);

#endif

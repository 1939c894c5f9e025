/* The collector's addresses: takes reports in and answers questions. Room: host. Context: the
 * loop's thread.
 *
 * One rule: who asks is known first. A token writes or reads, for one team; without one nothing of
 * a body is read. 200 means that the report is on the disk. */
#ifndef MEMLOG_HOST_COLLECT_SERVER_RECEIVER_H
#define MEMLOG_HOST_COLLECT_SERVER_RECEIVER_H

#include "base/error_message.h"
#include "host/collect/storing/collector.h"
#include "host/collect/storing/remover.h"
#include "host/collect/tokens.h"
#include "host/http/http.h"

struct ml_receiver;

struct ml_receiver_setup {
    struct ev_loop *loop;
    int take_listen_fd;
    const struct ml_http_tls *tls; /* NULL: plain HTTP */
    const struct ml_tokens *tokens;
    struct ml_ledger *ledger;
    const struct ml_store *store;
    struct ml_remover *remover;
    struct ml_collector *collector;
    unsigned question_limit_s; /* the time for an answer */
    uint64_t body_max_bytes;
    uint64_t waiting_max;    /* reports that wait for the store; more are asked to come later */
    uint64_t team_rate;      /* reports of a team a minute; 0: any number */
    uint64_t team_bytes;     /* of a team's bodies; 0: any number */
    uint64_t free_min_bytes; /* that stay free on the disk of the bodies */
};

/* Errors: ML_ENV_SYSTEM, ML_ENV_MEMORY, with an error message. */
ML_NODISCARD enum ml_status ml_receiver_open(
    const struct ml_receiver_setup *setup,
    struct ml_receiver **out_receiver,
    struct ml_error_message *error
);
void ml_receiver_close(struct ml_receiver *take_receiver);

/* Tell who asked that a report be removed what came of it: the remover's on_report_end. */
void ml_receiver_report_removed(void *asker, enum ml_status status);

#endif

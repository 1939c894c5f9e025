/* Compares each program's newest build with the one before it, and tells what grew. Room: host.
 * Context: one thread.
 *
 * One rule: a finding is told once. It is told again when other stacks grow, or none any more. */
#ifndef MEMLOG_HOST_FLEET_WATCH_H
#define MEMLOG_HOST_FLEET_WATCH_H

#include "host/fleet/answer.h"
#include "host/fleet/client.h"
#include "host/fleet/options.h"
#include "host/fleet/watch_state.h"

struct ev_loop;
struct ml_fleet_watch_server;

/* What became of a program's comparison. */
enum ml_fleet_watch_outcome {
    ML_FLEET_WATCH_FAILED,    /* the collector could not be asked about it */
    ML_FLEET_WATCH_ONE_BUILD, /* there is nothing to compare */
    ML_FLEET_WATCH_TOO_FEW,   /* dumps by chance */
    ML_FLEET_WATCH_PARTIAL,   /* a part of the store did not answer: no verdict */
    ML_FLEET_WATCH_SAME,
    ML_FLEET_WATCH_GREW
};

/* A program in the last round. */
struct ml_fleet_watch_row {
    json_t *program;        /* a string */
    json_t *before, *after; /* builds of the collector's answer; NULL: there is none */
    enum ml_fleet_watch_outcome outcome;
    uint64_t dumps_before, dumps_after;
    json_t *grown; /* differences of its answer; NULL but for ML_FLEET_WATCH_GREW */
};

struct ml_fleet_watch {
    const struct ml_fleet_options *options;
    struct ev_loop *loop;
    const bool *stopped;
    struct ml_fleet_client *collector, *webhook; /* webhook NULL: findings are printed alone */
    struct ml_fleet_watch_state state;
    struct ml_fleet_watch_row *rows; /* of the last round that learnt the programs' names */
    size_t rows_count;
    uint64_t rounds_done, rounds_failed, sent, send_failures;
    double last_done_s; /* time of day; 0: never */
    bool is_webhook_down;
};

/* Until a signal comes, or once. Returns the exit code. `stopped` is set by signals. */
int ml_fleet_watch_run(
    const struct ml_fleet_options *options,
    struct ml_fleet_client *collector,
    struct ev_loop *loop,
    const bool *stopped
);

/* ---- its parts */

/* Ask, and judge each program. False: the collector did not answer all that it was asked, with an
 * error message. Where it did not tell its programs the rows are as they were. */
bool ml_fleet_watch_round(struct ml_fleet_watch *watch, struct ml_error_message *error);

/* Whether it is a stack that grew; one that was told is held to less, so that what lies at the
 * limit is not told again and again. */
bool ml_fleet_watch_grew(const json_t *difference, bool was_told);

/* Put what is new of the rows among what is to be sent. Returns how many findings are new. */
size_t ml_fleet_watch_note(struct ml_fleet_watch *watch, uint64_t now_ms);

/* A row in a line for people. */
void ml_fleet_watch_say(const struct ml_fleet_watch_row *row, char *out, size_t out_bytes);

/* The text of /metrics. */
void ml_fleet_watch_put_metrics(const struct ml_fleet_watch *watch, FILE *out);

/* Serve it. NULL: with an error message. Owner: ml_fleet_watch_server_close. */
struct ml_fleet_watch_server *
ml_fleet_watch_server_open(const struct ml_fleet_watch *watch, struct ml_error_message *error);
void ml_fleet_watch_server_close(struct ml_fleet_watch_server *take_server);

void ml_fleet_watch_rows_free(struct ml_fleet_watch_row *take_rows, size_t count);

#endif

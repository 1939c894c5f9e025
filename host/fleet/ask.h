/* One question of `memlog fleet`: asked, and printed for people. Room: host. Context: one thread.
 *
 * One rule: an empty answer is never shown as if it were one: what does not exist is said, with
 * what does. */
#ifndef MEMLOG_HOST_FLEET_ASK_H
#define MEMLOG_HOST_FLEET_ASK_H

#include <stdio.h>

#include "host/fleet/answer.h"
#include "host/fleet/client.h"
#include "host/fleet/options.h"

/* As analyses end, too. */
enum {
    ML_FLEET_EXIT_FAILED = 1,
    ML_FLEET_EXIT_USAGE = 2,
    ML_FLEET_EXIT_LACKING = 3, /* the collector has nothing of that name */
    ML_FLEET_EXIT_GREW = 4     /* watch --once found a stack that grew */
};

/* What a printed answer is of. */
struct ml_fleet_asked {
    const struct ml_fleet_options *options;
    char build[256], other[256]; /* whole ids; "": none */
    char versions[2][64];        /* of both builds; "": not told */
    const char *again;           /* what the commands that are named go on with: " --at=URL" */
};

/* What a metric is called in an answer: "live_bytes", ... */
extern const char *const ml_fleet_figures[3];

/* Dumps of the answer that tell the metric; and the line about those that do not. */
double ml_fleet_dumps_with(const json_t *answer, enum ml_fleet_metric metric);
void ml_fleet_put_without_metric(FILE *out, const json_t *answer, enum ml_fleet_metric metric);

/* Ask and print. Returns the exit code; messages are on stderr. */
int ml_fleet_ask(
    struct ml_fleet_client *client,
    const struct ml_fleet_options *options,
    const char *again,
    FILE *out
);

/* Print an answer for people. */
void ml_fleet_show_programs(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);
void ml_fleet_show_builds(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);
void ml_fleet_show_hosts(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);
void ml_fleet_show_reports(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);
void ml_fleet_show_report(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);
void ml_fleet_show_top(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);
void ml_fleet_show_diff(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);
void ml_fleet_show_flame(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out);

/* A stack in a line, the innermost frame first: "leak < serve < main", from that frame on. */
void ml_fleet_put_callers(const json_t *stack, size_t from, char *out, size_t out_bytes);

/* "12 of 40 dumps say no peak", where some do not. */
void ml_fleet_put_without(FILE *out, const char *metric, double without, double dumps);

/* The last lines: "next: memlog fleet WORDS", the program's name as a shell reads it. */
void ml_fleet_put_next(
    const struct ml_fleet_asked *asked, const char *words, const char *program, FILE *out
);

#endif

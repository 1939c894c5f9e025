/* What `memlog fleet` is told. Room: host. Context: any; pure. */
#ifndef MEMLOG_HOST_FLEET_OPTIONS_H
#define MEMLOG_HOST_FLEET_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "base/option_table.h"
#include "host/policy/page_place.h"

/* As a collector calls its questions; and what this program does by itself. */
enum ml_fleet_question {
    ML_FLEET_PROGRAMS,
    ML_FLEET_BUILDS,
    ML_FLEET_TOP,
    ML_FLEET_FLAME,
    ML_FLEET_DIFF,
    ML_FLEET_HOSTS,
    ML_FLEET_REPORTS,
    ML_FLEET_REPORT,
    ML_FLEET_WATCH,
    ML_FLEET_QUESTIONS
};

/* "programs", "builds", ...; NULL behind the last. */
extern const char *const ml_fleet_questions[ML_FLEET_QUESTIONS + 1];

enum ml_fleet_metric { ML_FLEET_LIVE, ML_FLEET_PEAK, ML_FLEET_TOTAL };
extern const char *const ml_fleet_metrics[4]; /* NULL behind the last */

/* The question, and at most a program and two builds. */
enum { ML_FLEET_WORDS = 4, ML_FLEET_LIMIT_MOST = 10000 };

/* NULL and 0: not said. */
struct ml_fleet_options {
    const char *words[ML_FLEET_WORDS];
    enum ml_fleet_question question;
    const char *at; /* a collector's URL without a "/" at its end */
    char at_text[1024];
    const char *token_file, *ca;
    const char *program, *build, *other, *host, *stack, *guid;
    unsigned metric; /* enum ml_fleet_metric */
    bool control, folded, json, quiet;
    struct ml_time from, until;
    uint32_t limit;
    /* of watch */
    uint32_t every_s;
    const char *webhook, *webhook_token_file, *webhook_ca, *state;
    bool once, is_remote;
    struct ml_page_place listen; /* ML_PAGE_NONE: nowhere */
};

/* Defaults, before the table is read. */
struct ml_fleet_options ml_fleet_options_default(void);

/* Tell the question and what it is about from the words. `given` has a bit for each option of the
 * command line. False: something does not fit, with an error message. */
bool ml_fleet_options_settle(
    struct ml_fleet_options *options, uint64_t given, struct ml_error_message *error
);

/* The time as ms since 1970, for a command that runs at `now_ms`. A time of day is the last one,
 * and "-2h" is two hours ago. 0: none was said. */
uint64_t ml_fleet_time_ms(struct ml_time time, uint64_t now_ms);

extern const struct ml_option_table ml_fleet_table;

#endif

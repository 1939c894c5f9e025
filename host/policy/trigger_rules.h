/* What a person has set of the triggers, by short flags and by a file. Room: host. Context: start
 * of the program.
 *
 * One rule: nothing is guessed and nothing is ignored; a key or value that is not known is an error
 * that names it, its place, and the nearest valid one. */
#ifndef MEMLOG_HOST_POLICY_TRIGGER_RULES_H
#define MEMLOG_HOST_POLICY_TRIGGER_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "host/policy/role.h"
#include "ipc/wire/ml_status.h"

struct ml_trigger_rules {
    struct memlog_service_trigger_rules service; /* what it is sent */
    uint32_t interval_seconds;                   /* between looks */
};

/* Chromium's last thresholds, and a dump of who was killed. */
struct ml_trigger_rules ml_trigger_rules_default(void);

/* "ROLE=SIZE"; SIZE may be "off". Errors: ML_PEER_*, ML_ENV_MISSING with an error message. */
ML_NODISCARD enum ml_status ml_trigger_rules_threshold(
    struct ml_trigger_rules *rules, const char *text, struct ml_error_message *error
);

/* Read a file over what is set already; on failure nothing has changed.
 *
 * Shape:  a JSON object; its keys are the table in trigger_rules.c.
 * Errors: ML_ENV_SYSTEM it cannot be read; ML_PEER_FORM, ML_ENV_MISSING, with an error message. */
ML_NODISCARD enum ml_status ml_trigger_rules_load(
    struct ml_trigger_rules *rules, const char *path, struct ml_error_message *error
);

/* Whether memories are to be looked at more often than processes: they change faster than anybody's
 * interval, and cost next to nothing. */
bool ml_trigger_rules_watch_memory(const struct ml_trigger_rules *rules);

#endif

/* The rules of triggers, from options and from a file. Room: host. Context: start of the program.
 *
 * One rule: nothing is guessed and nothing is ignored. An unknown key or value is an error that
 * names it, its place, and the most similar valid one. */
#ifndef MEMLOG_HOST_POLICY_TRIGGER_RULES_H
#define MEMLOG_HOST_POLICY_TRIGGER_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "host/policy/role.h"
#include "ipc/wire/ml_status.h"

struct ml_trigger_rules {
    struct memlog_service_trigger_rules service; /* sent to the service */
    uint32_t interval_seconds;                   /* between two checks of the processes */
};

/* Chromium's last thresholds, and a dump when a process is killed. */
struct ml_trigger_rules ml_trigger_rules_default(void);

/* Set a threshold from "ROLE=SIZE"; SIZE may be "off". Errors: ML_PEER_*, ML_ENV_MISSING, with an
 * error message. */
ML_NODISCARD enum ml_status ml_trigger_rules_threshold(
    struct ml_trigger_rules *rules, const char *text, struct ml_error_message *error
);

/* Read a file. Its values replace those that are set already; on failure nothing changes.
 *
 * Shape:  a JSON object; its keys are the table in trigger_rules.c.
 * Errors: ML_ENV_SYSTEM the file cannot be read; ML_PEER_*, ML_ENV_MISSING. Each with an
 *         error message. */
ML_NODISCARD enum ml_status ml_trigger_rules_load(
    struct ml_trigger_rules *rules, const char *path, struct ml_error_message *error
);

/* Whether somebody asked for dumps by processes' private memory: those rules are not the default.
 */
bool ml_trigger_rules_ask_footprint(const struct ml_trigger_rules *rules);

/* Whether a rule needs the memory of control groups and of the machine. It is checked more often
 * than processes are, because it changes fast and a check costs next to nothing. */
bool ml_trigger_rules_watch_memory(const struct ml_trigger_rules *rules);

#endif

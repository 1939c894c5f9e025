/* Who is recorded: by the mode, by lists of programs that the machine's owner forbids, by names
 * that somebody has asked for. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_MEMBERS_TARGETS_H
#define MEMLOG_HOST_ENGINE_MEMBERS_TARGETS_H

#include "host/engine/state.h"
#include "host/policy/name_rules.h"
#include "host/process/never_list.h"

/* The machine's list of programs never to record, and the person's own. */
enum { ML_NEVER_LISTS = 2 };

struct ml_targets {
    struct ml_never_list never[ML_NEVER_LISTS];
    struct ml_name_rules names;
};

/* Read the never lists. Errors: as ml_never_list_load. */
ML_NODISCARD enum ml_status
ml_targets_open(struct ml_engine *engine, struct ml_error_message *error);
void ml_targets_close(struct ml_engine *engine);

/* Whether it must never be recorded. Then its note says why. */
bool ml_targets_forbid(const struct ml_engine *engine, struct ml_member *member);

/* The same of a process that is no member; either text may be NULL. */
bool ml_targets_forbid_program(
    const struct ml_engine *engine,
    const char *command_line,
    const char *executable,
    char *out_why,
    size_t why_bytes
);

/* Whether it is to be recorded, by what is known of it now. */
bool ml_targets_want(struct ml_engine *engine, struct ml_member *member);

/* Whether a forked process may be wanted. Then it records until it is judged. */
bool ml_targets_want_forked(const struct ml_engine *engine);

/* Record processes of that name that start from now on. Errors: as ml_name_rules_add. */
ML_NODISCARD enum ml_status ml_targets_add_name(
    struct ml_engine *engine, const struct ml_name_rule *rule, struct ml_error_message *error
);
void ml_targets_remove_name(struct ml_engine *engine, const char *regex);

#endif

/* Where reports are kept to be asked about: dumps, samples, stacks, and sums by week. Room: host.
 * Context: one thread, which may wait long for a disk or a server.
 *
 * One rule: a report is there once. All of it and of the sums it counts into is committed together,
 * so whoever dies in between leaves nothing of it, and it comes again. */
#ifndef MEMLOG_HOST_COLLECT_STORE_H
#define MEMLOG_HOST_COLLECT_STORE_H

#include "base/error_message.h"
#include "host/collect/ledger.h"
#include "host/collect/report.h"

struct ml_store;

/* A report with what the collector knows of it by itself. Borrowed. */
struct ml_store_item {
    const struct ml_entry *entry;
    const struct ml_collect_report *report;
    const uint8_t *team_key; /* ML_TEAM_KEY_BYTES */
};

/* The embedded store; host/collect/clickhouse/opening.h has another. Errors: ML_ENV_SYSTEM, with an
 * error message. Owner: ml_store_close. */
ML_NODISCARD enum ml_status
ml_store_open(const char *path, struct ml_store **out_store, struct ml_error_message *error);
void ml_store_close(struct ml_store *take_store);

/* Add the reports, all or none of them; one that is there already counts as added. Errors:
 * ML_ENV_SYSTEM: the machine refuses, try again later; ML_PEER_RANGE: one of the reports cannot be
 * added; with an error message. */
ML_NODISCARD enum ml_status ml_store_add(
    struct ml_store *store,
    const struct ml_store_item *items,
    size_t count,
    struct ml_error_message *error
);

/* Remove one report, with its part of all sums. Errors: likewise. */
ML_NODISCARD enum ml_status ml_store_remove(
    struct ml_store *store, const char *team, const char *guid, struct ml_error_message *error
);

/* What is due now and then, a step of it: drop what came before `before_ms` (0: nothing), make
 * sums, sweep stacks, frames and words that nothing has any more. Errors: likewise. */
struct ml_store_kept {
    /* What came before is gone; UINT64_MAX: the store drops nothing by itself, each report wants
     * ml_store_remove. */
    uint64_t gone_ms;
    bool is_more; /* there is more to do at once */
};
ML_NODISCARD enum ml_status ml_store_upkeep(
    struct ml_store *store,
    uint64_t before_ms,
    struct ml_store_kept *out_kept,
    struct ml_error_message *error
);

/* Let what the store is at fail soon, from any thread: what fails so is ML_ENV_SYSTEM, as if its
 * process had died. It is only closed afterwards. */
void ml_store_interrupt(struct ml_store *store);
/* ---- names that come later */

/* Frames without a function; more of a build are left for another time. */
enum { ML_NAMELESS_MAX = 1 << 20 };
struct ml_nameless {
    int64_t *ids;
    uint64_t *places; /* ELF addresses in their module */
    size_t count;
};
void ml_nameless_fini(struct ml_nameless *nameless);
bool ml_nameless_add(
    struct ml_nameless *nameless, size_t *capacity, int64_t id, uint64_t place
); /* false: no memory */

struct ml_team_keys {
    uint8_t (*list)[ML_TEAM_KEY_BYTES];
    size_t count;
};

/* How many have got a name, and how many stacks are called otherwise by that. */
struct ml_named {
    uint64_t frames, stacks;
};

/* The frames of modules of that build, whose owner has ml_nameless_fini. Errors: ML_ENV_SYSTEM,
 * with an error message. */
ML_NODISCARD enum ml_status ml_store_nameless(
    struct ml_store *store,
    const char *build_id,
    struct ml_nameless *out_nameless,
    struct ml_error_message *error
);

/* Give them names (NULL: none), and call all stacks by what their frames are called now: all of it
 * or nothing. Samples and sums stay. Errors: likewise. */
ML_NODISCARD enum ml_status ml_store_name(
    struct ml_store *store,
    const struct ml_nameless *nameless,
    const char *const *names,
    const struct ml_team_keys *keys,
    struct ml_named *out_named,
    struct ml_error_message *error
);

#endif

/* Deletes what a team wants deleted: a report, a host's reports, or all of them. Room: host.
 * Context: the loop's thread.
 *
 * One rule: a wish is on the disk before anything of it is done, and leaves it when all of it is
 * done. Whoever dies in between begins again. Each report goes from the store and its sums first,
 * then from the spool, and from the ledger last. */
#ifndef MEMLOG_HOST_COLLECT_STORING_REMOVER_H
#define MEMLOG_HOST_COLLECT_STORING_REMOVER_H

#include "host/collect/storing/collector.h"
#include "host/collect/ledger.h"

struct ev_loop;
struct ml_remover;

enum ml_removal_kind { ML_REMOVE_REPORT, ML_REMOVE_HOST, ML_REMOVE_TEAM, ML_REMOVE_COUNT };
extern const char *const ml_removal_names[ML_REMOVE_COUNT + 1]; /* NULL behind the last */

/* Wishes of one team that may wait. */
enum { ML_REMOVALS_WAITING = 100 };

struct ml_remover_setup {
    struct ev_loop *loop;
    struct ml_ledger *ledger;
    struct ml_collector *collector;
    /* What ml_remover_report wanted has come to its end; not ML_OK: it is tried again. `asker` has
     * it from its receiver. */
    void (*on_report_end)(void *asker, enum ml_status status);
    /* For people: something went wrong. */
    void (*on_trouble)(void *context, const char *text);
    void *context;
};

/* Goes on with what was wished before. NULL: with an error message. Owner: ml_remover_free; before
 * the collector, when the loop runs no more, and so before the ledger. */
struct ml_remover *
ml_remover_new(const struct ml_remover_setup *setup, struct ml_error_message *error);
void ml_remover_free(struct ml_remover *take_remover);

/* Note a wish: of all that was accepted until now. `name`: the guid, the host, "" for all of the
 * team. It is carried out in slices. Errors: ML_PEER_LIMIT: too many wait; ML_ENV_SYSTEM. */
ML_NODISCARD enum ml_status ml_remover_wish(
    struct ml_remover *remover, const char *team, enum ml_removal_kind kind, const char *name
);

/* Remove one report now. Errors: ML_ENV_MISSING: there is none; ML_ENV_SYSTEM: it cannot be noted.
 * ML_OK: on_report_end tells `asker` what came of it, but for one that was cancelled. */
ML_NODISCARD enum ml_status
ml_remover_report(struct ml_remover *remover, const char *team, const char *guid, void *asker);

/* The asker hears nothing any more; the report goes nevertheless. */
void ml_remover_cancel(struct ml_remover *remover, const void *asker);

/* A wish that is not done yet. */
struct ml_removal {
    int64_t id;
    char team[ML_TEAM_BYTES];
    enum ml_removal_kind kind;
    const char *name; /* until the next one is asked for */
    int64_t last_id;  /* of the ledger's entries that it is about */
    uint64_t asked_ms;
    uint64_t removed; /* reports, by this process */
};

/* The team's next wish behind that id. False: there is none. */
bool ml_remover_next(
    struct ml_remover *remover, const char *team, int64_t after, struct ml_removal *out_removal
);

#endif

/* Ended processes beyond a limit are folded: many of one program become one entry with their sums.
 * Room: service. Context: the session's one thread.
 *
 * One rule: no figure of the tree changes by it, and every sum over the processes stays what it
 * was.
 *
 * The shortest-lived go first. An entry is one of them that took in the others: it keeps its id,
 * pid and command line, and says how many it stands for. Of more programs than ML_FOLD_PROGRAMS_MAX
 * those that come last share one entry. Nobody is folded whose child may still ask what it
 * inherited. */
#ifndef MEMLOG_SERVICE_SESSION_FOLD_H
#define MEMLOG_SERVICE_SESSION_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "service/session/figures.h"
#include "service/session/fold_tables.h"

enum {
    /* A configure script runs some two hundred programs, a distribution's build a few more. */
    ML_FOLD_PROGRAMS_MAX = 512,
    /* How many more than the limit there may be before a round folds: it looks at all of them. */
    ML_FOLD_SLACK_MIN = 16
};

/* The name of what is left when there are too many programs. */
#define ML_FOLD_OTHERS "(other programs)"

/* What an entry knows beside the sums in its tables. */
struct ml_fold {
    struct ml_fold_tables tables;
    struct ml_client_figures figures; /* sums; without totals and nodes_count */
    uint64_t unwind_checked, unwind_differed;
};

/* Fold who has ended until no more than the limit are left, as far as they can be folded by now.
 * `exactly`: without the slack that a round allows itself. */
void ml_session_fold(struct ml_session *session, bool exactly);

/* Where the process of that id is now: its own id, or its entry's. */
uint32_t ml_session_where(const struct ml_session *session, uint32_t id);

void ml_fold_free(struct ml_fold *take_fold, struct ml_budget *budget);

#endif

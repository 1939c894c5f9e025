/* Folding of ended processes beyond a limit: many of one program become one entry with their sums.
 * Room: service. Context: the session's one thread.
 *
 * One rule: folding changes no figure of the tree, and no sum over the processes.
 *
 * The shortest-lived processes go first. An entry is one of them that took in the others. It keeps
 * its id, pid and command line, and says how many it stands for. Beyond ML_FOLD_PROGRAMS_MAX
 * programs, the last ones share one entry. A process is not folded while a child may still ask what
 * it inherited. */
#ifndef MEMLOG_SERVICE_SESSION_FOLD_H
#define MEMLOG_SERVICE_SESSION_FOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "service/session/figures.h"
#include "service/session/fold_tables.h"

enum {
    /* A configure script runs some two hundred programs, a distribution's build a few more. */
    ML_FOLD_PROGRAMS_MAX = 512,
    /* So many more than the limit are allowed before a round folds, since folding looks at all of
     * them. */
    ML_FOLD_SLACK_MIN = 16
};

/* The name of the entry that several programs share. */
#define ML_FOLD_OTHERS "(other programs)"

/* What an entry has beside the sums in its tables. */
struct ml_fold {
    struct ml_fold_tables tables;
    struct ml_client_figures figures; /* sums; without totals and nodes_count */
    uint64_t unwind_checked, unwind_differed;
};

/* Fold ended processes until no more than the limit are left, as far as they can be folded by now.
 * `exactly`: without the slack of a round. */
void ml_session_fold(struct ml_session *session, bool exactly);

/* The id under which that process is found: its own, or that of its entry. */
uint32_t ml_session_where(const struct ml_session *session, uint32_t id);

void ml_fold_free(struct ml_fold *take_fold, struct ml_budget *budget);

#endif

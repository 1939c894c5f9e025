/* What each team has in the ledger: kept beside it, so that no request counts lines. Room: host.
 * Context: the ledger's thread; pure.
 *
 * One rule: they are the sums of the ledger's lines at each moment between two calls. */
#ifndef MEMLOG_HOST_COLLECT_TEAM_FIGURES_H
#define MEMLOG_HOST_COLLECT_TEAM_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

enum { ML_TEAM_FIGURES_STATES = 3 }; /* enum ml_entry_state */

struct ml_team_figures {
    uint64_t counts[ML_TEAM_FIGURES_STATES]; /* reports by state */
    uint64_t bytes;                          /* of their bodies */
};

struct ml_team_list {
    struct ml_team_figures_row *rows;
    uint64_t count;
    struct ml_team_figures all;
};

void ml_team_list_fini(struct ml_team_list *list);

/* Nobody has anything any more. The teams keep their numbers. */
void ml_team_list_clear(struct ml_team_list *list);

/* Add so many lines of a state, or take them away again. A team that is new and for which there is
 * no memory counts into the sum alone. */
void ml_team_list_add(
    struct ml_team_list *list, const char *team, unsigned state, uint64_t count, uint64_t bytes
);
void ml_team_list_take(
    struct ml_team_list *list, const char *team, unsigned state, uint64_t count, uint64_t bytes
);

/* A team by its number, from 0 on in the order in which they came; it keeps it. NULL: there are
 * fewer. The name is borrowed until the next call that adds. */
const char *ml_team_list_at(
    const struct ml_team_list *list, uint64_t number, struct ml_team_figures *out_figures
);

/* All 0: the team has nothing. */
struct ml_team_figures ml_team_list_of(const struct ml_team_list *list, const char *team);

#endif

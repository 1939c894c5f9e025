/* How many reports a team may send. Room: host. Context: one thread; pure but for memory.
 *
 * One rule: what a team sends costs no other team its own. A bucket a team: it holds the reports of
 * a minute, and fills evenly. */
#ifndef MEMLOG_HOST_COLLECT_SERVER_QUOTAS_H
#define MEMLOG_HOST_COLLECT_SERVER_QUOTAS_H

#include <stdint.h>

#include "host/collect/tokens.h"

struct ml_quota {
    char team[ML_TEAM_BYTES];
    double left;  /* reports */
    double as_of; /* seconds of the caller's clock */
};

struct ml_quotas {
    uint64_t a_minute; /* 0: any number */
    struct ml_quota *list;
    size_t count;
};

void ml_quotas_fini(struct ml_quotas *quotas);

/* Count one report of the team. Not 0: it is one too many, come again in so many seconds. */
unsigned ml_quotas_take(struct ml_quotas *quotas, const char *team, double now_s);

#endif

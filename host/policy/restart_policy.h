/* What to do when memlog-service has died: whether another one is started, when, and whose data it
 * is spared. Room: host. Context: pure.
 *
 * One rule: bounded. A service that has lived for a while may die of anything and is replaced at
 * once; services that die one behind another are replaced ever later, and at last no more. */
#ifndef MEMLOG_HOST_POLICY_RESTART_POLICY_H
#define MEMLOG_HOST_POLICY_RESTART_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ML_RESTART_DEATHS_MAX = 8, /* in a row; then there is none any more */
    ML_RESTART_HEALTHY_MS =
        10000,                   /* who has served so long has nothing to do with the one before */
    ML_RESTART_POISON_DEATHS = 2 /* in a row at the work on one client's data: it is left out */
};

/* All zero: none has died. */
struct ml_restart_policy {
    uint32_t deaths;         /* in a row */
    uint32_t suspect;        /* client at whose data the last one died; 0: nobody's */
    uint32_t suspect_deaths; /* in a row, at that one's */
};

struct ml_restart_verdict {
    bool again;        /* start another one ... */
    uint32_t delay_ms; /* ... so much later */
    uint32_t poison;   /* a client that it shall not read; 0: none */
};

/* A service has died after serving for `served_ms`, at work on the data of `client` (0: nobody's).
 */
struct ml_restart_verdict ml_restart_policy_died(
    struct ml_restart_policy *restart_policy, uint64_t served_ms, uint32_t client
);

#endif

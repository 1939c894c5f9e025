/* What to do when memlog-service has died: whether to start another one, when, and which client to
 * leave out. Room: host. Context: pure.
 *
 * One rule: restarts are bounded. A service that has run for a while is replaced at once. If
 * services die in a row, the delay before the next one grows, and at last none is started. */
#ifndef MEMLOG_HOST_POLICY_RESTART_POLICY_H
#define MEMLOG_HOST_POLICY_RESTART_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ML_RESTART_DEATHS_MAX = 8, /* in a row; then no other service is started */
    ML_RESTART_HEALTHY_MS =
        10000, /* a death after so long is not related to the one before: count anew */
    ML_RESTART_POISON_DEATHS = 2 /* in a row on the data of one client, which is then left out */
};

/* All zero: no service has died. */
struct ml_restart_policy {
    uint32_t deaths;         /* in a row */
    uint32_t suspect;        /* client on whose data the last service died; 0: none */
    uint32_t suspect_deaths; /* in a row, on that client's data */
};

struct ml_restart_verdict {
    bool again;        /* start another service */
    uint32_t delay_ms; /* before it starts */
    uint32_t poison;   /* a client whose data it shall not read; 0: none */
};

/* Judge a death. The service had run for `served_ms` and died on the data of `client`; 0: none. */
struct ml_restart_verdict ml_restart_policy_died(
    struct ml_restart_policy *restart_policy, uint64_t served_ms, uint32_t client
);

#endif

/* What the service gives up before its memory runs out: a little more at each step, and it says so.
 * Room: service. Context: the session's thread, after each advance.
 *
 * One rule: the client that holds most pays first, and figures that are no longer kept are never
 * presented as current.
 *
 * A client that reaches its own quota (ml_session_quota) pays alone: it loses its live blocks, then
 * it is lost. What it still holds then is counted neither as room nor as use of the others. Before
 * that, when all clients together come near the session's limit:
 *
 *   of the limit, with the largest client's next growth
 *   ML_GUARD_FOLD_PERCENT     all ended processes are folded: no sum changes
 *   ML_GUARD_COARSER_PERCENT  the largest client is sampled, each second a step coarser
 *   ML_GUARD_DROP_PERCENT     its live blocks are dropped for the totals of its stack nodes: its
 *                             live figures are as of then, and its profile is not complete
 *   refused                   a client for whose events there is no memory drops its own blocks,
 *                             then it is lost (ml_client_lose), and only its largest stacks stay
 *                             (top_stacks.h)
 *
 * The system may refuse before the limit is reached: RLIMIT_AS, a control group. Then only the last
 * step applies. */
#ifndef MEMLOG_SERVICE_SESSION_GUARD_H
#define MEMLOG_SERVICE_SESSION_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "service/session/client.h"

struct ml_session;

enum {
    ML_GUARD_FOLD_PERCENT = 50,
    ML_GUARD_COARSER_PERCENT = 75,
    ML_GUARD_DROP_PERCENT = 95,
    /* Without --client-memory: the rest is out of one client's reach. It is more than the guard
     * leaves a client whose live blocks are most of what it holds. */
    ML_GUARD_CLIENT_PERCENT = 90,
    /* A live map grows by a third, and exists twice meanwhile. */
    ML_GUARD_GROWTH_DIVISOR = 3,
    /* The first interval is that of --memlog-sampling. Four times as long leaves a quarter of the
     * blocks; beyond 16 MiB hardly any are left. */
    ML_GUARD_SAMPLING_FIRST_BYTES = 4096,
    ML_GUARD_SAMPLING_STEP = 4,
    ML_GUARD_SAMPLING_LAST_BYTES = 16 << 20
};

#define ML_GUARD_DROPPED_TROUBLE                                                                   \
    "memlog-service ran short of memory: what is live is as of then, what was freed since is not " \
    "known"

/* What was done, for the host to report. COARSER is for the host to do. */
enum ml_guard_step { ML_GUARD_NOTHING, ML_GUARD_COARSER, ML_GUARD_DROPPED };

struct ml_guard_event {
    enum ml_guard_step step;
    uint32_t client; /* id */
    uint64_t sampling_bytes;
    uint64_t used_bytes, max_bytes;
    bool quota; /* those are the client's own */
};

/* Look, and take the next step if it is time. True: there is an event to report; call again. */
bool ml_session_guard(struct ml_session *session, struct ml_guard_event *out_event);

/* A line for people about what was done; "": nothing was. */
void ml_session_guard_text(const struct ml_session *session, char *text, uint32_t text_bytes);

/* There was no memory for its events, by its quota or the whole limit: drop its live blocks; from
 * now on only totals grow. False: they are dropped already. May be called by whoever works on the
 * client. */
bool ml_client_pay(struct ml_client *client);

#endif

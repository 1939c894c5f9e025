/* What the service does before its memory is at an end: less, step by step, and it says so. Room:
 * service. Context: the session's thread, behind each advance.
 *
 * One rule: whoever holds most pays first, and what was not kept is never told as if it were.
 *
 * A client that comes to its own quota (ml_session_quota) pays alone: its live blocks, then it is
 * lost; what it keeps then is neither room nor a burden of the others'. Before that, when all of
 * them together come to the session's limit:
 *
 *   of the limit, with the largest client's next growth
 *   ML_GUARD_FOLD_PERCENT     ended processes are folded, all of them: no sum changes
 *   ML_GUARD_COARSER_PERCENT  the largest client is sampled, each second a step coarser
 *   ML_GUARD_DROP_PERCENT     its live blocks are dropped for the totals of its stack nodes: what
 *                             is live is as of then, and its profile is not complete
 *   refused                   a client for whose events there is no memory drops its own, then it
 *                             is lost (ml_client_lose), and its stacks go but for the largest
 *                             (top_stacks.h)
 *
 * The system may refuse before the limit: RLIMIT_AS, a control group. Then the last step alone is
 * left. */
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
    /* Without --client-memory: what nobody can take from the others is the rest. Above what the
     * guard leaves a client whose live blocks are what it holds. */
    ML_GUARD_CLIENT_PERCENT = 90,
    /* A live map grows by a third, and is there twice meanwhile. */
    ML_GUARD_GROWTH_DIVISOR = 3,
    /* The first interval is what --memlog-sampling means; four times as long makes a quarter of the
     * blocks; beyond 16 MiB hardly any are left. */
    ML_GUARD_SAMPLING_FIRST_BYTES = 4096,
    ML_GUARD_SAMPLING_STEP = 4,
    ML_GUARD_SAMPLING_LAST_BYTES = 16 << 20
};

#define ML_GUARD_DROPPED_TROUBLE                                                                   \
    "memlog-service ran short of memory: what is live is as of then, what was freed since is not " \
    "known"

/* What was done, for the host to tell, and for COARSER to do. */
enum ml_guard_step { ML_GUARD_COARSER, ML_GUARD_DROPPED };

struct ml_guard_event {
    enum ml_guard_step step;
    uint32_t client; /* id */
    uint64_t sampling_bytes;
    uint64_t used_bytes, max_bytes;
    bool quota; /* those are the client's own */
};

/* Look, and do the next step if it is time. True: there is something to tell; ask again. */
bool ml_session_guard(struct ml_session *session, struct ml_guard_event *out_event);

/* A line for people about what was done; "" if nothing was. */
void ml_session_guard_text(const struct ml_session *session, char *text, uint32_t text_bytes);

/* There was no memory for its events, by its quota or for anybody: drop its live blocks, from now
 * on only totals grow. False: it has none any more. Anybody who works on the client may do so. */
bool ml_client_pay(struct ml_client *client);

#endif

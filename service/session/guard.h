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
 *   of the limit
 *   ML_GUARD_FOLD_PERCENT     with the largest client's next growth: all ended processes are
 * folded, and no sum changes ML_GUARD_COARSER_PERCENT  with all that the largest client may have
 * sent before it can sample: it is sampled, each second a step coarser ML_GUARD_DROP_PERCENT with
 * what it may send until the guard looks again: its live blocks are dropped for the totals of its
 * stack nodes: its live figures are as of then, and its profile is not complete. Not before it was
 * asked to sample refused                   a client for whose events there is no memory drops its
 * own blocks, then it is lost (ml_client_lose), and only its largest stacks stay (top_stacks.h)
 *
 * So a client whose live blocks are what grows is sampled before anything is lost. What it may have
 * sent is bounded: by its pipe and its staging, as its pipe is not read between the question and
 * the host's answer; and until the guard looks again, as no more of its events wait than take a
 * part of the memory that is left (ml_client_full). Each block takes ML_GUARD_ALLOC_LEAST_BYTES of
 * those and more. A pipe of a megabyte holds 260,000 of them, which take 6 MiB here. A limit of
 * which that is most asks when half of it is used, and may have to drop all the same. So may new
 * stacks, which take more than blocks.
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
    ML_GUARD_QUIET_PERCENT = 33, /* nothing is looked at below that */
    ML_GUARD_FOLD_PERCENT = 50,
    ML_GUARD_COARSER_FROM_PERCENT = 50, /* of what is used, however much may be sent */
    ML_GUARD_COARSER_PERCENT = 80,
    ML_GUARD_DROP_PERCENT = 88,
    /* Without --client-memory: the rest is out of one client's reach. It is more than the guard
     * leaves a client whose live blocks are most of what it holds. */
    ML_GUARD_CLIENT_PERCENT = 90,
    ML_GUARD_ALLOC_LEAST_BYTES = 4, /* of a stream: op, dtime, daddress, size */
    /* Its pipe is read again if the host does not answer: threads wait a second for room in it. */
    ML_GUARD_HOLD_PATIENCES = 4,
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

/* The host has done what an ML_GUARD_COARSER asked for. */
void ml_session_sampled(struct ml_session *session, uint32_t client_id);

/* Whether the host has not, and may soon. */
bool ml_client_awaits_sampling(const struct ml_client *client);

/* A line for people about what was done; "": nothing was. */
void ml_session_guard_text(const struct ml_session *session, char *text, uint32_t text_bytes);

/* There was no memory for its events, by its quota or the whole limit: drop its live blocks; from
 * now on only totals grow. False: they are dropped already. May be called by whoever works on the
 * client. */
bool ml_client_pay(struct ml_client *client);

#endif

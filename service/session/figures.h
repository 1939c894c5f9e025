/* The figures of a client and of the tree. Room: service. Context: the session's thread. */
#ifndef MEMLOG_SERVICE_SESSION_FIGURES_H
#define MEMLOG_SERVICE_SESSION_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "service/session/coverage.h"
#include "service/snapshot/accounting.h"
#include "service/snapshot/snapshot.h"

struct ml_client;
struct ml_session;

/* The figures of a client. */
struct ml_client_figures {
    struct ml_totals totals;
    struct ml_coverage_told coverage;
    struct ml_accounting accounting;
    uint64_t events, lost_events, unknown_frees, late_events;
    uint64_t truncated_stacks, broken_stacks;
    uint64_t inherited_bytes, inherited_blocks;
    uint64_t missed_frees; /* addresses that were allocated again before their free was seen */
    uint64_t lost_chunks;  /* as its threads say, or as the service missed if that is more */
    uint32_t nodes_count;
    /* An entry that stands for several processes: how many, and how many of them failed. 0: it is
     * one process. */
    uint32_t folded_processes, folded_failed;
    uint64_t sampling_bytes; /* of its latest records; 1: every allocation */
    uint64_t recording_ticks, passing_ticks, passed_calls; /* its client's cost, as it says */
    uint64_t exact_blocks; /* live, and recorded when every allocation was */
    uint64_t held_at_tree_peak_bytes, held_at_tree_peak_blocks;
    bool left_tree; /* it has ended, or its recording was stopped */
    bool complete;
    const char *trouble; /* static text or owned by the client; "" if none */
};

struct ml_client_figures ml_client_figures(const struct ml_client *client);

/* Whether all that it ever allocated was to be recorded: by the host's word, and by its own. */
bool ml_client_is_from_startup(const struct ml_client *client);

/* The tree: what the running processes hold now and held at their peak, and what all of them ever
 * allocated. So live is never more than peak. */
struct ml_totals ml_session_totals(const struct ml_session *session);

/* What processes held when they left the tree: at their end, or when their recording was stopped.
 */
struct ml_amount ml_session_left(const struct ml_session *session);

/* The live bytes at each of its stack nodes, by id; [0] has those without a stack. An array of
 * *out_count, which the caller frees. NULL when there is no memory. */
uint64_t *ml_client_live_by_node(const struct ml_client *client, uint32_t *out_count);

/* The session's memory by what it holds. used_bytes is all of it. O(lanes). */
struct ml_session_memory {
    uint64_t used_bytes;
    uint64_t blocks, blocks_bytes; /* live ones */
    uint64_t cells, cells_bytes;
    uint64_t nodes, nodes_bytes;
    uint64_t queues_bytes; /* events that wait for their turn, and room for them */
};
struct ml_session_memory ml_session_memory(const struct ml_session *session);

#endif

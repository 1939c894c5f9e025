/* Stand-in lanes for hooks that a forking signal handler interrupted and that continue in the
 * child. Room: client (private). Context: the child, in which one thread runs.
 *
 * The hook holds its lane's address, and a fork wipes the lane. So the child never gives that lane
 * to a thread. It becomes a decoy: the hook's writes go to memory that nobody reads, and its one
 * event is counted as lost.
 *
 * One rule: nothing that the hook does with its lane reaches the stream of the parent or the child.
 */
#ifndef MEMLOG_CLIENT_STREAM_DECOY_H
#define MEMLOG_CLIENT_STREAM_DECOY_H

#include <stdbool.h>
#include <stdint.h>

#include "client/stream/lane.h"

/* In the parent, before the fork and after it: keep a copy of a lane that a hook of the calling
 * thread is using, so that the hook finds the same state in the child. One thread at a time can do
 * so; for others the child's lane is empty. */
void ml_decoy_save(const struct ml_lane *lane);
void ml_decoy_drop_saved(void);

/* The lanes that interrupted hooks of the calling thread may still hold (NULL: none) become decoys,
 * for as long as the process lives. Called before the child takes its first lane. Decoys use the
 * parent's staging until ml_decoy_settle replaces it by private memory, once the child has its
 * own. */
void ml_decoy_set(struct ml_lane *lane, struct ml_lane *second);
void ml_decoy_settle(void);

/* While decoys are being made the child allocates in its arena only behind its parent's part, which
 * the hooks may be reading. */
void ml_decoy_step_aside(void);

/* Between the two: the child's own staging must lie elsewhere. */
bool ml_decoy_pending(void);

/* In a child of a child, forked outside any hook: there are none. */
void ml_decoy_forget(void);

/* Whether that lane is one. */
bool ml_decoy_is(const struct ml_lane *lane);

/* Rewind the lane, so that its next record stays in the decoy's memory. */
void ml_decoy_rewind(struct ml_lane *lane);

/* Events that went to decoys since the last call. */
uint64_t ml_decoy_take_count(void);

#endif

/* What a hook finds that was at work when a signal handler forked, and goes on in the child. Room:
 * client (private). Context: the child, in which one thread runs.
 *
 * The hook knows its lane by address, and a fork wipes the lane. So the child never hands that one
 * out; it holds a place of its own instead, where what the hook still writes goes to nobody. The
 * hook's one event is counted as lost.
 *
 * One rule: nothing that the hook does with its lane reaches the stream of the parent or the child.
 */
#ifndef MEMLOG_CLIENT_STREAM_DECOY_H
#define MEMLOG_CLIENT_STREAM_DECOY_H

#include <stdbool.h>
#include <stdint.h>

#include "client/stream/lane.h"

/* In the parent, before the fork and behind it: keep a copy of a lane that a hook of the calling
 * thread is in the middle of using, so that the hook finds it so in the child. One thread at a time
 * can; for others the child's lane begins anew under the hook. */
void ml_decoy_save(const struct ml_lane *lane);
void ml_decoy_drop_saved(void);

/* The lanes that interrupted hooks of the calling thread may still hold (NULL: none) become decoys,
 * for as long as the process lives. Before the child takes its first lane; from then on its
 * parent's staging is the decoys', which ml_decoy_settle makes memory of nobody else's, once the
 * child has its own. */
void ml_decoy_set(struct ml_lane *lane, struct ml_lane *second);
void ml_decoy_settle(void);

/* While decoys are being made: what the child takes of its arena lies behind all that its parent
 * had taken, which the hooks may be reading. */
void ml_decoy_step_aside(void);

/* Between the two: the child's own staging must lie elsewhere. */
bool ml_decoy_pending(void);

/* In a child of a child, forked outside any hook: there are none. */
void ml_decoy_forget(void);

/* Whether that lane is one. */
bool ml_decoy_is(const struct ml_lane *lane);

/* The lane's next record goes where it did no harm before. */
void ml_decoy_rewind(struct ml_lane *lane);

/* Events that went to decoys since the last call. */
uint64_t ml_decoy_take_count(void);

#endif

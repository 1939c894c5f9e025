/* The functions of an interpreter between the native ones (--frames). Room: client (private).
 * Context: inside a hook, on its lane.
 *
 * One rule: they are found anew at each event: nothing on the native stack tells that an
 * interpreter has gone on. What has not changed since the lane's last event keeps its nodes. */
#ifndef MEMLOG_CLIENT_RECORDING_SCRIPTS_H
#define MEMLOG_CLIENT_RECORDING_SCRIPTS_H

#include <stdbool.h>
#include <stdint.h>

#include "client/stream/lane.h"

struct ml_scripts;

enum { ML_SCRIPTS_INNERMOST = UINT32_MAX /* behind all native frames */ };

/* Look for interpreters, if their functions are wanted. Context: the start of a client. */
void ml_scripts_find(void);

/* Whether there is one whose functions are wanted. */
bool ml_scripts_wanted(void);

/* The calling thread's functions now, behind those `frames` native frames. Returns how many of the
 * native frames, from the outermost, still have the nodes that the lane's last event gave them:
 * UINT32_MAX if all that were kept. `*out_scripts` is NULL if there are none. */
uint32_t ml_scripts_now(struct ml_lane *lane, uint32_t frames, struct ml_scripts **out_scripts);

/* From the first one that is not placed yet: those behind native frame `frame`
 * (ML_SCRIPTS_INNERMOST: all that are left), as nodes below `parent`, if `looks`; else they are
 * known to have theirs. `*next` is the first one behind them. Returns the last one's node. */
uint32_t ml_scripts_behind(
    struct ml_lane *lane,
    struct ml_scripts *scripts,
    uint32_t frame,
    bool looks,
    uint32_t *next,
    uint32_t parent
);

#endif

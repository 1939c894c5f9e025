/* A hook's frame is left by a throw: a real operator new has no memory, or the thread is cancelled
 * inside the next allocator. Room: client (private). Context: inside the unwinder, between
 * ml_hook_enter (or ml_sampler_pass) and the leaving that does not come.
 *
 * One rule: a throw leaves what ml_hook_leave would: no guard, and no hold on sampling. */
#ifndef MEMLOG_CLIENT_RECORDING_THROWN_H
#define MEMLOG_CLIENT_RECORDING_THROWN_H

#include "client/state/left.h"

/* Named by hooks alone. Does nothing in a phase in which no next allocator is at work. */
int ml_hook_thrown(ML_LEFT_PARAMETERS);

/* First line of a hook whose next function may throw. */
#define ML_HOOK_MAY_BE_LEFT() ML_LEFT_BY(ml_hook_thrown)

#endif

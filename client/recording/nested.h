/* Calls of the allocator that come while the next allocator is at work: its own, or those of a
 * signal handler that interrupted it. Room: client (private). Context: inside a hook that found
 * another one at work in the same thread.
 *
 * One rule: the frames between the two calls decide. A frame that the kernel made means a signal
 * handler. Frames of the outer hook and the allocator alone mean the allocator's own call. If the
 * stack passes the outer hook's place without that hook, siglongjmp has left it. */
#ifndef MEMLOG_CLIENT_RECORDING_NESTED_H
#define MEMLOG_CLIENT_RECORDING_NESTED_H

#include <stdint.h>

#include "client/stream/lane.h"

enum ml_nested {
    ML_NESTED_OWN,    /* the next allocator's own call: part of the outer one */
    ML_NESTED_SIGNAL, /* a signal handler's */
    ML_NESTED_NONE    /* there is no outer hook any more */
};

/* Decide what the inner hook is. The outer one lies further out, on the same stack as far as is
 * known; a frame is what `sp` is in ml_unwind_entry. The walk uses the unwinder of `lane`, which is
 * at rest. Where it ends too early, the stack's words are searched for a frame of the kernel's. */
enum ml_nested ml_nested_what(struct ml_lane *lane, uintptr_t inner_frame, uintptr_t outer_frame);

#endif

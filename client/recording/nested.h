/* Calls of the allocator that come while the next allocator is at work: its own, or those of a
 * signal handler that interrupted it. Room: client (private). Context: inside a hook that found
 * another one at work in the same thread.
 *
 * One rule: what lies between the two calls says which it is: the frame that the kernel made for a
 * handler, or nothing but the outer hook and the allocator. Where the stack passes the outer hook's
 * place without coming by that hook, it has been left by siglongjmp. */
#ifndef MEMLOG_CLIENT_RECORDING_NESTED_H
#define MEMLOG_CLIENT_RECORDING_NESTED_H

#include <stdint.h>

#include "client/stream/lane.h"

enum ml_nested {
    ML_NESTED_OWN,    /* the next allocator's own call: part of the outer one */
    ML_NESTED_SIGNAL, /* a signal handler's */
    ML_NESTED_NONE    /* there is no outer hook any more */
};

/* What a hook is that found another one at work in the next allocator, both on one stack as far as
 * is known, the other further out; a frame is what `sp` is in ml_unwind_entry. Walks the stack,
 * with what `lane`, which is at rest, has for that. A stack that cannot be walked so far is looked
 * through for what the kernel leaves there. */
enum ml_nested ml_nested_what(struct ml_lane *lane, uintptr_t inner_frame, uintptr_t outer_frame);

#endif

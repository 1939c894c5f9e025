/* What a patched entry of an allocator leads to. Room: client (private). Context: any thread, at
 * any time, as the hooks of client/hooks/alloc.c.
 *
 * One rule: the caller gets the answer of the function itself, which goes on behind its first
 * instructions (`next`); hooks only observe.
 *
 * A call of the function comes here by two jumps: its arguments and its return address are where
 * the caller put them. Allocators' functions have five arguments of a register each at most
 * (base/entry/allocator_call.h), so the register behind carries which function it is. */
#ifndef MEMLOG_CLIENT_PATCH_ENTRY_HOOKS_H
#define MEMLOG_CLIENT_PATCH_ENTRY_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/entry/allocator_call.h"

/* One patched function. Set before its entry is. */
struct ml_patched {
    const void *next; /* its first instructions, and a jump behind them */
    struct ml_allocator_call call;
    /* The code from which the allocator calls itself by its entry, without a linkage table; 0
     * bytes: none is known. The calls are its own business. Of an attached process alone: where
     * memlog stands in front of names, such calls do not come to it. */
    uintptr_t own_start, own_bytes;
    uintptr_t entry; /* of the function, as calls name it */
};

enum { ML_PATCHED_STUB_BYTES = 32 };

/* The code that a patched entry jumps to: it calls the hook for that kind of function. `keeps`: its
 * callers may know which registers the function leaves alone (GCC's -fipa-ra), and may call it with
 * a stack that is not aligned. Then all registers but the result's are as before. */
void ml_patched_stub(
    const struct ml_patched *patched, bool keeps, uint8_t out_code[ML_PATCHED_STUB_BYTES]
);

#endif

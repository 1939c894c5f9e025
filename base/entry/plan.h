/* The plan of an entry patch: a jump over the first bytes of a function, to a stub of ours, and a
 * trampoline with the instructions that stood there, which goes on behind them. Room: base.
 * Context: any; pure: bytes in, plan out. Whoever applies it may be inside the process or outside.
 *
 * One rule: what cannot be moved for certain is refused, with the reason. A refused function is not
 * recorded; one that was moved wrongly crashes somebody's program.
 *
 *     entry:  [endbr64]         stays
 *     at:     jmp rel32   ----> stub      whatever the caller of this module puts there
 *             rest of the moved bytes     stay as they were, nobody executes them but by a branch
 *     behind: ...         <---- trampoline: the moved instructions, then jmp behind
 *
 * What the planner cannot see and its caller must: no other function begins inside the patched
 * bytes (ml_entry_plan_covers), no thread stands inside the moved bytes when they are written, and
 * they are still `old` at that moment. */
#ifndef MEMLOG_BASE_ENTRY_PLAN_H
#define MEMLOG_BASE_ENTRY_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_ENTRY_JUMP_BYTES = 5,       /* jmp rel32 */
    ML_ENTRY_MOVED_MAX = 19,       /* 4 bytes, and the longest instruction behind them */
    ML_ENTRY_TRAMPOLINE_MAX = 64,  /* a jcc rel8 grows by 4 bytes, and 2 fit; 5 for the way back */
    ML_ENTRY_REFUSAL_TEXT_MAX = 64 /* with its null */
};

enum ml_entry_refusal {
    ML_ENTRY_PLANNED = 0,
    ML_ENTRY_PATCHED_ALREADY, /* the entry is a jump to this very stub */
    ML_ENTRY_NOT_READABLE,    /* the code ends within the bytes that would be moved */
    ML_ENTRY_SHORT,           /* the function ends within the jump, and no padding is behind it */
    ML_ENTRY_RUNS_OUT,        /* its last instruction falls through into what is not its own */
    ML_ENTRY_UNKNOWN_INSTRUCTION,
    ML_ENTRY_CALL,        /* in the moved bytes: by a register, or one that may not be pushed */
    ML_ENTRY_LOOP,        /* in the moved bytes: loop, jrcxz, xbegin */
    ML_ENTRY_BREAKPOINT,  /* int3: a debugger's or a uprobe's */
    ML_ENTRY_BRANCH_INTO, /* something in the function branches into the patched bytes */
    ML_ENTRY_BRANCH_BACK, /* something in the function branches back to its entry: each round would
                             be a call of the hook, and stack */
    ML_ENTRY_SWITCH,      /* a switch's table, which is not read, may lead into the patched bytes */
    ML_ENTRY_LARGE,       /* too large to be looked at, or not readable to its end */
    ML_ENTRY_STUB_FAR,    /* more than 2 GiB away */
    ML_ENTRY_TARGET_FAR,  /* what a moved instruction leads to or reads is too far from the
                             trampoline, or the way back is */
    ML_ENTRY_CHOSEN,      /* an IFUNC: what stands there is its resolver. Not the planner's word */
    ML_ENTRY_KNOWN,       /* its callers may rely on what it does not touch. Likewise */
    ML_ENTRY_CHANGED,     /* what is loaded there is not what the file has. Likewise */
    ML_ENTRY_REFUSAL_COUNT /* no refusal */
};

struct ml_entry_function {
    const uint8_t *code; /* its bytes, of which */
    size_t code_bytes;   /* are readable; may go on behind the function */
    uint64_t address;    /* where they run */
    uint64_t size;       /* of the symbol; 0: not known */
    /* The executable segment around it, all of it readable, for parts of the function that the
     * compiler put elsewhere (.cold). NULL: they are not looked at. */
    const uint8_t *text;
    size_t text_bytes;
    uint64_t text_address; /* where text[0] runs */
    /* A call among the moved bytes becomes a push of its own return address, and a jump: it returns
     * into the function, as unwinders want it. Not where the processor has a shadow stack, which
     * would be left without that address. */
    bool may_push_calls;
};

struct ml_entry_plan {
    uint64_t at; /* where the jump goes: the entry, or behind endbr64 */
    uint8_t old[ML_ENTRY_JUMP_BYTES];
    uint8_t jump[ML_ENTRY_JUMP_BYTES];
    uint8_t trampoline[ML_ENTRY_TRAMPOLINE_MAX];
    uint32_t trampoline_bytes;
    uint32_t moved_bytes; /* from `at`: instructions that the trampoline holds */
};

/* Plan the patch of one function. The jump goes to stub_address; the trampoline will stand at
 * trampoline_address, which needs no alignment.
 *
 * Errors: any refusal; *out_plan is undefined then.
 * Owner:  function and its bytes borrowed. */
enum ml_entry_refusal ml_entry_plan(
    const struct ml_entry_function *function,
    uint64_t stub_address,
    uint64_t trampoline_address,
    struct ml_entry_plan *out_plan
);

/* Does `address` lie inside the patched bytes, behind their first? Another function there forbids
 * the patch. */
bool ml_entry_plan_covers(const struct ml_entry_plan *plan, uint64_t address);

/* Why, for people: "the function is shorter than the jump". Never NULL. */
const char *ml_entry_refusal_text(enum ml_entry_refusal refusal);

#endif

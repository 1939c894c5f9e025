/* The unwinder: the stack of a hook's caller, exactly, in tens of nanoseconds.
 * Room: client. Context: inside malloc, on any thread and any stack, also in signal handlers that
 * interrupted it (with another ml_unwind_thread). It takes no lock, allocates nothing, calls the
 * loader only for what objects.h does, leaves errno alone and needs less than 1 KiB of stack. Its
 * one system call is the page probe of arch.h, once for each page of stack a thread ever
 * uses.
 *
 * One rule: every load lies in a range of stack known to be mapped, is aligned and lies further out
 * than the one before; a stack that breaks this is cut there and counted as broken. The result
 * equals that of a full walk of the unwind tables at the same moment. How:
 *
 *   recipe  what the tables say of a return address, where that is "caller's stack pointer = rsp+a
 *           or rbp+b, return address just below, rbp kept or stored": cached for the process.
 *   join    the thread's stack of last time. Walking from the inside, the first frame found again
 *           (slot, return address, and rbp where a frame further out depends on it) ends the walk,
 *           if from there outwards every word that a walk would load still holds what it held.
 *   marks   of a stack too deep to be kept whole a few frames of the part left out are remembered,
 *           the further out the fewer, with their numbers. A walk that comes to one of them in the
 *           same state ends there; frames are never taken from them.
 *   code    outside all modules there is no table. A function that is about to return, as a
 *           trampoline is, says by its own instructions where its caller is; of others frame
 *           pointers are assumed.
 *   full    a stack with any other rule in it (realigned frames, signal frames, CFA expressions) is
 *           walked by a register-rule interpreter from the hook's own frame on. Such frames, and
 *           all that lie further in, are never joined.
 *
 * Use, in an exported hook (which must keep a frame pointer, so no tail call of its own frame away,
 * and must not be inlined):
 *
 *     struct ml_unwind_entry entry = ml_unwind_entry_here();
 *     struct ml_unwind_result result = ml_unwind(process, thread, &entry, &seen);
 *     uint32_t node = root;                                   // or the kept part's innermost node
 *     if (result.kept != 0) node = ml_unwind_node(thread, result.kept - 1);
 *     for (uint32_t i = result.kept; i < result.count; i++) { // outermost first
 *         node = lookup(node, ml_unwind_kind(thread, i), ml_unwind_address(thread, i),
 *                       ml_unwind_module(thread, i));
 *         if (node == 0) break;                               // table full: asked again next time
 *         ml_unwind_set_node(thread, i, node);
 *     }
 *
 * Frame 0 is the outermost, frame count - 1 the caller of the hook. */
#ifndef MEMLOG_CLIENT_UNWIND_UNWIND_H
#define MEMLOG_CLIENT_UNWIND_UNWIND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/unwind/arch.h"
#include "client/unwind/cfi.h"
#include "client/unwind/memo.h"
#include "client/unwind/modules.h"
#include "client/unwind/range.h"
#include "client/unwind/recipe.h"
#include "ipc/wire/event.h"
#include "ipc/wire/ml_status.h"

enum {
    /* A deeper stack keeps ML_UNWIND_OUTER frames at the root, a CUT frame, and the innermost ones
     * from a frame number on that is a multiple of ML_UNWIND_CUT_STEP: between ML_UNWIND_INNER_MIN
     * and that + STEP - 1. In steps, so that the nodes below the cut stay the same while a deep
     * recursion goes up and down. */
    ML_UNWIND_OUTER = 256,
    ML_UNWIND_CUT_STEP = 128,
    ML_UNWIND_INNER_MIN = 96,
    ML_UNWIND_FRAMES_MAX =
        480, /* OUTER + 1 + INNER_MIN + STEP - 1, and every stack up to here whole */
    ML_UNWIND_FRESH_MAX = 512,
    ML_UNWIND_GENERATION_SHIFT = 16, /* of ml_unwind_process.unloads */
    ML_UNWIND_WALK_MAX = 1 << 22, /* frames stepped by recipes before giving up: 64 MiB of 16 B */
    ML_UNWIND_MARK_FROM = 512, /* a walk marks the frame that is so far in front, and twice ... */
    ML_UNWIND_PASSED_MAX = 14, /* ... as far, and so on up to ML_UNWIND_WALK_MAX */
    ML_UNWIND_MARKS = 32,
    ML_UNWIND_FRAMED = 64, /* return addresses in generated code; node has some 20 on a stack */
    ML_UNWIND_FULL_WALK_MAX = 1 << 16 /* frames stepped by the interpreter, 0.5 us each */
};
_Static_assert(
    (int)ML_UNWIND_FRAMES_MAX <= (int)ML_STACK_DEPTH_MAX &&
        ML_UNWIND_OUTER + 1 + ML_UNWIND_INNER_MIN + ML_UNWIND_CUT_STEP - 1 <= ML_UNWIND_FRAMES_MAX,
    "a cut stack fits"
);
_Static_assert(
    ML_UNWIND_MARK_FROM << (ML_UNWIND_PASSED_MAX - 1) == ML_UNWIND_WALK_MAX &&
        ML_UNWIND_PASSED_MAX <= ML_UNWIND_MARKS / 2 &&
        (int)ML_UNWIND_MARK_FROM > ML_UNWIND_INNER_MIN + ML_UNWIND_CUT_STEP,
    "there is room for the marks of one walk, and all of them are in the part left out"
);

/* The entry of the function that this stands in. */
static inline __attribute__((always_inline)) struct ml_unwind_entry ml_unwind_entry_here(void) {
    const uintptr_t *frame = __builtin_frame_address(0);
    return (struct ml_unwind_entry
    ){.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
}

enum {
    ML_UNWIND_CUT = 1 << 0,    /* deeper than ML_UNWIND_FRAMES_MAX: a ML_FRAME_CUT is in it */
    ML_UNWIND_BROKEN = 1 << 1, /* its end was not reached: frame 0 is a ML_FRAME_BROKEN */
    ML_UNWIND_FULL = 1 << 2    /* the interpreter walked it; for tests */
};

struct ml_unwind_result {
    uint32_t kept;  /* frames [0, kept) are as last time and have their nodes */
    uint32_t count; /* frames in all; 0: nothing could be said */
    uint32_t flags;
};

/* One process. All zero is the empty state: keep it in memory that fork wipes. Shared by all
 * threads. */
struct ml_unwind_process {
    _Atomic uint64_t unloads; /* dlcloses done << 16 | dlcloses going on */
    struct ml_memo_pool memos;
    struct ml_modules modules;
    struct ml_recipes recipes;
};

/* Bits that a frame's recipe has beside those of recipe.h. */
#define ML_UNWIND_FRAME_EXACT                                                                      \
    (UINT64_C(1) << 47) /* pc is an interrupted instruction, not a return address */
#define ML_UNWIND_FRAME_BROKEN (UINT64_C(1) << 48) /* no frame: no way further out from here */
#define ML_UNWIND_FRAME_CUT (UINT64_C(1) << 49)    /* no frame: frames left out */
#define ML_UNWIND_FRAME_FP_LIVE                                                                    \
    (UINT64_C(1) << 50) /* frames further out depend on this frame's fp */

struct ml_unwind_frame {
    uintptr_t slot; /* where the return address lies; 0: nowhere. Of a cut: its nearest mark's */
    uintptr_t pc;
    uintptr_t fp;
    uint64_t recipe; /* how the frame was stepped out of; COLD: not to be joined */
};

/* A frame that the cut leaves out, and the state of the walk by recipes there, which alone decides
 * how the walk continues. */
struct ml_unwind_mark {
    uintptr_t slot;
    uintptr_t pc;
    uintptr_t fp;
    uint64_t number; /* 0 is the outermost frame */
};

/* The interpreter's registers, by DWARF number. */
struct ml_unwind_registers {
    uint64_t values[ML_ARCH_CFI_REGISTERS];
    uint32_t known; /* bit per register */
};

/* One thread's (one lane's) memory of its last stack. All zero is the empty state. Only its thread
 * uses it; wiped at fork. Another thread may take it over after ml_unwind_thread_clear. */
struct ml_unwind_thread {
    uint64_t unloads; /* of the process, when the frames below were walked */
    uintptr_t owner;  /* thread control block of the thread whose stacks `ranges` knows */
    uint32_t busy;    /* a walk that was left by longjmp finds this set */
    uint32_t count;   /* frames kept below */
    uint32_t pure;    /* the outermost frames [0, pure) may be joined */
    uint64_t skipped; /* frames that the cut leaves out; 0: it is whole, and there are no marks */
    uint32_t marks_count;
    uintptr_t end_slot; /* the word 0 that ended the stack; 0: something else did */
    struct ml_unwind_ranges ranges;
    uint64_t cut_walked; /* frames that walks of cut stacks have stepped over; for tests */
    uint32_t nodes[ML_UNWIND_FRAMES_MAX];
    struct ml_unwind_frame frames[ML_UNWIND_FRAMES_MAX];
    struct ml_unwind_frame fresh[ML_UNWIND_FRESH_MAX]; /* found by a walk, innermost first */
    struct ml_cfi_scratch scratch;
    struct ml_unwind_registers registers[2];
    struct ml_image image;
    uintptr_t framed[ML_UNWIND_FRAMED]; /* by hash: return addresses in code with frame pointers */
    struct ml_unwind_memo memo;
    struct ml_unwind_mark marks[ML_UNWIND_MARKS];       /* outermost first */
    struct ml_unwind_mark passed[ML_UNWIND_PASSED_MAX]; /* by the walk that is being made */
};

/* Is no dlclose going on? */
static inline bool ml_unwind_unloads_rest(uint64_t unloads) {
    return (unloads & ((UINT64_C(1) << ML_UNWIND_GENERATION_SHIFT) - 1)) == 0;
}

/* Walk the caller's stack. The frames are in `thread` afterwards.
 *
 * Shape:  entry from ml_unwind_entry_here() of a function that is still on the stack; `seen` is
 *         told of new modules before their ids appear.
 * Owner:  all borrowed. */
struct ml_unwind_result ml_unwind(
    struct ml_unwind_process *process,
    struct ml_unwind_thread *thread,
    const struct ml_unwind_entry *entry,
    const struct ml_module_seen *seen
);

/* Forget the last stack: the thread's root frame changed (its name), or another thread comes. */
void ml_unwind_thread_clear(struct ml_unwind_thread *thread);

/* Forget the nodes, not the frames: all are asked for again. */
void ml_unwind_forget_nodes(struct ml_unwind_thread *thread);

/* Enclose the real dlclose. Between the two no thread uses cached entries; afterwards all earlier
 * ones are dropped. `gone` (or NULL) is called for each module that was unmapped. */
void ml_unwind_unload_begin(struct ml_unwind_process *process);
void ml_unwind_unload_end(
    struct ml_unwind_process *process, ml_module_gone_fn *gone, void *context
);

/* The frames. Frame 0 is the outermost; i < count of the last ml_unwind. */
static inline enum ml_frame_kind ml_unwind_kind(const struct ml_unwind_thread *thread, uint32_t i) {
    uint64_t recipe = thread->frames[i].recipe;
    return (recipe & ML_UNWIND_FRAME_CUT) != 0      ? ML_FRAME_CUT
           : (recipe & ML_UNWIND_FRAME_BROKEN) != 0 ? ML_FRAME_BROKEN
                                                    : ML_FRAME_ADDRESS;
}
static inline uint32_t ml_unwind_module(const struct ml_unwind_thread *thread, uint32_t i) {
    return ml_recipe_module(thread->frames[i].recipe);
}
static inline uint32_t ml_unwind_node(const struct ml_unwind_thread *thread, uint32_t i) {
    return thread->nodes[i];
}
static inline void ml_unwind_set_node(struct ml_unwind_thread *thread, uint32_t i, uint32_t node) {
    thread->nodes[i] = node;
}

/* The address as the stream carries it: inside the call instruction, or the interrupted
 * instruction itself. 0 for frames that are no code (CUT, BROKEN). */
static inline uintptr_t ml_unwind_address(const struct ml_unwind_thread *thread, uint32_t i) {
    const struct ml_unwind_frame *frame = &thread->frames[i];
    return frame->pc - (frame->pc != 0 && (frame->recipe & ML_UNWIND_FRAME_EXACT) == 0);
}

#endif

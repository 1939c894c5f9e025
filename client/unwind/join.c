#include <string.h>

#include "client/unwind/internal.h"

/* The frame number at which the inner part of a stack of `depth` frames begins; 0: it is whole. */
static uint64_t inner_begin(uint64_t depth) {
    if (depth <= ML_UNWIND_FRAMES_MAX) {
        return 0;
    }
    return (depth - ML_UNWIND_INNER_MIN) / ML_UNWIND_CUT_STEP * ML_UNWIND_CUT_STEP;
}

/* Is cached frame `i` in the inner part of a cut stack, or the cut? */
static bool is_inner(const struct ml_unwind_thread *thread, uint32_t i) {
    return thread->skipped != 0 && i >= ML_UNWIND_OUTER;
}

/* How many frames of the real stack the cached [0, top) stand for. */
static uint64_t frames_below(const struct ml_unwind_thread *thread, uint32_t top) {
    return top == 0 || !is_inner(thread, top - 1) ? top : top - 1 + thread->skipped;
}

/* From frame `joint`, known to be the same, outwards to frame `last`: is every word that a walk
 * would load unchanged? In the walk's order, so that only words are loaded that it would load.
 *
 * Returns 0 when all do, else the number of the first frame that does not, + 1. */
static inline __attribute__((always_inline)) uint32_t
verify(const struct ml_unwind_thread *thread, uint32_t joint, uint32_t last) {
    uint64_t inner = thread->frames[joint].recipe; /* of the frame within: where it has stored fp */
    for (uint32_t i = joint; i-- > last;) {
        const struct ml_unwind_frame *frame = &thread->frames[i];
        uint32_t fp_words = ml_recipe_fp_words(inner);
        inner = frame->recipe;
        if (ml_unwind_load(frame->slot) != frame->pc) {
            return i + 1;
        }
        if (fp_words != 0 && (frame->recipe & ML_UNWIND_FRAME_FP_LIVE) != 0) {
            uintptr_t at =
                frame->slot + ML_ARCH_WORD_BYTES - (uintptr_t)fp_words * ML_ARCH_WORD_BYTES;
            if (ml_unwind_load(at) != frame->fp) {
                return i + 1;
            }
        }
    }
    return 0;
}

/* The same, from frame `joint` to the end of the stack. Where a word has changed, the walk
 * continues with the frames further out. */
static inline __attribute__((always_inline)) bool
verify_rest(struct ml_unwind_walk *walk, uint32_t joint) {
    const struct ml_unwind_thread *thread = walk->thread;
    uint32_t mismatch = verify(thread, joint, 0);
    if (mismatch == 0 && thread->end_slot != 0 && ml_unwind_load(thread->end_slot) != 0) {
        mismatch = 1;
    }
    walk->top = mismatch != 0 ? mismatch - 1 : walk->top;
    return mismatch == 0;
}

/* Is the walk in the state in which it passed cached frame `top - 1`? Drops that frame if not. */
static inline __attribute__((always_inline)) bool is_at(struct ml_unwind_walk *walk, uint32_t top) {
    const struct ml_unwind_thread *thread = walk->thread;
    const struct ml_unwind_frame *frame = &thread->frames[top - 1];
    bool same = top <= thread->pure && frame->pc == walk->at.pc &&
                ((frame->recipe & ML_UNWIND_FRAME_FP_LIVE) == 0 || frame->fp == walk->at.fp);
    walk->top = same ? top : top - 1;
    return same;
}

/* ---- marks: places in the part of a cut stack that is left out
 *
 * Of that part only the number of frames matters: it decides where the inner part begins. A mark
 * holds the number from itself outwards, and the walk counts the others. A mark is valid only if
 * the walk reaches it in the recorded state (slot, pc, fp), and the words of all marks further out
 * and of the outer part are unchanged. */

/* [0, count) are left: the cut lies where the nearest of them is, so that a walk stops there. */
static void keep_marks(struct ml_unwind_thread *thread, uint32_t count) {
    thread->marks_count = count;
    thread->frames[ML_UNWIND_OUTER].slot = count != 0 ? thread->marks[count - 1].slot : 0;
}

/* Is a mark left at `slot` or further out? */
static bool has_mark(struct ml_unwind_thread *thread, uintptr_t slot) {
    uint32_t count = thread->marks_count;
    while (count > 0 && thread->marks[count - 1].slot < slot) {
        count--;
    }
    keep_marks(thread, count);
    return count > 0;
}

/* Are the words of the first `count` marks and of the outer part unchanged? */
static bool verify_cut(struct ml_unwind_walk *walk, uint32_t count) {
    struct ml_unwind_thread *thread = walk->thread;
    while (count-- > 0) {
        if (ml_unwind_load(thread->marks[count].slot) != thread->marks[count].pc) {
            keep_marks(thread, count);
            walk->top = ML_UNWIND_OUTER + 1;
            return false;
        }
    }
    return verify_rest(walk, ML_UNWIND_OUTER);
}

/* The walk is at the nearest mark's slot. */
static bool join_mark(struct ml_unwind_walk *walk) {
    struct ml_unwind_thread *thread = walk->thread;
    const uint32_t further = thread->marks_count - 1;
    const struct ml_unwind_mark *mark = &thread->marks[further];
    if (thread->pure <= ML_UNWIND_OUTER || mark->pc != walk->at.pc || mark->fp != walk->at.fp ||
        inner_begin(mark->number + 1 + walk->walked) <= mark->number) {
        keep_marks(thread, further);
        return false;
    }
    if (!verify_cut(walk, further)) {
        return false;
    }
    thread->skipped = mark->number + 1 - ML_UNWIND_OUTER; /* the walk has found all further in */
    return true;
}

/* ml_unwind_join where the last stack is cut. */
static __attribute__((noinline)) bool join_cut(struct ml_unwind_walk *walk) {
    struct ml_unwind_thread *thread = walk->thread;
    uint32_t top = walk->top;
    while (top > 0 && thread->frames[top - 1].slot < walk->at.slot &&
           (top - 1 != ML_UNWIND_OUTER || !has_mark(thread, walk->at.slot))) {
        top--;
    }
    walk->top = top;
    if (top == 0 || thread->frames[top - 1].slot != walk->at.slot) {
        return false;
    }
    if (top - 1 == ML_UNWIND_OUTER) {
        return join_mark(walk);
    }
    if (!is_at(walk, top)) {
        return false;
    }
    if (top <= ML_UNWIND_OUTER) {
        return verify_rest(walk, top - 1);
    }
    uint32_t mismatch = verify(thread, top - 1, ML_UNWIND_OUTER + 1);
    if (mismatch != 0) {
        walk->top = mismatch - 1;
        return false;
    }
    if (!verify_cut(walk, thread->marks_count)) {
        return false;
    }
    if (inner_begin(frames_below(thread, top) + walk->walked) < thread->skipped + ML_UNWIND_OUTER) {
        walk->top = ML_UNWIND_OUTER + 1; /* frames that the cut left out are wanted now */
        return false;
    }
    return true;
}

bool ml_unwind_join(struct ml_unwind_walk *walk) {
    struct ml_unwind_thread *thread = walk->thread;
    uint32_t top = walk->top;
    if (__builtin_expect(thread->skipped != 0, 0)) {
        return join_cut(walk);
    }
    while (top > 0 && thread->frames[top - 1].slot < walk->at.slot) {
        top--;
    }
    walk->top = top;
    return top != 0 && thread->frames[top - 1].slot == walk->at.slot && is_at(walk, top) &&
           verify_rest(walk, top - 1);
}

/* For a stack of `depth` frames that is cut now: keep the marks left, and add those of the walk.
 * When there is no room every second one is dropped: the further out, the fewer are left.
 */
static void lay_marks(struct ml_unwind_walk *walk, bool inner, uint64_t depth) {
    struct ml_unwind_thread *thread = walk->thread;
    uint32_t count = inner ? thread->marks_count : 0;
    uint32_t passed = 0;
    while (!walk->full && passed < ML_UNWIND_PASSED_MAX &&
           (uint32_t)ML_UNWIND_MARK_FROM << passed < walk->walked) {
        passed++;
    }
    if (count + passed > ML_UNWIND_MARKS) {
        count /= 2;
        for (uint32_t i = 0; i < count; i++) {
            thread->marks[i] = thread->marks[(size_t)i * 2];
        }
    }
    while (passed-- > 0) {
        const struct ml_unwind_mark *mark = &thread->passed[passed];
        if (mark->number + ML_UNWIND_OUTER < depth) {
            thread->marks[count] = *mark;
            thread->marks[count++].number = depth - 1 - mark->number;
        }
    }
    thread->marks_count = count;
}

/* The position of the next frame, and the state of those already placed. */
struct fill {
    struct ml_unwind_thread *thread;
    uint32_t at;
    uint32_t kept;      /* frames [0, kept) have their nodes */
    uint32_t old_count; /* frames of the last stack that are still where they were */
    uint32_t pure;      /* frames [0, pure) may be joined */
    bool live;          /* frames further out depend on the fp of frame at - 1 */
};

/* Frames [0, at) stand. */
static inline void resume(struct fill *fill, uint32_t at) {
    fill->at = at;
    fill->live = at > 0 && (fill->thread->frames[at - 1].recipe & ML_UNWIND_FRAME_FP_LIVE) != 0;
}

/* Put the next frame, word by word: copying the struct whole would stall on the single stores that
 * filled it, and cost more than all the rest.
 *
 * A node stands for a path of frames: while the new stack's outermost frames equal the last one's,
 * wherever they lie in memory, the nodes are the same. */
static inline void place(struct fill *fill, const struct ml_unwind_frame *what, uint64_t recipe) {
    static const uint64_t IDENTITY = (UINT64_C(0xffff) << ML_RECIPE_MODULE_SHIFT) |
                                     ML_UNWIND_FRAME_EXACT | ML_UNWIND_FRAME_BROKEN |
                                     ML_UNWIND_FRAME_CUT;
    uint32_t at = fill->at;
    struct ml_unwind_frame *frame = &fill->thread->frames[at];
    uint32_t *node = &fill->thread->nodes[at];
    if (fill->kept == at && at < fill->old_count && frame->pc == what->pc &&
        ((frame->recipe ^ recipe) & IDENTITY) == 0 && *node != 0) {
        fill->kept = at + 1;
    } else {
        *node = 0;
    }
    frame->slot = what->slot;
    frame->pc = what->pc;
    frame->fp = what->fp;
    frame->recipe = recipe;
    fill->at = at + 1;
    fill->live = (recipe & ML_UNWIND_FRAME_FP_LIVE) != 0;
    if (fill->pure == at && ml_recipe_kind(recipe) != ML_RECIPE_COLD) {
        fill->pure = at + 1;
    }
}

static void place_cut(struct fill *fill) {
    /* The frames left out may change rbp, so the inner ones must have the same rbp. */
    struct ml_unwind_frame nowhere = {0};
    place(fill, &nowhere, ML_UNWIND_FRAME_CUT | ML_UNWIND_FRAME_FP_LIVE);
}

static inline void place_fresh(struct fill *fill, const struct ml_unwind_frame *fresh) {
    uint64_t recipe = fresh->recipe;
    enum ml_recipe_kind kind = ml_recipe_kind(recipe);
    bool live = kind == ML_RECIPE_SP ? fill->live && ml_recipe_fp_words(recipe) == 0
                                     : kind != ML_RECIPE_END;
    place(fill, fresh, live ? recipe | ML_UNWIND_FRAME_FP_LIVE : recipe);
}

/* Frames that stay cached and change their place; their nodes hang below another parent now. */
static void move_inner(struct fill *fill, uint32_t from, uint32_t count) {
    struct ml_unwind_thread *thread = fill->thread;
    if (count == 0) {
        return;
    }
    memmove(&thread->frames[fill->at], &thread->frames[from], count * sizeof thread->frames[0]);
    for (uint32_t i = 0; i < count; i++) {
        thread->nodes[fill->at + i] = 0;
    }
    fill->old_count = 0;
    fill->pure = fill->at + count; /* joined, so all of it may be joined again */
    resume(fill, fill->at + count);
}

/* Arrange the outer part, the cut, and the inner frames known from the last stack. */
static void arrange_cut(struct ml_unwind_walk *walk, struct fill *fill, uint64_t begin) {
    struct ml_unwind_thread *thread = walk->thread;
    bool inner = walk->top > 0 && is_inner(thread, walk->top - 1);
    uint64_t depth = frames_below(thread, walk->top) + walk->walked;
    lay_marks(walk, inner, depth);
    if (inner && begin == thread->skipped + ML_UNWIND_OUTER) {
        return; /* the last stack's inner part goes on as it is */
    }
    /* Where frame number `begin` is in the last stack, if it is there. */
    uint64_t from = inner ? begin - thread->skipped + 1 : begin;
    uint32_t moved = from < walk->top ? walk->top - (uint32_t)from : 0;
    resume(fill, walk->top < ML_UNWIND_OUTER ? walk->top : ML_UNWIND_OUTER);
    fill->kept = fill->at;
    fill->pure = fill->pure < fill->at ? fill->pure : fill->at;
    while (fill->at < ML_UNWIND_OUTER) {
        place_fresh(fill, ml_unwind_fresh_at(thread, (uint32_t)(depth - 1 - fill->at)));
    }
    place_cut(fill);
    move_inner(fill, (uint32_t)from, moved);
    thread->skipped = begin - ML_UNWIND_OUTER;
}

/* The fresh frames in front, outermost first. By value, so that the loop runs in registers. */
static struct fill place_all(struct fill fill, uint32_t count) {
    while (count-- > 0) {
        place_fresh(&fill, ml_unwind_fresh_at(fill.thread, count));
    }
    return fill;
}

struct ml_unwind_result ml_unwind_assemble(struct ml_unwind_walk *walk) {
    struct ml_unwind_thread *thread = walk->thread;
    struct fill fill = {
        .thread = thread, .kept = walk->top, .old_count = thread->count, .pure = walk->top};
    uint64_t depth = frames_below(thread, walk->top) + walk->walked;
    uint64_t begin = inner_begin(depth);
    if (walk->top == 0) {
        thread->end_slot = walk->end_slot;
    }
    resume(&fill, walk->top);
    if (begin == 0) {
        thread->skipped = 0;
        fill = place_all(fill, walk->walked);
    } else {
        arrange_cut(walk, &fill, begin);
        keep_marks(thread, thread->marks_count);
        fill = place_all(fill, (uint32_t)(depth - thread->skipped + 1 - fill.at));
    }
    thread->count = fill.at;
    thread->pure = fill.pure;
    while (fill.kept > 0 && thread->nodes[fill.kept - 1] == 0) {
        fill.kept--;
    }
    struct ml_unwind_result result = {.kept = fill.kept, .count = fill.at};
    if (begin != 0) {
        result.flags |= ML_UNWIND_CUT;
        thread->cut_walked += walk->walked;
    }
    if ((thread->frames[0].recipe & ML_UNWIND_FRAME_BROKEN) != 0) {
        result.flags |= ML_UNWIND_BROKEN;
    }
    if (walk->full) {
        result.flags |= ML_UNWIND_FULL;
    }
    return result;
}

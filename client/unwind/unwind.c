#include "client/unwind/unwind.h"

#include "client/unwind/internal.h"

enum { WIPE_GENERATIONS = 128 };

/* Step out of `at` by a recipe that is SP or FP. */
static inline enum ml_unwind_outcome
step(struct ml_unwind_walk *walk, struct ml_unwind_place *at, uint64_t recipe) {
    struct ml_unwind_ranges *ranges = &walk->thread->ranges;
    uintptr_t sp = at->slot + ML_ARCH_WORD_BYTES;
    bool by_sp = ml_recipe_kind(recipe) == ML_RECIPE_SP;
    if (!by_sp && at->fp == 0) {
        return ML_UNWIND_ENDED; /* the mark that a chain of frame pointers ends with */
    }
    uintptr_t cfa = (by_sp ? sp : at->fp) + ml_recipe_cfa_bytes(recipe);
    if (cfa <= sp || cfa % ML_ARCH_WORD_BYTES != 0 ||
        (cfa > ranges->list[walk->range].hi && !ml_unwind_range_reach(ranges, walk->range, sp, cfa)
        )) {
        return ML_UNWIND_LOST;
    }
    uint32_t fp_words = ml_recipe_fp_words(recipe);
    if (fp_words != 0) {
        uintptr_t stored = cfa - (uintptr_t)fp_words * ML_ARCH_WORD_BYTES;
        if (stored < sp || stored > cfa) {
            return ML_UNWIND_LOST;
        }
        at->fp = ml_unwind_load(stored);
    }
    at->slot = cfa - ML_ARCH_WORD_BYTES;
    at->pc = ml_unwind_load(at->slot);
    if (at->pc == 0) {
        walk->end_slot = at->slot;
        return ML_UNWIND_ENDED;
    }
    return ML_UNWIND_NEXT;
}

/* The recipe for the frame at `at`. The table first, here and inline: each step waits for it. */
static inline uint64_t
recipe_for(struct ml_unwind_walk *walk, const struct ml_unwind_place *at, uint64_t generation) {
    uint64_t recipe =
        walk->reuse ? ml_recipes_find(&walk->process->recipes, at->pc, generation) : 0;
    if (recipe == 0) {
        walk->at = *at;
        recipe = ml_unwind_rule(walk);
    }
    return recipe;
}

/* Remember where the walk is, from time to time: that frame may become a mark. */
static __attribute__((noinline)) void pass(struct ml_unwind_walk *walk) {
    const uint32_t times = walk->walked / ML_UNWIND_MARK_FROM;
    walk->thread->passed[__builtin_ctz(times)] = (struct ml_unwind_mark
    ){.slot = walk->at.slot, .pc = walk->at.pc, .fp = walk->at.fp, .number = walk->walked};
}

/* Walk by recipes until the last stack is met or the stack ends. The place is a local copy, so that
 * it stays in registers. */
static enum ml_unwind_outcome walk_by_recipes(struct ml_unwind_walk *walk) {
    const struct ml_unwind_thread *thread = walk->thread;
    uint64_t generation = walk->unloads >> ML_UNWIND_GENERATION_SHIFT;
    struct ml_unwind_place at = walk->at;
    for (uint32_t stop = ML_UNWIND_MARK_FROM; stop <= ML_UNWIND_WALK_MAX; stop *= 2) {
        while (walk->walked < stop) {
            if (walk->top > 0 && thread->frames[walk->top - 1].slot <= at.slot) {
                walk->at = at;
                if (ml_unwind_join(walk)) {
                    return ML_UNWIND_NEXT;
                }
            }
            uint64_t recipe = recipe_for(walk, &at, generation);
            ml_unwind_note(walk, &at, recipe);
            enum ml_recipe_kind kind = ml_recipe_kind(recipe);
            if (kind == ML_RECIPE_END) {
                return ML_UNWIND_ENDED;
            }
            if (kind == ML_RECIPE_COLD) {
                return ML_UNWIND_COLD;
            }
            enum ml_unwind_outcome outcome = step(walk, &at, recipe);
            if (outcome != ML_UNWIND_NEXT) {
                return outcome;
            }
        }
        walk->at = at;
        pass(walk);
    }
    return ML_UNWIND_LOST;
}

/* Begin at the hook's caller. */
static void walk_start(struct ml_unwind_walk *walk) {
    walk->top = walk->thread->count;
    walk->walked = 0;
    walk->range = walk->thread->ranges.current;
    walk->at.slot = walk->entry->sp - ML_ARCH_WORD_BYTES;
    walk->at.pc = walk->entry->pc;
    walk->at.fp = walk->entry->fp;
    walk->end_slot = 0;
}

/* The innermost words equal a memo stack's: prefetch the recipes of all its frames at once. The
 * walk itself needs one after the other. */
static void foresee(const struct ml_unwind_walk *walk) {
    struct ml_unwind_memo *memo = &walk->thread->memo;
    struct ml_recipes *recipes = &walk->process->recipes;
    const struct ml_memo_stack *alike = memo->alike;
    __builtin_prefetch(recipes->slots[ml_recipe_set(walk->entry->pc)]);
    if (alike == NULL || alike->sp != walk->entry->sp) {
        return;
    }
    const uint32_t behind = memo->alike_count + 1;
    const uint32_t count = behind < alike->count ? behind : alike->count;
    for (uint32_t i = 0; i < count * ML_MEMO_STRIDE; i++) {
        const uintptr_t pc =
            ml_memo_load(alike, &alike->words[i / ML_MEMO_STRIDE], i % ML_MEMO_STRIDE);
        __builtin_prefetch(recipes->slots[ml_recipe_set(pc)]);
    }
    memo->alike = NULL;
}

static void walk_stack(struct ml_unwind_walk *walk) {
    enum ml_unwind_outcome outcome = ML_UNWIND_LOST;
    walk_start(walk);
    walk->full = false;
    if (walk->entry->sp % ML_ARCH_WORD_BYTES == 0 && walk->at.pc != 0 &&
        (ml_unwind_range_is_current(&walk->thread->ranges, walk->at.slot) ||
         ml_unwind_range_reach(
             &walk->thread->ranges, walk->range, walk->at.slot, walk->at.slot + ML_ARCH_WORD_BYTES
         ))) {
        outcome = walk_by_recipes(walk);
    }
    if (outcome == ML_UNWIND_COLD) {
        walk_start(walk);
        walk->full = true;
        outcome = ml_unwind_full(walk);
    }
    if (outcome != ML_UNWIND_NEXT) {
        walk->top = 0; /* nothing of the last stack was met */
    }
    if (outcome == ML_UNWIND_LOST) {
        walk->at = (struct ml_unwind_place){0};
        ml_unwind_note(
            walk, &walk->at, ml_recipe_make(ML_RECIPE_COLD, 0, 0, 0) | ML_UNWIND_FRAME_BROKEN
        );
    } else if (outcome == ML_UNWIND_ENDED) {
        ml_unwind_range_settle(&walk->thread->ranges);
    }
}

/* Mark the present stack as readable, and forget ranges that may no longer be. */
static void enter_stack(struct ml_unwind_thread *thread) {
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    bool other_stack = false;
    if (thread->owner != ml_arch_thread_pointer()) {
        thread->ranges = (struct ml_unwind_ranges){0};
        thread->owner = ml_arch_thread_pointer();
    }
    if (!ml_unwind_range_is_current(&thread->ranges, here - ML_ARCH_WORD_BYTES)) {
        (void)ml_unwind_range_enter(&thread->ranges, here, &other_stack);
    }
    if (other_stack) {
        thread->pure = 0; /* the other stack's ranges are forgotten */
    }
}

/* The last stack alone. */
static void drop_stack(struct ml_unwind_thread *thread) {
    thread->count = 0;
    thread->pure = 0;
    thread->skipped = 0;
    thread->end_slot = 0;
    thread->busy = 0;
}

struct ml_unwind_result ml_unwind(
    struct ml_unwind_process *process,
    struct ml_unwind_thread *thread,
    const struct ml_unwind_entry *entry,
    const struct ml_module_seen *seen
) {
    uint64_t unloads = atomic_load_explicit(&process->unloads, memory_order_acquire);
    struct ml_unwind_walk walk = {
        .process = process,
        .thread = thread,
        .entry = entry,
        .seen = seen,
        .unloads = unloads,
        .reuse = ml_unwind_unloads_rest(unloads),
    };
    if (thread->busy != 0 || thread->unloads != unloads || !walk.reuse) {
        drop_stack(thread);
    }
    thread->busy = 1;
    atomic_signal_fence(memory_order_seq_cst);
    foresee(&walk);
    enter_stack(thread);
    walk_stack(&walk);
    atomic_thread_fence(memory_order_acquire);
    if (walk.reuse && atomic_load_explicit(&process->unloads, memory_order_relaxed) != unloads) {
        walk.reuse = false;
        drop_stack(thread);
        walk_stack(&walk);
    }
    struct ml_unwind_result result = ml_unwind_assemble(&walk);
    thread->unloads = unloads;
    atomic_signal_fence(memory_order_seq_cst);
    thread->busy = 0;
    return result;
}

void ml_unwind_thread_clear(struct ml_unwind_thread *thread) {
    drop_stack(thread);
    ml_unwind_memo_clear(&thread->memo);
}

void ml_unwind_forget_nodes(struct ml_unwind_thread *thread) {
    for (uint32_t i = 0; i < thread->count; i++) {
        thread->nodes[i] = 0;
    }
    ml_unwind_memo_clear(&thread->memo);
}

void ml_unwind_unload_begin(struct ml_unwind_process *process) {
    atomic_fetch_add(&process->unloads, 1);
}

void ml_unwind_unload_end(
    struct ml_unwind_process *process, ml_module_gone_fn *gone, void *context
) {
    ml_modules_sweep(&process->modules, gone, context);
    uint64_t generation = (atomic_load(&process->unloads) >> ML_UNWIND_GENERATION_SHIFT) + 1;
    if (generation % WIPE_GENERATIONS == 0) {
        ml_recipes_wipe(&process->recipes);
    }
    atomic_fetch_add(&process->unloads, (UINT64_C(1) << ML_UNWIND_GENERATION_SHIFT) - 1);
}

#include "tests/client/unwind/oracle.h"

enum { MEMO_LAP_MAX = 255 };

/* Marks lie in the part left out, each further in than the one before. */
static bool check_marks(const struct ml_unwind_thread *thread) {
    uint64_t least = ML_UNWIND_OUTER;
    uintptr_t below = thread->frames[ML_UNWIND_OUTER - 1].slot;
    for (uint32_t i = 0; i < thread->marks_count; i++) {
        const struct ml_unwind_mark *mark = &thread->marks[i];
        if (mark->number < least || mark->slot >= below) {
            return false;
        }
        least = mark->number + 1;
        below = mark->slot;
    }
    return least <= thread->skipped + ML_UNWIND_OUTER && thread->marks_count <= ML_UNWIND_MARKS &&
           thread->frames[ML_UNWIND_OUTER].slot == (thread->marks_count != 0 ? below : 0);
}

bool ml_oracle_thread_holds(const struct ml_unwind_thread *thread) {
    if (thread->count > ML_UNWIND_FRAMES_MAX || thread->pure > thread->count) {
        return false;
    }
    if (thread->pure > ML_UNWIND_OUTER && thread->skipped != 0 && !check_marks(thread)) {
        return false;
    }
    uintptr_t last = UINTPTR_MAX;
    for (uint32_t i = 0; i < thread->pure; i++) {
        uint64_t recipe = thread->frames[i].recipe;
        uintptr_t slot = thread->frames[i].slot;
        if (ml_recipe_kind(recipe) == ML_RECIPE_COLD ||
            ((recipe & ML_UNWIND_FRAME_CUT) == 0 && slot == 0)) {
            return false;
        }
        if (slot != 0 && (slot >= last || slot % ML_ARCH_WORD_BYTES != 0)) {
            return false;
        }
        last = slot != 0 ? slot : last;
    }
    return true;
}

/* A stack in the ring is whole: it ends in its block, and not behind `head` if it is of this lap.
 */
static bool
kept_is_whole(const struct ml_unwind_memo *memo, const struct ml_memo_pool *pool, uint32_t stack) {
    const struct ml_memo_stack *kept = ml_memo_stack_at(memo, pool, stack);
    const uint32_t unit = stack & ((1U << ML_MEMO_LAP_SHIFT) - 1);
    const size_t bytes = sizeof(struct ml_memo_stack) + kept->count * sizeof(struct ml_memo_words);
    const uint32_t units = (uint32_t)((bytes + ML_MEMO_UNIT_BYTES - 1) / ML_MEMO_UNIT_BYTES);
    const uint32_t end = unit + units;
    const uint32_t block_end = unit - unit % ML_MEMO_BLOCK_UNITS + ML_MEMO_BLOCK_UNITS;
    return kept->count <= ML_MEMO_WORDS_MAX / ML_MEMO_STRIDE && end <= block_end &&
           (unit >= memo->head || end <= memo->head);
}

bool ml_oracle_memo_holds(
    const struct ml_unwind_memo *memo, const struct ml_unwind_process *process
) {
    const struct ml_memo_bucket *buckets = memo->large != NULL ? memo->large : memo->small;
    const uint32_t count = memo->large != NULL ? ML_MEMO_LARGE_BUCKETS : ML_MEMO_SMALL_BUCKETS;
    if (memo->blocks_count > ML_MEMO_BLOCKS || memo->lap > MEMO_LAP_MAX ||
        memo->head > memo->blocks_count * ML_MEMO_BLOCK_UNITS) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t way = 0; way < ML_MEMO_WAYS; way++) {
            if (ml_memo_is_there(memo, buckets[i].stacks[way]) &&
                !kept_is_whole(memo, &process->memos, buckets[i].stacks[way])) {
                return false;
            }
        }
    }
    return true;
}

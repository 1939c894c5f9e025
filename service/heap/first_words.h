/* First words of live blocks, as the host has read them: of which class an object is; or the word
 * of one that is the type of a Python object. Room: service. Context: whoever works on the client;
 * no I/O.
 *
 * One rule: a word counts for the block that it was read of alone. It was read a moment before it
 * is summed up, so it counts if a block of the same cell is at its address still.
 *
 * Words are of malloc's blocks whose type the program has not reported. */
#ifndef MEMLOG_SERVICE_HEAP_FIRST_WORDS_H
#define MEMLOG_SERVICE_HEAP_FIRST_WORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "service/heap/tracker.h"
#include "service/limits/budget.h"
#include "service/snapshot/snapshot.h"

struct ml_first_word {
    uint64_t address, word;
    uint32_t cell;
};

/* Empty: all zero but the budget. */
struct ml_first_words {
    struct ml_budget *budget;
    struct ml_first_word *items; /* by address */
    bool are_python;             /* the types of Python's objects, not vtables */
    uint32_t count, capacity;
    struct ml_snapshot_word *sums; /* once the process has ended, in place of items */
    uint32_t sums_count;
    struct ml_words_facts facts;
};

void ml_first_words_fini(struct ml_first_words *words);

/* A new reading takes the place of the one before: there is room for its words, which come by _add.
 * Without room there are none. */
void ml_first_words_begin(
    struct ml_first_words *words,
    const struct ml_tracker *tracker,
    const struct memlog_service_process_view *view
);

/* Keep those that are of live blocks. */
void ml_first_words_add(
    struct ml_first_words *words,
    const struct ml_tracker *tracker,
    const struct memlog_service_word *items,
    uint32_t count
);

/* Called after some thousand blocks; it must not change the tracker. `take` NULL: nobody. */
struct ml_words_rest {
    void (*take)(void *context);
    void *context;
};

/* What blocks hold that are live still, by stack and word: *out_sums for free(). False: no memory.
 */
ML_NODISCARD bool ml_first_words_sum(
    const struct ml_first_words *words,
    const struct ml_tracker *tracker,
    struct ml_words_rest rest,
    struct ml_snapshot_word **out_sums,
    uint32_t *out_count
);

/* The blocks are about to be dropped: keep sums instead. */
void ml_first_words_settle(struct ml_first_words *words, const struct ml_tracker *tracker);

#endif

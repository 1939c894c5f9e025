#include "service/heap/first_words.h"

#include <stdlib.h>
#include <string.h>

/* Where in a block the word may lie that tells its type. A smaller block has no room for it. */
enum { WORD_BYTES = 8, PLACES = 2 };
struct places {
    uint32_t offsets[PLACES]; /* the first that fits counts */
    uint32_t count;
};

/* An object of a C++ class begins with it. */
static const struct places of_vtables = {.offsets = {0}, .count = 1};

/* An object of Python's begins with its references, and behind the collector's two words, if it has
 * those. */
static const struct places of_python = {.offsets = {8, 24}, .count = 2};

/* Words that are summed at once: their shares stay in the cache, and sorting them takes 1 ms. */
enum { PIECE = 8192 };

static void drop(struct ml_first_words *words) {
    ml_budget_free(words->budget, words->items, words->capacity * sizeof(*words->items));
    words->items = NULL;
    words->count = 0;
    words->capacity = 0;
}

void ml_first_words_fini(struct ml_first_words *words) {
    drop(words);
    if (words->sums != NULL) {
        ml_budget_count_out(words->budget, words->sums_count * sizeof(*words->sums));
    }
    free(words->sums);
    words->sums = NULL;
    words->sums_count = 0;
    words->facts = (struct ml_words_facts){.were_read = false};
}

/* The block there, if words of such a one count. */
static bool
find_block(const struct ml_tracker *tracker, uint64_t address, struct ml_live_block *out_block) {
    if (address >> ML_LIVE_HEAP_SHIFT != 0 || address == 0) {
        return false; /* no process has memory there */
    }
    const uint64_t key = ml_live_key(address, 0);
    const uint64_t hash = ml_live_map_hash(&tracker->live, key);
    if (!ml_live_map_find(&tracker->live, key, hash, out_block)) {
        return false;
    }
    const uint64_t cell_key = tracker->cells.cells[out_block->cell].key;
    return ml_cell_heap(cell_key) == 0 && ml_cell_type(cell_key) == 0;
}

void ml_first_words_begin(
    struct ml_first_words *words,
    const struct ml_tracker *tracker,
    const struct memlog_service_process_view *view
) {
    const size_t most =
        view->words.count < tracker->live.count ? view->words.count : tracker->live.count;
    ml_first_words_fini(words);
    words->facts = (struct ml_words_facts
    ){.were_read = view->words_were_read,
      .are_cut = view->words_are_cut,
      .read_bytes = view->words_read_bytes};
    words->are_python = view->words_are_python;
    words->items = most > 0 ? ml_budget_new(words->budget, most * sizeof(*words->items)) : NULL;
    words->capacity = words->items != NULL ? (uint32_t)most : 0;
    words->facts.are_cut = words->facts.are_cut || (most > 0 && words->items == NULL);
}

/* Keep the word if it lies in such a place of a block, of which none is known yet. */
static void add_word(
    struct ml_first_words *words,
    const struct ml_tracker *tracker,
    const struct memlog_service_word *item
) {
    const struct places *places = words->are_python ? &of_python : &of_vtables;
    struct ml_live_block block;
    for (uint32_t i = 0; i < places->count && places->offsets[i] <= item->address; i++) {
        const uint64_t start = item->address - places->offsets[i];
        const bool is_known = words->count > 0 && words->items[words->count - 1].address == start;
        if (!is_known && find_block(tracker, start, &block) &&
            block.size_bytes >= places->offsets[i] + WORD_BYTES) {
            words->items[words->count++] =
                (struct ml_first_word){.address = start, .word = item->word, .cell = block.cell};
            return;
        }
    }
}

void ml_first_words_add(
    struct ml_first_words *words,
    const struct ml_tracker *tracker,
    const struct memlog_service_word *items,
    uint32_t count
) {
    for (uint32_t i = 0; i < count && words->count < words->capacity; i++) {
        add_word(words, tracker, &items[i]);
    }
}

/* ---- sums */

/* A block's share, before those of one stack and word are put together. */
struct share {
    uint32_t node;
    uint64_t word, bytes, blocks;
    struct ml_variance_pair variance;
};

static int by_stack_and_word(const void *left, const void *right) {
    const struct share *a = left;
    const struct share *b = right;
    if (a->node != b->node) {
        return a->node > b->node ? 1 : -1;
    }
    return (a->word > b->word) - (a->word < b->word);
}

/* The shares of the blocks of [from, to) that are live still. */
static uint32_t find_shares(
    const struct ml_first_words *words,
    const struct ml_tracker *tracker,
    uint32_t from,
    uint32_t to,
    struct share *shares
) {
    struct ml_live_block block;
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++) {
        const struct ml_first_word *one = &words->items[i];
        if (find_block(tracker, one->address, &block) && block.cell == one->cell) {
            shares[count++] = (struct share
            ){.node = ml_cell_node(tracker->cells.cells[block.cell].key),
              .word = one->word,
              .bytes = block.weight_bytes,
              .blocks = block.weight_blocks,
              .variance = ml_variance_of(&block)};
        }
    }
    return count;
}

/* Put those of one stack and word together. Returns how many are left. */
static uint32_t join(struct share *shares, uint32_t count) {
    uint32_t last = 0;
    qsort(shares, count, sizeof(*shares), by_stack_and_word);
    for (uint32_t i = 1; i < count; i++) {
        if (by_stack_and_word(&shares[i], &shares[last]) == 0) {
            shares[last].bytes += shares[i].bytes;
            shares[last].blocks += shares[i].blocks;
            ml_variance_add(&shares[last].variance, shares[i].variance);
        } else {
            shares[++last] = shares[i];
        }
    }
    return count > 0 ? last + 1 : 0;
}

bool ml_first_words_sum(
    const struct ml_first_words *words,
    const struct ml_tracker *tracker,
    struct ml_words_rest rest,
    struct ml_snapshot_word **out_sums,
    uint32_t *out_count
) {
    struct share *shares = calloc((size_t)words->count + 1, sizeof(*shares));
    uint32_t count = 0;
    *out_count = 0;
    *out_sums = NULL;
    if (shares == NULL) {
        return false;
    }
    for (uint32_t from = 0; from < words->count; from += PIECE) {
        const uint32_t to = words->count - from < PIECE ? words->count : from + PIECE;
        count += join(&shares[count], find_shares(words, tracker, from, to, &shares[count]));
        if (rest.take != NULL) {
            rest.take(rest.context);
        }
    }
    count = join(shares, count);
    *out_sums = calloc((size_t)count + 1, sizeof(**out_sums));
    for (uint32_t i = 0; *out_sums != NULL && i < count; i++) {
        (*out_sums)[i] = (struct ml_snapshot_word
        ){.node = shares[i].node,
          .word = shares[i].word,
          .live_bytes = shares[i].bytes,
          .live_blocks = shares[i].blocks,
          .live_bytes_error = ml_variance_error(shares[i].variance.bytes),
          .live_blocks_error = ml_variance_error(shares[i].variance.blocks)};
    }
    *out_count = *out_sums != NULL ? count : 0;
    free(shares);
    return *out_sums != NULL;
}

void ml_first_words_settle(struct ml_first_words *words, const struct ml_tracker *tracker) {
    if (words->items == NULL) {
        return;
    }
    const bool summed = ml_first_words_sum(
        words, tracker, (struct ml_words_rest){.take = NULL}, &words->sums, &words->sums_count
    );
    drop(words);
    if (!summed || !ml_budget_count_in(words->budget, words->sums_count * sizeof(*words->sums))) {
        free(words->sums);
        words->sums = NULL;
        words->sums_count = 0;
        words->facts.are_cut = true;
    }
}

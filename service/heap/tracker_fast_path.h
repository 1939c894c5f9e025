/* The fast path: applies the usual event without unpredictable branches.
 * Room: service. Context: whoever works on the client.
 *
 * One rule: it leaves unusual events to ml_tracker_alloc_plain() and ml_tracker_free(), which
 * handle all cases. Usual events give the same figures on both paths.
 *
 * In many programs a processor cannot predict whether an alloc or a free comes next, or whether a
 * line is full; mispredicted branches would be a large part of an event's time. So alloc and free
 * share one code path: a signed change of a slot and a cell. One test covers everything unusual. */
#ifndef MEMLOG_SERVICE_HEAP_TRACKER_FAST_PATH_H
#define MEMLOG_SERVICE_HEAP_TRACKER_FAST_PATH_H

#include "service/heap/tracker.h"
#include "service/snapshot/accounting.h"

/* A usual event: an ALLOC or FREE of heap 0, type 0, without marks. */
struct ml_tracker_event {
    uint64_t ticks, key;
    uint32_t size_bytes; /* of an alloc; else 0 */
    bool alloc;
};

/* Whether the fast path may be used; valid until an unusual event, and for at most `events`. Room
 * for them was reserved. */
bool ml_tracker_may_be_fast(struct ml_tracker *tracker, uint32_t events);

/* There may be a new maximum. */
void ml_tracker_note_peaks(struct ml_tracker *tracker, uint64_t ticks);

/* Saves what the cell held at the last peaks, before it changes. */
void ml_tracker_keep(struct ml_tracker *tracker, struct ml_cell *cell);

/* All bits set if so, else none. */
static inline uint64_t ml_tracker_mask(bool condition) {
    return 0 - (uint64_t)condition;
}

/* The slot to change: in its block's home or in the line beside it. */
struct ml_tracker_place {
    struct ml_live_line *line;
    unsigned slot;
    bool in_other;
    bool fast;
};

static inline struct ml_tracker_place
ml_tracker_find(const struct ml_tracker_event *event, const struct ml_tracker_lookup *lookup) {
    struct ml_live_line *const home = lookup->home;
    struct ml_live_line *const other = ml_live_line_beside(home);
    const uint32_t low = ml_live_low(lookup->hash);
    const unsigned used = (home->state & ML_LIVE_USED_MASK) | (other->state & ML_LIVE_USED_MASK)
                                                                  << ML_LIVE_LINE_SLOTS;
    const unsigned same = used & (ml_live_line_match(home, low) | ml_live_line_match(other, low)
                                                                      << ML_LIVE_LINE_SLOTS);
    const unsigned is_alloc = (unsigned)ml_tracker_mask(event->alloc);
    const unsigned slots = (~used & is_alloc) | (same & ~is_alloc);
    const unsigned first = (unsigned)__builtin_ctz(slots | 1U << (2 * ML_LIVE_LINE_SLOTS));
    const bool in_other = first >= ML_LIVE_LINE_SLOTS;
    /* An alloc's address may be live already, in one of the two lines or in the overflow table. */
    const unsigned known = (same | (home->state & ~(unsigned)(ML_LIVE_TURNED_AWAY - 1))) & is_alloc;
    return (struct ml_tracker_place){
        .line = in_other ? other : home,
        .slot = first - (in_other ? ML_LIVE_LINE_SLOTS : 0),
        .in_other = in_other,
        .fast = (known == 0) & (first < 2 * ML_LIVE_LINE_SLOTS),
    };
}

/* Put the block there, or remove it. */
static inline void ml_tracker_change_slot(
    struct ml_live_map *map,
    const struct ml_tracker_event *event,
    const struct ml_tracker_lookup *lookup,
    const struct ml_tracker_place *place,
    uint64_t rest
) {
    const uint64_t is_alloc = ml_tracker_mask(event->alloc);
    struct ml_live_line *const line = place->line;
    const uint32_t in_other = (uint32_t)place->in_other * ML_LIVE_IN_OTHER;
    line->low[place->slot] = ml_live_low(lookup->hash) & (uint32_t)is_alloc;
    line->rest[place->slot] = rest & is_alloc;
    line->state ^= 1U << place->slot;
    lookup->home->state += (in_other & (uint32_t)is_alloc) - (in_other & ~(uint32_t)is_alloc);
    map->count += (is_alloc & 2) - 1;
}

/* Apply the event, if it is a usual one; else false, and nothing has changed. *last_alloc: the key
 * of the lane's last event, if that was an alloc, else 0. */
static inline bool ml_tracker_apply_fast(
    struct ml_tracker *tracker,
    const struct ml_tracker_event *event,
    struct ml_tracker_lookup *lookup,
    uint64_t *last_alloc
) {
    const uint64_t is_alloc = ml_tracker_mask(event->alloc);
    const struct ml_tracker_place place = ml_tracker_find(event, lookup);
    lookup->cell = ml_cells_guess(&tracker->cells, lookup->cell_hash);
    if (!place.fast | (event->ticks < tracker->early.latest) |
        (event->ticks < tracker->reused.latest) |
        !ml_live_fits_slot(lookup->hash, event->size_bytes)) {
        return false;
    }
    const uint64_t there = place.line->rest[place.slot];
    const uint64_t high = ml_live_high(lookup->hash);
    const uint32_t number =
        (lookup->cell & (uint32_t)is_alloc) | (ml_live_rest_cell(there) & ~(uint32_t)is_alloc);
    if ((((there ^ high) & ML_LIVE_SAME_MASK & ~is_alloc) != 0) |
        (number >= tracker->cells.count)) {
        return false;
    }
    struct ml_cell *const cell = &tracker->cells.cells[number];
    if (((cell->key ^ lookup->cell_key) & is_alloc) != 0) {
        return false;
    }
    const uint64_t bytes = event->size_bytes | (ml_live_rest_bytes(there) & ~is_alloc);
    ml_tracker_change_slot(
        &tracker->live,
        event,
        lookup,
        &place,
        number | high | (uint64_t)event->size_bytes << ML_LIVE_BYTES_SHIFT
    );
    if ((cell->mark != tracker->mark) | (tracker->tree_epoch != tracker->tree->epoch)) {
        ml_tracker_keep(tracker, cell);
    }
    /* +1 and the bytes for an alloc, -1 and minus the bytes for a free. */
    const uint64_t blocks = (is_alloc & 2) - 1;
    const uint64_t signed_bytes = (bytes ^ ~is_alloc) - ~is_alloc;
    if (tracker->log != NULL) {
        const struct ml_change change = {
            .time = event->ticks,
            .bytes = (int64_t)signed_bytes,
            .cell = number,
            .blocks = (int32_t)blocks};
        ml_change_log_add(tracker->log, &change);
    }
    cell->live_bytes += signed_bytes;
    cell->live_blocks += blocks;
    ml_add_saturating(&cell->total_bytes, event->size_bytes);
    ml_add_saturating(&cell->total_blocks, event->alloc);
    ml_add_saturating(&cell->temporary_blocks, !event->alloc & (*last_alloc == event->key));
    *last_alloc = event->key & is_alloc;
    struct ml_totals *const totals = &tracker->totals;
    totals->live_bytes += signed_bytes;
    totals->live_blocks += blocks;
    tracker->tree->live_bytes += signed_bytes;
    tracker->tree->live_blocks += blocks;
    ml_add_saturating(&totals->total_bytes, event->size_bytes);
    ml_add_saturating(&totals->total_blocks, event->alloc);
    if ((totals->live_bytes > totals->peak_bytes) |
        ((tracker->tree->live_bytes > tracker->tree->peak_bytes) & event->alloc)) {
        ml_tracker_note_peaks(tracker, event->ticks);
    }
    return true;
}

#endif

#include "service/memory/mappings.h"

#include <search.h>
#include <stdlib.h>

enum {
    TREE_NODE_BYTES = 48 /* of glibc's tsearch, with malloc's header; what a piece costs more */
};

#define PIECE_BYTES (sizeof(struct ml_mapping) + TREE_NODE_BYTES)

/* Pieces do not overlap, so all that overlaps a piece is its equal: a search with a range finds one
 * of the pieces in it. */
static int compare(const void *left, const void *right) {
    const struct ml_mapping *one = left;
    const struct ml_mapping *other = right;
    return one->end <= other->start ? -1 : one->start >= other->end ? 1 : 0;
}

void ml_mappings_init(struct ml_mappings *mappings, struct ml_budget *budget) {
    *mappings = (struct ml_mappings){.budget = budget};
}

static void free_piece(void *piece) {
    free(piece);
}

void ml_mappings_fini(struct ml_mappings *mappings) {
    tdestroy(mappings->tree, free_piece);
    if (mappings->count > 0) {
        ml_budget_count_out(mappings->budget, mappings->count * PIECE_BYTES);
    }
    mappings->tree = NULL;
    mappings->count = 0;
    mappings->taken_count = 0;
}

static struct ml_mapping *find(const struct ml_mappings *mappings, uint64_t start, uint64_t end) {
    const struct ml_mapping range = {.start = start, .end = end};
    void *const *found = tfind(&range, &mappings->tree, compare);
    return found != NULL ? *found : NULL;
}

/* Nothing lies there. False: there is no room. */
static bool add(struct ml_mappings *mappings, const struct ml_mapping *given) {
    if (mappings->count >= ML_MAPPINGS_MAX || !ml_budget_count_in(mappings->budget, PIECE_BYTES)) {
        mappings->dropped++;
        return false;
    }
    struct ml_mapping *piece = malloc(sizeof(*piece));
    if (piece != NULL) {
        *piece = *given;
        if (tsearch(piece, &mappings->tree, compare) != NULL) {
            mappings->count++;
            return true;
        }
    }
    free(piece);
    ml_budget_count_out(mappings->budget, PIECE_BYTES);
    mappings->dropped++;
    return false;
}

static void drop(struct ml_mappings *mappings, struct ml_mapping *take_piece) {
    (void)tdelete(take_piece, &mappings->tree, compare);
    free(take_piece);
    mappings->count--;
    ml_budget_count_out(mappings->budget, PIECE_BYTES);
}

/* Make `at` a border between two pieces, if it lies in one. A piece's place in the order does not
 * change by that. */
static void split(struct ml_mappings *mappings, uint64_t at) {
    struct ml_mapping *piece = find(mappings, at, at + 1);
    if (piece == NULL || piece->start == at) {
        return;
    }
    struct ml_mapping rest = *piece;
    rest.start = at;
    piece->end = at;
    (void)add(mappings, &rest);
}

static void take(struct ml_mappings *mappings, const struct ml_mapping *piece) {
    if (mappings->taken_count < ML_MAPPINGS_TAKEN_MAX) {
        mappings->taken[mappings->taken_count++] = *piece;
    }
}

static int by_address(const void *left, const void *right) {
    return compare(left, right);
}

static void unmap(struct ml_mappings *mappings, uint64_t start, uint64_t end, bool keep) {
    split(mappings, start);
    split(mappings, end);
    for (struct ml_mapping *piece = find(mappings, start, end); piece != NULL;
         piece = find(mappings, start, end)) {
        if (keep) {
            take(mappings, piece);
        }
        drop(mappings, piece);
    }
}

/* ---- records */

static struct ml_mapping piece_of(const struct ml_mapping_record *record, uint32_t marks) {
    const struct ml_event_mapping *mapping = &record->mapping;
    const bool is_whole = mapping->length_bytes == 0;
    return (struct ml_mapping
    ){.start = mapping->address,
      .end = mapping->address + (is_whole ? ML_MAPPING_PAGE_BYTES : mapping->length_bytes),
      .born = record->ticks,
      .node = mapping->node,
      .marks = marks | (is_whole ? ML_MAPPED_WHOLE : 0)};
}

static void map(struct ml_mappings *mappings, const struct ml_mapping *piece) {
    unmap(mappings, piece->start, piece->end, false);
    (void)add(mappings, piece);
}

static void apply_unmap(struct ml_mappings *mappings, const struct ml_mapping_record *record) {
    const struct ml_mapping range = piece_of(record, 0);
    mappings->taken_count = 0;
    mappings->taken_start = range.start;
    mappings->taken_by = record->lane;
    unmap(mappings, range.start, range.end, true);
    qsort(mappings->taken, mappings->taken_count, sizeof(mappings->taken[0]), by_address);
}

/* What was taken lies at the new place as it lay at the old one; its last piece may be longer now.
 * What lay there without an owner belongs to the mover. */
static void apply_moved(struct ml_mappings *mappings, const struct ml_mapping_record *record) {
    const struct ml_mapping moved = piece_of(record, 0);
    const bool is_known = mappings->taken_count > 0 && mappings->taken_by == record->lane;
    unmap(mappings, moved.start, moved.end, false);
    if (!is_known) {
        (void)add(mappings, &moved);
    }
    for (uint32_t i = 0; is_known && i < mappings->taken_count; i++) {
        const bool is_last = i + 1 == mappings->taken_count;
        struct ml_mapping piece = mappings->taken[i];
        const uint64_t from = piece.start - mappings->taken_start;
        const uint64_t to = piece.end - mappings->taken_start;
        piece.born = record->ticks;
        piece.start = moved.start + from;
        piece.end = is_last || to > moved.end - moved.start ? moved.end : moved.start + to;
        if (piece.start < piece.end) {
            (void)add(mappings, &piece);
        }
    }
}

/* The first piece that overlaps the range. */
static struct ml_mapping *first(const struct ml_mappings *mappings, uint64_t start, uint64_t end) {
    struct ml_mapping *piece = find(mappings, start, end);
    for (struct ml_mapping *before = piece; before != NULL && piece->start > start;) {
        before = find(mappings, start, piece->start);
        piece = before != NULL ? before : piece;
    }
    return piece;
}

/* Name what lies there, and what lies between without an owner. */
static void apply_name(struct ml_mappings *mappings, const struct ml_mapping_record *record) {
    struct ml_mapping gap = piece_of(record, ML_MAPPED_UNSEEN);
    const uint64_t end = gap.end;
    gap.name = record->mapping.string_id;
    split(mappings, gap.start);
    split(mappings, end);
    while (gap.start < end) {
        struct ml_mapping *piece = first(mappings, gap.start, end);
        gap.end = piece != NULL ? piece->start : end;
        if (gap.start < gap.end && gap.name != 0) {
            (void)add(mappings, &gap);
        }
        if (piece != NULL) {
            piece->name = gap.name;
        }
        gap.start = piece != NULL ? piece->end : end;
    }
}

void ml_mappings_apply(struct ml_mappings *mappings, const struct ml_mapping_record *record) {
    const bool is_nested = (record->mapping.flags & ML_MAPPING_NESTED) != 0;
    const struct ml_mapping mapped = piece_of(record, is_nested ? ML_MAPPED_BY_ALLOCATOR : 0);
    const struct ml_mapping stack = piece_of(record, ML_MAPPED_AS_STACK);
    switch ((enum ml_mapping_kind)record->mapping.kind) {
    case ML_MAPPING_MAP:
        map(mappings, &mapped);
        break;
    case ML_MAPPING_UNMAP:
        apply_unmap(mappings, record);
        break;
    case ML_MAPPING_MOVED:
        apply_moved(mappings, record);
        break;
    case ML_MAPPING_NAME:
        apply_name(mappings, record);
        break;
    case ML_MAPPING_STACK:
        map(mappings, &stack);
        break;
    default:
        break;
    }
}

void ml_mappings_note_own(struct ml_mappings *mappings, uint64_t start, uint64_t count_bytes) {
    const uint64_t odd = (start | count_bytes) % ML_MAPPING_PAGE_BYTES;
    if (odd == 0 && count_bytes > 0 && start < ML_ADDRESS_MAX &&
        count_bytes <= ML_ADDRESS_MAX - start) {
        const struct ml_mapping own = {
            .start = start, .end = start + count_bytes, .marks = ML_MAPPED_BY_MEMLOG};
        map(mappings, &own);
    }
}

/* ---- all of them */

struct listing {
    struct ml_mapping *items;
    uint32_t count, capacity;
};

static void list_piece(const void *node, VISIT visit, void *context) {
    struct listing *listing = context;
    const struct ml_mapping *const *piece = node;
    if ((visit == postorder || visit == leaf) && listing->count < listing->capacity) {
        listing->items[listing->count++] = **piece;
    }
}

struct ml_mapping *ml_mappings_list(const struct ml_mappings *mappings) {
    struct listing listing = {.capacity = mappings->count};
    if (mappings->count == 0) {
        return NULL;
    }
    listing.items = malloc(mappings->count * sizeof(*listing.items));
    if (listing.items != NULL) {
        twalk_r(mappings->tree, list_piece, &listing);
    }
    return listing.items;
}

/* The parts of the piece where the process has mapped nothing itself. */
static void inherit_piece(struct ml_mappings *mappings, struct ml_mapping piece) {
    const uint64_t end = piece.end;
    while (piece.start < end) {
        const struct ml_mapping *own = first(mappings, piece.start, end);
        piece.end = own != NULL ? own->start : end;
        if (piece.start < piece.end) {
            (void)add(mappings, &piece);
        }
        piece.start = own != NULL ? own->end : end;
    }
}

void ml_mappings_inherit(
    struct ml_mappings *mappings, const struct ml_mappings *parents, uint64_t ticks
) {
    const uint32_t kept = ML_MAPPED_BY_ALLOCATOR | ML_MAPPED_WHOLE;
    const uint32_t not_inherited = ML_MAPPED_BY_MEMLOG;
    struct ml_mapping *pieces = ml_mappings_list(parents);
    uint32_t left = ML_MAPPINGS_INHERITED_MAX;
    for (uint32_t i = 0; pieces != NULL && i < parents->count && left > 0; i++) {
        struct ml_mapping piece = pieces[i];
        if (piece.born <= ticks && (piece.marks & not_inherited) == 0) {
            left--;
            piece.node = 0; /* the numbers are its parent's */
            piece.name = 0;
            piece.marks = (piece.marks & kept) | ML_MAPPED_BEFORE_FORK;
            inherit_piece(mappings, piece);
        }
    }
    free(pieces);
}

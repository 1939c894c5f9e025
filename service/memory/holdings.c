#include "service/memory/holdings.h"

#include <stdlib.h>

enum { REGIONS_A_STEP = 256 };

/* HEAP_MAX_SIZE of glibc on 64 bits. */
#define ARENA_BYTES ((uint64_t)64 << 20)

void ml_holdings_fini(struct ml_holdings *holdings) {
    free(holdings->items);
    *holdings = (struct ml_holdings){0};
}

static bool is_same_owner(const struct ml_holding *one, const struct ml_holding *other) {
    return one->region == other->region && one->kind == other->kind && one->node == other->node &&
           one->name == other->name;
}

static bool append(struct ml_holdings *holdings, const struct ml_holding *holding) {
    struct ml_holding *last = holdings->count > 0 ? &holdings->items[holdings->count - 1] : NULL;
    if (last != NULL && is_same_owner(last, holding)) {
        last->mapped_bytes += holding->mapped_bytes;
        last->bytes.private += holding->bytes.private;
        last->bytes.shared += holding->bytes.shared;
        return true;
    }
    if (holdings->items == NULL || holdings->count == holdings->capacity) {
        const uint32_t capacity = holdings->capacity > 0 ? holdings->capacity * 2 : 64;
        struct ml_holding *items = realloc(holdings->items, capacity * sizeof(*items));
        if (items == NULL) {
            return false;
        }
        holdings->items = items;
        holdings->capacity = capacity;
    }
    holdings->items[holdings->count++] = *holding;
    return true;
}

/* A part of a region that is being made a holding. */
struct part {
    uint64_t start, end;
    struct ml_resident resident;
    struct ml_resident held; /* pages on which live blocks lie */
};

static struct part
part_of(const struct ml_holdings_work *work, uint32_t region, uint64_t start, uint64_t end) {
    struct part part = {.start = start, .end = end};
    ml_resident_add(&part.resident, work->view, &work->view->regions.items[region], start, end);
    if (work->overlay != NULL) {
        part.held = ml_overlay_pages(work->overlay, region, start, end);
    }
    return part;
}

static bool has_blocks(const struct part *part) {
    return part->held.private + part->held.shared > 0;
}

static uint64_t without(uint64_t whole, uint64_t part) {
    return whole > part ? whole - part : 0;
}

static bool
append_part(struct ml_holdings *holdings, const struct part *part, struct ml_holding owner) {
    owner.mapped_bytes = part->end - part->start;
    owner.bytes.private = without(part->resident.private, part->held.private);
    holdings->private_bytes += owner.bytes.private;
    if (owner.kind == ML_OWNER_ALLOCATOR) {
        holdings->allocator_bytes += owner.bytes.private;
    }
    owner.bytes.shared = without(part->resident.shared, part->held.shared);
    return append(holdings, &owner);
}

static bool add_piece(
    struct ml_holdings *holdings,
    const struct ml_holdings_work *work,
    const struct ml_mapping *piece,
    uint64_t start,
    uint64_t end
) {
    const struct part part = part_of(work, work->region, start, end);
    struct ml_holding owner = {
        .region = work->region, .kind = ML_OWNER_MAPPED, .node = piece->node, .name = piece->name};
    if ((piece->marks & ML_MAPPED_BY_MEMLOG) != 0) {
        owner.kind = ML_OWNER_MEMLOG;
    } else if ((piece->marks & ML_MAPPED_AS_STACK) != 0) {
        owner.kind = ML_OWNER_STACK;
    } else if ((piece->marks & ML_MAPPED_BY_ALLOCATOR) != 0 || has_blocks(&part)) {
        owner.kind = ML_OWNER_ALLOCATOR;
        owner.node = 0; /* of whoever needed it first */
    }
    return append_part(holdings, &part, owner);
}

/* The arenas of glibc's malloc in a gap between pieces: libc maps them unseen. */
static bool add_arenas(
    struct ml_holdings *holdings, const struct ml_holdings_work *work, uint64_t start, uint64_t end
) {
    const struct memlog_service_memory_region *region = &work->view->regions.items[work->region];
    if (work->overlay == NULL || region->inode != 0 || region->name.count_bytes > 0) {
        return true;
    }
    bool is_fine = true;
    uint64_t arena = (start + ARENA_BYTES - 1) & ~(ARENA_BYTES - 1);
    for (; is_fine && arena >= start && arena < end; arena += ARENA_BYTES) {
        const uint64_t behind = end - arena < ARENA_BYTES ? end : arena + ARENA_BYTES;
        const struct part part = part_of(work, work->region, arena, behind);
        if (has_blocks(&part)) {
            is_fine = append_part(
                holdings,
                &part,
                (struct ml_holding){.region = work->region, .kind = ML_OWNER_ALLOCATOR}
            );
        }
    }
    return is_fine;
}

static uint64_t
end_of(const struct ml_mapping *piece, const struct memlog_service_memory_region *region) {
    const bool is_whole = (piece->marks & ML_MAPPED_WHOLE) != 0 && piece->start == region->start;
    return is_whole || piece->end > region->end ? region->end : piece->end;
}

/* Its length is what its creator asked for. Below its guard page lies something else. */
static bool
is_below_stack(const struct ml_mapping *piece, const struct memlog_service_memory_region *region) {
    return (piece->marks & ML_MAPPED_AS_STACK) != 0 &&
           (piece->end <= region->start || piece->end > region->end);
}

static bool add_region(struct ml_holdings *holdings, struct ml_holdings_work *work) {
    const struct memlog_service_memory_region *region = &work->view->regions.items[work->region];
    uint64_t behind = region->start;
    bool is_fine = true;
    while (work->piece < work->pieces_count && work->pieces[work->piece].end <= region->start) {
        work->piece++;
    }
    for (uint32_t i = work->piece;
         is_fine && i < work->pieces_count && work->pieces[i].start < region->end;
         i++) {
        const struct ml_mapping *piece = &work->pieces[i];
        const uint64_t start = piece->start > behind ? piece->start : behind;
        const uint64_t end = end_of(piece, region);
        if (start < end && !is_below_stack(piece, region)) {
            is_fine = add_arenas(holdings, work, behind, start) &&
                      add_piece(holdings, work, piece, start, end);
            behind = end;
        }
    }
    return is_fine && add_arenas(holdings, work, behind, region->end);
}

bool ml_holdings_add(struct ml_holdings *holdings, struct ml_holdings_work *work) {
    for (uint32_t i = 0; i < REGIONS_A_STEP && work->region < work->view->regions.count; i++) {
        if (work->view->regions.items[work->region].end == 0 || !add_region(holdings, work)) {
            return false; /* what follows has no address, or there is no memory */
        }
        work->region++;
    }
    return work->region < work->view->regions.count;
}

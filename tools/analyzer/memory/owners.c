#include "tools/analyzer/memory/owners.h"

#include <stdbool.h>
#include <string.h>

enum { KIB = 1024, PAGE_BYTES = 4096 };

__extension__ typedef unsigned __int128 ml_wide_product;

struct ml_component_figures ml_region_figures(const struct ml_profile_region *region) {
    return (struct ml_component_figures
    ){.private = (region->private_clean_kb + region->private_dirty_kb) * KIB,
      .shared = (region->shared_clean_kb + region->shared_dirty_kb) * KIB,
      .proportional = region->proportional_kb * KIB,
      .swapped = region->swap_kb * KIB};
}

void ml_component_figures_add(
    struct ml_component_figures *sum, const struct ml_component_figures *figures
) {
    sum->private += figures->private;
    sum->shared += figures->shared;
    sum->proportional += figures->proportional;
    sum->swapped += figures->swapped;
}

/* A mapping while its owners are visited. */
struct division {
    const struct ml_profile_process *process;
    const struct ml_owner_visitor *visitor;
    const struct ml_profile_region *region;
    enum ml_component kind;           /* of what is left */
    struct ml_component_figures left; /* without an owner so far */
    uint64_t inherited_bytes;         /* of its parent's blocks, not met so far */
    uint64_t moved;                   /* signed, modulo 2^64: a hostile dump must not overflow it */
};

static uint64_t least(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

struct ml_component_figures ml_component_figures_take(
    struct ml_component_figures *left, uint64_t private_bytes, uint64_t shared_bytes
) {
    struct ml_component_figures part = {
        .private = least(private_bytes, left->private),
        .shared = least(shared_bytes, left->shared)};
    const uint64_t proportional_shared =
        left->proportional > left->private ? left->proportional - left->private : 0;

    part.proportional = least(part.private, left->proportional);
    if (left->shared > 0) {
        part.proportional +=
            (uint64_t)((ml_wide_product)proportional_shared * part.shared / left->shared);
    }
    left->private -= part.private;
    left->shared -= part.shared;
    left->proportional -= part.proportional;
    return part;
}

static void give_one(
    const struct division *division,
    enum ml_component kind,
    const struct ml_profile_region_holding *holding,
    const struct ml_component_figures *figures
) {
    const struct ml_owned owned = {
        .region = (size_t)(division->region - division->process->regions),
        .kind = kind,
        .holding = holding,
        .figures = *figures};

    if ((figures->private | figures->shared | figures->proportional | figures->swapped) != 0) {
        division->visitor->take(division->visitor->context, &owned);
    }
}

/* Of a forked process's slack its parent's blocks take no more than they can hold. What is still
 * shared is theirs first. Where they lie is not known. */
static void give(
    struct division *division,
    enum ml_component kind,
    const struct ml_profile_region_holding *holding,
    const struct ml_component_figures *figures
) {
    struct ml_component_figures rest = *figures;

    if (kind == ML_COMPONENT_SLACK && division->inherited_bytes > 0) {
        const uint64_t shared = least(division->inherited_bytes, rest.shared);
        const uint64_t private = least(division->inherited_bytes - shared, rest.private);
        const struct ml_component_figures part = ml_component_figures_take(&rest, private, shared);

        division->inherited_bytes -= shared + private;
        give_one(division, ML_COMPONENT_INHERITED, holding, &part);
    }
    give_one(division, kind, holding, &rest);
}

static void claim(
    struct division *division,
    enum ml_component kind,
    const struct ml_profile_region_holding *holding,
    uint64_t private_bytes,
    uint64_t shared_bytes
) {
    const struct ml_component_figures part =
        ml_component_figures_take(&division->left, private_bytes, shared_bytes);

    division->moved += private_bytes - part.private + shared_bytes - part.shared;
    give(division, kind, holding, &part);
}

/* What live blocks hold, and the rest of the pages on which they lie. */
static void claim_heap(struct division *division) {
    const struct ml_profile_region *region = division->region;
    const uint64_t pages_private = region->heap_pages_private_bytes;
    const uint64_t pages_shared = region->heap_pages_shared_bytes;

    if (!division->process->heap_was_laid) {
        return;
    }
    claim(division, ML_COMPONENT_HEAP, NULL, region->heap_private_bytes, region->heap_shared_bytes);
    claim(
        division,
        ML_COMPONENT_SLACK,
        NULL,
        pages_private > region->heap_private_bytes ? pages_private - region->heap_private_bytes : 0,
        pages_shared > region->heap_shared_bytes ? pages_shared - region->heap_shared_bytes : 0
    );
}

/* The kernel joins mappings: what the program mapped may lie behind .bss or an allocator's own. */
static bool is_plain(const struct division *division) {
    return division->region->inode == 0 &&
           (division->kind == ML_COMPONENT_ANONYMOUS || division->kind == ML_COMPONENT_DATA ||
            division->kind == ML_COMPONENT_MEMLOG || ml_component_is_slack(division->kind));
}

/* Files and shared memory stay what they are, whoever mapped them. */
static enum ml_component
kind_of_holding(const struct division *division, const struct ml_profile_region_holding *holding) {
    switch (holding->kind) {
    case ML_HOLDING_ALLOCATOR:
        return ML_COMPONENT_SLACK;
    case ML_HOLDING_STACK:
        return ML_COMPONENT_STACK;
    case ML_HOLDING_MEMLOG:
        return ML_COMPONENT_MEMLOG;
    default:
        return is_plain(division) ? ML_COMPONENT_MAPPED : division->kind;
    }
}

/* The rest of a mapping that is held as a whole became resident between two readings. It is the
 * largest holding's; elsewhere nobody is known to hold it. */
static void give_rest(
    struct division *division, const struct ml_profile_region_holding *largest, uint64_t held_bytes
) {
    const bool is_whole = largest != NULL && held_bytes >= division->region->size_kb * KIB;
    const uint64_t rest_bytes = division->left.private + division->left.shared;
    struct ml_component_figures swapped = {.swapped = division->left.swapped};

    if (is_whole) {
        /* Less than a page is what was rounded: memory moves by pages. */
        division->moved -= rest_bytes >= PAGE_BYTES ? rest_bytes : 0;
        give(division, kind_of_holding(division, largest), largest, &division->left);
        return;
    }
    if (largest != NULL) {
        give(division, kind_of_holding(division, largest), largest, &swapped);
        division->left.swapped = 0;
    }
    give(division, division->kind, NULL, &division->left);
}

/* The order in which holdings take: what was observed comes before what was only mapped. */
static const enum ml_holding_kind before_heap[] = {ML_HOLDING_MEMLOG, ML_HOLDING_STACK};
static const enum ml_holding_kind behind_heap[] = {ML_HOLDING_ALLOCATOR, ML_HOLDING_MAPPED};

static void claim_holdings(
    struct division *division,
    const struct ml_profile_region_holding *holdings,
    size_t count,
    enum ml_holding_kind kind
) {
    for (size_t i = 0; i < count; i++) {
        if (holdings[i].kind == kind) {
            claim(
                division,
                kind_of_holding(division, &holdings[i]),
                &holdings[i],
                holdings[i].private_bytes,
                holdings[i].shared_bytes
            );
        }
    }
}

static void
divide(struct division *division, const struct ml_profile_region_holding *holdings, size_t count) {
    const struct ml_profile_region_holding *largest = NULL;
    uint64_t held_bytes = 0;

    for (size_t i = 0; i < count; i++) {
        held_bytes += holdings[i].mapped_bytes;
        if (largest == NULL || holdings[i].mapped_bytes > largest->mapped_bytes) {
            largest = &holdings[i];
        }
    }
    for (size_t i = 0; i < sizeof before_heap / sizeof before_heap[0]; i++) {
        claim_holdings(division, holdings, count, before_heap[i]);
    }
    claim_heap(division);
    for (size_t i = 0; i < sizeof behind_heap / sizeof behind_heap[0]; i++) {
        claim_holdings(division, holdings, count, behind_heap[i]);
    }
    give_rest(division, largest, held_bytes);
}

/* A block takes up to so much beyond its size (ML_COVERAGE_BLOCK_BYTES of the service). Saturating:
 * a dump is not trusted. */
static uint64_t most_inherited(const struct ml_profile_process *process) {
    enum { BLOCK_BYTES = 32 };
    uint64_t bytes = 0;

    return __builtin_mul_overflow(process->inherited_blocks, BLOCK_BYTES, &bytes) ||
                   __builtin_add_overflow(process->inherited_bytes, bytes, &bytes)
               ? UINT64_MAX
               : bytes;
}

int64_t
ml_owners_visit(const struct ml_profile_process *process, const struct ml_owner_visitor *visitor) {
    struct division division = {
        .process = process, .visitor = visitor, .inherited_bytes = most_inherited(process)};
    size_t first = 0;

    for (size_t i = 0; i < process->regions_count; i++) {
        size_t end = first;
        while (end < process->holdings_count && process->holdings[end].region == i) {
            end++;
        }
        division.region = &process->regions[i];
        division.left = ml_region_figures(division.region);
        division.kind = ml_component_of_region(process, division.region);
        divide(&division, process->holdings + first, end - first);
        first = end;
    }
    return (int64_t)division.moved;
}

#include "client/stream/arena.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "client/state/process.h"
#include "client/stream/lane.h"
#include "client/unwind/unwind.h"

enum {
    PAGE_BYTES = 4096,
    ERRNO_MOST = 4095,
    ARENA_FIRST_BYTES = 2 << 20,
    NODES_FIRST_BYTES = 256 * 1024,
    STAGING_FIRST_BYTES = 64 * 1024, /* of slots, or those of one lane */
    LIMIT_SHARE_FIRST = 8,           /* a limit is at least so many times what is mapped first, */
    LIMIT_SHARE = 64,                /* ... and so many times what comes later */
    PLACES = 4,                      /* that are tried */
    STOCK_NODES = 1 << 16,
    STOCK_BYTES = 2 << 20, /* of the arena */
    STOCK_LANES = 16
};

/* Memo blocks have 16 bits for their number, lanes 24 for theirs. */
#define ARENA_MAX_BYTES ((uint64_t)1 << 30)
#define NODES_MAX_BYTES                                                                            \
    (((uint64_t)ML_NODES_MAX + ML_STACK_BLOCK_NODES) * sizeof(struct ml_table_node))
_Static_assert(ARENA_MAX_BYTES / ML_MEMO_BLOCK_BYTES <= 1 << 16, "memo blocks have 16 bits");

/* The window: nodes, the arena and staging, each with room for its maximum. It lies so far below
 * the first mappings that only a program which maps more than this reaches it; or above them, where
 * the kernel places mappings upwards (ulimit -s unlimited). Sanitizers reserve other parts of the
 * address space: they leave what is within a TiB of the kernel's own choice. */
#define WINDOW_BYTES ((uint64_t)1 << 34)
#define WINDOW_DISTANCE_BYTES ((uint64_t)1 << 38)
#define WINDOW_ARENA_AT ((uint64_t)1 << 30)
#define WINDOW_STAGING_AT ((uint64_t)1 << 32)
#define WINDOW_ALIGN ((uint64_t)1 << 21)
/* Mappings that go downwards begin above it, those that go upwards below. */
#define BOTTOM_UP_BELOW UINT64_C(0x555555554000)

static uint64_t round_up(uint64_t value, uint64_t align) {
    return (value + align - 1) & ~(align - 1);
}

/* The fixed parts, in order: the gate page, the unwinder, the set of sampled addresses. */
enum {
    UNWIND_AT = PAGE_BYTES,
    SAMPLED_AT =
        (UNWIND_AT + sizeof(struct ml_unwind_process) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES,
    TAKEN_FROM = SAMPLED_AT + ML_SAMPLED_FIRST_BYTES
};
_Static_assert(sizeof(struct ml_gate_page) <= PAGE_BYTES, "the gate page is one");
_Static_assert(TAKEN_FROM + 4 * sizeof(struct ml_lane) <= ARENA_FIRST_BYTES, "the first lanes fit");

/* ---- limits */

/* RLIMIT_AS (0) or RLIMIT_DATA (1), as it is now. UINT64_MAX: none. */
static uint64_t limit_of(int which) {
    static const int resources[] = {RLIMIT_AS, RLIMIT_DATA};
    _Atomic uint64_t *known = &ml_process.memory.limits[which];
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if ((ml_process.filters & ML_FILTERS_NO_LIMITS) == 0 &&
        ml_sys4(SYS_prlimit64, 0, resources[which], 0, (long)&limit) == 0) {
        atomic_store_explicit(known, limit.rlim_cur, memory_order_relaxed);
    }
    return atomic_load_explicit(known, memory_order_relaxed);
}

static bool is_share(uint64_t bytes, uint64_t share) {
    return bytes <= limit_of(0) / share && bytes <= limit_of(1) / share;
}

static uint64_t grown_bytes(const struct ml_region *region) {
    return atomic_load_explicit(&region->mapped_bytes, memory_order_relaxed) - region->first_bytes;
}

/* After a refusal only the first try, the second, the fourth, ... asks again. */
static bool is_hopeless(uint64_t more_bytes) {
    struct ml_memory *memory = &ml_process.memory;
    const uint64_t refused = atomic_load_explicit(&memory->refused_bytes, memory_order_relaxed);
    if (refused == 0 || more_bytes < refused) {
        return false;
    }
    const uint32_t times =
        atomic_fetch_add_explicit(&memory->refusals, 1, memory_order_relaxed) + 1;
    return (times & (times - 1)) != 0;
}

static void tell_own(struct ml_staging_own *own, const struct ml_region *region) {
    __atomic_store_n(&own->start, (uintptr_t)region->start, __ATOMIC_RELAXED);
    __atomic_store_n(
        &own->bytes,
        atomic_load_explicit(&region->mapped_bytes, memory_order_relaxed),
        __ATOMIC_RELAXED
    );
}

void ml_arena_tell_own(void) {
    if (ml_process.staging != NULL) { /* else it is on its way */
        struct ml_staging_header *header = ml_process_staging_header();
        tell_own(&header->own[0], &ml_process.memory.arena);
        tell_own(&header->own[1], &ml_process.memory.nodes);
        tell_own(&header->own[2], &ml_process.memory.names);
    }
}

/* Map its first `wanted_bytes`. */
static bool reach(struct ml_region *region, uint64_t wanted_bytes) {
    struct ml_memory *memory = &ml_process.memory;
    const uint64_t mapped = atomic_load_explicit(&region->mapped_bytes, memory_order_acquire);
    if (ml_likely(wanted_bytes <= mapped)) {
        return true;
    }
    const uint64_t target = ml_region_target(region, wanted_bytes);
    if (target == 0 || (ml_process.filters & ML_FILTERS_NO_GROWTH) != 0) {
        return false;
    }
    const uint64_t more = target - mapped;
    if (is_hopeless(more)) {
        return false;
    }
    const uint64_t grown =
        grown_bytes(&memory->arena) + grown_bytes(&memory->nodes) + grown_bytes(&memory->staging);
    if (is_share(grown + more, LIMIT_SHARE) && ml_region_reach(region, wanted_bytes)) {
        atomic_store_explicit(&memory->refused_bytes, 0, memory_order_relaxed);
        ml_arena_tell_own();
        return true;
    }
    atomic_store_explicit(&memory->refused_bytes, more, memory_order_relaxed);
    return false;
}

/* ---- what is in it */

void *ml_arena_take(uint64_t count_bytes, uint64_t align) {
    _Atomic uint64_t *used = &ml_process.gate_page->arena_used;
    uint64_t seen = atomic_load_explicit(used, memory_order_relaxed);
    uint64_t at = 0;
    do {
        at = round_up(seen, align);
        if (!reach(&ml_process.memory.arena, at + count_bytes)) {
            return NULL;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        used, &seen, at + count_bytes, memory_order_relaxed, memory_order_relaxed
    ));
    return ml_process.memory.arena.start + at;
}

static bool take_memo_blocks(uint32_t blocks, uint32_t *out_first) {
    const uint8_t *taken =
        ml_arena_take((uint64_t)blocks * ML_MEMO_BLOCK_BYTES, ML_MEMO_BLOCK_BYTES);
    if (taken == NULL) {
        return false;
    }
    *out_first =
        (uint32_t)((uint64_t)(taken - ml_process.memory.arena.start) / ML_MEMO_BLOCK_BYTES);
    return true;
}

static void *take_level(uint64_t count_bytes) {
    return ml_arena_take(count_bytes, PAGE_BYTES);
}

void ml_arena_begin(void) {
    uint8_t *start = ml_process.memory.arena.start;
    struct ml_memo_pool *memos = &ml_process.unwind->memos;
    atomic_store_explicit(&ml_process.gate_page->arena_used, TAKEN_FROM, memory_order_relaxed);
    ml_sampled_set_begin(&ml_process.sampled, start + SAMPLED_AT, take_level);
    memos->blocks = start;
    memos->blocks_max = ML_MEMO_POOL_BLOCKS;
    memos->take = take_memo_blocks;
    ml_arena_tell_own();
}

bool ml_arena_node(uint32_t id) {
    struct ml_region *nodes = &ml_process.memory.nodes;
    const uint64_t wanted =
        ((uint64_t)id + 1 + ML_STACK_BLOCK_NODES) * sizeof(struct ml_table_node);
    if (!reach(nodes, wanted)) {
        return false;
    }
    const uint64_t mapped = atomic_load_explicit(&nodes->mapped_bytes, memory_order_relaxed);
    atomic_store_explicit(
        &ml_process.nodes_max,
        (uint32_t)(mapped / sizeof(struct ml_table_node)) - ML_STACK_BLOCK_NODES,
        memory_order_relaxed
    );
    return true;
}

/* ---- staging */

static uint64_t staging_bytes(uint32_t lanes) {
    return ml_staging_slot_offset(lanes, 0, ml_process.slots);
}

uint8_t *ml_arena_map_staging(int fd, uint32_t slots, bool again) {
    struct ml_region *region = &ml_process.memory.staging;
    const uint64_t lane_bytes = (uint64_t)slots * ML_FRAME_MAX_BYTES;
    if (!again) {
        region->max_bytes = ml_staging_size_bytes(slots);
        region->first_bytes = ML_STAGING_DATA_OFFSET + round_up(STAGING_FIRST_BYTES, lane_bytes);
        region->start = ml_process.memory.arena.start - WINDOW_ARENA_AT + WINDOW_STAGING_AT;
        atomic_store_explicit(&region->mapped_bytes, region->first_bytes, memory_order_relaxed);
    }
    const long at = ml_sys6(
        SYS_mmap,
        (long)region->start,
        (long)atomic_load_explicit(&region->mapped_bytes, memory_order_relaxed),
        PROT_READ | PROT_WRITE,
        MAP_SHARED | (again ? MAP_FIXED : 0),
        fd,
        0
    );
    if (at < 0 && at >= -ERRNO_MOST) {
        if (!again) {
            *region = (struct ml_region){0};
        }
        return NULL;
    }
    region->start = (uint8_t *)at;
    return region->start;
}

bool ml_arena_staging_lane(uint32_t lane) {
    return reach(&ml_process.memory.staging, staging_bytes(lane + 1));
}

void ml_arena_stock(void) {
    if (!ml_process.connected || ml_process_state() == ML_GATE_OFF) {
        return;
    }
    const struct ml_gate_page *page = ml_process.gate_page;
    (void)reach(
        &ml_process.memory.arena,
        atomic_load_explicit(&page->arena_used, memory_order_relaxed) + STOCK_BYTES
    );
    (void
    )ml_arena_node(atomic_load_explicit(&page->node_count, memory_order_relaxed) + STOCK_NODES);
    (void)ml_arena_staging_lane(
        atomic_load_explicit(&page->lanes_used, memory_order_relaxed) + STOCK_LANES
    );
}

/* ---- start */

static bool map_at(uint8_t *window) {
    struct ml_memory *memory = &ml_process.memory;
    memory->arena =
        (struct ml_region){.first_bytes = ARENA_FIRST_BYTES, .max_bytes = ARENA_MAX_BYTES};
    memory->nodes =
        (struct ml_region){.first_bytes = NODES_FIRST_BYTES, .max_bytes = NODES_MAX_BYTES};
    if (!ml_region_map(&memory->arena, window != NULL ? window + WINDOW_ARENA_AT : NULL)) {
        return false;
    }
    if (!ml_region_map(&memory->nodes, window)) {
        ml_region_unmap(&memory->arena);
        return false;
    }
    return true;
}

/* Far away; if all those places are taken, anywhere, with little room to grow. */
static bool map_somewhere(uintptr_t near) {
    for (uint64_t i = 0; i < PLACES; i++) {
        const uint64_t away = WINDOW_DISTANCE_BYTES + i * WINDOW_BYTES;
        const uint64_t window = near < BOTTOM_UP_BELOW ? near + away : near - away - WINDOW_BYTES;
        if (map_at((uint8_t *)(window & ~(WINDOW_ALIGN - 1)))) {
            return true;
        }
    }
    return map_at(NULL);
}

bool ml_arena_map(const void *near) {
    const uint64_t first = (uint64_t)ARENA_FIRST_BYTES + NODES_FIRST_BYTES +
                           ML_STAGING_DATA_OFFSET + STAGING_FIRST_BYTES;
    if (!is_share(first, LIMIT_SHARE_FIRST) || !map_somewhere((uintptr_t)near)) {
        return false;
    }
    uint8_t *arena = ml_process.memory.arena.start;
    ml_process.unwind = (struct ml_unwind_process *)(void *)(arena + UNWIND_AT);
    ml_process.stack_nodes = (struct ml_table_node *)(void *)ml_process.memory.nodes.start;
    ml_process.nodes_max = NODES_FIRST_BYTES / sizeof(struct ml_table_node) - ML_STACK_BLOCK_NODES;
    return true;
}

void ml_arena_unmap(void) {
    ml_region_unmap(&ml_process.memory.arena);
    ml_region_unmap(&ml_process.memory.nodes);
    ml_region_unmap(&ml_process.memory.staging);
}

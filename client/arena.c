#include "client/arena.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "client/lane.h"
#include "client/overrun.h"
#include "client/process.h"
#include "client/stack_table.h"
#include "client/unwind.h"

enum {
    SHRINK_MAX = 8,   /* halvings: 65,536 nodes and 32 lanes are the smallest that is of use */
    LIMIT_SHARE = 16, /* at most this fraction of a finite RLIMIT_AS */
    PAGE_BYTES = 4096,
    ADVISE_WIPEONFORK = 18, /* MADV_WIPEONFORK, Linux 4.14 */
    LEVELS_BYTES = 80 << 20 /* all levels of the set of sampled addresses but the first */
};

struct plan {
    uint64_t lanes_at, nodes_at, tables_at, unwind_at, memo_at, sampled_at, levels_at, skipped_at,
        all_bytes;
    uint32_t lanes_max, nodes_max, table_shift_max, memo_blocks_max;
};

static uint64_t page_up(uint64_t bytes) {
    return (bytes + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

static struct plan plan_for(uint32_t halvings) {
    struct plan plan = {0};
    plan.lanes_max = ML_LANES_MAX >> halvings;
    plan.nodes_max = ML_NODES_MAX >> halvings;
    plan.table_shift_max = ML_TABLE_SHIFT_MAX - halvings;
    plan.lanes_at = page_up(sizeof(struct ml_gate_page));
    plan.nodes_at = page_up(plan.lanes_at + plan.lanes_max * sizeof(struct ml_lane));
    /* One block more: each node's successor is looked at. */
    const uint64_t nodes =
        plan.nodes_max + ML_STACK_BLOCK_NODES; /* whole blocks, and a successor */
    plan.tables_at = page_up(plan.nodes_at + nodes * sizeof(struct ml_stack_node));
    plan.unwind_at =
        page_up(plan.tables_at + ((uint64_t)sizeof(uint32_t) << (plan.table_shift_max + 1)));
    plan.memo_blocks_max = ML_MEMO_POOL_BLOCKS >> halvings;
    plan.memo_at = page_up(plan.unwind_at + sizeof(struct ml_unwind_process));
    plan.sampled_at = page_up(plan.memo_at + (uint64_t)plan.memo_blocks_max * ML_MEMO_BLOCK_BYTES);
    plan.levels_at = page_up(plan.sampled_at + ML_SAMPLED_FIRST_BYTES);
    plan.skipped_at = page_up(plan.levels_at + (LEVELS_BYTES >> halvings));
    plan.all_bytes = page_up(plan.skipped_at + (sizeof(uint64_t) << ML_OVERRUN_SKIPPED_SHIFT));
    return plan;
}

static uint64_t limit_bytes(void) {
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    if (ml_sys4(SYS_prlimit64, 0, RLIMIT_AS, 0, (long)&limit) != 0 ||
        limit.rlim_cur == RLIM_INFINITY) {
        return UINT64_MAX;
    }
    return limit.rlim_cur / LIMIT_SHARE;
}

/* Room for the further levels of the set of sampled addresses. */
static _Atomic uintptr_t levels_at;
static uintptr_t levels_end;

static void *take_level(uint64_t count_bytes) {
    const uintptr_t at = atomic_fetch_add_explicit(&levels_at, count_bytes, memory_order_relaxed);
    return at <= levels_end && count_bytes <= levels_end - at ? (void *)at : NULL;
}

static void place(uint8_t *arena, const struct plan *plan) {
    ml_process.lanes = (struct ml_lane *)(void *)(arena + plan->lanes_at);
    ml_process.stack_nodes = (struct ml_stack_node *)(void *)(arena + plan->nodes_at);
    ml_process.tables = (_Atomic uint32_t *)(void *)(arena + plan->tables_at);
    ml_process.unwind = (struct ml_unwind_process *)(void *)(arena + plan->unwind_at);
    ml_process.memo_blocks = arena + plan->memo_at;
    ml_process.memo_blocks_max = plan->memo_blocks_max;
    ml_sampled_set_begin(&ml_process.sampled, arena + plan->sampled_at, take_level);
    levels_at = (uintptr_t)arena + plan->levels_at;
    levels_end = (uintptr_t)arena + plan->skipped_at;
    ml_process.skipped = (_Atomic uint64_t *)(void *)(arena + plan->skipped_at);
    ml_process.arena = arena;
    ml_process.arena_bytes = plan->all_bytes;
    ml_process.lanes_max = plan->lanes_max;
    ml_process.nodes_max = plan->nodes_max;
    ml_process.table_shift_max = plan->table_shift_max;
}

bool ml_arena_map(void) {
    const uint64_t most_bytes = limit_bytes();
    for (uint32_t halvings = 0; halvings <= SHRINK_MAX; halvings++) {
        const struct plan plan = plan_for(halvings);
        if (plan.all_bytes > most_bytes && halvings < SHRINK_MAX) {
            continue;
        }
        const long at = ml_sys6(
            SYS_mmap,
            0,
            (long)plan.all_bytes,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
            -1,
            0
        );
        if (at < 0 && at > -PAGE_BYTES) {
            continue;
        }
        /* Without the wipe a child would write into its parent's streams: then rather not at all.
         */
        if (ml_sys3(SYS_madvise, at, (long)plan.all_bytes, ADVISE_WIPEONFORK) != 0) {
            (void)ml_sys3(SYS_munmap, at, (long)plan.all_bytes, 0);
            return false;
        }
        (void)ml_sys3(SYS_madvise, at, (long)plan.all_bytes, MADV_DONTDUMP);
        (void)ml_sys3(SYS_madvise, at, (long)plan.all_bytes, MADV_NOHUGEPAGE);
        place((uint8_t *)at, &plan);
        return true;
    }
    return false;
}

void ml_arena_unmap(void) {
    (void)ml_sys3(SYS_munmap, (long)ml_process.arena, (long)ml_process.arena_bytes, 0);
}

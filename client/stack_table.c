#include "client/stack_table.h"

#include "client/module_record.h"
#include "ipc/event_put.h"

enum {
    PARENT_MASK = (1 << ML_TAG_SHIFT) - 1,
    FORGET_PROFILES = 64, /* between two sweeps */
    FORGET_AHEAD = 128    /* tags that come back within so many profiles are taken off */
};

/* The table in use: tables of 2^MIN, 2^(MIN+1), ... slots lie one behind the other. */
static _Atomic uint32_t *table_of(uint32_t shift) {
    return ml_process.tables + (((uint64_t)1 << shift) - ((uint64_t)1 << ML_TABLE_SHIFT_MIN));
}

static uint64_t hash_of(uint32_t parent, uint64_t key) {
    uint64_t x = key ^ (uint64_t)parent * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

static bool node_is(uint32_t id, uint32_t parent, uint64_t key) {
    const struct ml_stack_node *node = &ml_process.nodes[id];
    return node->key == key && (node->owner & PARENT_MASK) == parent;
}

/* Put a known id into a table nobody reads yet. */
static void rehash_one(_Atomic uint32_t *table, uint32_t shift, uint32_t id) {
    const struct ml_stack_node *node = &ml_process.nodes[id];
    const uint64_t mask = ((uint64_t)1 << shift) - 1;
    uint64_t slot = hash_of(node->owner & PARENT_MASK, node->key) & mask;
    while (atomic_load_explicit(&table[slot], memory_order_relaxed) != 0) {
        slot = (slot + 1) & mask;
    }
    atomic_store_explicit(&table[slot], id, memory_order_relaxed);
}

/* Half full: one thread fills the next table and switches; the others go on in the old one
 * meanwhile. What they add there may be missing in the new one and is then defined a second time,
 * which costs a node and nothing else. */
static void grow(struct ml_gate_page *page, uint32_t shift) {
    uint32_t idle = 0;
    if (shift >= ml_process.table_shift_max ||
        !atomic_compare_exchange_strong(&page->table_growing, &idle, shift)) {
        return;
    }
    if (atomic_load_explicit(&page->table_shift, memory_order_acquire) == shift) {
        _Atomic uint32_t *from = table_of(shift);
        _Atomic uint32_t *to = table_of(shift + 1);
        for (uint64_t slot = 0; slot < (uint64_t)1 << shift; slot++) {
            const uint32_t id = atomic_load_explicit(&from[slot], memory_order_acquire);
            if (id != 0) {
                rehash_one(to, shift + 1, id);
            }
        }
        atomic_store_explicit(&page->table_shift, shift + 1, memory_order_release);
    }
    atomic_store_explicit(&page->table_growing, 0, memory_order_release);
}

/* The node's record, behind its module's. */
static void
put_node(struct ml_lane *lane, uint32_t id, uint32_t parent, uint64_t key, uint32_t module) {
    if ((key >> 63) == 0) {
        const uint64_t address = key & 0xffffffffffff;
        ml_module_define(lane, module, address);
        uint8_t *pos = ml_lane_room(lane);
        pos = ml_put_node_address(pos, &lane->state, id, parent, address, module);
        ml_lane_publish(lane, pos);
    } else {
        struct ml_event event = {.kind = ML_EVENT_NODE};
        event.node.id = id;
        event.node.parent = parent;
        event.node.frame = (uint32_t)(key >> 32) & 0xff;
        event.node.string_id = (uint32_t)key;
        ml_lane_record(lane, &event);
    }
}

static uint32_t define(struct ml_lane *lane, uint32_t parent, uint64_t key, uint32_t module) {
    struct ml_gate_page *page = ml_process.gate_page;
    const uint32_t id = atomic_fetch_add_explicit(&page->node_count, 1, memory_order_relaxed) + 1;
    if (id >= ml_process.nodes_max) {
        atomic_fetch_sub_explicit(&page->node_count, 1, memory_order_relaxed);
        __atomic_fetch_add(&ml_process_staging_header()->lost_no_node, 1, __ATOMIC_RELAXED);
        return 0;
    }
    struct ml_stack_node *node = &ml_process.nodes[id];
    node->key = key;
    node->owner = parent | lane->tag;
    put_node(lane, id, parent, key, module);
    return id;
}

/* A node that was found is defined in the lane's profile, by now. */
static void
define_again(struct ml_lane *lane, uint32_t id, uint32_t parent, uint64_t key, uint32_t module) {
    uint32_t *owner = &ml_process.nodes[id].owner;
    if (ml_unlikely(__atomic_load_n(owner, __ATOMIC_ACQUIRE) != (parent | lane->tag))) {
        put_node(lane, id, parent, key, module);
        __atomic_store_n(owner, parent | lane->tag, __ATOMIC_RELEASE);
    }
}

uint32_t
ml_stack_find_or_add(struct ml_lane *lane, uint32_t parent, uint64_t key, uint32_t module) {
    struct ml_gate_page *page = ml_process.gate_page;
    const uint32_t shift = atomic_load_explicit(&page->table_shift, memory_order_acquire);
    _Atomic uint32_t *table = table_of(shift);
    const uint64_t mask = ((uint64_t)1 << shift) - 1;
    uint64_t slot = hash_of(parent, key) & mask;
    uint32_t mine = 0;
    for (uint64_t probes = 0; probes <= mask; probes++, slot = (slot + 1) & mask) {
        uint32_t id = atomic_load_explicit(&table[slot], memory_order_acquire);
        if (id == 0) {
            if (mine == 0) {
                mine = define(lane, parent, key, module);
                if (mine == 0) {
                    return 0;
                }
            }
            if (atomic_compare_exchange_strong(&table[slot], &id, mine)) {
                id = mine;
                if (((uint64_t)mine << 1) > mask) {
                    grow(page, shift);
                }
            }
        }
        if (node_is(id, parent, key)) {
            define_again(lane, id, parent, key, module);
            __atomic_store_n(&ml_process.nodes[parent].last_child, id, __ATOMIC_RELAXED);
            return id;
        }
    }
    return mine;
}

void ml_stack_forget(uint32_t before, uint32_t profile) {
    if (before / FORGET_PROFILES == profile / FORGET_PROFILES) {
        return;
    }
    const uint32_t now = profile % ML_TAG_COUNT;
    const uint32_t count =
        atomic_load_explicit(&ml_process.gate_page->node_count, memory_order_relaxed);
    for (uint32_t id = 1; id <= count && id < ml_process.nodes_max; id++) {
        uint32_t *owner = &ml_process.nodes[id].owner;
        uint32_t seen = __atomic_load_n(owner, __ATOMIC_RELAXED);
        const uint32_t tag = seen >> ML_TAG_SHIFT;
        const uint32_t ahead = (tag + ML_TAG_COUNT - 1 - now) % ML_TAG_COUNT;
        if (tag != 0 && ahead >= 1 && ahead <= FORGET_AHEAD) {
            (void)__atomic_compare_exchange_n(
                owner, &seen, seen & PARENT_MASK, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED
            );
        }
    }
}

bool ml_stack_same_path(uint32_t a, uint32_t b) {
    while (a != b) {
        if (a == 0 || b == 0 || ml_process.nodes[a].key != ml_process.nodes[b].key) {
            return false;
        }
        a = ml_process.nodes[a].owner & PARENT_MASK;
        b = ml_process.nodes[b].owner & PARENT_MASK;
    }
    return true;
}

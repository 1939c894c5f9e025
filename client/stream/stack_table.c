#include "client/stream/stack_table.h"

#include "client/stream/module_record.h"
#include "ipc/wire/event_put.h"

enum {
    ID_MASK = (1 << ML_TAG_SHIFT) - 1,
    PROBES_FEW = 64,
    FORGET_PROFILES = 64, /* between two sweeps */
    FORGET_AHEAD = 128    /* tags that come back within so many profiles are taken off */
};

static uint64_t *key_of(uint32_t id) {
    return &ml_process.stack_nodes[id].key;
}

static uint32_t *owner_of(uint32_t id) {
    return &ml_process.stack_nodes[id].owner;
}

/* The table of 2^shift slots, made now if it is not there; NULL: there is no memory for it. If two
 * threads race, one table is used and the other's memory is wasted. */
static _Atomic uint32_t *table_of(struct ml_gate_page *page, uint32_t shift) {
    _Atomic(_Atomic uint32_t *) *place = &page->tables[shift - ML_TABLE_SHIFT_MIN];
    _Atomic uint32_t *table = atomic_load_explicit(place, memory_order_acquire);
    if (ml_unlikely(table == NULL)) {
        _Atomic uint32_t *made =
            ml_arena_take(sizeof(uint32_t) << shift, (uint64_t)1 << ML_TABLE_ALIGN_SHIFT);
        if (made != NULL && atomic_compare_exchange_strong(place, &table, made)) {
            table = made;
        }
    }
    return table;
}

static uint64_t hash_of(uint32_t parent, uint64_t key) {
    uint64_t x = key ^ (uint64_t)parent * UINT64_C(0x9e3779b97f4a7c15);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    return x;
}

/* A slot's word for a node: eight bits of the hash avoid most reads of other nodes. */
static uint32_t slot_word(uint64_t hash, uint32_t id) {
    return (uint32_t)(hash >> 56) << ML_TAG_SHIFT | id;
}

static bool node_is(uint32_t id, uint32_t parent, uint64_t key) {
    const uint32_t owner = __atomic_load_n(owner_of(id), __ATOMIC_ACQUIRE);
    return (owner & ID_MASK) == parent && *key_of(id) == key;
}

/* Put a known node into a table that is not shared yet. */
static void rehash_one(_Atomic uint32_t *table, uint32_t shift, uint32_t word) {
    const uint32_t id = word & ID_MASK;
    const uint64_t mask = ((uint64_t)1 << shift) - 1;
    uint64_t slot = hash_of(*owner_of(id) & ID_MASK, *key_of(id)) & mask;
    while (atomic_load_explicit(&table[slot], memory_order_relaxed) != 0) {
        slot = (slot + 1) & mask;
    }
    atomic_store_explicit(&table[slot], word, memory_order_relaxed);
}

/* Half full: one thread fills the next table and switches; meanwhile the others use the old one. A
 * node that they add there may be missing in the new one; defining it again costs only a node. */
static void grow(struct ml_gate_page *page, uint32_t shift) {
    uint32_t idle = 0;
    if (shift >= ML_TABLE_SHIFT_MAX ||
        !atomic_compare_exchange_strong(&page->table_growing, &idle, shift)) {
        return;
    }
    _Atomic uint32_t *from = table_of(page, shift);
    _Atomic uint32_t *to = table_of(page, shift + 1);
    if (from != NULL && to != NULL &&
        atomic_load_explicit(&page->table_shift, memory_order_acquire) == shift) {
        for (uint64_t slot = 0; slot < (uint64_t)1 << shift; slot++) {
            const uint32_t word = atomic_load_explicit(&from[slot], memory_order_acquire);
            if (word != 0) {
                rehash_one(to, shift + 1, word);
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

static void count_no_room(void) {
    (void)__atomic_fetch_add(&ml_process_staging_header()->lost_no_node, 1, __ATOMIC_RELAXED);
}

static uint32_t nodes_max(void) {
    return atomic_load_explicit(&ml_process.nodes_max, memory_order_relaxed);
}

/* The node can be found once its owner is stored; the record is published before that. */
static uint32_t define(struct ml_lane *lane, uint32_t parent, uint64_t key, uint32_t module) {
    struct ml_gate_page *page = ml_process.gate_page;
    const uint32_t id = atomic_fetch_add_explicit(&page->node_count, 1, memory_order_relaxed) + 1;
    if (ml_unlikely(id >= nodes_max()) && (id >= ML_NODES_MAX || !ml_arena_node(id))) {
        atomic_fetch_sub_explicit(&page->node_count, 1, memory_order_relaxed);
        count_no_room();
        return 0;
    }
    *key_of(id) = key;
    put_node(lane, id, parent, key, module);
    __atomic_store_n(owner_of(id), parent | lane->tag, __ATOMIC_RELEASE);
    return id;
}

/* Ensure that a node that was found is defined in the lane's profile. */
static void
define_again(struct ml_lane *lane, uint32_t id, uint32_t parent, uint64_t key, uint32_t module) {
    uint32_t *owner = owner_of(id);
    if (ml_unlikely(__atomic_load_n(owner, __ATOMIC_ACQUIRE) != (parent | lane->tag))) {
        put_node(lane, id, parent, key, module);
        __atomic_store_n(owner, parent | lane->tag, __ATOMIC_RELEASE);
    }
}

/* A search and its result. */
struct search {
    struct ml_lane *lane;
    uint64_t hash;
    uint64_t key;
    uint32_t parent;
    uint32_t module;
    uint32_t mine; /* the node defined for it; 0: none yet */
    bool no_room;
    bool only_look; /* the table cannot grow: it takes no new node */
};

/* Try a slot: it holds the wanted node, or is free and gets it. Returns the node's id; 0: another
 * node's slot, or no room for a node. */
static uint32_t look_into(struct search *search, _Atomic uint32_t *slot) {
    uint32_t word = atomic_load_explicit(slot, memory_order_acquire);
    if (word == 0) {
        if (ml_unlikely(search->only_look)) {
            count_no_room();
            search->no_room = true;
            return 0;
        }
        if (search->mine == 0) {
            search->mine = define(search->lane, search->parent, search->key, search->module);
            if (search->mine == 0) {
                search->no_room = true;
                return 0;
            }
            if (search->mine == search->parent + 1 && search->parent != 0) {
                return search->mine; /* found without a slot */
            }
        }
        if (atomic_compare_exchange_strong(slot, &word, slot_word(search->hash, search->mine))) {
            return search->mine;
        }
    }
    const uint32_t id = word & ID_MASK;
    return word == slot_word(search->hash, id) && node_is(id, search->parent, search->key) ? id : 0;
}

/* Beside the parent: on its own cache line first, then on the others of its block. */
static uint32_t find_beside(struct search *search) {
    struct ml_table_node *block =
        &ml_process.stack_nodes[search->parent / ML_STACK_BLOCK_NODES * ML_STACK_BLOCK_NODES];
    const uint32_t line = search->parent / ML_STACK_LINE_NODES * ML_STACK_LINE_NODES;
    const uint32_t from = line + search->hash % ML_STACK_LINE_NODES;
    uint32_t id = 0;
    for (uint32_t i = 0; i < ML_STACK_BLOCK_NODES && id == 0 && !search->no_room; i++) {
        const uint32_t at = (line + i / ML_STACK_LINE_NODES * ML_STACK_LINE_NODES +
                             (from + i) % ML_STACK_LINE_NODES) %
                            ML_STACK_BLOCK_NODES;
        id = look_into(search, &block[at].child);
    }
    return id;
}

static bool is_too_full(const struct ml_gate_page *page, uint32_t shift) {
    const uint64_t slots = (uint64_t)1 << shift;
    return atomic_load_explicit(&page->table_used, memory_order_relaxed) > slots - slots / 4;
}

/* The table to search, and how many of its slots at most. A table far too full is being copied by
 * an interrupted thread: then the search is short and may define a node twice. Or there is no
 * memory for the next table: then it takes no new nodes. */
static uint32_t choose_table(struct ml_gate_page *page, bool *out_only_look, uint64_t *out_probes) {
    for (;;) {
        const uint32_t shift = atomic_load_explicit(&page->table_shift, memory_order_acquire);
        *out_only_look = false;
        *out_probes = (uint64_t)1 << shift;
        if (ml_likely(!is_too_full(page, shift))) {
            return shift;
        }
        grow(page, shift);
        const bool growing = atomic_load_explicit(&page->table_growing, memory_order_acquire) != 0;
        if (atomic_load_explicit(&page->table_shift, memory_order_acquire) == shift) {
            *out_only_look = !growing;
            *out_probes = growing ? PROBES_FEW : *out_probes;
            return shift;
        }
    }
}

/* A parent with many children: look in the table. */
static uint32_t find_in_table(struct search *search) {
    struct ml_gate_page *page = ml_process.gate_page;
    uint64_t probes = 0;
    const uint32_t shift = choose_table(page, &search->only_look, &probes);
    const uint64_t mask = ((uint64_t)1 << shift) - 1;
    const uint32_t before = search->mine;
    _Atomic uint32_t *table = table_of(page, shift);
    if (table == NULL) {
        count_no_room();
        return 0;
    }
    uint32_t id = 0;
    for (uint64_t i = 0; i < probes && id == 0 && !search->no_room; i++) {
        id = look_into(search, &table[(search->hash + i) & mask]);
    }
    if (id == 0 && !search->no_room && search->mine == 0) {
        search->mine = define(search->lane, search->parent, search->key, search->module);
    }
    if (id != 0 && id == search->mine && before == 0) {
        const uint32_t used = atomic_fetch_add_explicit(&page->table_used, 1, memory_order_relaxed);
        if (((uint64_t)used << 1) > mask) {
            grow(page, shift);
        }
    }
    return id;
}

uint32_t
ml_stack_find_or_add(struct ml_lane *lane, uint32_t parent, uint64_t key, uint32_t module) {
    struct search search = {
        .lane = lane,
        .hash = hash_of(parent, key),
        .key = key,
        .parent = parent,
        .module = module,
    };
    uint32_t id = parent + 1;
    /* A node that is the root's child may have an owner of 0, as one not defined yet. */
    if (parent == 0 || id >= nodes_max() || !node_is(id, parent, key)) {
        id = find_beside(&search);
        if (id == 0 && !search.no_room) {
            id = find_in_table(&search);
        }
    }
    if (id == 0) {
        return search.mine;
    }
    define_again(lane, id, parent, key, module);
    return id;
}

void ml_stack_forget(uint32_t before, uint32_t profile) {
    if (before / FORGET_PROFILES == profile / FORGET_PROFILES) {
        return;
    }
    const uint32_t now = profile % ML_TAG_COUNT;
    const uint32_t count =
        atomic_load_explicit(&ml_process.gate_page->node_count, memory_order_relaxed);
    for (uint32_t id = 1; id <= count && id < nodes_max(); id++) {
        uint32_t *owner = owner_of(id);
        uint32_t seen = __atomic_load_n(owner, __ATOMIC_RELAXED);
        const uint32_t tag = seen >> ML_TAG_SHIFT;
        const uint32_t ahead = (tag + ML_TAG_COUNT - 1 - now) % ML_TAG_COUNT;
        if (tag != 0 && ahead >= 1 && ahead <= FORGET_AHEAD) {
            (void)__atomic_compare_exchange_n(
                owner, &seen, seen & ID_MASK, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED
            );
        }
    }
}

bool ml_stack_same_path(uint32_t a, uint32_t b) {
    while (a != b) {
        if (a == 0 || b == 0 || *key_of(a) != *key_of(b)) {
            return false;
        }
        a = *owner_of(a) & ID_MASK;
        b = *owner_of(b) & ID_MASK;
    }
    return true;
}

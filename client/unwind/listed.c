#include "client/unwind/listed.h"

#include <stdatomic.h>

#include "client/symbols/loaded.h"
#include "client/unwind/foreign.h"

/* Of an entry's state, behind how often it was written. */
enum { ENTRY_EMPTY = 0, ENTRY_READY, ENTRY_GONE, ENTRY_BEING_WRITTEN, ENTRY_STATES };

/* Whoever reads it looks at the state before and behind. An end of 0: its headers are not read yet.
 */
struct entry {
    _Atomic uint32_t state;
    _Atomic uintptr_t start, end, eh_frame_hdr, map, bias, dynamic;
};

/* What one says. */
struct known {
    struct ml_object object;
    uintptr_t bias;
    uintptr_t dynamic;
    uint32_t state;
};

/* Takes no memory where it is not used. Two threads may enter the same object: harmless. */
static struct entry entries[ML_OBJECTS_MAX];
static _Atomic uint32_t entries_count;

/* Where the list ended when it was read. An object that is unloaded may leave its place to another
 * one. */
static _Atomic(const struct link_map *) last_map;
static _Atomic uintptr_t last_bias;

/* The first in the list, which stays. */
static struct ml_object program;

static bool readable(const void *at, size_t bytes) {
    struct ml_foreign foreign = {0};
    return ml_foreign_readable(&foreign, at, bytes);
}

static bool contains(const struct ml_object *object, uintptr_t pc) {
    return pc - object->start < object->end - object->start;
}

static bool describes_the_same(const struct ml_object *one, const struct ml_object *other) {
    return one->start == other->start && one->end == other->end &&
           one->eh_frame_hdr == other->eh_frame_hdr;
}

/* Whether the list leads to it. Of one that was unloaded, which keeps what it said while nobody
 * else takes its memory, the object in front leads elsewhere. Both links of a neighbour that goes
 * are never wrong at one time. */
__attribute__((no_sanitize("address", "thread"))) static bool is_linked(const struct link_map *map
) {
    enum { TRIES = 4 }; /* the one in front may change meanwhile */
    for (int i = 0; i < TRIES && readable(map, sizeof(*map)); i++) {
        const struct link_map *before = ((const volatile struct link_map *)map)->l_prev;
        if (before == NULL) {
            return map == ml_loaded_first();
        }
        if (readable(before, sizeof(*before)) && before->l_next == map) {
            return true;
        }
        if (((const volatile struct link_map *)map)->l_prev == before) {
            return false;
        }
    }
    return false;
}

/* False: it says nothing. */
static bool read_entry(struct entry *entry, struct known *out_known) {
    const uint32_t state = atomic_load_explicit(&entry->state, memory_order_acquire);
    if (state % ENTRY_STATES != ENTRY_READY) {
        return false;
    }
    *out_known = (struct known){
        .object =
            {.start = atomic_load_explicit(&entry->start, memory_order_relaxed),
             .end = atomic_load_explicit(&entry->end, memory_order_relaxed),
             .eh_frame_hdr = atomic_load_explicit(&entry->eh_frame_hdr, memory_order_relaxed),
             .map =
                 (const struct link_map *)atomic_load_explicit(&entry->map, memory_order_relaxed)},
        .bias = atomic_load_explicit(&entry->bias, memory_order_relaxed),
        .dynamic = atomic_load_explicit(&entry->dynamic, memory_order_relaxed),
        .state = state,
    };
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&entry->state, memory_order_relaxed) == state;
}

/* Whether it is loaded still: not every unloading is seen. Nothing of the object itself is read,
 * which another thread may unmap right now. */
__attribute__((no_sanitize("address", "thread"))) static bool is_listed(const struct known *known) {
    const struct link_map *map = known->object.map;
    return is_linked(map) && map->l_addr == known->bias && (uintptr_t)map->l_ld == known->dynamic;
}

static void forget(struct entry *entry, const struct known *known) {
    uint32_t state = known->state;
    (void)atomic_compare_exchange_strong(&entry->state, &state, state - ENTRY_READY + ENTRY_GONE);
    atomic_store_explicit(&last_map, NULL, memory_order_release); /* read it again */
}

static void write_entry(struct entry *entry, const struct known *known, uint32_t state) {
    atomic_thread_fence(memory_order_release); /* the state comes before what is written */
    atomic_store_explicit(&entry->start, known->object.start, memory_order_relaxed);
    atomic_store_explicit(&entry->end, known->object.end, memory_order_relaxed);
    atomic_store_explicit(&entry->eh_frame_hdr, known->object.eh_frame_hdr, memory_order_relaxed);
    atomic_store_explicit(&entry->map, (uintptr_t)known->object.map, memory_order_relaxed);
    atomic_store_explicit(&entry->bias, known->bias, memory_order_relaxed);
    atomic_store_explicit(&entry->dynamic, known->dynamic, memory_order_relaxed);
    atomic_store_explicit(&entry->state, state, memory_order_release);
}

/* Whether the entry may be written now, which is in a state of then. *out_ready: what it is to be
 * in behind that. */
static bool take_entry(struct entry *entry, uint32_t state, uint32_t *out_ready) {
    const uint32_t written = (state / ENTRY_STATES + 1) * ENTRY_STATES;
    *out_ready = written + ENTRY_READY;
    return atomic_compare_exchange_strong(&entry->state, &state, written + ENTRY_BEING_WRITTEN);
}

/* What the headers of an object say, which is loaded while the caller looks. A known one is
 * compared: another one may have come to its place. One without headers stays unknown. False: the
 * entry is no more. */
static bool look_at(struct entry *entry, struct known *known) {
    struct ml_object now;
    uint32_t ready = 0;
    const bool is_known = known->object.end != 0;
    if (!ml_object_describe(known->object.map, false, &now)) {
        return !is_known;
    }
    if (is_known) {
        return describes_the_same(&now, &known->object);
    }
    known->object = now;
    if (take_entry(entry, known->state, &ready)) {
        write_entry(entry, known, ready);
    }
    return true;
}

static uint32_t count_now(void) {
    const uint32_t count = atomic_load_explicit(&entries_count, memory_order_acquire);
    return count < ML_OBJECTS_MAX ? count : ML_OBJECTS_MAX;
}

/* The entry with the next beginning in front of the address. NULL: there is none. */
static struct entry *next_entry(uintptr_t pc, struct known *out_known) {
    struct entry *next = NULL;
    struct known known;
    for (uint32_t i = count_now(); i-- > 0;) {
        if (read_entry(&entries[i], &known) && known.bias <= pc &&
            (next == NULL || known.bias > out_known->bias)) {
            next = &entries[i];
            *out_known = known;
        }
    }
    return next;
}

/* Objects lie beside each other, but for the program, whose segments may lie apart. So an address
 * is in the next object in front of it that is still loaded, or in the program, or in none. Headers
 * are read of no other: no thread unmaps what is on this one's stack. */
static bool find_entry(uintptr_t pc, struct ml_object *out_object) {
    struct known known;
    struct entry *entry = next_entry(pc, &known);
    while (entry != NULL && !(is_listed(&known) && look_at(entry, &known))) {
        forget(entry, &known);
        entry = next_entry(pc, &known);
    }
    *out_object = entry != NULL && contains(&known.object, pc) ? known.object : program;
    return contains(out_object, pc);
}

static bool is_entered(const struct link_map *map) {
    struct known known;
    for (uint32_t i = 0; i < count_now(); i++) {
        if (read_entry(&entries[i], &known) && known.object.map == map &&
            known.bias == map->l_addr && known.dynamic == (uintptr_t)map->l_ld) {
            return true;
        }
    }
    return false;
}

/* An entry to be written: of an object that is gone, or a new one. NULL: there is none. */
static struct entry *new_entry(uint32_t *out_ready) {
    for (uint32_t i = 0; i < count_now(); i++) {
        const uint32_t state = atomic_load_explicit(&entries[i].state, memory_order_relaxed);
        if (state % ENTRY_STATES == ENTRY_GONE && take_entry(&entries[i], state, out_ready)) {
            return &entries[i];
        }
    }
    const uint32_t index = atomic_fetch_add(&entries_count, 1);
    if (index >= ML_OBJECTS_MAX) {
        (void)atomic_fetch_sub(&entries_count, 1);
        return NULL;
    }
    *out_ready = ENTRY_READY;
    return &entries[index];
}

__attribute__((no_sanitize("address", "thread"))) static void enter(const struct link_map *map) {
    struct known known = {
        .object = {.map = map}, .bias = map->l_addr, .dynamic = (uintptr_t)map->l_ld};
    uint32_t ready = 0;
    struct entry *entry = is_entered(map) ? NULL : new_entry(&ready);
    if (entry != NULL) {
        write_entry(entry, &known, ready);
    }
}

/* All are taken: those of objects that nobody has looked for since they went are free again. */
static void make_room(void) {
    struct known known;
    if (count_now() < ML_OBJECTS_MAX) {
        return;
    }
    for (uint32_t i = 0; i < ML_OBJECTS_MAX; i++) {
        const uint32_t state = atomic_load_explicit(&entries[i].state, memory_order_relaxed);
        if (state % ENTRY_STATES == ENTRY_GONE) {
            return;
        }
    }
    for (uint32_t i = 0; i < ML_OBJECTS_MAX; i++) {
        if (read_entry(&entries[i], &known) && !is_listed(&known)) {
            forget(&entries[i], &known);
        }
    }
}

/* Another thread may change the list meanwhile: each link is probed before it is read, and followed
 * only where the list leads to it. False: the end was not reached. */
__attribute__((no_sanitize("address", "thread"))) static bool read_list(void) {
    const struct link_map *last = program.map;
    const struct link_map *map = last->l_next;
    make_room();
    for (uint32_t i = 0; i < ML_OBJECTS_MAX && map != NULL; i++) {
        if (!is_linked(map)) {
            return false;
        }
        enter(map);
        last = map;
        map = map->l_next;
    }
    atomic_store_explicit(&last_bias, last->l_addr, memory_order_relaxed);
    atomic_store_explicit(&last_map, last, memory_order_release);
    return true;
}

/* What is loaded later comes at the list's end. The last one may be freed by now, and say what it
 * said before. */
__attribute__((no_sanitize("address", "thread"))) static bool has_grown(void) {
    const struct link_map *last = atomic_load_explicit(&last_map, memory_order_acquire);
    return last == NULL || !is_linked(last) || last->l_next != NULL ||
           last->l_addr != atomic_load_explicit(&last_bias, memory_order_relaxed);
}

bool ml_listed_find(uintptr_t pc, struct ml_object *out_object) {
    enum { TRIES = 8 }; /* other threads load and unload meanwhile */
    for (int i = 0; i < TRIES; i++) {
        if (find_entry(pc, out_object)) {
            return true;
        }
        if (program.map == NULL || !has_grown()) {
            return false;
        }
        if (read_list()) {
            break;
        }
    }
    return find_entry(pc, out_object);
}

bool ml_listed_has(const struct ml_object *object) {
    struct known known;
    for (uint32_t i = 0; i < count_now(); i++) {
        if (read_entry(&entries[i], &known) && known.object.map == object->map &&
            known.object.start == object->start && known.object.end == object->end) {
            return is_listed(&known);
        }
    }
    return object->map == program.map && program.map != NULL;
}

void ml_listed_begin(void) {
    const struct link_map *first = ml_loaded_first();
    if (first != NULL) {
        if (!ml_object_describe(first, true, &program)) {
            program = (struct ml_object){.map = first};
        }
        (void)read_list();
    }
}

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

/* How often something was seen to go. Where the list ended when it was read, what its last object
 * said then, and what had gone: an object that is unloaded may leave its place to another one. */
static _Atomic uint32_t changes;
static _Atomic(const struct link_map *) last_map, last_before, last_next;
static _Atomic uintptr_t last_bias;
static _Atomic uint32_t last_changes;

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

/* Counted on either side: who reads the list meanwhile reads it again. */
static void forget(struct entry *entry, const struct known *known) {
    uint32_t state = known->state;
    (void)atomic_fetch_add(&changes, 1);
    (void)atomic_compare_exchange_strong(&entry->state, &state, state - ENTRY_READY + ENTRY_GONE);
    (void)atomic_fetch_add(&changes, 1);
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

static uint32_t count_now(void) {
    const uint32_t count = atomic_load_explicit(&entries_count, memory_order_acquire);
    return count < ML_OBJECTS_MAX ? count : ML_OBJECTS_MAX;
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

/* False: there is no room. */
static bool add_entry(const struct known *known) {
    uint32_t ready = 0;
    struct entry *entry = new_entry(&ready);
    if (entry != NULL) {
        write_entry(entry, known, ready);
    }
    return entry != NULL;
}

/* What the headers of an object say, which is loaded while the caller looks. A known one is
 * compared: another one may have come to its place. One without headers stays unknown. What is
 * learnt is another entry: this one is never taken from those who look. False: it is no more. */
static bool look_at(struct entry *entry, struct known *known) {
    struct ml_object now;
    const struct known before = *known;
    if (!ml_object_describe(known->object.map, known->bias, false, &now)) {
        return before.object.end == 0;
    }
    if (before.object.end != 0) {
        return describes_the_same(&now, &known->object);
    }
    known->object = now;
    if (!is_listed(known)) {
        return false;
    }
    uint32_t state = before.state;
    if (add_entry(known)) {
        (void
        )atomic_compare_exchange_strong(&entry->state, &state, state - ENTRY_READY + ENTRY_GONE);
    }
    return true;
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

/* Whether an entry says the truth of the address: that its object is loaded and has it, or does not
 * have it. Headers are read where they are not known, or have it: no thread unmaps what is on this
 * one's stack. */
static bool says_true(struct entry *entry, struct known *known, uintptr_t pc) {
    const bool is_elsewhere = known->object.end != 0 && !contains(&known->object, pc);
    return is_listed(known) && (is_elsewhere || look_at(entry, known));
}

/* Objects lie beside each other, but for the program, whose segments may lie apart. So an address
 * is in the next object in front of it that is still loaded, or in the program, or in none. */
static bool find_entry(uintptr_t pc, struct ml_object *out_object) {
    struct known known;
    struct entry *entry = next_entry(pc, &known);
    while (entry != NULL && !says_true(entry, &known, pc)) {
        forget(entry, &known);
        entry = next_entry(pc, &known);
    }
    *out_object = entry != NULL && contains(&known.object, pc) ? known.object : program;
    return contains(out_object, pc);
}

static bool is_entered(const struct known *wanted) {
    struct known known;
    for (uint32_t i = 0; i < count_now(); i++) {
        if (read_entry(&entries[i], &known) && known.object.map == wanted->object.map &&
            known.bias == wanted->bias && known.dynamic == wanted->dynamic) {
            return true;
        }
    }
    return false;
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

/* What it says of itself. */
__attribute__((no_sanitize("address", "thread"))) static struct known
read_map(const struct link_map *map, const struct link_map **out_before) {
    const volatile struct link_map *now = map;
    *out_before = now->l_prev;
    return (struct known
    ){.object = {.map = map}, .bias = now->l_addr, .dynamic = (uintptr_t)now->l_ld};
}

/* Enter one, and say which comes behind it. False: it has changed meanwhile. Its memory may be
 * another object's by then, which is at the list's end. */
__attribute__((no_sanitize("address", "thread"))) static bool
enter(const struct link_map *map, const struct link_map **out_next) {
    const struct link_map *before = NULL;
    const struct link_map *before_then = NULL;
    const struct known known = read_map(map, &before);
    if (!is_linked(map)) {
        return false;
    }
    if (!is_entered(&known)) {
        (void)add_entry(&known);
    }
    *out_next = ((const volatile struct link_map *)map)->l_next;
    const struct known then = read_map(map, &before_then);
    return is_linked(map) && before_then == before && then.bias == known.bias &&
           then.dynamic == known.dynamic;
}

/* Another thread may change the list meanwhile: each link is probed before it is read, and followed
 * only where the list leads to it. False: it is to be read again. */
__attribute__((no_sanitize("address", "thread"))) static bool read_list(void) {
    make_room();
    const uint32_t changes_then = atomic_load(&changes);
    const struct link_map *last = program.map;
    const struct link_map *map = last->l_next;
    for (uint32_t i = 0; i < ML_OBJECTS_MAX && map != NULL; i++) {
        last = map;
        if (!readable(map, sizeof(*map)) || !enter(map, &map)) {
            return false;
        }
    }
    atomic_store(&last_map, NULL);
    atomic_store(&last_next, map);
    atomic_store(&last_before, last->l_prev);
    atomic_store(&last_bias, last->l_addr);
    atomic_store(&last_changes, changes_then);
    atomic_store(&last_map, last);
    return atomic_load(&changes) == changes_then;
}

/* What is loaded later comes at the list's end. The last one may be freed by now, and say what it
 * said before. */
__attribute__((no_sanitize("address", "thread"))) static bool has_grown(void) {
    const struct link_map *last = atomic_load(&last_map);
    return last == NULL || atomic_load(&last_changes) != atomic_load(&changes) ||
           !is_linked(last) || last->l_next != atomic_load(&last_next) ||
           last->l_prev != atomic_load(&last_before) || last->l_addr != atomic_load(&last_bias);
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
            known.object.start == object->start && known.object.end == object->end &&
            is_listed(&known)) {
            return true;
        }
    }
    return object->map == program.map && program.map != NULL;
}

void ml_listed_changed(void) {
    (void)atomic_fetch_add(&changes, 1);
}

/* Their headers need not be read when nobody knows who unmaps what. */
static void look_at_all(void) {
    struct known known;
    const uint32_t count = count_now();
    for (uint32_t i = 0; i < count; i++) {
        if (read_entry(&entries[i], &known) && known.object.end == 0 && is_listed(&known)) {
            (void)look_at(&entries[i], &known);
        }
    }
}

void ml_listed_begin(void) {
    const struct link_map *first = ml_loaded_first();
    if (first == NULL) {
        return;
    }
    if (!ml_object_describe(first, first->l_addr, true, &program)) {
        program = (struct ml_object){.map = first};
    }
    (void)read_list();
    if (!ML_ATTACHED) {
        look_at_all(); /* no other thread is there yet */
    }
}

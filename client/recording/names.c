#include "client/recording/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "client/recording/record.h"
#include "client/state/sys.h"
#include "client/stream/arena.h"

enum {
    INDEX_SHIFT = 17, /* twice as many places as there can be names */
    INDEX_PLACES = 1 << INDEX_SHIFT,
    TEXTS_BYTES = 12 << 20,
    ALIGN = 8
};
_Static_assert(
    INDEX_PLACES > ML_TYPES_MAX + ML_HEAPS_MAX + ML_TEXTS_MAX, "a search meets an empty place"
);
_Static_assert(ML_STRINGS_MAX <= 1 << 16, "a string's id is a part of ml_name.string");

/* Mapped at the first registration, and copied by forks. What is not used takes no memory. Entries
 * are named by where they lie in `texts`, less 1 / ALIGN; 0: none. */
struct names {
    _Atomic uint32_t used_bytes; /* of texts */
    _Atomic uint32_t counts[ML_NAMES_KINDS];
    _Atomic uint32_t index[INDEX_PLACES]; /* by what a name is; open addressing */
    _Atomic uint32_t types[ML_TYPES_MAX]; /* by id */
    _Alignas(ML_NAMES_PAGE_BYTES) uint8_t texts[TEXTS_BYTES];
};
_Static_assert(sizeof(struct names) % ML_NAMES_PAGE_BYTES == 0, "whole pages are mapped");

static _Atomic(struct names *) all;
_Atomic(struct ml_name *) ml_name_heaps[ML_HEAPS_MAX];

static struct names *names_now(void) {
    struct names *names = atomic_load_explicit(&all, memory_order_acquire);
    if (names != NULL || (ml_process.filters & ML_FILTERS_NO_HOST) != 0) {
        return names; /* behind such a filter mmap may end the program */
    }
    const long made = ml_sys6(
        SYS_mmap,
        0,
        sizeof(*names),
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1,
        0
    );
    if (made < 0 && made >= -4095) {
        return NULL;
    }
    struct names *ours =
        (struct names *)made; // NOLINT(performance-no-int-to-ptr): the kernel answers with a number
    if (atomic_compare_exchange_strong(&all, &names, ours)) {
        ml_process.memory.names.start = (uint8_t *)ours;
        atomic_store(&ml_process.memory.names.mapped_bytes, sizeof(*ours));
        ml_arena_tell_own();
        return ours;
    }
    (void)ml_sys3(SYS_munmap, made, sizeof(*ours), 0); /* another thread was faster */
    return names;
}

static struct ml_name *at(struct names *names, uint32_t place) {
    return place == 0 ? NULL
                      : (struct ml_name *)(void *)(names->texts + (size_t)(place - 1) * ALIGN);
}

static uint32_t hash_of(enum ml_names_kind kind, const char *text, size_t text_bytes) {
    uint64_t hash = kind;
    for (size_t i = 0; i < text_bytes; i++) {
        hash = (hash ^ (uint8_t)text[i]) * UINT64_C(0x100000001b3);
    }
    return (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - INDEX_SHIFT));
}

static bool
is_same(const struct ml_name *name, enum ml_names_kind kind, const char *text, size_t text_bytes) {
    return name->kind == kind && name->text_bytes == text_bytes &&
           memcmp(name->text, text, text_bytes) == 0;
}

/* Room for so many bytes, where they are aligned; where it lies in `texts`, + 1. 0: there is
 * none. */
static uint32_t take(struct names *names, uint32_t bytes, uint32_t align) {
    uint32_t used = atomic_load(&names->used_bytes);
    uint32_t from = 0;
    do {
        from = (used + align - 1) / align * align;
        if (from + bytes > TEXTS_BYTES) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&names->used_bytes, &used, from + bytes));
    return from + 1;
}

void *ml_names_page(void) {
    struct names *names = names_now();
    const uint32_t page = names != NULL ? take(names, ML_NAMES_PAGE_BYTES, ML_NAMES_PAGE_BYTES) : 0;
    return page != 0 ? names->texts + page - 1 : NULL;
}

/* A new entry, which nobody finds yet. 0: there is no room. An entry that is not needed after all,
 * since another thread has made the same, costs its id. */
static uint32_t make(
    struct names *names,
    enum ml_names_kind kind,
    const char *text,
    size_t text_bytes,
    uint64_t interval_bytes
) {
    static const uint32_t limits[ML_NAMES_KINDS] = {
        [ML_NAMES_HEAPS] = ML_HEAPS_MAX,
        [ML_NAMES_TYPES] = ML_TYPES_MAX,
        [ML_NAMES_TEXTS] = ML_TEXTS_MAX};
    const uint32_t limit = limits[kind];
    const uint32_t bytes =
        (uint32_t)(sizeof(struct ml_name) + text_bytes + ALIGN - 1) / ALIGN * ALIGN;
    const uint32_t taken = take(names, bytes, ALIGN);
    if (taken == 0) {
        return 0;
    }
    uint32_t count = atomic_load(&names->counts[kind]);
    do {
        if (count + 1 >= limit) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&names->counts[kind], &count, count + 1));
    const uint32_t place = (taken - 1) / ALIGN + 1;
    struct ml_name *name = at(names, place);
    name->interval_bytes = interval_bytes;
    name->id = count + 1;
    name->kind = (uint16_t)kind;
    name->text_bytes = (uint16_t)text_bytes;
    memcpy(name->text, text, text_bytes);
    return place;
}

/* A heap or a type is found by its id from here on; a text is not. */
static void note_id(struct names *names, uint32_t place) {
    struct ml_name *name = at(names, place);
    if (name->kind == ML_NAMES_HEAPS) {
        atomic_store_explicit(&ml_name_heaps[name->id], name, memory_order_release);
    } else if (name->kind == ML_NAMES_TYPES) {
        atomic_store_explicit(&names->types[name->id], place, memory_order_release);
    }
}

struct ml_name *ml_name_get(enum ml_names_kind kind, const char *text, uint64_t interval_bytes) {
    struct names *names = names_now();
    if (names == NULL || text == NULL) {
        return NULL;
    }
    const size_t length = strlen(text);
    const size_t text_bytes = length < ML_NAME_MAX_BYTES ? length : ML_NAME_MAX_BYTES;
    uint32_t made = 0;
    for (uint32_t i = hash_of(kind, text, text_bytes);; i++) {
        _Atomic uint32_t *const place = &names->index[i % INDEX_PLACES];
        uint32_t there = atomic_load_explicit(place, memory_order_acquire);
        if (there == 0) {
            made = made != 0 ? made : make(names, kind, text, text_bytes, interval_bytes);
            if (made == 0) {
                return NULL;
            }
            note_id(names, made);
            if (atomic_compare_exchange_strong(place, &there, made)) {
                return at(names, made);
            }
        }
        if (is_same(at(names, there), kind, text, text_bytes)) {
            return at(names, there);
        }
    }
}

uint32_t ml_name_id(enum ml_names_kind kind, const char *text, uint64_t interval_bytes) {
    const struct ml_name *name = ml_name_get(kind, text, interval_bytes);
    return name != NULL ? name->id : 0;
}

struct ml_name *ml_name_type(uint32_t id) {
    struct names *names = atomic_load_explicit(&all, memory_order_acquire);
    return names != NULL && id < ML_TYPES_MAX
               ? at(names, atomic_load_explicit(&names->types[id], memory_order_acquire))
               : NULL;
}

__attribute__((noinline)) void ml_name_define_slow(struct ml_lane *lane, struct ml_name *name) {
    struct ml_event event = {.kind = name->kind == ML_NAMES_HEAPS ? ML_EVENT_HEAP : ML_EVENT_TYPE};
    event.name.id = name->id;
    event.name.string_id = ml_record_string(lane, (const uint8_t *)name->text, name->text_bytes);
    if (event.name.string_id != 0) {
        ml_lane_record(lane, &event);
    }
    atomic_store_explicit(&name->defined, ml_name_stream(lane), memory_order_release);
}

/* A stream and what the text is called there, in one word. */
enum { STREAM_SHIFT = 16, PART_BITS = 24, PART_MASK = (1 << PART_BITS) - 1 };

uint32_t ml_name_string(struct ml_lane *lane, struct ml_name *name) {
    _Atomic uint64_t *word = &name->string;
    const uint64_t stream = (uint64_t)(ml_process.generation & PART_MASK) << PART_BITS |
                            (uint64_t)(lane->profile & PART_MASK);
    uint64_t seen = atomic_load_explicit(word, memory_order_acquire);
    if (ml_unlikely(seen >> STREAM_SHIFT != stream || (uint16_t)seen == 0)) {
        const uint32_t id = ml_record_string(lane, (const uint8_t *)name->text, name->text_bytes);
        seen = stream << STREAM_SHIFT | id;
        atomic_store_explicit(word, seen, memory_order_release);
    }
    return (uint16_t)seen;
}

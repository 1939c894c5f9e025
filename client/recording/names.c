#include "client/recording/names.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "client/recording/record.h"
#include "client/state/sys.h"

enum {
    INDEX_SHIFT = 17, /* twice as many places as there can be names */
    INDEX_PLACES = 1 << INDEX_SHIFT,
    TEXTS_BYTES = 8 << 20,
    ALIGN = 8
};
_Static_assert(INDEX_PLACES >= ML_TYPES_MAX + ML_HEAPS_MAX, "a search meets an empty place");

/* Mapped at the first registration, and copied by forks. What is not used takes no memory. Entries
 * are named by where they lie in `texts`, less 1 / ALIGN; 0: none. */
struct names {
    _Atomic uint32_t used_bytes; /* of texts */
    _Atomic uint32_t counts[ML_NAMES_KINDS];
    _Atomic uint32_t index[INDEX_PLACES]; /* by what a name is; open addressing */
    _Atomic uint32_t heaps[ML_HEAPS_MAX]; /* by id */
    _Atomic uint32_t types[ML_TYPES_MAX];
    _Alignas(ALIGN) uint8_t texts[TEXTS_BYTES];
};

static _Atomic(struct names *) all;

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

/* A new entry, which nobody finds yet. 0: there is no room. An entry that is not needed after all,
 * since another thread has made the same, costs its id. */
static uint32_t make(
    struct names *names,
    enum ml_names_kind kind,
    const char *text,
    size_t text_bytes,
    uint64_t interval_bytes
) {
    const uint32_t limit = kind == ML_NAMES_HEAPS ? ML_HEAPS_MAX : ML_TYPES_MAX;
    const uint32_t bytes =
        (uint32_t)(sizeof(struct ml_name) + text_bytes + ALIGN - 1) / ALIGN * ALIGN;
    uint32_t used = atomic_load(&names->used_bytes);
    do {
        if (used + bytes > TEXTS_BYTES) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&names->used_bytes, &used, used + bytes));
    uint32_t count = atomic_load(&names->counts[kind]);
    do {
        if (count + 1 >= limit) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak(&names->counts[kind], &count, count + 1));
    struct ml_name *name = at(names, used / ALIGN + 1);
    name->interval_bytes = interval_bytes;
    name->id = count + 1;
    name->kind = (uint16_t)kind;
    name->text_bytes = (uint16_t)text_bytes;
    memcpy(name->text, text, text_bytes);
    return used / ALIGN + 1;
}

uint32_t ml_name_id(enum ml_names_kind kind, const char *text, uint64_t interval_bytes) {
    struct names *names = names_now();
    if (names == NULL || text == NULL) {
        return 0;
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
                return 0;
            }
            const uint32_t id = at(names, made)->id;
            _Atomic uint32_t *by_id = kind == ML_NAMES_HEAPS ? names->heaps : names->types;
            atomic_store_explicit(&by_id[id], made, memory_order_release);
            if (atomic_compare_exchange_strong(place, &there, made)) {
                return id;
            }
        }
        if (is_same(at(names, there), kind, text, text_bytes)) {
            return at(names, there)->id;
        }
    }
}

struct ml_name *ml_name_of(enum ml_names_kind kind, uint32_t id) {
    struct names *names = atomic_load_explicit(&all, memory_order_acquire);
    if (names == NULL || id >= (kind == ML_NAMES_HEAPS ? ML_HEAPS_MAX : ML_TYPES_MAX)) {
        return NULL;
    }
    const _Atomic uint32_t *by_id = kind == ML_NAMES_HEAPS ? names->heaps : names->types;
    return at(names, atomic_load_explicit(&by_id[id], memory_order_acquire));
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

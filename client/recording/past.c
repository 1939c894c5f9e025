#include "client/recording/past.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

#include "client/symbols/loaded.h"
#include "client/unwind/bound.h"
#include "client/unwind/foreign.h"
#include "client/unwind/objects.h"

enum {
    NAMESPACES_MAX = 16,     /* DL_NNS of glibc */
    DYNAMIC_MAX = 256,       /* entries of a program's; linkers write some 30 */
    EACH_UNTIL = 8,          /* another thread may be within a dlopen */
    GROWN_EACH = 64,         /* steps between two probes of the list's end: each is a system call */
    WAIT_MAX_NS = 1000000000 /* for a check, which takes a millisecond at most, by a thread that
                                waits for a processor */
};

const struct link_map *ml_past_start;

/* What tells an object from another one that is later loaded at the same place. */
struct place {
    const struct link_map *map;
    uintptr_t base;
    const void *dynamic;
};

/* One thread checks at a time, by `looking`. A thread that finds it taken goes on without a check.
 */
static struct {
    _Atomic uint32_t looking;
    _Atomic uint32_t is_stuck;      /* a check that never ends */
    _Atomic uint32_t closing;       /* dlcloses that are going on: no other thread checks */
    _Atomic uint32_t told;          /* ML_PAST_*: what was found, as in staging */
    const struct link_map *program; /* the first object of all */
    struct place settled; /* up to here all is settled; map NULL: check from the start on */
    struct place newest;  /* the last object of the list at the last check */
    struct place first;   /* the object in `file` */
    char file[ML_PAST_FILE_BYTES];
    uint64_t steps, next_step; /* hooks since something was loaded, and at which of them to check */
    bool is_open;              /* an object is not bound yet, or was not checked */
    struct ml_object loader;   /* end 0: not known yet */
    bool has_family;
    struct ml_bound_family family;
    uint32_t entries; /* as in staging */
    char entries_refused[ML_ENTRIES_REFUSED_BYTES];
} past;

/* Runs before memlog's other constructors, so the list is that of the start. */
__attribute__((constructor(101))) static void begin(void) {
    const struct link_map *map = ml_loaded_first();
    past.program = map;
    while (map != NULL && map->l_next != NULL) {
        map = map->l_next;
    }
    ml_past_start = map;
}

static bool is_on(void) {
    return ml_past_start != NULL && ml_process.connected &&
           (ml_process_state() == ML_GATE_RECORDING || ml_process_state() == ML_GATE_DORMANT) &&
           (ml_process.filters & ML_FILTERS_CLOSED) == 0;
}

/* ---- what is reported */

static void tell_entries(void) {
    struct ml_staging_header *header = ml_process_staging_header();
    memcpy(header->entries_refused, past.entries_refused, sizeof(past.entries_refused));
    __atomic_store_n(&header->entries, past.entries, __ATOMIC_RELEASE);
}

void ml_past_entries(uint32_t functions, const char *refused) {
    past.entries = functions;
    memcpy(past.entries_refused, refused, strlen(refused) + 1);
    tell_entries();
}

/* Not of its forked children, each of which is recorded from its start. */
void ml_past_began_late(void) {
    (void)__atomic_fetch_or(&ml_process_staging_header()->past, ML_PAST_LATE, __ATOMIC_RELEASE);
}

void ml_past_tell_again(void) {
    struct ml_staging_header *header = ml_process_staging_header();
    const uint32_t told = atomic_load_explicit(&past.told, memory_order_acquire);
    atomic_store_explicit(&past.looking, 0, memory_order_relaxed); /* of a thread of the parent's */
    atomic_store_explicit(&past.closing, 0, memory_order_relaxed);
    atomic_store_explicit(&past.is_stuck, 0, memory_order_relaxed);
    memcpy(header->past_file, past.file, sizeof(past.file));
    (void)__atomic_fetch_or(&header->past, told, __ATOMIC_RELEASE);
    tell_entries();
}

static void tell(uint32_t found) {
    if ((found & ~atomic_load_explicit(&past.told, memory_order_relaxed)) != 0) {
        struct ml_staging_header *header = ml_process_staging_header();
        (void)atomic_fetch_or_explicit(&past.told, found, memory_order_release);
        (void)__atomic_fetch_or(&header->past, found, __ATOMIC_RELEASE);
    }
}

void ml_past_inlined(void) {
    tell(ML_PAST_INLINED);
}

static struct place place_of(const struct link_map *map) {
    return (struct place){.map = map, .base = map->l_addr, .dynamic = map->l_ld};
}

static bool is_same(struct place place, const struct link_map *map) {
    return place.map == map && place.base == map->l_addr && place.dynamic == map->l_ld;
}

/* The file's name without its folders, as far as it can be read. */
static const char *name_of(const struct link_map *map, size_t *out_length) {
    struct ml_foreign foreign = {0};
    size_t length = 0;
    if (map->l_name == NULL || !ml_foreign_string(&foreign, map->l_name, &length)) {
        *out_length = 0;
        return "";
    }
    const char *slash = strrchr(map->l_name, '/');
    const char *name = slash != NULL ? slash + 1 : map->l_name;
    *out_length = length - (size_t)(name - map->l_name);
    return name;
}

static void tell_of(const struct link_map *map) {
    if ((atomic_load_explicit(&past.told, memory_order_relaxed) & ML_PAST_CALLS) != 0) {
        tell(is_same(past.first, map) ? 0 : ML_PAST_SEVERAL);
        return;
    }
    size_t length = 0;
    const char *name = name_of(map, &length);
    past.first = place_of(map);
    memcpy(past.file, name, length < sizeof(past.file) ? length : sizeof(past.file) - 1);
    memcpy(ml_process_staging_header()->past_file, past.file, sizeof(past.file));
    tell(ML_PAST_CALLS);
}

/* ---- one object */

/* A converter of iconv's. libc opens and closes these unseen by memlog, so one may be unmapped
 * during a check. They are bound as libc is. */
static bool is_of_libc(const struct link_map *map) {
    struct ml_foreign foreign = {0};
    return map->l_name != NULL && ml_foreign_string(&foreign, map->l_name, NULL) &&
           strstr(map->l_name, "/gconv/") != NULL;
}

/* An object that the loader does not find is still being loaded, and that may fail. */
static enum ml_bound look_at(const struct link_map *map) {
    struct ml_object object;
    if (is_of_libc(map)) {
        return ML_BOUND_SETTLED;
    }
    if (!past.has_family) {
        ml_bound_family_find(&past.family, past.program, ml_past_start);
        past.has_family = true;
    }
    if (!ml_object_find((uintptr_t)map->l_ld, &object)) {
        return ML_BOUND_OPEN;
    }
    return ml_bound_look(&past.family, map->l_addr, map->l_ld, object.start, object.end);
}

/* ---- a namespace of its own */

/* glibc's since 2.35, where r_version is 2. */
struct debug_extended {
    struct r_debug base;
    struct debug_extended *next;
};

/* Whether a file of that name is glibc's libc: "libc.so.6", before 2.34 also "libc-2.31.so". */
static bool is_libc(const struct link_map *map) {
    size_t length = 0;
    const char *name = name_of(map, &length);
    return length > 8 && (memcmp(name, "libc.so.", 8) == 0 || memcmp(name, "libc-2.", 7) == 0);
}

/* `map` is the first of a list. */
static bool has_libc(const struct link_map *map) {
    struct ml_foreign foreign = {0};
    for (uint32_t i = 0; i < ML_OBJECTS_MAX && map != NULL; i++) {
        if (!ml_foreign_readable(&foreign, map, sizeof(*map))) {
            return false;
        }
        if (is_libc(map)) {
            return true;
        }
        map = map->l_next;
    }
    return false;
}

/* The loader's own. A program that refers to _r_debug may have a copy, which lacks the newer
 * fields.
 */
static const struct debug_extended *debug_of_loader(void) {
    struct ml_foreign foreign = {0};
    const struct link_map *program = past.program;
    if (program == NULL || !ml_foreign_readable(&foreign, program, sizeof(*program))) {
        return NULL;
    }
    const ElfW(Dyn) *entry = program->l_ld;
    for (uint32_t i = 0; i < DYNAMIC_MAX; i++, entry++) {
        if (!ml_foreign_readable(&foreign, entry, sizeof(*entry)) || entry->d_tag == DT_NULL) {
            return NULL;
        }
        if (entry->d_tag == DT_DEBUG) {
            const struct debug_extended *debug = (const void *)entry->d_un.d_ptr;
            return ml_foreign_readable(&foreign, debug, sizeof(*debug)) ? debug : NULL;
        }
    }
    return NULL;
}

static void look_at_namespaces(void) {
    struct ml_foreign foreign = {0};
    const struct debug_extended *debug = ml_object_by_loader() ? debug_of_loader() : NULL;
    if (debug == NULL || debug->base.r_version < 2) {
        return; /* an older loader shows the first alone */
    }
    for (uint32_t i = 0; i < NAMESPACES_MAX; i++) {
        debug = debug->next;
        if (debug == NULL || !ml_foreign_readable(&foreign, debug, sizeof(*debug))) {
            return;
        }
        if (debug->base.r_map != NULL && has_libc(debug->base.r_map)) {
            tell(ML_PAST_SECOND_LIBC);
            return;
        }
    }
}

/* A handle of dlopen or dlmopen is the object's link, as dlinfo's RTLD_DI_LINKMAP is. */
static void look_at_handle(const void *handle) {
    struct ml_foreign foreign = {0};
    const struct link_map *map = handle;
    if (map == NULL || !ml_foreign_readable(&foreign, map, sizeof(*map))) {
        return;
    }
    const struct link_map *first = map;
    for (uint32_t i = 0; i < ML_OBJECTS_MAX && first->l_prev != NULL; i++) {
        const struct link_map *before = first->l_prev;
        if (!ml_foreign_readable(&foreign, before, sizeof(*before)) || before->l_next != first) {
            return; /* no handle of the loader's */
        }
        first = before;
    }
    if (first->l_prev == NULL && first != past.program && has_libc(first)) {
        tell(ML_PAST_SECOND_LIBC);
    } else if (first == past.program && look_at(map) == ML_BOUND_PAST) {
        tell_of(map);
    }
}

/* ---- all that came since the start */

/* Whether the object is in the list, and readable links lead from the start to it. */
static bool is_listed(struct place place) {
    struct ml_foreign foreign = {0};
    const struct link_map *map = ml_past_start;
    for (uint32_t i = 0; i < ML_OBJECTS_MAX && map != NULL; i++) {
        if (!ml_foreign_readable(&foreign, map, sizeof(*map))) {
            return false;
        }
        if (is_same(place, map)) {
            return true;
        }
        map = map->l_next;
    }
    return false;
}

/* Another thread may be loading: a link is followed only if it is one in both directions. */
static void look_at_all(void) {
    struct ml_foreign foreign = {0};
    if (past.settled.map == NULL || !is_listed(past.settled)) {
        past.settled = place_of(ml_past_start);
    }
    const struct link_map *last = past.settled.map;
    const struct link_map *map = last->l_next;
    past.is_open = false;
    for (uint32_t i = 0; i < ML_OBJECTS_MAX && map != NULL; i++) {
        if (!ml_foreign_readable(&foreign, map, sizeof(*map)) || map->l_prev != last) {
            past.is_open = true;
            break;
        }
        const enum ml_bound bound = look_at(map);
        if (bound == ML_BOUND_PAST) {
            tell_of(map);
        }
        past.is_open = past.is_open || bound == ML_BOUND_OPEN;
        if (!past.is_open) {
            past.settled = place_of(map);
        }
        last = map;
        map = map->l_next;
    }
    past.newest = place_of(last);
    look_at_namespaces();
}

/* Whether an object was loaded since the last check. */
static bool has_grown(void) {
    struct ml_foreign foreign = {0};
    return past.newest.map == NULL ||
           !ml_foreign_readable(&foreign, past.newest.map, sizeof(*past.newest.map)) ||
           !is_same(past.newest, past.newest.map) || past.newest.map->l_next != NULL;
}

static bool begin_look(void) {
    uint32_t nobody = 0;
    if (!atomic_compare_exchange_strong(&past.looking, &nobody, 1)) {
        return false;
    }
    if (atomic_load(&past.closing) == 0 && atomic_load(&past.is_stuck) == 0) {
        return true;
    }
    atomic_store(&past.looking, 0);
    return false;
}

static void end_look(void) {
    atomic_store_explicit(&past.looking, 0, memory_order_release);
}

/* Whether the loader allocates: it is loading an object, which it binds later. */
static bool is_loader(uintptr_t pc) {
    if (past.loader.end == 0 && !ml_object_find(getauxval(AT_BASE), &past.loader)) {
        past.loader.end = 1; /* the program was started as an argument of the loader */
    }
    return pc - past.loader.start < past.loader.end - past.loader.start;
}

static void begin_steps(void) {
    past.steps = 0;
    past.next_step = 0;
    past.is_open = true;
}

/* With an older loader an object that is still being loaded looks like any other: it is checked at
 * dlclose, at an exec and at the end alone. */
void ml_past_look_again(uintptr_t pc) {
    if (!is_on() || !ml_object_by_loader() || !begin_look()) {
        return;
    }
    if (is_loader(pc)) {
        begin_steps();
    } else {
        if (!past.is_open && past.steps % GROWN_EACH == 0 && has_grown()) {
            begin_steps();
        }
        if (past.is_open && past.steps >= past.next_step) {
            past.next_step = past.steps < EACH_UNTIL ? past.steps + 1 : past.steps * 2;
            look_at_all();
        }
        past.steps++;
    }
    end_look();
}

void ml_past_look_last(void) {
    if (is_on() && begin_look()) {
        look_at_all();
        end_look();
    }
}

/* False: the check does not end. Its thread has jumped out of it from a signal handler, or is this
 * one. Where a filter forbids futex there is no other thread. */
static bool wait_for_look(void) {
    const struct timespec moment = {.tv_nsec = 1000000};
    uint64_t deadline_ns = 0;
    uint32_t nobody = 0;
    while (!atomic_compare_exchange_strong(&past.looking, &nobody, 1)) {
        const uint64_t now_ns = ml_sys_monotonic_ns();
        deadline_ns = deadline_ns == 0 ? now_ns + WAIT_MAX_NS : deadline_ns;
        if (now_ns >= deadline_ns) {
            return false;
        }
        if ((ml_process.filters & ML_FILTERS_NO_RESTART) != 0) {
            ml_sys_linger();
        } else {
            (void)ml_sys4(SYS_futex, (long)&past.looking, FUTEX_WAIT_PRIVATE, 1, (long)&moment);
        }
        nobody = 0;
    }
    return true;
}

/* A thread that checks reads what this one is about to unmap, so this one waits. What other threads
 * close meanwhile must not be checked. A forked child without a stream has one thread, and no check
 * of its parent's goes on in it. */
uint32_t ml_past_closing(const void *handle) {
    if (!is_on() || atomic_load(&past.is_stuck) != 0) {
        return 0;
    }
    const bool is_alone = atomic_fetch_add(&past.closing, 1) == 0;
    if (wait_for_look()) {
        look_at_handle(handle);
        if (is_alone) {
            look_at_all();
        }
        end_look();
    } else {
        atomic_store(&past.is_stuck, 1); /* nothing waits from now on, so nothing is checked */
    }
    return ml_process.generation + 1;
}

void ml_past_closed(uint32_t closing) {
    if (past.settled.map != NULL && !is_listed(past.settled)) {
        past.settled.map = NULL;
    }
    past.newest.map = NULL;
    if (closing == ml_process.generation + 1) { /* else a child, which counts from 0 again */
        (void)atomic_fetch_sub(&past.closing, 1);
    }
}

#include "client/unwind/objects.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#include "client/symbols/loaded.h"
#include "client/symbols/symbols.h"
#include "client/unwind/arch.h"
#include "client/unwind/foreign.h"

/* Found once, in the constructor. */
static int (*by_loader)(void *, struct dl_find_object *);

/* ---- the list of an older loader */

enum { ENTRY_EMPTY = 0, ENTRY_READY, ENTRY_GONE };

/* Written by one thread, then published, then only read, but for `state`. */
struct entry {
    _Atomic uint32_t state;
    struct ml_object object;
    uintptr_t bias;
    const void *dynamic;
};

/* Takes no memory where it is not used. Two threads may enter the same object: harmless. */
static struct entry entries[ML_OBJECTS_MAX];
static _Atomic uint32_t entries_count;

/* Where the list ended when it was read. An object that is unloaded may leave its place to another
 * one. */
static _Atomic(const struct link_map *) last_map;
static _Atomic uintptr_t last_bias;

static bool readable(const void *at, size_t bytes) {
    struct ml_foreign foreign = {0};
    return ml_foreign_readable(&foreign, at, bytes);
}

/* The program headers: of the program as the kernel tells them, of others behind their first byte.
 * 0: there are none to be found. */
static uint32_t
headers_of(const struct link_map *map, bool is_program, const ElfW(Phdr) * *out_headers) {
    if (is_program) {
        *out_headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
        return *out_headers != NULL ? (uint32_t)getauxval(AT_PHNUM) : 0;
    }
    const ElfW(Ehdr) *ehdr = (const ElfW(Ehdr) *)map->l_addr;
    if (map->l_addr % ML_ARCH_PAGE_BYTES != 0 || !readable(ehdr, ML_ARCH_PAGE_BYTES) ||
        memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0 || ehdr->e_phentsize != sizeof(ElfW(Phdr)) ||
        ehdr->e_phoff > ML_ARCH_PAGE_BYTES ||
        ehdr->e_phnum > (ML_ARCH_PAGE_BYTES - ehdr->e_phoff) / sizeof(ElfW(Phdr))) {
        return 0;
    }
    *out_headers = (const ElfW(Phdr) *)(map->l_addr + ehdr->e_phoff);
    return ehdr->e_phnum;
}

/* Its address range and unwind table. False: it has none. */
static bool describe(const struct link_map *map, bool is_program, struct ml_object *out_object) {
    const ElfW(Phdr) *headers = NULL;
    const uint32_t count = headers_of(map, is_program, &headers);
    struct ml_object object = {.start = UINTPTR_MAX, .map = map};
    for (uint32_t i = 0; i < count; i++) {
        const uintptr_t at = map->l_addr + headers[i].p_vaddr;
        if (headers[i].p_type == PT_LOAD) {
            const uintptr_t start = at & ~(uintptr_t)(ML_ARCH_PAGE_BYTES - 1);
            object.start = start < object.start ? start : object.start;
            object.end =
                at + headers[i].p_memsz > object.end ? at + headers[i].p_memsz : object.end;
        } else if (headers[i].p_type == PT_GNU_EH_FRAME) {
            object.eh_frame_hdr = at;
        }
    }
    *out_object = object;
    return object.end > object.start;
}

/* Whether the entry is still valid: not every unloading is seen. The loader may have freed the
 * memory read here, so its contents are untrusted. */
__attribute__((no_sanitize("address", "thread"))) static bool is_there(struct entry *entry) {
    const struct link_map *map = entry->object.map;
    bool there =
        readable(map, sizeof(*map)) && map->l_addr == entry->bias && map->l_ld == entry->dynamic;
    if (there && map->l_prev != NULL) { /* the program itself stays */
        const void *first = (const void *)entry->object.start;
        there = readable(first, SELFMAG) && memcmp(first, ELFMAG, SELFMAG) == 0 &&
                readable(entry->dynamic, sizeof(ElfW(Dyn)));
    }
    if (!there) {
        atomic_store_explicit(&entry->state, ENTRY_GONE, memory_order_release);
        atomic_store_explicit(&last_map, NULL, memory_order_release); /* read it again */
    }
    return there;
}

static uint32_t count_now(void) {
    const uint32_t count = atomic_load_explicit(&entries_count, memory_order_acquire);
    return count < ML_OBJECTS_MAX ? count : ML_OBJECTS_MAX;
}

static bool find_entry(uintptr_t pc, struct ml_object *out_object) {
    for (uint32_t i = count_now(); i-- > 0;) {
        struct entry *entry = &entries[i];
        if (atomic_load_explicit(&entry->state, memory_order_acquire) == ENTRY_READY &&
            pc - entry->object.start < entry->object.end - entry->object.start && is_there(entry)) {
            *out_object = entry->object;
            return true;
        }
    }
    return false;
}

static bool is_entered(const struct link_map *map) {
    for (uint32_t i = 0; i < count_now(); i++) {
        if (atomic_load_explicit(&entries[i].state, memory_order_acquire) == ENTRY_READY &&
            entries[i].object.map == map && entries[i].bias == map->l_addr &&
            entries[i].dynamic == map->l_ld) {
            return true;
        }
    }
    return false;
}

static void enter(const struct link_map *map) {
    struct ml_object object;
    if (is_entered(map) || !describe(map, map->l_prev == NULL, &object)) {
        return;
    }
    const uint32_t index = atomic_fetch_add(&entries_count, 1);
    if (index >= ML_OBJECTS_MAX) {
        (void)atomic_fetch_sub(&entries_count, 1);
        return;
    }
    struct entry *entry = &entries[index];
    entry->object = object;
    entry->bias = map->l_addr;
    entry->dynamic = map->l_ld;
    atomic_store_explicit(&entry->state, ENTRY_READY, memory_order_release);
}

/* Another thread may change the list meanwhile: each link is probed before it is read, and followed
 * only if it is linked in both directions. */
static void read_list(void) {
    const struct link_map *last = NULL;
    const struct link_map *map = ml_loaded_first();
    for (uint32_t i = 0; i < ML_OBJECTS_MAX && map != NULL; i++) {
        if (!readable(map, sizeof(*map)) || map->l_prev != last) {
            return;
        }
        enter(map);
        last = map;
        map = map->l_next;
    }
    if (last != NULL) {
        atomic_store_explicit(&last_bias, last->l_addr, memory_order_relaxed);
        atomic_store_explicit(&last_map, last, memory_order_release);
    }
}

/* What is loaded later comes at the list's end. */
static bool has_grown(void) {
    const struct link_map *last = atomic_load_explicit(&last_map, memory_order_acquire);
    return last == NULL || !readable(last, sizeof(*last)) || last->l_next != NULL ||
           last->l_addr != atomic_load_explicit(&last_bias, memory_order_relaxed);
}

static bool find_in_list(uintptr_t pc, struct ml_object *out_object) {
    if (find_entry(pc, out_object)) {
        return true;
    }
    if (ml_loaded() == NULL || ml_loaded()->r_state == RT_DELETE || !has_grown()) {
        return false;
    }
    read_list();
    return find_entry(pc, out_object);
}

/* ---- */

void ml_object_begin(const void *find_object) {
    memcpy(&by_loader, &find_object, sizeof(by_loader));
    if (by_loader == NULL && ml_loaded() != NULL) {
        read_list();
    }
}

#if !ML_ATTACHED
/* Before memlog's other constructors. */
__attribute__((constructor(101))) static void begin(void) {
    ml_object_begin(ml_symbol_next("_dl_find_object").address);
}
#endif

/* The client itself, where the loader does not know it. */
static struct ml_object own;

void ml_object_is_own(const struct link_map *map) {
    if (!describe(map, false, &own)) {
        own = (struct ml_object){0};
    }
}

bool ml_object_by_loader(void) {
    return by_loader != NULL;
}

uint32_t ml_object_headers(const struct link_map *map, const ElfW(Phdr) * *out_headers) {
    return headers_of(map, map->l_prev == NULL, out_headers);
}

void ml_object_use_list(void) {
    by_loader = NULL;
}

bool ml_object_find(uintptr_t pc, struct ml_object *out_object) {
    struct dl_find_object found;
    if (ML_ATTACHED && pc - own.start < own.end - own.start) {
        *out_object = own;
        return true;
    }
    if (by_loader == NULL) {
        return find_in_list(pc, out_object);
    }
    if (by_loader((void *)pc, &found) != 0) {
        return false;
    }
    *out_object = (struct ml_object){
        .start = (uintptr_t)found.dlfo_map_start,
        .end = (uintptr_t)found.dlfo_map_end,
        .eh_frame_hdr = (uintptr_t)found.dlfo_eh_frame,
        .map = found.dlfo_link_map,
    };
    return true;
}

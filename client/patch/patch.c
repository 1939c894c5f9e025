#include "client/patch/patch.h"

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/entry/families.h"
#include "client/patch/entry_hooks.h"
#include "client/patch/inlined.h"
#include "client/patch/near.h"
#include "client/patch/object_file.h"
#include "client/startup/program_file.h"
#include "client/state/sys.h"
#include "client/symbols/loaded.h"
#include "client/symbols/symbols.h"

enum {
    PATCHED_MAX = 256,
    LIBRARIES_MAX = 4, /* that are looked at */
    PROBE_BYTES = 16
};
_Static_assert((int)ML_PATCHED_STUB_BYTES <= (int)ML_FAMILIES_TRAMPOLINE_AT, "it fits");

/* A library with one of these, which an object of the program calls, is looked at. Rows, not
 * pointers: a pointer is a relocation in every process. */
static const char probes[][PROBE_BYTES] = {
    "mallocx",
    "je_malloc",
    "_rjem_malloc",
    "tc_malloc",
    "tc_new",
    "mi_malloc",
    "mi_heap_malloc",
};
enum { PROBES = sizeof(probes) / sizeof(probes[0]) };

/* The loader's list of what is loaded; client/symbols/symbols.c says why it is weak. */
#pragma weak _r_debug

/* All of the search. Static: a constructor has little of the stack, and in a program without an
 * allocator of its own hardly a page of it is touched. */
static struct {
    struct ml_object_file object;
    struct ml_families families;
    uint8_t code[ML_FAMILIES_FUNCTIONS_MAX * ML_FAMILIES_ROOM_BYTES];
    struct ml_patch_report *report;
} search;

/* Stay: patched entries lead here. */
static struct {
    struct ml_patched list[PATCHED_MAX];
    uintptr_t entries[PATCHED_MAX];
    uint32_t count;
} patched;

/* The first reason is told. */
static void refuse(const char *name, const char *reason) {
    char *text = search.report->refused;
    size_t used = 0;
    if (text[0] != 0) {
        return;
    }
    const char *const parts[] = {name, ": ", reason};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        for (const char *c = parts[i]; *c != 0 && used + 1 < ML_ENTRIES_REFUSED_BYTES; c++) {
            text[used++] = *c;
        }
    }
    text[used] = 0;
}

/* ---- how */

/* The instruction is none on processors, and in processes, without one. */
static bool has_shadow_stack(void) {
    uint64_t pointer = 0;
    __asm__ volatile("rdsspq %0" : "+r"(pointer));
    return pointer != 0;
}

/* Functions to be hooked. 0 as well where there is no room for them. */
static uint32_t plan_all(struct ml_families *families, const uint8_t *room) {
    families->may_push_calls = !has_shadow_stack();
    families->may_keep = true;
    const uint32_t count = ml_families_plan(families, (uintptr_t)room);
    for (uint32_t i = 0; i < families->count; i++) {
        const struct ml_families_function *one = &families->functions[i];
        if (ml_families_of(families, one)->refused == one) {
            refuse(one->name, ml_entry_refusal_text(one->refusal));
        }
    }
    if (count > PATCHED_MAX - patched.count) {
        refuse(families->functions[0].name, "memlog has no room for more such functions");
        return 0;
    }
    return count;
}

static void write_code(const struct ml_families_function *one, size_t at, const uint8_t *room) {
    struct ml_patched *next = &patched.list[patched.count];
    *next = (struct ml_patched){.next = room + at + ML_FAMILIES_TRAMPOLINE_AT, .call = one->call};
    ml_patched_stub(next, one->keeps, search.code + at);
    memcpy(
        search.code + at + ML_FAMILIES_TRAMPOLINE_AT,
        one->plan.trampoline,
        one->plan.trampoline_bytes
    );
    patched.entries[patched.count++] = (uintptr_t)one->address;
}

/* ---- the entries */

static bool write_entry(int fd, const struct ml_entry_plan *entry, bool jump) {
    const uint8_t *bytes = jump ? entry->jump : entry->old;
    return ml_program_code_write(fd, (uintptr_t)entry->at, bytes, ML_ENTRY_JUMP_BYTES);
}

/* All of them, or none. */
static bool write_entries(struct ml_families *families) {
    const int fd = ml_program_code_open();
    uint32_t done = 0;
    bool whole = fd >= 0;
    for (; whole && done < families->count; done++) {
        const struct ml_families_function *one = &families->functions[done];
        whole = !ml_families_takes(families, one) || write_entry(fd, &one->plan, true);
    }
    for (uint32_t i = 0; !whole && fd >= 0 && i < done; i++) {
        if (ml_families_takes(families, &families->functions[i])) {
            (void)write_entry(fd, &families->functions[i].plan, false);
        }
    }
    ml_sys_close(fd);
    return whole;
}

/* False: nothing is hooked, and the reason is told. */
static bool apply(struct ml_families *families, uint8_t *room, size_t room_bytes) {
    const uint32_t before = patched.count;
    for (uint32_t i = 0; i < families->count; i++) {
        if (ml_families_takes(families, &families->functions[i])) {
            write_code(&families->functions[i], (size_t)i * ML_FAMILIES_ROOM_BYTES, room);
        }
    }
    const bool filled = ml_near_fill(room, search.code, room_bytes);
    if (filled && write_entries(families)) {
        return true;
    }
    patched.count = before;
    refuse(
        families->functions[0].name,
        filled ? "the kernel does not let the program's code be written"
               : "the kernel gives no executable memory"
    );
    return false;
}

static void hook(struct ml_families *families) {
    const size_t room_bytes = (size_t)families->count * ML_FAMILIES_ROOM_BYTES;
    uint8_t *room = ml_near_reserve(search.object.low, search.object.high, room_bytes);
    if (room == NULL) {
        refuse(families->functions[0].name, "no memory is free within reach of its code");
        return;
    }
    const uint32_t count = plan_all(families, room);
    if (count > 0 && apply(families, room, room_bytes)) {
        search.report->functions += count;
        search.report->is_inlined |=
            !families->is_library && ml_inlined_is(&search.object, families);
    } else {
        ml_near_release(room, room_bytes);
    }
}

/* As the loader has bound the name. */
static bool is_served(const char *name) {
    return ml_symbol_first(name).is_ours;
}

/* `path` NULL: the executable's. */
static void look_at(const struct link_map *map, const char *path) {
    struct ml_families *families = &search.families;
    if (!ml_object_file_open(map, path, &search.object)) {
        return;
    }
    families->file = search.object.file;
    families->file_bytes = search.object.file_bytes;
    families->base = search.object.base;
    families->code = search.object.code;
    families->code_count = search.object.code_count;
    families->is_library = path != NULL;
    families->is_served = path != NULL ? is_served : NULL;
    if (ml_families_find(families)) {
        hook(families);
    } else if (families->has_too_many) {
        refuse(families->functions[0].name, "memlog has no room for so many such functions");
    }
    ml_object_file_close(&search.object);
}

/* ---- the objects */

/* The library of which an object of the program calls that function; NULL: there is none, or the
 * executable has it. */
static const void *wanted_library(const char *name) {
    const struct ml_symbol_owner owner = ml_symbol_first(name);
    const bool is_library = owner.path != NULL && !owner.is_ours && !owner.is_program;
    return is_library && ml_symbol_is_wanted(name, &owner) ? owner.where : NULL;
}

static void look_at_library(const void *dynamic) {
    for (const struct link_map *map = ml_loaded_first(); map != NULL; map = map->l_next) {
        if (map->l_ld == dynamic && map->l_name != NULL && map->l_name[0] == '/') {
            look_at(map, map->l_name);
            return;
        }
    }
}

static void look_at_libraries(void) {
    const void *seen[LIBRARIES_MAX] = {NULL};
    uint32_t count = 0;
    for (uint32_t i = 0; i < PROBES && count < LIBRARIES_MAX; i++) {
        const void *dynamic = wanted_library(probes[i]);
        bool is_new = dynamic != NULL;
        for (uint32_t k = 0; k < count; k++) {
            is_new = is_new && seen[k] != dynamic;
        }
        if (is_new) {
            seen[count++] = dynamic;
            look_at_library(dynamic);
        }
    }
}

void ml_patch_all(const char *further, struct ml_patch_report *out_report) {
    const struct link_map *program = ml_loaded_first();
    *out_report = (struct ml_patch_report){.functions = 0};
    if (program == NULL || ml_symbol_is_ours(program->l_ld)) {
        return; /* linked in: the executable's allocator functions are memlog's */
    }
    search.report = out_report;
    (void)ml_allocator_families_read(further, strlen(further), &search.families.given);
    look_at(program, NULL);
    look_at_libraries();
}

void *ml_patch_unhooked(void *function) {
    for (uint32_t i = 0; i < patched.count; i++) {
        if (patched.entries[i] == (uintptr_t)function) {
            return (void *)(uintptr_t)patched.list[i].next;
        }
    }
    return function;
}

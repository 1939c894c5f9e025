#include "client/unwind/objects.h"

#include <dlfcn.h>
#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "client/symbols/symbols.h"
#include "client/unwind/arch.h"
#include "client/unwind/foreign.h"
#include "client/unwind/listed.h"

/* Found once, in the constructor. */
static int (*by_loader)(void *, struct dl_find_object *);

/* The program headers: of the program as the kernel tells them, of others behind their first byte.
 * 0: there are none to be found. */
static uint32_t headers_of(uintptr_t bias, bool is_program, const ElfW(Phdr) * *out_headers) {
    if (is_program) {
        *out_headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
        return *out_headers != NULL ? (uint32_t)getauxval(AT_PHNUM) : 0;
    }
    struct ml_foreign foreign = {0};
    const ElfW(Ehdr) *ehdr = (const ElfW(Ehdr) *)bias;
    if (bias % ML_ARCH_PAGE_BYTES != 0 ||
        !ml_foreign_readable(&foreign, ehdr, ML_ARCH_PAGE_BYTES) ||
        memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0 || ehdr->e_phentsize != sizeof(ElfW(Phdr)) ||
        ehdr->e_phoff > ML_ARCH_PAGE_BYTES ||
        ehdr->e_phnum > (ML_ARCH_PAGE_BYTES - ehdr->e_phoff) / sizeof(ElfW(Phdr))) {
        return 0;
    }
    *out_headers = (const ElfW(Phdr) *)(bias + ehdr->e_phoff);
    return ehdr->e_phnum;
}

bool ml_object_describe(
    const struct link_map *map, uintptr_t bias, bool is_program, struct ml_object *out_object
) {
    const ElfW(Phdr) *headers = NULL;
    const uint32_t count = headers_of(bias, is_program, &headers);
    struct ml_object object = {.start = UINTPTR_MAX, .map = map};
    for (uint32_t i = 0; i < count; i++) {
        const uintptr_t at = bias + headers[i].p_vaddr;
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

void ml_object_begin(const void *find_object) {
    memcpy(&by_loader, &find_object, sizeof(by_loader));
    if (by_loader == NULL) {
        ml_listed_begin();
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
    if (!ml_object_describe(map, map->l_addr, false, &own)) {
        own = (struct ml_object){0};
    }
}

void ml_object_changed(void) {
    if (by_loader == NULL) {
        ml_listed_changed();
    }
}

bool ml_object_by_loader(void) {
    return by_loader != NULL;
}

uint32_t ml_object_headers(const struct link_map *map, const ElfW(Phdr) * *out_headers) {
    return headers_of(map->l_addr, map->l_prev == NULL, out_headers);
}

void ml_object_use_list(void) {
    ml_object_begin(NULL);
}

bool ml_object_find(uintptr_t pc, struct ml_object *out_object) {
    struct dl_find_object found;
    if (ML_ATTACHED && pc - own.start < own.end - own.start) {
        *out_object = own;
        return true;
    }
    if (by_loader == NULL) {
        return ml_listed_find(pc, out_object);
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

bool ml_object_is_loaded(const struct ml_object *object) {
    struct ml_object found;
    if (by_loader == NULL && (!ML_ATTACHED || object->map != own.map)) {
        return ml_listed_has(object);
    }
    return ml_object_find(object->start, &found) && object->start == found.start &&
           object->end == found.end && object->map == found.map;
}

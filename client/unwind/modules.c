#include "client/unwind/modules.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>

#include "client/unwind/foreign.h"
#include "client/unwind/objects.h"
#include "client/unwind/unindexed.h"

enum {
    HEADERS_MAX_BYTES = ML_ARCH_PAGE_BYTES, /* what is surely mapped behind an image's start */
    NOTE_ALIGN = 4
};

/* [address, address + bytes) of the image lies in one of its readable segments; the segment's
 * bounds, or hi == 0. */
static struct ml_cfi_table segment_around(
    const ElfW(Phdr) * headers, uint32_t count, intptr_t bias, uintptr_t address, uintptr_t bytes
) {
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t lo = (uintptr_t)bias + headers[i].p_vaddr;
        uintptr_t hi = lo + headers[i].p_filesz; /* what is beyond are zeros: no table there */
        if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_R) != 0 && address >= lo &&
            address < hi && bytes <= hi - address) {
            return (struct ml_cfi_table){.header = address, .segment_lo = lo, .segment_hi = hi};
        }
    }
    return (struct ml_cfi_table){0};
}

static uintptr_t note_padded(uintptr_t bytes) {
    return (bytes + NOTE_ALIGN - 1) & ~(uintptr_t)(NOTE_ALIGN - 1);
}

/* The build id among the notes in [at, end), which are mapped. */
static void find_build_id(uintptr_t at, uintptr_t end, struct ml_image *image) {
    while (end - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, (const void *)at, sizeof note);
        at += sizeof note;
        uintptr_t name = note_padded(note.n_namesz);
        uintptr_t body = note_padded(note.n_descsz);
        if (name > end - at || body > end - at - name) {
            return;
        }
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof ELF_NOTE_GNU &&
            memcmp((const void *)at, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0) {
            image->build_id = (const uint8_t *)(at + name);
            image->build_id_bytes =
                note.n_descsz < ML_BUILD_ID_MAX_BYTES ? note.n_descsz : ML_BUILD_ID_MAX_BYTES;
            return;
        }
        at += name + body;
    }
}

/* Program headers far behind the image's first byte: BOLT, which rewrites finished programs, puts
 * them into a segment of its own. They count where they say that they are there. */
static bool are_headers(const struct ml_image *image, uintptr_t at, uint32_t count) {
    const ElfW(Phdr) *headers = (const ElfW(Phdr) *)at;
    struct ml_foreign foreign = {0};
    if (at < image->start || at > image->end || count > (image->end - at) / sizeof(*headers) ||
        !ml_foreign_readable(&foreign, headers, count * sizeof(*headers))) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_PHDR) {
            return (uintptr_t)image->bias + headers[i].p_vaddr == at;
        }
    }
    return false;
}

/* The program headers of the image; 0: it does not look like an ELF image. */
static uint32_t headers_of_image(const struct ml_image *image, const ElfW(Phdr) * *out_headers) {
    const ElfW(Ehdr) *ehdr = (const ElfW(Ehdr) *)image->start;
    if (image->end - image->start < HEADERS_MAX_BYTES ||
        memcmp(ehdr->e_ident, ELFMAG, SELFMAG) != 0 || ehdr->e_phentsize != sizeof(ElfW(Phdr)) ||
        ehdr->e_phoff % sizeof(uint64_t) != 0) {
        return 0;
    }
    const bool are_first =
        ehdr->e_phoff <= HEADERS_MAX_BYTES &&
        ehdr->e_phnum <= (HEADERS_MAX_BYTES - ehdr->e_phoff) / sizeof(ElfW(Phdr));
    if (!are_first && !are_headers(image, image->start + ehdr->e_phoff, ehdr->e_phnum)) {
        return 0;
    }
    *out_headers = (const ElfW(Phdr) *)(image->start + ehdr->e_phoff);
    return ehdr->e_phnum;
}

/* The main program's headers, as the kernel passed them. Its segments may lie apart (node's do):
 * then an image is one segment and does not begin with the headers. */
static uint32_t headers_of_program(const struct ml_image *image, const ElfW(Phdr) * *out_headers) {
    if (image->path[0] != '\0' || getauxval(AT_PHENT) != sizeof(ElfW(Phdr))) {
        return 0;
    }
    *out_headers = (const ElfW(Phdr) *)getauxval(AT_PHDR);
    return *out_headers != NULL ? (uint32_t)getauxval(AT_PHNUM) : 0;
}

/* Where its code begins, in addresses and in the file. */
static void find_code(const ElfW(Phdr) * headers, uint32_t count, struct ml_image *image) {
    for (uint32_t i = 0; i < count; i++) {
        if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & PF_X) != 0) {
            if (headers[i].p_vaddr <= ML_ADDRESS_MAX && headers[i].p_offset <= ML_ADDRESS_MAX) {
                image->code_address = headers[i].p_vaddr;
                image->code_offset = headers[i].p_offset;
            }
            return;
        }
    }
}

/* The table that was found at the start, where the image's headers still say the same. */
static struct ml_cfi_table
unindexed_table(const ElfW(Phdr) * headers, uint32_t count, intptr_t bias) {
    struct ml_cfi_table table = {0};
    for (uint32_t i = 0; i < count && table.pairs_count == 0; i++) {
        if (headers[i].p_type == PT_LOAD && (headers[i].p_flags & (PF_R | PF_W)) == PF_R) {
            const uintptr_t lo = (uintptr_t)bias + headers[i].p_vaddr;
            table = ml_unindexed_table(lo, lo + headers[i].p_filesz);
        }
    }
    return table;
}

/* Find table, code and build id. An image without headers has none, but is still a module. */
static void read_headers(struct ml_image *image, uintptr_t eh_frame_hdr) {
    const ElfW(Phdr) *headers = NULL;
    uint32_t count = headers_of_image(image, &headers);
    if (count == 0) {
        count = headers_of_program(image, &headers);
    }
    if (eh_frame_hdr != 0) {
        image->cfi = segment_around(headers, count, image->bias, eh_frame_hdr, 4);
    } else {
        image->cfi = unindexed_table(headers, count, image->bias);
    }
    find_code(headers, count, image);
    for (uint32_t i = 0; i < count && image->build_id == NULL; i++) {
        uintptr_t at = (uintptr_t)image->bias + headers[i].p_vaddr;
        if (headers[i].p_type == PT_NOTE && at % NOTE_ALIGN == 0 &&
            segment_around(headers, count, image->bias, at, headers[i].p_filesz).segment_hi != 0) {
            find_build_id(at, at + headers[i].p_filesz, image);
        }
    }
}

bool ml_image_find(uintptr_t pc, struct ml_image *out_image) {
    struct ml_object found;
    if (!ml_object_find(pc, &found)) {
        return false;
    }
    const struct link_map *map = found.map;
    *out_image = (struct ml_image){
        .start = found.start,
        .end = found.end,
        .link_map = map,
        .bias = map != NULL ? (intptr_t)map->l_addr : 0,
        .path = map != NULL && map->l_name != NULL ? map->l_name : "",
    };
    if (out_image->start == getauxval(AT_SYSINFO_EHDR)) {
        out_image->path = "[vdso]";
    }
    read_headers(out_image, found.eh_frame_hdr);
    return true;
}

/* FNV-1a: a few dozen bytes a module, once for each recipe. */
static uint64_t mix(uint64_t hash, const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

static uint64_t image_fingerprint(const struct ml_image *image) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    hash = mix(hash, &image->bias, sizeof image->bias);
    hash = mix(hash, image->build_id, image->build_id_bytes);
    return mix(hash, image->path, strlen(image->path));
}

/* The published record of this very mapping among those from `id` on; 0: none. */
static uint32_t find_record(
    struct ml_modules *modules, uint32_t id, const struct ml_image *image, uint64_t fingerprint
) {
    while (id != 0) {
        const struct ml_module *record = &modules->records[id - 1];
        if (record->start == image->start && record->end == image->end &&
            record->link_map == image->link_map && record->fingerprint == fingerprint &&
            atomic_load_explicit(&record->gone, memory_order_acquire) == 0) {
            return id;
        }
        id = record->next;
    }
    return 0;
}

uint32_t ml_modules_id(
    struct ml_modules *modules, const struct ml_image *image, const struct ml_module_seen *seen
) {
    uint64_t fingerprint = image_fingerprint(image);
    _Atomic uint32_t *head =
        &modules->heads[image->start / ML_ARCH_PAGE_BYTES % ML_MODULES_BUCKETS];
    uint32_t newest = atomic_load_explicit(head, memory_order_acquire);
    uint32_t id = find_record(modules, newest, image, fingerprint);
    if (id != 0 ||
        atomic_load_explicit(&modules->count, memory_order_relaxed) >= ML_MODULES_TABLE_MAX) {
        return id;
    }
    uint32_t mine = atomic_fetch_add_explicit(&modules->count, 1, memory_order_relaxed) + 1;
    if (mine > ML_MODULES_TABLE_MAX) {
        atomic_fetch_sub_explicit(&modules->count, 1, memory_order_relaxed);
        return 0;
    }
    struct ml_module *record = &modules->records[mine - 1];
    record->start = image->start;
    record->end = image->end;
    record->link_map = image->link_map;
    record->fingerprint = fingerprint;
    if (seen != NULL && seen->function != NULL) {
        seen->function(seen->context, mine, image);
    }
    /* A record whose owner vanished before this (longjmp) is never linked: an id lost, no more. */
    do {
        id = find_record(modules, newest, image, fingerprint);
        if (id != 0) {
            return id; /* another thread was first; ours is never used */
        }
        record->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(
        head, &newest, mine, memory_order_acq_rel, memory_order_acquire
    ));
    return mine;
}

/* A successor that looks the same there is recognized by its fingerprint at the next stack in it.
 */
static bool module_is_mapped(const struct ml_module *record) {
    const struct ml_object object = {
        .start = record->start, .end = record->end, .map = record->link_map};
    return ml_object_is_loaded(&object);
}

void ml_modules_sweep(struct ml_modules *modules, ml_module_gone_fn *gone, void *context) {
    ml_object_changed();
    for (uint32_t bucket = 0; bucket < ML_MODULES_BUCKETS; bucket++) {
        uint32_t id = atomic_load_explicit(&modules->heads[bucket], memory_order_acquire);
        while (id != 0) {
            struct ml_module *record = &modules->records[id - 1];
            uint32_t expected = 0;
            if (atomic_load_explicit(&record->gone, memory_order_relaxed) == 0 &&
                !module_is_mapped(record) &&
                atomic_compare_exchange_strong(&record->gone, &expected, 1) && gone != NULL) {
                gone(context, id);
            }
            id = record->next;
        }
    }
}

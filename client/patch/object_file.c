#include "client/patch/object_file.h"

#include <elf.h>
#include <link.h>
#include <string.h>

#include "client/startup/program_file.h"

static bool is_whole_header(const uint8_t *file, size_t file_bytes) {
    const ElfW(Ehdr) *header = (const void *)file;
    return file_bytes > sizeof(*header) && memcmp(file, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_phentsize == sizeof(ElfW(Phdr)) &&
           header->e_phoff < file_bytes &&
           header->e_phnum <= (file_bytes - header->e_phoff) / sizeof(ElfW(Phdr)) &&
           header->e_phoff % sizeof(uint64_t) == 0;
}

static void add_segment(struct ml_object_file *object, const ElfW(Phdr) * segment) {
    const uintptr_t start = object->base + segment->p_vaddr;
    const uintptr_t end = start + segment->p_memsz;
    object->low = object->low == 0 || start < object->low ? start : object->low;
    object->high = end > object->high ? end : object->high;
    const bool is_code = (segment->p_flags & (PF_X | PF_W)) == PF_X;
    const bool is_whole = segment->p_offset <= object->file_bytes &&
                          segment->p_filesz <= object->file_bytes - segment->p_offset;
    if (is_code && is_whole && object->code_count < ML_FAMILIES_CODE_MAX) {
        object->code[object->code_count++] = (struct ml_families_code
        ){.bytes = object->file + segment->p_offset,
          .loaded = (const uint8_t *)start,
          .count_bytes = segment->p_filesz,
          .address = start};
    }
}

/* Whether what is loaded begins with the file's header, and has its dynamic section where the
 * loader says. */
static bool is_loaded(const struct ml_object_file *object, const struct link_map *map) {
    const ElfW(Ehdr) *header = (const void *)object->file;
    const ElfW(Phdr) *segments = (const void *)(object->file + header->e_phoff);
    bool has_dynamic = false;
    const uint8_t *begin = NULL;
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        const uintptr_t at = object->base + segments[i].p_vaddr;
        if (segments[i].p_type == PT_DYNAMIC) {
            has_dynamic = at == (uintptr_t)map->l_ld;
        } else if (segments[i].p_type == PT_LOAD && segments[i].p_offset == 0 && segments[i].p_filesz >= sizeof(*header)) {
            begin = (const uint8_t *)at;
        }
    }
    /* The dynamic section first: if that is another program's, the rest may lie nowhere. */
    return has_dynamic && begin != NULL && memcmp(begin, object->file, sizeof(*header)) == 0;
}

bool ml_object_file_open(
    const struct link_map *map, const char *path, struct ml_object_file *out_object
) {
    struct ml_object_file object = {.base = map->l_addr};
    object.file = ml_program_file_map(path, &object.file_bytes);
    if (object.file == NULL) {
        return false;
    }
    if (!is_whole_header(object.file, object.file_bytes) || !is_loaded(&object, map)) {
        ml_object_file_close(&object);
        return false;
    }
    const ElfW(Ehdr) *header = (const void *)object.file;
    const ElfW(Phdr) *segments = (const void *)(object.file + header->e_phoff);
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD) {
            add_segment(&object, &segments[i]);
        }
    }
    *out_object = object;
    return true;
}

void ml_object_file_close(struct ml_object_file *object) {
    ml_program_file_unmap(object->file, object->file_bytes);
    object->file = NULL;
}

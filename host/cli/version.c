#include "host/cli/version.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ML_VERSION "0.1.0"

/* The program's own notes, as the kernel has mapped them. */
struct notes {
    const uint8_t *at;
    size_t bytes;
};

static int find_notes(struct dl_phdr_info *object, size_t size, void *context) {
    struct notes *notes = context;
    (void)size;
    for (uint32_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        if (header->p_type == PT_NOTE && header->p_align == sizeof(uint32_t)) {
            notes->at = (const uint8_t *)object->dlpi_addr + header->p_vaddr;
            notes->bytes = header->p_memsz;
        }
    }
    return 1; /* the first object is the program */
}

static size_t padded(size_t bytes) {
    return (bytes + sizeof(uint32_t) - 1) / sizeof(uint32_t) * sizeof(uint32_t);
}

static void say_build_id(const struct notes *notes, FILE *out) {
    size_t at = 0;
    while (notes->bytes - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes->at + at, sizeof(note));
        const uint8_t *id = notes->at + at + sizeof(note) + padded(note.n_namesz);
        if (note.n_type == NT_GNU_BUILD_ID) {
            (void)fputs("build id ", out);
            for (size_t i = 0; i < note.n_descsz; i++) {
                (void)fprintf(out, "%02x", id[i]);
            }
            (void)fputc('\n', out);
            return;
        }
        at += sizeof(note) + padded(note.n_namesz) + padded(note.n_descsz);
    }
}

void ml_version_say(FILE *out) {
    struct notes notes = {.bytes = 0};
    (void)fprintf(out, "memlog %s\n", ML_VERSION);
    (void)dl_iterate_phdr(find_notes, &notes);
    say_build_id(&notes, out);
}

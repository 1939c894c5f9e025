#include "host/cli/version.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define ML_VERSION "0.1.0"

struct notes {
    const uint8_t *at;
    size_t bytes;
};

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

/* The program's own notes, as the kernel has mapped them. Linkers since binutils 2.40 put each kind
 * of note into a segment of its own. */
static int say_of_program(struct dl_phdr_info *object, size_t size, void *out) {
    (void)size;
    for (uint32_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &object->dlpi_phdr[i];
        if (header->p_type == PT_NOTE && header->p_align == sizeof(uint32_t)) {
            const struct notes notes = {
                .at = (const uint8_t *)object->dlpi_addr + header->p_vaddr,
                .bytes = header->p_memsz};
            say_build_id(&notes, out);
        }
    }
    return 1; /* the first object is the program */
}

void ml_version_say(FILE *out) {
    (void)fprintf(out, "memlog %s\n", ML_VERSION);
    (void)dl_iterate_phdr(say_of_program, out);
}

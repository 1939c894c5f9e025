#include "tracer/client_image.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_file.h"

enum { PAGE_BYTES = 4096, IMAGE_MAX_BYTES = 64 << 20 };

static uint64_t page_down(uint64_t value) {
    return value & ~(uint64_t)(PAGE_BYTES - 1);
}

static uint64_t page_up(uint64_t value) {
    return page_down(value + PAGE_BYTES - 1);
}

/* All of the file; NULL, with an error message. */
static uint8_t *read_file(const char *path, size_t *out_bytes, struct ml_error_message *error) {
    struct stat about;
    const int fd = ml_input_regular(path);
    uint8_t *file = NULL;
    size_t done = 0;
    if (fd >= 0 && fstat(fd, &about) == 0 && about.st_size > 0 && about.st_size < IMAGE_MAX_BYTES) {
        file = malloc((size_t)about.st_size);
    }
    while (file != NULL && done < (size_t)about.st_size) {
        const ssize_t got = read(fd, file + done, (size_t)about.st_size - done);
        if (got <= 0) {
            free(file);
            file = NULL;
        }
        done += got > 0 ? (size_t)got : 0;
    }
    if (file == NULL) {
        ml_error_set(error, "%s cannot be read: %s", path, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    *out_bytes = done;
    return file;
}

static bool is_within(uint64_t at, uint64_t bytes, uint64_t all) {
    return at <= all && bytes <= all - at;
}

static uint64_t fingerprint_of(const uint8_t *bytes, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    }
    return hash;
}

/* ---- segments */

static bool add_segment(
    struct ml_client_image *image, const uint8_t *file, size_t bytes, const Elf64_Phdr *one
) {
    struct ml_client_segment *segment = &image->segments[image->segments_count];
    if (image->segments_count == ML_CLIENT_SEGMENTS_MAX ||
        !is_within(one->p_offset, one->p_filesz, bytes) ||
        !is_within(one->p_vaddr, one->p_memsz, image->count_bytes) ||
        one->p_filesz > one->p_memsz) {
        return false;
    }
    memcpy(image->bytes + one->p_vaddr, file + one->p_offset, one->p_filesz);
    *segment = (struct ml_client_segment
    ){.start = page_down(one->p_vaddr),
      .end = page_up(one->p_vaddr + one->p_memsz),
      .protection = ((one->p_flags & PF_R) != 0 ? PROT_READ : 0) |
                    ((one->p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
                    ((one->p_flags & PF_X) != 0 ? PROT_EXEC : 0)};
    image->segments_count++;
    if (one->p_vaddr + one->p_filesz > image->kept_bytes) {
        image->kept_bytes = one->p_vaddr + one->p_filesz;
    }
    return true;
}

static bool load(struct ml_client_image *image, const uint8_t *file, size_t bytes) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)file;
    if (bytes < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(Elf64_Phdr) ||
        !is_within(header->e_phoff, (uint64_t)header->e_phnum * sizeof(Elf64_Phdr), bytes)) {
        return false;
    }
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(file + header->e_phoff);
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        const uint64_t end = page_up(segments[i].p_vaddr + segments[i].p_memsz);
        if (segments[i].p_type == PT_LOAD && end > image->count_bytes && end <= IMAGE_MAX_BYTES) {
            image->count_bytes = end;
        }
    }
    image->bytes = image->count_bytes > 0 ? calloc(1, image->count_bytes) : NULL;
    bool whole = image->bytes != NULL;
    for (uint32_t i = 0; whole && i < header->e_phnum; i++) {
        whole = segments[i].p_type != PT_LOAD || add_segment(image, file, bytes, &segments[i]);
    }
    return whole;
}

/* ---- what is in it */

struct dynamic {
    uint64_t symbols, strings, hash, relocations, relocations_bytes;
};

static bool
find_dynamic(const struct ml_client_image *image, const uint8_t *file, struct dynamic *out) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)file;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(file + header->e_phoff);
    for (uint32_t i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_DYNAMIC ||
            !is_within(segments[i].p_vaddr, segments[i].p_memsz, image->count_bytes)) {
            continue;
        }
        const Elf64_Dyn *entry =
            (const Elf64_Dyn *)(const void *)(image->bytes + segments[i].p_vaddr);
        const Elf64_Dyn *end = entry + segments[i].p_memsz / sizeof(*entry);
        for (; entry < end && entry->d_tag != DT_NULL; entry++) {
            uint64_t *to = entry->d_tag == DT_SYMTAB   ? &out->symbols
                           : entry->d_tag == DT_STRTAB ? &out->strings
                           : entry->d_tag == DT_RELA   ? &out->relocations
                           : entry->d_tag == DT_RELASZ ? &out->relocations_bytes
                                                       : NULL;
            if (to != NULL) {
                *to = entry->d_un.d_val;
            }
        }
        return out->symbols != 0 && out->symbols <= out->strings &&
               out->strings <= image->count_bytes &&
               is_within(out->relocations, out->relocations_bytes, image->count_bytes);
    }
    return false;
}

/* The symbols lie in front of their names, as linkers put them. */
static const Elf64_Sym *
find_symbol(const struct ml_client_image *image, const struct dynamic *dynamic, const char *name) {
    for (uint64_t at = dynamic->symbols; at + sizeof(Elf64_Sym) <= dynamic->strings;
         at += sizeof(Elf64_Sym)) {
        const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(image->bytes + at);
        if (symbol->st_shndx != SHN_UNDEF &&
            is_within(dynamic->strings + symbol->st_name, strlen(name) + 1, image->count_bytes) &&
            strcmp((const char *)image->bytes + dynamic->strings + symbol->st_name, name) == 0) {
            return symbol;
        }
    }
    return NULL;
}

bool ml_client_image_read(
    const char *path, struct ml_client_image *out_image, struct ml_error_message *error
) {
    struct ml_client_image image = {.bytes = NULL};
    struct dynamic dynamic = {.symbols = 0};
    size_t bytes = 0;
    uint8_t *file = read_file(path, &bytes, error);
    if (file == NULL) {
        return false;
    }
    const Elf64_Sym *block = NULL;
    const Elf64_Sym *enter = NULL;
    if (load(&image, file, bytes) && find_dynamic(&image, file, &dynamic)) {
        block = find_symbol(&image, &dynamic, "ml_attach_block");
        enter = find_symbol(&image, &dynamic, "ml_attached_enter");
    }
    image.fingerprint = fingerprint_of(file, bytes);
    free(file);
    if (block == NULL || enter == NULL ||
        !is_within(block->st_value, block->st_size, image.count_bytes) ||
        enter->st_value >= image.count_bytes) {
        ml_error_set(error, "%s is not memlog's: install memlog again", path);
        ml_client_image_free(&image);
        return false;
    }
    image.block_at = block->st_value;
    image.block_bytes = block->st_size;
    image.enter_at = enter->st_value;
    image.relocations_at = dynamic.relocations;
    image.relocations_count = dynamic.relocations_bytes / sizeof(Elf64_Rela);
    *out_image = image;
    return true;
}

bool ml_client_image_lay_out(struct ml_client_image *image, uint64_t address) {
    for (uint64_t i = 0; i < image->relocations_count; i++) {
        const Elf64_Rela *one =
            (const Elf64_Rela *)(const void *)(image->bytes + image->relocations_at) + i;
        const uint64_t value = address + (uint64_t)one->r_addend;
        if (ELF64_R_TYPE(one->r_info) != R_X86_64_RELATIVE ||
            !is_within(one->r_offset, sizeof(value), image->count_bytes)) {
            return false;
        }
        memcpy(image->bytes + one->r_offset, &value, sizeof(value));
    }
    image->address = address;
    return true;
}

void ml_client_image_free(struct ml_client_image *image) {
    free(image->bytes);
    *image = (struct ml_client_image){.bytes = NULL};
}

/* The functions that an ELF file defines, by .dynsym and .symtab. Room: base. Context: any; pure.
 *
 * One rule: the file is anybody's. No read lies outside the given bytes, whatever they say; the
 * work is bounded by their number; a table that contradicts itself has no functions. Addresses and
 * sizes are the file's claim: whoever reads memory there checks them against what is mapped. */
#ifndef MEMLOG_BASE_ENTRY_ELF_FUNCTIONS_H
#define MEMLOG_BASE_ENTRY_ELF_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_ELF_NAME_MAX = 127,   /* longer names are passed over: no allocator's function has one */
    ML_ELF_SEGMENTS_MAX = 16 /* executable ones that are known; linkers write 1 */
};

enum ml_elf_verdict {
    ML_ELF_READ = 0,
    ML_ELF_OTHER,     /* no ELF file of 64 bits for this processor, neither program nor library */
    ML_ELF_BROKEN,    /* its headers lead out of the file */
    ML_ELF_NO_SYMBOLS /* neither table is there: stripped, or cut */
};

struct ml_elf_function {
    const char *name; /* ends in a null, in the file's bytes */
    size_t name_bytes;
    uint64_t address;      /* as linked; inside an executable segment */
    uint64_t size;         /* 0: not known */
    uint64_t offset;       /* of its first byte in the file */
    uint64_t behind_bytes; /* from `address` to the end of its segment */
    bool is_dynamic;       /* of .dynsym; the other table may have it too */
    bool is_indirect;      /* STT_GNU_IFUNC: a resolver stands at `address`, not the function */
};

/* False: enough, the rest is not told. */
typedef bool ml_elf_function_fn(void *context, const struct ml_elf_function *function);

/* Tell each function that the file defines in one of its executable segments. */
enum ml_elf_verdict ml_elf_functions_each(
    const uint8_t *file, size_t file_bytes, ml_elf_function_fn *visit, void *context
);

/* The lowest address of what is loaded, as linked, not rounded to a page: where the file is mapped,
 * less this one's page, is what is added to the addresses above. */
enum ml_elf_verdict
ml_elf_lowest_load(const uint8_t *file, size_t file_bytes, uint64_t *out_address);

/* Code as it is linked. */
struct ml_elf_code {
    uint64_t address;
    uint64_t offset; /* in the file, of its first byte */
    uint64_t count_bytes;
};

/* The segments that may be executed and not written, as far as the file holds them: how many. */
uint32_t ml_elf_code_find(
    const uint8_t *file, size_t file_bytes, struct ml_elf_code out_code[ML_ELF_SEGMENTS_MAX]
);

#endif

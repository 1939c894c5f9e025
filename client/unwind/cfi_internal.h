/* Inside the CFI reader: a cursor over table bytes, and a parsed table entry. Room: client.
 *
 * One rule: a cursor that ran out stays failed and reads zeros; the caller looks once, at the end.
 */
#ifndef MEMLOG_CLIENT_UNWIND_CFI_INTERNAL_H
#define MEMLOG_CLIENT_UNWIND_CFI_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/unwind/cfi.h"

struct ml_cfi_cursor {
    uintptr_t pos;
    uintptr_t end;
    bool failed;
};

static inline struct ml_cfi_cursor ml_cfi_cursor_make(uintptr_t pos, uintptr_t end) {
    return (struct ml_cfi_cursor){.pos = pos, .end = end, .failed = pos > end};
}

/* Little-endian integers of 1, 2, 4, 8 bytes at any alignment. */
uint64_t ml_cfi_fixed(struct ml_cfi_cursor *cursor, uint32_t bytes);
uint64_t ml_cfi_uleb(struct ml_cfi_cursor *cursor);
int64_t ml_cfi_sleb(struct ml_cfi_cursor *cursor);

/* Pass over `bytes` bytes. */
void ml_cfi_skip(struct ml_cfi_cursor *cursor, uint64_t bytes);

/* A frame description entry with what its common entry says. */
struct ml_cfi_entry {
    uintptr_t pc_begin;
    uintptr_t pc_end;
    uint64_t code_align;
    int64_t data_align;
    struct ml_cfi_cursor initial; /* the common entry's program */
    struct ml_cfi_cursor program;
    uint8_t pointer_encoding;
    bool sized_augmentation; /* "z" */
    bool signal_frame;
};

/* Read a pointer in one of the DW_EH_PE encodings. `table` gives the base of data-relative ones.
 * Fails for the indirect, text-relative, function-relative and aligned forms, which no frame table
 * on Linux uses for what is read here. */
uintptr_t
ml_cfi_pointer(struct ml_cfi_cursor *cursor, uint8_t encoding, const struct ml_cfi_table *table);

/* The common entry at `at`: all but pc_begin, pc_end and program. False: it is none, or of another
 * kind than compilers write. */
bool ml_cfi_common_parse(
    const struct ml_cfi_table *table, uintptr_t at, struct ml_cfi_entry *out_entry
);

/* A function's entry, and the common one that it names. */
bool ml_cfi_entry_parse(
    const struct ml_cfi_table *table, uintptr_t at, struct ml_cfi_entry *out_entry
);

/* Run the entry's programs up to `pc`; the row is in scratch->row.
 *
 * Errors: false for anything not understood. */
bool ml_cfi_run(
    const struct ml_cfi_table *table,
    struct ml_cfi_entry *entry,
    uintptr_t pc,
    struct ml_cfi_scratch *scratch
);

#endif

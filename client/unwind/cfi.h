/* Reader of DWARF call frame information (.eh_frame), as a program's own modules carry it.
 * Room: client. Context: any thread, inside malloc, inside signal handlers; no state, no call out.
 *
 * One rule: tables are untrusted. Every read lies inside the mapped segment that holds the table,
 * every loop is bounded by bytes consumed, and any oddity ends in "no rule". The caller then has no
 * recipe, never a wrong one. */
#ifndef MEMLOG_CLIENT_UNWIND_CFI_H
#define MEMLOG_CLIENT_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/unwind/arch.h"

enum {
    ML_CFI_REMEMBER_MAX = 6,      /* nested DW_CFA_remember_state; compilers nest 1, rarely 2 */
    ML_CFI_EXPRESSION_DEPTH = 12, /* slots of the expression machine; PLT entries need 3, signal
                                     frames 1 */
    ML_CFI_EXPRESSION_STEPS = 256 /* operations of one expression; branches may loop */
};

/* How one register of the calling frame is found. */
enum ml_cfi_kind {
    ML_CFI_UNSPECIFIED = 0, /* no rule: callee-saved registers keep their value by the ABI */
    ML_CFI_UNDEFINED,       /* gone; for the return address: this is the outermost frame */
    ML_CFI_SAME,
    ML_CFI_OFFSET,     /* stored at CFA + value */
    ML_CFI_VAL_OFFSET, /* is CFA + value */
    ML_CFI_REGISTER,   /* is in register `value` */
    ML_CFI_EXPRESSION, /* stored at the address that the expression at `value` computes */
    ML_CFI_VAL_EXPRESSION
};

struct ml_cfi_rule {
    uint64_t value; /* an offset as two's complement, a register, or the address of an expression
                       (ULEB128 length, then operations) */
    uint32_t kind;  /* enum ml_cfi_kind */
};

/* The unwind table's row for one pc. */
struct ml_cfi_row {
    struct ml_cfi_rule cfa; /* OFFSET: register cfa_register + value; EXPRESSION: computed */
    uint32_t cfa_register;
    struct ml_cfi_rule registers[ML_ARCH_CFI_REGISTERS];
};

/* Room for one run of a frame's program; too large for the stack budget of a hook. */
struct ml_cfi_scratch {
    struct ml_cfi_row row; /* the result */
    struct ml_cfi_row initial;
    struct ml_cfi_row remembered[ML_CFI_REMEMBER_MAX];
    bool
        signal_frame; /* the frame is a signal trampoline: its caller was interrupted, not called */
};

/* Where a function begins, and where its entry of the table does. */
struct ml_cfi_pair {
    uint32_t code, entry;
};

/* Where a module's table is. It has an index of its own (.eh_frame_hdr), or one that was made for
 * it (client/unwind/unindexed.h). */
struct ml_cfi_table {
    uintptr_t header;     /* of .eh_frame_hdr; 0: none */
    uintptr_t segment_lo; /* the mapped, readable segment around the table */
    uintptr_t segment_hi;
    const struct ml_cfi_pair *pairs; /* by code; behind `base` */
    uint32_t pairs_count;
    uintptr_t base;
};

/* Find the row for `pc` (for a return address the caller passes it less 1).
 *
 * Errors: false when the table has no row for it or cannot be understood.
 * Owner:  scratch is the caller's; scratch->row and ->signal_frame are the answer on true. */
ML_NODISCARD bool
ml_cfi_find_row(const struct ml_cfi_table *table, uintptr_t pc, struct ml_cfi_scratch *scratch);

/* Does a function begin exactly at `pc`? A return address that does, with no function around the
 * byte before it, does not come from a call: it was planted at the outer end of a stack
 * (makecontext does so). */
bool ml_cfi_starts_function(const struct ml_cfi_table *table, uintptr_t pc);

/* Reads one word of the stack for an expression's DW_OP_deref; false: refused. */
typedef bool ml_cfi_load_fn(void *context, uintptr_t address, uint64_t *out_word);

struct ml_cfi_machine {
    const uint64_t *registers; /* ML_ARCH_CFI_REGISTERS values */
    uint32_t known;            /* bit per register: its value is known */
    ml_cfi_load_fn *load;
    void *context;
    uintptr_t limit; /* the table segment's end: no operation is read behind it */
};

/* Compute a DWARF expression at `address` (ULEB128 length first).
 *
 * Errors: false for an operation that has no place in a frame table, an unknown register, a refused
 * load, too many steps or slots. */
ML_NODISCARD bool ml_cfi_evaluate(
    const struct ml_cfi_machine *machine,
    uintptr_t address,
    const uint64_t *initial, /* pushed first, or NULL */
    uint64_t *out_value
);

#endif

#include <string.h>

#include "client/unwind/cfi_internal.h"

/* DWARF 5, 6.4.2; the GNU ones as binutils and gcc write them. */
enum {
    CFA_ADVANCE_LOC = 0x1, /* in the upper two bits */
    CFA_OFFSET = 0x2,
    CFA_RESTORE = 0x3,
    CFA_NOP = 0x00,
    CFA_SET_LOC = 0x01,
    CFA_ADVANCE_LOC1 = 0x02,
    CFA_ADVANCE_LOC2 = 0x03,
    CFA_ADVANCE_LOC4 = 0x04,
    CFA_OFFSET_EXTENDED = 0x05,
    CFA_RESTORE_EXTENDED = 0x06,
    CFA_UNDEFINED = 0x07,
    CFA_SAME_VALUE = 0x08,
    CFA_REGISTER = 0x09,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEF_CFA = 0x0c,
    CFA_DEF_CFA_REGISTER = 0x0d,
    CFA_DEF_CFA_OFFSET = 0x0e,
    CFA_DEF_CFA_EXPRESSION = 0x0f,
    CFA_EXPRESSION = 0x10,
    CFA_OFFSET_EXTENDED_SF = 0x11,
    CFA_DEF_CFA_SF = 0x12,
    CFA_DEF_CFA_OFFSET_SF = 0x13,
    CFA_VAL_OFFSET = 0x14,
    CFA_VAL_OFFSET_SF = 0x15,
    CFA_VAL_EXPRESSION = 0x16,
    CFA_GNU_ARGS_SIZE = 0x2e,
    CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f
};

struct run {
    const struct ml_cfi_table *table;
    const struct ml_cfi_entry *entry;
    struct ml_cfi_scratch *scratch;
    struct ml_cfi_cursor cursor;
    uintptr_t pc;       /* wanted */
    uintptr_t location; /* reached */
    uint32_t remembered;
    bool has_initial; /* the common program is done: DW_CFA_restore has something to restore */
};

/* Rules for registers beyond ours (vector registers) are read and dropped. */
static void set_rule(struct run *run, uint64_t reg, enum ml_cfi_kind kind, uint64_t value) {
    if (reg < ML_ARCH_CFI_REGISTERS) {
        run->scratch->row.registers[reg] = (struct ml_cfi_rule){.value = value, .kind = kind};
    }
}

static void restore_rule(struct run *run, uint64_t reg) {
    if (!run->has_initial) {
        run->cursor.failed = true;
    } else if (reg < ML_ARCH_CFI_REGISTERS) {
        run->scratch->row.registers[reg] = run->scratch->initial.registers[reg];
    }
}

static uint64_t factored(const struct run *run, uint64_t offset) {
    return offset * (uint64_t)run->entry->data_align;
}

static void set_cfa(struct run *run, uint64_t reg, uint64_t offset) {
    struct ml_cfi_row *row = &run->scratch->row;
    if (reg >= ML_ARCH_CFI_REGISTERS) {
        run->cursor.failed = true;
        return;
    }
    row->cfa = (struct ml_cfi_rule){.value = offset, .kind = ML_CFI_OFFSET};
    row->cfa_register = (uint32_t)reg;
}

/* def_cfa_register and def_cfa_offset change half of a rule, so there must be one. */
static void set_half_cfa(struct run *run, bool is_register, uint64_t value) {
    const struct ml_cfi_row *row = &run->scratch->row;
    if (row->cfa.kind != ML_CFI_OFFSET) {
        run->cursor.failed = true;
        return;
    }
    set_cfa(run, is_register ? value : row->cfa_register, is_register ? row->cfa.value : value);
}

/* An expression stays in the table; the rule holds its address. */
static uint64_t take_expression(struct run *run) {
    uint64_t at = run->cursor.pos;
    ml_cfi_skip(&run->cursor, ml_cfi_uleb(&run->cursor));
    return at;
}

static void remember(struct run *run) {
    if (run->remembered == ML_CFI_REMEMBER_MAX) {
        run->cursor.failed = true;
        return;
    }
    run->scratch->remembered[run->remembered++] = run->scratch->row;
}

static void recall(struct run *run) {
    if (run->remembered == 0) {
        run->cursor.failed = true;
        return;
    }
    run->scratch->row = run->scratch->remembered[--run->remembered];
}

/* Operations that move the location. Returns false for any other. */
static bool apply_advance(struct run *run, uint8_t op) {
    uint64_t delta;
    switch (op) {
    case CFA_SET_LOC:
        run->location = ml_cfi_pointer(&run->cursor, run->entry->pointer_encoding, run->table);
        return true;
    case CFA_ADVANCE_LOC1:
        delta = ml_cfi_fixed(&run->cursor, 1);
        break;
    case CFA_ADVANCE_LOC2:
        delta = ml_cfi_fixed(&run->cursor, 2);
        break;
    case CFA_ADVANCE_LOC4:
        delta = ml_cfi_fixed(&run->cursor, 4);
        break;
    default:
        if (op >> 6 != CFA_ADVANCE_LOC) {
            return false;
        }
        delta = op & 0x3f;
        break;
    }
    run->location += delta * run->entry->code_align;
    return true;
}

/* Operations on the CFA rule. Returns false for any other. */
static bool apply_cfa(struct run *run, uint8_t op) {
    struct ml_cfi_cursor *cursor = &run->cursor;
    uint64_t reg;
    switch (op) {
    case CFA_DEF_CFA:
        reg = ml_cfi_uleb(cursor);
        set_cfa(run, reg, ml_cfi_uleb(cursor));
        return true;
    case CFA_DEF_CFA_SF:
        reg = ml_cfi_uleb(cursor);
        set_cfa(run, reg, factored(run, (uint64_t)ml_cfi_sleb(cursor)));
        return true;
    case CFA_DEF_CFA_REGISTER:
        set_half_cfa(run, true, ml_cfi_uleb(cursor));
        return true;
    case CFA_DEF_CFA_OFFSET:
        set_half_cfa(run, false, ml_cfi_uleb(cursor));
        return true;
    case CFA_DEF_CFA_OFFSET_SF:
        set_half_cfa(run, false, factored(run, (uint64_t)ml_cfi_sleb(cursor)));
        return true;
    case CFA_DEF_CFA_EXPRESSION:
        run->scratch->row.cfa =
            (struct ml_cfi_rule){.value = take_expression(run), .kind = ML_CFI_EXPRESSION};
        return true;
    case CFA_REMEMBER_STATE:
        remember(run);
        return true;
    case CFA_RESTORE_STATE:
        recall(run);
        return true;
    case CFA_GNU_ARGS_SIZE:
        (void)ml_cfi_uleb(cursor);
        return true;
    case CFA_NOP:
        return true;
    default:
        return false;
    }
}

/* Operations on one register's rule; anything unknown fails the run. */
static void apply_register(struct run *run, uint8_t op) {
    struct ml_cfi_cursor *cursor = &run->cursor;
    if (op >> 6 == CFA_OFFSET) {
        set_rule(run, op & 0x3f, ML_CFI_OFFSET, factored(run, ml_cfi_uleb(cursor)));
        return;
    }
    if (op >> 6 == CFA_RESTORE) {
        restore_rule(run, op & 0x3f);
        return;
    }
    uint64_t reg = ml_cfi_uleb(cursor); /* the first operand of all the others */
    switch (op) {
    case CFA_OFFSET_EXTENDED:
        set_rule(run, reg, ML_CFI_OFFSET, factored(run, ml_cfi_uleb(cursor)));
        break;
    case CFA_OFFSET_EXTENDED_SF:
        set_rule(run, reg, ML_CFI_OFFSET, factored(run, (uint64_t)ml_cfi_sleb(cursor)));
        break;
    case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
        set_rule(run, reg, ML_CFI_OFFSET, 0 - factored(run, ml_cfi_uleb(cursor)));
        break;
    case CFA_VAL_OFFSET:
        set_rule(run, reg, ML_CFI_VAL_OFFSET, factored(run, ml_cfi_uleb(cursor)));
        break;
    case CFA_VAL_OFFSET_SF:
        set_rule(run, reg, ML_CFI_VAL_OFFSET, factored(run, (uint64_t)ml_cfi_sleb(cursor)));
        break;
    case CFA_RESTORE_EXTENDED:
        restore_rule(run, reg);
        break;
    case CFA_UNDEFINED:
        set_rule(run, reg, ML_CFI_UNDEFINED, 0);
        break;
    case CFA_SAME_VALUE:
        set_rule(run, reg, ML_CFI_SAME, 0);
        break;
    case CFA_REGISTER:
        set_rule(run, reg, ML_CFI_REGISTER, ml_cfi_uleb(cursor));
        break;
    case CFA_EXPRESSION:
        set_rule(run, reg, ML_CFI_EXPRESSION, take_expression(run));
        break;
    case CFA_VAL_EXPRESSION:
        set_rule(run, reg, ML_CFI_VAL_EXPRESSION, take_expression(run));
        break;
    default:
        cursor->failed = true;
        break;
    }
}

/* Each turn takes at least one byte, so the program's length bounds the loop. */
static bool run_program(struct run *run, struct ml_cfi_cursor program) {
    run->cursor = program;
    while (!run->cursor.failed && run->cursor.pos < run->cursor.end) {
        uint8_t op = (uint8_t)ml_cfi_fixed(&run->cursor, 1);
        if (apply_advance(run, op)) {
            if (run->location > run->pc) {
                break;
            }
        } else if (!apply_cfa(run, op)) {
            apply_register(run, op);
        }
    }
    return !run->cursor.failed;
}

bool ml_cfi_run(
    const struct ml_cfi_table *table,
    struct ml_cfi_entry *entry,
    uintptr_t pc,
    struct ml_cfi_scratch *scratch
) {
    struct run run = {
        .table = table, .entry = entry, .scratch = scratch, .pc = pc, .location = entry->pc_begin};
    memset(&scratch->row, 0, sizeof scratch->row);
    run.pc = UINTPTR_MAX; /* the common program has no locations to stop at */
    if (!run_program(&run, entry->initial)) {
        return false;
    }
    scratch->initial = scratch->row;
    run.has_initial = true;
    run.pc = pc;
    run.location = entry->pc_begin;
    return run_program(&run, entry->program) && scratch->row.cfa.kind != ML_CFI_UNSPECIFIED;
}

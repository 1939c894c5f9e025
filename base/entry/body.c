#include "base/entry/body.h"

#include <string.h>

#include "base/entry/instruction.h"

struct look {
    const struct ml_entry_function *function;
    uint64_t at; /* the first patched byte */
    uint64_t asides_looked;
    uint64_t aside_low; /* what was looked at outside last; equal: nothing */
    uint64_t aside_high;
    uint32_t found;
    bool has_table_load;
    bool has_register_jump;
};

static void note_target(struct look *look, uint64_t target) {
    const uint64_t entry = look->function->address;
    if (target - entry <= look->at - entry) {
        look->found |= ML_ENTRY_BODY_LEADS_BACK;
    } else if (target - look->at < ML_ENTRY_JUMP_BYTES) {
        look->found |= ML_ENTRY_BODY_LEADS_INTO;
    }
}

static bool is_relative_opcode(uint8_t opcode) {
    return opcode == 0xeb || opcode >> 4 == 7 || (opcode >= 0xe0 && opcode <= 0xe3);
}

/* A distance of 4 bytes behind this offset, whatever stands here. */
static void
note_distance_4(struct look *look, const uint8_t *code, size_t bytes, uint64_t address) {
    if (bytes < 6 || (code[0] != 0xe9 && (code[0] != 0x0f || code[1] >> 4 != 8))) {
        return;
    }
    const size_t opcode_bytes = code[0] == 0xe9 ? 1 : 2;
    int32_t distance = 0;
    memcpy(&distance, code + opcode_bytes, sizeof distance);
    note_target(look, address + opcode_bytes + 4 + (uint64_t)(int64_t)distance);
}

/* Whatever of a distance of 1 byte may begin here. */
static void
note_distance_1(struct look *look, const uint8_t *code, size_t bytes, uint64_t address) {
    if (bytes >= 2 && is_relative_opcode(code[0])) {
        int8_t distance = 0;
        memcpy(&distance, code + 1, sizeof distance);
        note_target(look, address + 2 + (uint64_t)(int64_t)distance);
    }
}

/* What one decoded instruction says. Answers where it leads, or 0. A call back is a call like any
 * other's. */
static uint64_t note_instruction(
    struct look *look,
    const struct ml_instruction *instruction,
    const uint8_t *code,
    uint64_t address
) {
    look->has_table_load |= instruction->is_table_load;
    if (instruction->kind == ML_INSTRUCTION_END && instruction->is_indirect) {
        look->has_register_jump |= instruction->is_register;
        if (instruction->is_table_jump) {
            look->found |= ML_ENTRY_BODY_HAS_SWITCH;
        }
    }
    if (instruction->relative_bytes == 0) {
        return 0;
    }
    const uint64_t target = ml_instruction_target(instruction, code, address);
    if (instruction->kind != ML_INSTRUCTION_CALL) {
        note_target(look, target);
        return target;
    }
    /* Not into the middle, though. */
    if (target - look->at - 1 < ML_ENTRY_JUMP_BYTES - 1) {
        look->found |= ML_ENTRY_BODY_LEADS_INTO;
    }
    return 0;
}

/* The code at `address`, and how much of it is there; NULL: not readable. */
static const uint8_t *
text_at(const struct ml_entry_function *function, uint64_t address, size_t *out_bytes) {
    const uint64_t offset = address - function->text_address;
    if (function->text == NULL || offset >= function->text_bytes) {
        return NULL;
    }
    *out_bytes = function->text_bytes - (size_t)offset;
    return function->text + offset;
}

/* A part that the function branches to and that is not in it: another function, or its own .cold.
 * Blocks of it stand behind one another, so that its ends are passed over. */
static void look_aside(struct look *look, uint64_t address) {
    size_t bytes = 0;
    const uint8_t *code = text_at(look->function, address, &bytes);
    if (code == NULL || address - look->aside_low < look->aside_high - look->aside_low) {
        return;
    }
    if (look->asides_looked++ == ML_ENTRY_BODY_ASIDES_MAX) {
        look->found |= ML_ENTRY_BODY_IS_TOO_LARGE;
    }
    if (look->asides_looked > ML_ENTRY_BODY_ASIDES_MAX) {
        return;
    }
    bytes = bytes < ML_ENTRY_BODY_ASIDE_BYTES ? bytes : ML_ENTRY_BODY_ASIDE_BYTES;
    size_t offset = 0;
    struct ml_instruction instruction;
    while (offset < bytes && ml_instruction_decode(code + offset, bytes - offset, &instruction)) {
        if (instruction.relative_bytes != 0) {
            const uint64_t target =
                ml_instruction_target(&instruction, code + offset, address + offset);
            if (target - look->at - 1 < ML_ENTRY_JUMP_BYTES - 1) {
                look->found |= ML_ENTRY_BODY_LEADS_INTO;
            }
        }
        offset += instruction.length;
    }
    look->aside_low = address;
    look->aside_high = address + offset;
}

/* How much of the function is there to look at, from its entry. */
static size_t body_bytes(struct look *look) {
    const struct ml_entry_function *function = look->function;
    uint64_t bytes = function->size == 0 ? ML_ENTRY_BODY_UNKNOWN_BYTES : function->size;
    if (bytes > ML_ENTRY_BODY_BYTES_MAX || (function->size != 0 && bytes > function->code_bytes)) {
        look->found |= ML_ENTRY_BODY_IS_TOO_LARGE;
        return 0;
    }
    return bytes < function->code_bytes ? (size_t)bytes : function->code_bytes;
}

uint32_t
ml_entry_body_look(const struct ml_entry_function *function, uint64_t at, uint32_t moved_bytes) {
    struct look look = {.function = function, .at = at};
    const size_t end = body_bytes(&look);
    const size_t begin = (size_t)(at - function->address) + moved_bytes;
    size_t next = begin; /* where the next instruction begins */
    bool is_decoded = true;
    for (size_t offset = begin; offset < end; offset++) {
        const uint8_t *code = function->code + offset;
        const uint64_t address = function->address + offset;
        struct ml_instruction instruction;
        note_distance_4(&look, code, end - offset, address);
        if (!is_decoded) {
            note_distance_1(&look, code, end - offset, address);
        }
        if (offset != next) {
            continue;
        }
        if (!ml_instruction_decode(code, end - offset, &instruction)) {
            note_distance_1(&look, code, end - offset, address);
            is_decoded = false;
            next++;
            continue;
        }
        const uint64_t target = note_instruction(&look, &instruction, code, address);
        if (target != 0 && target - function->address >= end) {
            look_aside(&look, target);
        }
        next += instruction.length;
    }
    /* A table of distances: movslq, add, jmp to a register. */
    if (look.has_table_load && look.has_register_jump) {
        look.found |= ML_ENTRY_BODY_HAS_SWITCH;
    }
    return look.found;
}

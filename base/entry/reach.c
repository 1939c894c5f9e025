#include "base/entry/reach.h"

#include "base/entry/instruction.h"

struct reach {
    const struct ml_entry_function *function;
    uint64_t places[ML_ENTRY_REACH_PLACES_MAX]; /* that are to be followed, or have been */
    uint32_t count, followed;
    uint32_t instructions_left;
    bool has_table; /* something was loaded by an index */
};

static void note_place(struct reach *reach, uint64_t address) {
    for (uint32_t i = 0; i < reach->count; i++) {
        if (reach->places[i] == address) {
            return;
        }
    }
    if (reach->count < ML_ENTRY_REACH_PLACES_MAX) {
        reach->places[reach->count++] = address;
    }
}

/* A load from a table: mov with an index register, or what switches use (movslq). */
static bool loads_by_index(const struct ml_instruction *instruction, const uint8_t *code) {
    enum { MOV_LOAD = 0x8b, NO_INDEX = 4, HAS_SIB = 4 };
    const uint32_t at = instruction->opcode_at;
    if (instruction->is_table_load) {
        return true;
    }
    if (code[at] != MOV_LOAD || instruction->length < at + 3U) {
        return false;
    }
    const uint8_t modrm = code[at + 1];
    return modrm >> 6 != 3 && (modrm & 7) == HAS_SIB && (code[at + 2] >> 3 & 7) != NO_INDEX;
}

/* A call by an address. A jump by one is a call as well (an entry of the procedure linkage, a table
 * of functions that an allocator passes its calls on to), unless it may be a switch's. */
static bool is_outward(const struct reach *reach, const struct ml_instruction *instruction) {
    return instruction->is_indirect &&
           (instruction->kind == ML_INSTRUCTION_CALL ||
            (!instruction->is_table_jump && (!instruction->is_register || !reach->has_table)));
}

/* From one place on to where it does not go on. True: it leads outwards. */
static bool follow(struct reach *reach, uint64_t address) {
    const struct ml_entry_function *function = reach->function;
    uint64_t offset = address - function->text_address;
    while (offset < function->text_bytes && reach->instructions_left > 0) {
        const uint8_t *code = function->text + offset;
        struct ml_instruction instruction;
        reach->instructions_left--;
        if (!ml_instruction_decode(code, function->text_bytes - (size_t)offset, &instruction)) {
            return false;
        }
        reach->has_table = reach->has_table || loads_by_index(&instruction, code);
        if (is_outward(reach, &instruction)) {
            return true;
        }
        if (instruction.relative_bytes != 0) {
            note_place(
                reach, ml_instruction_target(&instruction, code, function->text_address + offset)
            );
        }
        if (instruction.kind == ML_INSTRUCTION_END || instruction.kind == ML_INSTRUCTION_JUMP) {
            return false;
        }
        offset += instruction.length;
    }
    return false;
}

bool ml_entry_reaches_out(const struct ml_entry_function *function) {
    struct reach reach = {
        .function = function, .instructions_left = ML_ENTRY_REACH_INSTRUCTIONS_MAX};
    if (function->text == NULL) {
        return false;
    }
    note_place(&reach, function->address);
    while (reach.followed < reach.count) {
        if (follow(&reach, reach.places[reach.followed++])) {
            return true;
        }
    }
    return false;
}

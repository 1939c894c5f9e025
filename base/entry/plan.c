#include "base/entry/plan.h"

#include <string.h>

#include "base/entry/body.h"
#include "base/entry/instruction.h"

enum {
    JMP_REL32 = 0xe9,
    INT3 = 0xcc,
    ENDBR64_BYTES = 4,
    CODE_ALIGNMENT = 16 /* of functions, which compilers pad to */
};

static const uint8_t endbr64[ENDBR64_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};

/* Rows, not pointers: each pointer is a relocation in every process. */
static const char refusal_texts[ML_ENTRY_REFUSAL_COUNT][ML_ENTRY_REFUSAL_TEXT_MAX] = {
    [ML_ENTRY_PLANNED] = "it can be patched",
    [ML_ENTRY_PATCHED_ALREADY] = "it is patched already",
    [ML_ENTRY_NOT_READABLE] = "its code ends within the bytes to be moved",
    [ML_ENTRY_SHORT] = "the function is shorter than the jump",
    [ML_ENTRY_RUNS_OUT] = "it runs on into another function within the jump",
    [ML_ENTRY_UNKNOWN_INSTRUCTION] = "an instruction at its entry is not known",
    [ML_ENTRY_CALL] = "a call stands at its entry",
    [ML_ENTRY_LOOP] = "an instruction at its entry has no longer form (loop)",
    [ML_ENTRY_BREAKPOINT] = "a breakpoint stands at its entry (debugger, uprobe)",
    [ML_ENTRY_BRANCH_INTO] = "it branches into the bytes to be patched",
    [ML_ENTRY_BRANCH_BACK] = "it branches back to its entry",
    [ML_ENTRY_SWITCH] = "a table of it may lead back to its entry",
    [ML_ENTRY_LARGE] = "it is too large to be looked at",
    [ML_ENTRY_STUB_FAR] = "the stub is more than 2 GiB away",
    [ML_ENTRY_TARGET_FAR] = "what its entry leads to is too far from the trampoline",
    [ML_ENTRY_CHOSEN] = "the program chooses it as it starts (IFUNC)",
    [ML_ENTRY_KNOWN] = "its callers may know which registers it leaves alone",
    [ML_ENTRY_CHANGED] = "its entry is not as in its file (debugger, uprobe)",
};

const char *ml_entry_refusal_text(enum ml_entry_refusal refusal) {
    const uint32_t row = (uint32_t)refusal;
    return row < ML_ENTRY_REFUSAL_COUNT ? refusal_texts[row] : "an unknown reason";
}

bool ml_entry_plan_covers(const struct ml_entry_plan *plan, uint64_t address) {
    return address - plan->at - 1 < ML_ENTRY_JUMP_BYTES - 1;
}

/* One plan as it is made. */
struct planning {
    const uint8_t *code; /* at plan->at */
    size_t readable_bytes;
    uint64_t left_bytes; /* of the function from there on; UINT64_MAX: not known */
    uint64_t entry;
    uint64_t trampoline_address;
    bool may_push_calls;
    struct ml_entry_plan *plan;
};

/* The distance from behind an instruction to a target. */
static bool distance_of(uint64_t target, uint64_t behind, int32_t *out_distance) {
    const uint64_t distance = target - behind;
    *out_distance = (int32_t)(uint32_t)distance;
    return (uint64_t)(int64_t)*out_distance == distance;
}

/* At the trampoline's end: opcode bytes, and a distance of 4 bytes to the target. */
static bool put_branch(
    struct planning *planning, const uint8_t *opcode, uint32_t opcode_bytes, uint64_t target
) {
    struct ml_entry_plan *plan = planning->plan;
    uint8_t *to = plan->trampoline + plan->trampoline_bytes;
    memcpy(to, opcode, opcode_bytes);
    plan->trampoline_bytes += opcode_bytes + 4;
    int32_t distance = 0;
    const bool is_near =
        distance_of(target, planning->trampoline_address + plan->trampoline_bytes, &distance);
    memcpy(to + opcode_bytes, &distance, sizeof distance);
    return is_near;
}

static bool put_jump(struct planning *planning, uint64_t target) {
    const uint8_t opcode = JMP_REL32;
    return put_branch(planning, &opcode, 1, target);
}

/* A branch or jump among the moved instructions, in its long form. */
static enum ml_entry_refusal move_branch(
    struct planning *planning, const struct ml_instruction *instruction, const uint8_t *code
) {
    struct ml_entry_plan *plan = planning->plan;
    uint64_t target = ml_instruction_target(instruction, code, plan->at + plan->moved_bytes);
    if (ml_entry_plan_covers(plan, target)) {
        return ML_ENTRY_BRANCH_INTO;
    }
    if (target - planning->entry <= plan->at - planning->entry) {
        target = planning->trampoline_address; /* back to the entry is not another call */
    }
    bool is_near = false;
    if (instruction->kind == ML_INSTRUCTION_JUMP) {
        is_near = put_jump(planning, target);
    } else {
        const uint8_t opcode[2] = {0x0f, (uint8_t)(0x80 | instruction->condition)};
        is_near = put_branch(planning, opcode, sizeof opcode, target);
    }
    return is_near ? ML_ENTRY_PLANNED : ML_ENTRY_TARGET_FAR;
}

/* Any other instruction, whose operand stays where it is. */
static enum ml_entry_refusal copy_instruction(
    struct planning *planning, const struct ml_instruction *instruction, const uint8_t *code
) {
    struct ml_entry_plan *plan = planning->plan;
    uint8_t *to = plan->trampoline + plan->trampoline_bytes;
    memcpy(to, code, instruction->length);
    if (instruction->displacement_at != 0) {
        int32_t displacement = 0;
        memcpy(&displacement, code + instruction->displacement_at, sizeof displacement);
        const uint64_t operand = plan->at + plan->moved_bytes + (uint64_t)(int64_t)displacement;
        if (!distance_of(
                operand, planning->trampoline_address + plan->trampoline_bytes, &displacement
            )) {
            return ML_ENTRY_TARGET_FAR;
        }
        memcpy(to + instruction->displacement_at, &displacement, sizeof displacement);
    }
    plan->trampoline_bytes += instruction->length;
    return ML_ENTRY_PLANNED;
}

/* push of the lower half, which is extended by its sign; movl of the upper one. */
static void put_push(struct planning *planning, uint64_t value) {
    uint8_t code[] = {0x68, 0, 0, 0, 0, 0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0};
    const uint32_t low = (uint32_t)value;
    const uint32_t high = (uint32_t)(value >> 32);
    memcpy(code + 1, &low, sizeof low);
    memcpy(code + 9, &high, sizeof high);
    memcpy(planning->plan->trampoline + planning->plan->trampoline_bytes, code, sizeof code);
    planning->plan->trampoline_bytes += sizeof code;
}

/* A call's end lies behind the jump, wherever it begins within: it is the last one that is moved,
 * and what it returns to stays. */
static enum ml_entry_refusal move_call(
    struct planning *planning, const struct ml_instruction *instruction, const uint8_t *code
) {
    struct ml_entry_plan *plan = planning->plan;
    static const uint8_t by_memory[] = {0xff, 0x15};
    const uint64_t behind = plan->at + plan->moved_bytes + instruction->length;
    const bool is_direct = !instruction->is_indirect && instruction->relative_bytes == 4;
    const bool is_by_memory = instruction->is_indirect && instruction->displacement_at == 2 &&
                              memcmp(code, by_memory, sizeof by_memory) == 0;
    if (!planning->may_push_calls || (!is_direct && !is_by_memory) ||
        plan->moved_bytes + instruction->length < ML_ENTRY_JUMP_BYTES) {
        return ML_ENTRY_CALL;
    }
    put_push(planning, behind);
    bool is_near = false;
    if (is_direct) {
        const uint64_t target =
            ml_instruction_target(instruction, code, plan->at + plan->moved_bytes);
        if (ml_entry_plan_covers(plan, target)) {
            return ML_ENTRY_BRANCH_INTO;
        }
        is_near = put_jump(planning, target);
    } else {
        static const uint8_t jump_by_memory[] = {0xff, 0x25};
        int32_t displacement = 0;
        memcpy(&displacement, code + instruction->displacement_at, sizeof displacement);
        is_near = put_branch(
            planning,
            jump_by_memory,
            sizeof jump_by_memory,
            behind + (uint64_t)(int64_t)displacement
        );
    }
    return is_near ? ML_ENTRY_PLANNED : ML_ENTRY_TARGET_FAR;
}

static enum ml_entry_refusal
move_instruction(struct planning *planning, struct ml_instruction *out_instruction) {
    const uint32_t moved = planning->plan->moved_bytes;
    const uint8_t *code = planning->code + moved;
    const size_t readable = planning->readable_bytes - moved;
    if (moved >= planning->left_bytes) {
        return ML_ENTRY_RUNS_OUT;
    }
    if (readable > 0 && code[0] == INT3) {
        return ML_ENTRY_BREAKPOINT;
    }
    if (!ml_instruction_decode(code, readable, out_instruction)) {
        return readable < ML_INSTRUCTION_BYTES_MAX ? ML_ENTRY_NOT_READABLE
                                                   : ML_ENTRY_UNKNOWN_INSTRUCTION;
    }
    if (out_instruction->length > planning->left_bytes - moved) {
        return ML_ENTRY_RUNS_OUT;
    }
    switch (out_instruction->kind) {
    case ML_INSTRUCTION_CALL:
        return move_call(planning, out_instruction, code);
    case ML_INSTRUCTION_LOOP:
        return ML_ENTRY_LOOP;
    case ML_INSTRUCTION_BRANCH:
    case ML_INSTRUCTION_JUMP:
        return move_branch(planning, out_instruction, code);
    default:
        return copy_instruction(planning, out_instruction, code);
    }
}

/* Nothing but padding from the moved bytes' end on to where the next function may begin, and the
 * jump has room in it? It must reach so far: a function that begins with nops looks like padding.
 */
static bool is_padded(const struct planning *planning) {
    const struct ml_entry_plan *plan = planning->plan;
    size_t offset = plan->moved_bytes;
    const size_t end =
        offset + (size_t)(-(plan->at + offset) % CODE_ALIGNMENT); /* 0 where it is aligned */
    while (offset < end) {
        struct ml_instruction instruction;
        const size_t readable = planning->readable_bytes - offset;
        if (!ml_instruction_decode(planning->code + offset, readable, &instruction) ||
            (!instruction.is_nop && planning->code[offset] != INT3)) {
            return false;
        }
        offset += instruction.length;
    }
    return offset == end && end >= ML_ENTRY_JUMP_BYTES;
}

/* The instructions that the jump covers, into the trampoline. */
static enum ml_entry_refusal move_instructions(struct planning *planning) {
    struct ml_entry_plan *plan = planning->plan;
    bool is_ended = false;
    bool is_called = false; /* and goes on by itself */
    while (plan->moved_bytes < ML_ENTRY_JUMP_BYTES && !is_ended) {
        struct ml_instruction instruction;
        const enum ml_entry_refusal refusal = move_instruction(planning, &instruction);
        if (refusal != ML_ENTRY_PLANNED) {
            return refusal;
        }
        is_ended =
            instruction.kind == ML_INSTRUCTION_END || instruction.kind == ML_INSTRUCTION_JUMP;
        is_called = instruction.kind == ML_INSTRUCTION_CALL;
        plan->moved_bytes += instruction.length;
    }
    if (is_ended) {
        return plan->moved_bytes >= ML_ENTRY_JUMP_BYTES || is_padded(planning) ? ML_ENTRY_PLANNED
                                                                               : ML_ENTRY_SHORT;
    }
    return is_called || put_jump(planning, plan->at + plan->moved_bytes) ? ML_ENTRY_PLANNED
                                                                         : ML_ENTRY_TARGET_FAR;
}

static enum ml_entry_refusal
look_at_body(const struct ml_entry_function *function, const struct ml_entry_plan *plan) {
    const uint32_t found = ml_entry_body_look(function, plan->at, plan->moved_bytes);
    if ((found & ML_ENTRY_BODY_IS_TOO_LARGE) != 0) {
        return ML_ENTRY_LARGE;
    }
    if ((found & ML_ENTRY_BODY_LEADS_INTO) != 0) {
        return ML_ENTRY_BRANCH_INTO;
    }
    if ((found & ML_ENTRY_BODY_LEADS_BACK) != 0) {
        return ML_ENTRY_BRANCH_BACK;
    }
    return (found & ML_ENTRY_BODY_HAS_SWITCH) != 0 ? ML_ENTRY_SWITCH : ML_ENTRY_PLANNED;
}

/* The jump to the stub; PATCHED_ALREADY where it stands there. */
static enum ml_entry_refusal put_entry_jump(struct planning *planning, uint64_t stub_address) {
    struct ml_entry_plan *plan = planning->plan;
    int32_t distance = 0;
    if (!distance_of(stub_address, plan->at + ML_ENTRY_JUMP_BYTES, &distance)) {
        return ML_ENTRY_STUB_FAR;
    }
    plan->jump[0] = JMP_REL32;
    memcpy(plan->jump + 1, &distance, sizeof distance);
    if (planning->readable_bytes < ML_ENTRY_JUMP_BYTES) {
        return ML_ENTRY_NOT_READABLE;
    }
    memcpy(plan->old, planning->code, sizeof plan->old);
    return memcmp(plan->old, plan->jump, sizeof plan->old) == 0 ? ML_ENTRY_PATCHED_ALREADY
                                                                : ML_ENTRY_PLANNED;
}

enum ml_entry_refusal ml_entry_plan(
    const struct ml_entry_function *function,
    uint64_t stub_address,
    uint64_t trampoline_address,
    struct ml_entry_plan *out_plan
) {
    const size_t kept =
        function->code_bytes >= ENDBR64_BYTES && memcmp(function->code, endbr64, ENDBR64_BYTES) == 0
            ? ENDBR64_BYTES
            : 0;
    *out_plan = (struct ml_entry_plan){.at = function->address + kept};
    struct planning planning = {
        .code = function->code + kept,
        .readable_bytes = function->code_bytes - kept,
        .left_bytes = function->size == 0     ? UINT64_MAX
                      : function->size > kept ? function->size - kept
                                              : 0,
        .entry = function->address,
        .trampoline_address = trampoline_address,
        .may_push_calls = function->may_push_calls,
        .plan = out_plan};
    enum ml_entry_refusal refusal = put_entry_jump(&planning, stub_address);
    if (refusal == ML_ENTRY_PLANNED) {
        refusal = move_instructions(&planning);
    }
    return refusal == ML_ENTRY_PLANNED ? look_at_body(function, out_plan) : refusal;
}

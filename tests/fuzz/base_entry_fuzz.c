/* A function's code: the size of its symbol in the first 2 bytes (0: not known), how its address is
 * aligned in the third, where its text begins before it in the fourth, then the text. Whatever is
 * planned has a trampoline that can be read back. */
#include <stdlib.h>
#include <string.h>

#include "base/entry/instruction.h"
#include "base/entry/plan.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD_BYTES = 4, ADDRESS = 0x400000, STUB = 0x500000, TRAMPOLINE = 0x500041 };

/* A push of its return address, in two instructions, and a jump. */
static void read_back_call(const struct ml_entry_plan *plan, uint32_t at) {
    struct ml_instruction ours;
    for (int i = 0; i < 3; i++) {
        REQUIRE(ml_instruction_decode(plan->trampoline + at, plan->trampoline_bytes - at, &ours));
        at += ours.length;
    }
    REQUIRE(ours.kind == ML_INSTRUCTION_JUMP || ours.is_indirect);
    REQUIRE(at == plan->trampoline_bytes);
}

/* As many instructions as were moved, and a way back unless the last of them ends. */
static void read_back(const struct ml_entry_plan *plan, const uint8_t *code) {
    struct ml_instruction ours;
    struct ml_instruction theirs = {.kind = ML_INSTRUCTION_PLAIN};
    uint32_t at = 0;
    for (uint32_t moved = 0; moved < plan->moved_bytes; moved += theirs.length) {
        REQUIRE(ml_instruction_decode(code + moved, plan->moved_bytes - moved, &theirs));
        if (theirs.kind == ML_INSTRUCTION_CALL) {
            read_back_call(plan, at);
            REQUIRE(moved + theirs.length == plan->moved_bytes);
            return;
        }
        REQUIRE(ml_instruction_decode(plan->trampoline + at, plan->trampoline_bytes - at, &ours));
        REQUIRE(ours.kind == theirs.kind);
        if (ours.displacement_at == 0 && ours.relative_bytes == 0) {
            REQUIRE(ours.length == theirs.length);
            REQUIRE(memcmp(plan->trampoline + at, code + moved, ours.length) == 0);
        }
        at += ours.length;
    }
    if (theirs.kind == ML_INSTRUCTION_END || theirs.kind == ML_INSTRUCTION_JUMP) {
        REQUIRE(at == plan->trampoline_bytes);
        return;
    }
    REQUIRE(plan->moved_bytes >= ML_ENTRY_JUMP_BYTES);
    REQUIRE(ml_instruction_decode(plan->trampoline + at, plan->trampoline_bytes - at, &ours));
    REQUIRE(ours.kind == ML_INSTRUCTION_JUMP && at + ours.length == plan->trampoline_bytes);
    REQUIRE(
        ml_instruction_target(&ours, plan->trampoline + at, TRAMPOLINE + at) ==
        plan->at + plan->moved_bytes
    );
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    if (count_bytes < HEAD_BYTES) {
        return 0;
    }
    const size_t text_bytes = count_bytes - HEAD_BYTES;
    const size_t before = data[3] < text_bytes ? data[3] : text_bytes;
    /* Of its own size, so that a sanitizer sees the first byte read behind it. */
    uint8_t *text = malloc(text_bytes == 0 ? 1 : text_bytes);
    memcpy(text, data + HEAD_BYTES, text_bytes);
    const uint64_t text_address = ADDRESS + data[2];
    const struct ml_entry_function function = {
        .code = text + before,
        .code_bytes = text_bytes - before,
        .address = text_address + before,
        .size = (uint64_t)data[0] << 8 | data[1],
        .text = text,
        .text_bytes = text_bytes,
        .text_address = text_address,
        .may_push_calls = (data[2] & 1) != 0};
    struct ml_entry_plan plan;
    const enum ml_entry_refusal refusal = ml_entry_plan(&function, STUB, TRAMPOLINE, &plan);
    REQUIRE((uint32_t)refusal < ML_ENTRY_REFUSAL_COUNT);
    if (refusal == ML_ENTRY_PLANNED) {
        const size_t kept = (size_t)(plan.at - function.address);
        REQUIRE(kept == 0 || kept == 4);
        REQUIRE(plan.moved_bytes >= 1 && plan.moved_bytes <= ML_ENTRY_MOVED_MAX);
        REQUIRE(plan.trampoline_bytes <= ML_ENTRY_TRAMPOLINE_MAX);
        REQUIRE(kept + ML_ENTRY_JUMP_BYTES <= function.code_bytes);
        REQUIRE(memcmp(plan.old, function.code + kept, sizeof plan.old) == 0);
        read_back(&plan, function.code + kept);
    }
    free(text);
    return 0;
}

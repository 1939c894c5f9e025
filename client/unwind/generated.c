#include "client/unwind/internal.h"

/* The end of a function of the System V ABI, as a return address may stand before it: "add
 * $n,%rsp", "pop" of registers, "ret". Each of these is executed after the call returns, so they
 * say where the return address lies: no rule is guessed. */
enum {
    CODE_BYTES = 24, /* add, six pops, ret */
    OP_REX_W = 0x48,
    OP_ADD_BYTE = 0x83,
    OP_ADD_LONG = 0x81,
    MODRM_ADD_RSP = 0xc4,
    OP_REX_B = 0x41, /* pop of %r8 to %r15 */
    OP_POP = 0x58,   /* with the register's number in the lowest three bits */
    POP_RSP = 4,
    POP_RBP = 5,
    OP_REPZ = 0xf3,
    OP_RET = 0xc3
};

/* The words that "add $n,%rsp" takes off, and its length; 0: it is none. */
static size_t take_add(const uint8_t *code, size_t count, uint32_t *out_words) {
    uint32_t bytes = 0;
    size_t length = 0;
    *out_words = 0;
    if (count >= 4 && code[0] == OP_REX_W && code[1] == OP_ADD_BYTE && code[2] == MODRM_ADD_RSP &&
        code[3] < 0x80) {
        bytes = code[3];
        length = 4;
    } else if (count >= 7 && code[0] == OP_REX_W && code[1] == OP_ADD_LONG && code[2] == MODRM_ADD_RSP) {
        bytes = (uint32_t)code[3] | (uint32_t)code[4] << 8 | (uint32_t)code[5] << 16 |
                (uint32_t)code[6] << 24;
        length = 7;
    }
    *out_words = bytes / ML_ARCH_WORD_BYTES;
    return bytes % ML_ARCH_WORD_BYTES == 0 ? length : 0;
}

/* The register that a "pop" takes, and its length; 0: it is none. */
static size_t take_pop(const uint8_t *code, size_t count, uint32_t *out_register) {
    const size_t prefix = count > 0 && code[0] == OP_REX_B ? 1 : 0;
    if (prefix >= count || (code[prefix] & ~7U) != OP_POP) {
        return 0;
    }
    *out_register = (code[prefix] & 7U) + (prefix != 0 ? 8 : 0);
    return prefix + 1;
}

uint64_t ml_unwind_rule_of_code(const uint8_t *code, size_t count) {
    uint32_t words = 0;
    uint32_t rbp_at = 0; /* 1 + its place above the stack pointer; 0: unchanged */
    size_t at = take_add(code, count, &words);
    for (;;) {
        uint32_t reg = 0;
        const size_t length = take_pop(code + at, count - at, &reg);
        if (length == 0) {
            break;
        }
        if (reg == POP_RSP) {
            return 0;
        }
        words++;
        rbp_at = reg == POP_RBP ? words : rbp_at;
        at += length;
    }
    at += at < count && code[at] == OP_REPZ ? 1 : 0;
    words++; /* the return address */
    if (at >= count || code[at] != OP_RET || words > ML_RECIPE_CFA_WORDS_MAX ||
        words > ML_RECIPE_FP_WORDS_MAX) {
        return 0;
    }
    return ml_recipe_make(ML_RECIPE_SP, words, rbp_at == 0 ? 0 : words + 1 - rbp_at, 0);
}

/* Copy code from an address that may be any: what is not readable is left out. */
static size_t copy_code(uintptr_t pc, uint8_t out_code[CODE_BYTES]) {
    const uintptr_t page_end = (pc | (ML_ARCH_PAGE_BYTES - 1)) + 1;
    size_t count = CODE_BYTES;
    if (page_end <= pc || !ml_arch_readable(pc & ~(uintptr_t)(ML_ARCH_WORD_BYTES - 1))) {
        return 0;
    }
    if (page_end - pc < CODE_BYTES && !ml_arch_readable(page_end)) {
        count = page_end - pc;
    }
    for (size_t i = 0; i < count; i++) {
        const uintptr_t at = pc + i;
        const uintptr_t word = ml_unwind_load(at & ~(uintptr_t)(ML_ARCH_WORD_BYTES - 1));
        out_code[i] = (uint8_t)(word >> at % ML_ARCH_WORD_BYTES * 8);
    }
    return count;
}

uint64_t ml_unwind_rule_generated(struct ml_unwind_thread *thread, uintptr_t pc) {
    static const uint64_t by_frame_pointer =
        ML_RECIPE_FP | UINT64_C(2) << ML_RECIPE_CFA_SHIFT | UINT64_C(2) << ML_RECIPE_FP_SHIFT;
    uint8_t code[CODE_BYTES];
    uintptr_t *framed = &thread->framed[ml_recipe_hash(pc) >> 32 & (ML_UNWIND_FRAMED - 1)];
    if (*framed == pc) {
        return by_frame_pointer;
    }
    const uint64_t recipe = ml_unwind_rule_of_code(code, copy_code(pc, code));
    if (recipe == 0) {
        *framed = pc;
        return by_frame_pointer;
    }
    return recipe;
}

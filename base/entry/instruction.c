#include "base/entry/instruction.h"

#include <string.h>

/* What follows an opcode, one character for each: the maps of Intel's manual, volume 2, appendix A,
 * in 64-bit mode.
 *   .  nothing                  m  ModRM                    b  1 byte
 *   z  2 or 4 bytes             B  ModRM and 1 byte         Z  ModRM and 2 or 4 bytes
 *   w  2 bytes, ends            e  nothing, ends            n  2 bytes and 1 (enter)
 *   q  2, 4 or 8 bytes (mov)    o  an address (mov)         c  condition and distance
 *   l  loop                     C  call                     j  jmp rel8, J  jmp rel32
 *   t  ModRM; 0 and 1 in its middle: and an immediate, of 1 byte or as z, by the opcode's low bit
 *   g  ModRM with 0 in its middle alone    h  with 0 or 1 alone    i  0 alone, and an immediate
 *   x  group 5                  r  REX                      p  prefix
 *   E  the second map           v  VEX, EVEX                -  not known, or no instruction */
static const char one_byte_map[256 + 1] = "mmmmbz--mmmmbz-E" /* 0x00 */
                                          "mmmmbz--mmmmbz--"
                                          "mmmmbzp-mmmmbzp-"
                                          "mmmmbzp-mmmmbzp-"
                                          "rrrrrrrrrrrrrrrr" /* 0x40 */
                                          "................"
                                          "--vmppppzZbB...."
                                          "cccccccccccccccc"
                                          "BZ-Bmmmmmmmmmmmg" /* 0x80 */
                                          "..........-....."
                                          "oooo....bz......"
                                          "bbbbbbbbqqqqqqqq"
                                          "BBwevviin.weeb-e" /* 0xc0 */
                                          "mmmm---.mmmmmmmm"
                                          "llllbbbbCJ-j...."
                                          "p.ppe.tt......hx";

/* Behind 0x0f. Opcodes whose length depends on the maker (ud0, 3DNow!, extrq, VIA's), and moves of
 * control registers, whose ModRM is none, are not known.
 *   8  the map 0x0f38           3  the map 0x0f3a           P  popcnt: with a prefix alone */
static const char two_byte_map[256 + 1] = "mmmm-.....-e-m--" /* 0x00 */
                                          "mmmmmmmmmmmmmmmm"
                                          "--------mmmmmmmm"
                                          "......-.8-3-----"
                                          "mmmmmmmmmmmmmmmm" /* 0x40 */
                                          "mmmmmmmmmmmmmmmm"
                                          "mmmmmmmmmmmmmmmm"
                                          "BBBBmmm.----mmmm"
                                          "cccccccccccccccc" /* 0x80 */
                                          "mmmmmmmmmmmmmmmm"
                                          "...mBm--..-mBmmm"
                                          "mmmmmmmmPmBmmmmm"
                                          "mmBmBBBm........" /* 0xc0 */
                                          "mmmmmmmmmmmmmmmm"
                                          "mmmmmmmmmmmmmmmm"
                                          "mmmmmmmmmmmmmmm-";

enum { REX_W = 8, MAP_0F = 1, MAP_0F38 = 2, MAP_0F3A = 3, MAP_5 = 5, MAP_6 = 6 };

/* What is being decoded. */
struct decoding {
    const uint8_t *code;
    size_t bytes; /* no more than an instruction may have */
    size_t at;
    bool is_16_bit;         /* prefix 0x66 */
    bool is_32_bit_address; /* prefix 0x67 */
    bool is_repeated;       /* prefix 0xf3 */
    bool is_wide;           /* REX.W: stronger than 0x66 */
    bool has_rex_b;
    bool has_simd_prefix; /* 0x66, 0xf2, 0xf3, 0xf0, REX: none may stand before VEX */
    uint8_t opcode;
    struct ml_instruction *out;
};

static bool has(const struct decoding *decoding, size_t count_bytes) {
    return decoding->bytes - decoding->at >= count_bytes;
}

static bool skip(struct decoding *decoding, size_t count_bytes) {
    if (!has(decoding, count_bytes)) {
        return false;
    }
    decoding->at += count_bytes;
    return true;
}

static size_t operand_bytes(const struct decoding *decoding) {
    return decoding->is_16_bit && !decoding->is_wide ? 2 : 4;
}

/* Moves to the opcode, which is there then. A REX that is no last prefix is none; no compiler
 * writes one. */
static bool take_prefixes(struct decoding *decoding) {
    for (; has(decoding, 1); decoding->at++) {
        const uint8_t byte = decoding->code[decoding->at];
        const char class = one_byte_map[byte];
        if (class == 'r') {
            decoding->is_wide = (byte & REX_W) != 0;
            decoding->has_rex_b = (byte & 1) != 0;
            decoding->has_simd_prefix = true;
            decoding->at++;
            return has(decoding, 1) && one_byte_map[decoding->code[decoding->at]] != 'r' &&
                   one_byte_map[decoding->code[decoding->at]] != 'p';
        }
        if (class != 'p') {
            return true;
        }
        decoding->is_16_bit |= byte == 0x66;
        decoding->is_32_bit_address |= byte == 0x67;
        decoding->is_repeated |= byte == 0xf3;
        decoding->has_simd_prefix |= byte == 0x66 || byte >= 0xf0;
    }
    return false;
}

/* The operand that ModRM describes. */
static bool take_modrm(struct decoding *decoding) {
    if (!has(decoding, 1)) {
        return false;
    }
    struct ml_instruction *out = decoding->out;
    const uint8_t modrm = decoding->code[decoding->at++];
    const uint8_t mode = modrm >> 6;
    if (mode == 3) {
        return true;
    }
    uint8_t base = modrm & 7;
    if (base == 4) {
        if (!has(decoding, 1)) {
            return false;
        }
        const uint8_t sib = decoding->code[decoding->at++];
        base = sib & 7;
        const bool is_scaled = sib >> 6 >= 2; /* by 4 or 8: a table's entries */
        out->is_table_load = decoding->opcode == 0x63 && is_scaled;
        out->is_table_jump = decoding->opcode == 0xff && is_scaled;
        if (mode == 0 && base == 5) {
            return skip(decoding, 4);
        }
    } else if (mode == 0 && base == 5) {
        if (decoding->is_32_bit_address) {
            return false; /* relative, and cut to 32 bits */
        }
        out->displacement_at = (uint8_t)decoding->at;
        return skip(decoding, 4);
    }
    return mode == 0 || skip(decoding, mode == 1 ? 1 : 4);
}

static bool
take_relative(struct decoding *decoding, size_t count_bytes, enum ml_instruction_kind kind) {
    /* Intel's processors ignore 0x66 before a near branch, AMD's cut the target to 16 bits. */
    if (decoding->is_16_bit && !decoding->is_wide) {
        return false;
    }
    decoding->out->kind = kind;
    decoding->out->condition = decoding->opcode & 0xf;
    decoding->out->relative_at = (uint8_t)decoding->at;
    decoding->out->relative_bytes = (uint8_t)count_bytes;
    return skip(decoding, count_bytes);
}

/* Group 5: inc, dec, call, far call, jmp, far jmp, push. */
static bool take_group_5(struct decoding *decoding) {
    if (!has(decoding, 1)) {
        return false;
    }
    const uint8_t modrm = decoding->code[decoding->at];
    const uint8_t what = modrm >> 3 & 7;
    const bool is_far = what == 3 || what == 5;
    if (what == 7 || (is_far && modrm >> 6 == 3) || !take_modrm(decoding)) {
        return false;
    }
    struct ml_instruction *out = decoding->out;
    out->is_indirect = what >= 2 && what <= 5;
    out->is_register = out->is_indirect && modrm >> 6 == 3;
    out->is_table_jump = out->is_table_jump && what == 4;
    if (out->is_indirect) {
        out->kind = what <= 3 ? ML_INSTRUCTION_CALL : ML_INSTRUCTION_END;
    }
    return true;
}

/* Group 11: mov, and what transactions are made of. */
static bool take_group_11(struct decoding *decoding) {
    if (!has(decoding, 1)) {
        return false;
    }
    const uint8_t modrm = decoding->code[decoding->at];
    const bool is_byte = (decoding->opcode & 1) == 0;
    if (modrm == 0xf8) { /* xabort, xbegin */
        decoding->at++;
        return is_byte ? skip(decoding, 1) : take_relative(decoding, 4, ML_INSTRUCTION_LOOP);
    }
    return (modrm & 0x38) == 0 && take_modrm(decoding) &&
           skip(decoding, is_byte ? 1 : operand_bytes(decoding));
}

/* The groups whose ModRM says whether it is an instruction, and how it goes on. */
static bool take_group(struct decoding *decoding, char class) {
    if (!has(decoding, 1)) {
        return false;
    }
    const uint8_t what = decoding->code[decoding->at] >> 3 & 7;
    if (class == 't') {
        const size_t immediate = (decoding->opcode & 1) == 0 ? 1 : operand_bytes(decoding);
        return take_modrm(decoding) && (what > 1 || skip(decoding, immediate));
    }
    return what <= (class == 'h' ? 1 : 0) && take_modrm(decoding);
}

static bool take_end(struct decoding *decoding, size_t count_bytes) {
    decoding->out->kind = ML_INSTRUCTION_END;
    return skip(decoding, count_bytes);
}

/* What stands behind an opcode of either map. */
static bool take_operands(struct decoding *decoding, char class, bool is_second_map) {
    switch (class) {
    case '.':
        return true;
    case 'm':
        return take_modrm(decoding);
    case 'b':
        return skip(decoding, 1);
    case 'z':
        return skip(decoding, operand_bytes(decoding));
    case 'B':
        return take_modrm(decoding) && skip(decoding, 1);
    case 'Z':
        return take_modrm(decoding) && skip(decoding, operand_bytes(decoding));
    case 'w':
        return take_end(decoding, 2);
    case 'e':
        return take_end(decoding, 0);
    case 'n':
        return skip(decoding, 3);
    case 'q':
        return skip(decoding, decoding->is_wide ? 8 : operand_bytes(decoding));
    case 'o':
        return skip(decoding, decoding->is_32_bit_address ? 4 : 8);
    case 'c':
        return take_relative(decoding, is_second_map ? 4 : 1, ML_INSTRUCTION_BRANCH);
    case 'l':
        return take_relative(decoding, 1, ML_INSTRUCTION_LOOP);
    case 'C':
        return take_relative(decoding, 4, ML_INSTRUCTION_CALL);
    case 'j':
        return take_relative(decoding, 1, ML_INSTRUCTION_JUMP);
    case 'J':
        return take_relative(decoding, 4, ML_INSTRUCTION_JUMP);
    case 'i':
        return take_group_11(decoding);
    case 'x':
        return take_group_5(decoding);
    case 't':
    case 'g':
    case 'h':
        return take_group(decoding, class);
    case 'P':
        return decoding->is_repeated && take_modrm(decoding);
    default:
        return false;
    }
}

/* Behind 0x0f. */
static bool take_second_map(struct decoding *decoding) {
    if (!has(decoding, 1)) {
        return false;
    }
    decoding->opcode = decoding->code[decoding->at++];
    const char class = two_byte_map[decoding->opcode];
    if (class == '8' || class == '3') {
        /* All of these maps have a ModRM, all of the second an immediate byte. */
        return skip(decoding, 1) && take_modrm(decoding) && (class == '8' || skip(decoding, 1));
    }
    const bool is_nop = decoding->opcode == 0x1f;
    decoding->out->is_nop = is_nop;
    return take_operands(decoding, class, true);
}

/* 0xc5, 0xc4 and 0x62: always VEX and EVEX in 64-bit mode. */
static bool take_vector(struct decoding *decoding) {
    const uint8_t *code = decoding->code + decoding->at;
    const uint8_t first = code[0];
    const size_t prefix_bytes = first == 0xc5 ? 2 : first == 0xc4 ? 3 : 4;
    if (decoding->has_simd_prefix || !has(decoding, prefix_bytes + 1)) {
        return false;
    }
    uint8_t map = MAP_0F;
    if (first == 0xc4) {
        map = code[1] & 0x1f;
    } else if (first == 0x62) {
        map = code[1] & 7;
        /* Two bits that are fixed; processors to come give them a meaning. */
        if ((code[1] & 8) != 0 || (code[2] & 4) == 0) {
            return false;
        }
    }
    decoding->at += prefix_bytes;
    decoding->opcode = 0; /* nothing of group 5 */
    const uint8_t opcode = decoding->code[decoding->at++];
    switch (map) {
    case MAP_0F: {
        const char class = two_byte_map[opcode];
        if (opcode == 0x77) { /* vzeroupper, vzeroall */
            return first != 0x62;
        }
        /* Conversions lie where the map has what depends on the maker. */
        if (class != 'm' && class != 'B' && (opcode < 0x78 || opcode > 0x7b)) {
            return false;
        }
        return take_modrm(decoding) && (class != 'B' || skip(decoding, 1));
    }
    case MAP_0F38:
        return take_modrm(decoding);
    case MAP_0F3A:
        return take_modrm(decoding) && skip(decoding, 1);
    case MAP_5:
    case MAP_6:
        return first == 0x62 && take_modrm(decoding);
    default:
        return false;
    }
}

static bool take_instruction(struct decoding *decoding) {
    if (!take_prefixes(decoding)) {
        return false;
    }
    decoding->out->opcode_at = (uint8_t)decoding->at;
    decoding->opcode = decoding->code[decoding->at];
    const char class = one_byte_map[decoding->opcode];
    if (class == 'v') {
        return take_vector(decoding);
    }
    decoding->at++;
    if (class == 'E') {
        return take_second_map(decoding);
    }
    /* 0xf3 makes it pause, REX.B an exchange. */
    decoding->out->is_nop =
        decoding->opcode == 0x90 && !decoding->is_repeated && !decoding->has_rex_b;
    return take_operands(decoding, class, false);
}

bool ml_instruction_decode(const uint8_t *code, size_t bytes, struct ml_instruction *out) {
    *out = (struct ml_instruction){.kind = ML_INSTRUCTION_PLAIN};
    struct decoding decoding = {
        .code = code,
        .bytes = bytes < ML_INSTRUCTION_BYTES_MAX ? bytes : ML_INSTRUCTION_BYTES_MAX,
        .out = out};
    if (!take_instruction(&decoding)) {
        return false;
    }
    out->length = (uint8_t)decoding.at;
    if (out->kind == ML_INSTRUCTION_PLAIN && out->displacement_at != 0) {
        out->kind = ML_INSTRUCTION_RIP_RELATIVE;
    }
    return true;
}

uint64_t ml_instruction_target(
    const struct ml_instruction *instruction, const uint8_t *code, uint64_t address
) {
    const uint8_t *at = code + instruction->relative_at;
    const uint64_t end = address + instruction->length;
    if (instruction->relative_bytes == 1) {
        int8_t distance = 0;
        memcpy(&distance, at, sizeof distance);
        return end + (uint64_t)(int64_t)distance;
    }
    int32_t distance = 0;
    if (instruction->relative_bytes == 4) {
        memcpy(&distance, at, sizeof distance);
    }
    return end + (uint64_t)(int64_t)distance;
}

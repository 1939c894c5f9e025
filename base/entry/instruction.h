/* How long one x86-64 instruction is, where its parts lie, and where it may lead. Room: base.
 * Context: any; pure.
 *
 * One rule: what is not known for certain is not known. Whoever moves an instruction by a wrong
 * length breaks somebody's program, so instructions whose length depends on the processor's maker,
 * on extensions that are not in the tables, or on prefixes in an order that no compiler writes are
 * refused. */
#ifndef MEMLOG_BASE_ENTRY_INSTRUCTION_H
#define MEMLOG_BASE_ENTRY_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ML_INSTRUCTION_BYTES_MAX = 15 }; /* the architecture's limit */

enum ml_instruction_kind {
    ML_INSTRUCTION_PLAIN = 0,
    ML_INSTRUCTION_RIP_RELATIVE, /* plain, with a memory operand relative to its own end */
    ML_INSTRUCTION_BRANCH,       /* jcc rel8, jcc rel32 */
    ML_INSTRUCTION_JUMP,         /* jmp rel8, jmp rel32 */
    ML_INSTRUCTION_CALL,         /* rel32 or indirect */
    ML_INSTRUCTION_LOOP,         /* loop, loope, loopne, jrcxz, xbegin: relative, and in no longer
                                    form */
    ML_INSTRUCTION_END,          /* ret, iret, indirect jmp, ud2, hlt, int3: what stands behind it
                                    is not reached by falling through */
};

struct ml_instruction {
    uint8_t length;          /* 1..ML_INSTRUCTION_BYTES_MAX */
    uint8_t opcode_at;       /* offset of the opcode, or of its 0x0f, VEX or EVEX prefix */
    uint8_t displacement_at; /* offset of the 4 bytes that are relative to the instruction's end;
                                0: it has no such operand. An indirect call or jump may have one,
                                whatever its kind */
    uint8_t relative_at;     /* offset of a branch's, jump's, call's or loop's distance; 0: none */
    uint8_t relative_bytes;  /* its length: 1 or 4; 0: none */
    uint8_t condition;       /* of a branch: the low 4 bits of its opcode */
    enum ml_instruction_kind kind;
    bool is_indirect;   /* a call or jump to an address in a register or in memory */
    bool is_register;   /* one of them whose address is in a register */
    bool is_table_jump; /* an indirect jump through memory with a scaled index: a switch */
    bool is_nop;        /* the forms of nop that assemblers pad with */
    bool is_table_load; /* movslq from memory with a scaled index: as switches read their tables */
};

/* Decode the instruction at `code`, of which `bytes` are there.
 *
 * Errors: false when it is not known or cut; *out is undefined then.
 * Owner:  code borrowed; nothing is kept. */
bool ml_instruction_decode(const uint8_t *code, size_t bytes, struct ml_instruction *out);

/* Where it leads, if it stands at `address`: relative branches, jumps, calls and loops. */
uint64_t ml_instruction_target(
    const struct ml_instruction *instruction, const uint8_t *code, uint64_t address
);

#endif

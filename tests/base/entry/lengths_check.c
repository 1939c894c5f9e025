/* Holds base/entry/instruction.h against Zydis, instruction by instruction. Room: tests.
 *
 *     lengths_check FILE [BYTES]
 *
 * Decodes the executable sections of an ELF file, at most BYTES of them, from their beginning on;
 * each step is as long as Zydis says, and one byte where Zydis knows no instruction. Prints one
 * JSON object: how many instructions there were, how many of them we do not know, how many we know
 * and Zydis does not, and in how many we differ: in their length, in where the operand that is
 * relative lies, or in where they lead. The first of each are told on stderr. */
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "base/entry/instruction.h"

enum { TOLD_MAX = 20 }; /* of each kind */

struct counts {
    uint64_t instructions; /* that Zydis knows */
    uint64_t unknown;      /* of them, to us */
    uint64_t differing;
    uint64_t ours_alone;
};

static ZydisDecoder decoder;

static void tell(uint64_t count, const char *what, const uint8_t *code, uint64_t at, size_t bytes) {
    if (count > TOLD_MAX) {
        return;
    }
    (void)fprintf(stderr, "%s at %" PRIx64 ":", what, at);
    for (size_t i = 0; i < bytes; i++) {
        (void)fprintf(stderr, " %02x", code[i]);
    }
    (void)fprintf(stderr, "\n");
}

/* What Zydis makes of where an instruction leads. */
static enum ml_instruction_kind kind_of(const ZydisDecodedInstruction *theirs) {
    const bool is_relative = theirs->raw.imm[0].is_relative;
    switch (theirs->mnemonic) {
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_XBEGIN:
        return ML_INSTRUCTION_LOOP;
    case ZYDIS_MNEMONIC_JMP:
        return is_relative ? ML_INSTRUCTION_JUMP : ML_INSTRUCTION_END;
    case ZYDIS_MNEMONIC_CALL:
        return ML_INSTRUCTION_CALL;
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
    case ZYDIS_MNEMONIC_INT3:
        return ML_INSTRUCTION_END;
    default:
        if (is_relative) {
            return ML_INSTRUCTION_BRANCH;
        }
        return (theirs->attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0 ? ML_INSTRUCTION_RIP_RELATIVE
                                                                    : ML_INSTRUCTION_PLAIN;
    }
}

static bool is_same(
    const struct ml_instruction *ours, const ZydisDecodedInstruction *theirs, const uint8_t *code
) {
    const bool is_relative = theirs->raw.imm[0].is_relative;
    const bool is_rip = !is_relative && (theirs->attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0;
    const uint64_t target = ml_instruction_target(ours, code, 0);
    return ours->length == theirs->length && ours->kind == kind_of(theirs) &&
           ours->displacement_at == (is_rip ? theirs->raw.disp.offset : 0) &&
           ours->relative_at == (is_relative ? theirs->raw.imm[0].offset : 0) &&
           ours->relative_bytes == (is_relative ? theirs->raw.imm[0].size / 8 : 0) &&
           (!is_relative || target == theirs->length + (uint64_t)theirs->raw.imm[0].value.s);
}

/* Answers how long the step is. */
static size_t compare(const uint8_t *code, size_t bytes, uint64_t address, struct counts *counts) {
    ZydisDecodedInstruction theirs;
    struct ml_instruction ours;
    const bool is_ours = ml_instruction_decode(code, bytes, &ours);
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, NULL, code, bytes, &theirs))) {
        if (is_ours) {
            tell(++counts->ours_alone, "ours alone", code, address, ours.length);
        }
        return 1;
    }
    counts->instructions++;
    if (!is_ours) {
        tell(++counts->unknown, "not known", code, address, theirs.length);
    } else if (!is_same(&ours, &theirs, code)) {
        tell(++counts->differing, "differs", code, address, theirs.length);
    }
    return theirs.length;
}

static void walk(const uint8_t *code, uint64_t bytes, uint64_t address, struct counts *counts) {
    for (uint64_t at = 0; at < bytes;) {
        at += compare(code + at, bytes - at, address + at, counts);
    }
}

int main(int argc, char **argv) {
    struct stat status;
    const int fd = argc < 2 ? -1 : open(argv[1], O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0) {
        (void)fprintf(stderr, "lengths_check: FILE [BYTES]\n");
        return 2;
    }
    const uint64_t most = argc > 2 ? strtoull(argv[2], NULL, 0) : UINT64_MAX;
    const uint8_t *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (file == MAP_FAILED || memcmp(file, ELFMAG, SELFMAG) != 0) {
        (void)fprintf(stderr, "lengths_check: %s is no ELF file\n", argv[1]);
        return 2;
    }
    (void)ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    struct counts counts = {0};
    uint64_t walked = 0;
    Elf64_Ehdr header;
    memcpy(&header, file, sizeof header);
    for (size_t i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, file + header.e_shoff + i * sizeof section, sizeof section);
        if ((section.sh_flags & SHF_EXECINSTR) == 0 || section.sh_type != SHT_PROGBITS) {
            continue;
        }
        const uint64_t left = most - walked;
        const uint64_t bytes = section.sh_size < left ? section.sh_size : left;
        walk(file + section.sh_offset, bytes, section.sh_addr, &counts);
        walked += bytes;
    }
    (void)printf(
        "{\"instructions\": %" PRIu64 ", \"unknown\": %" PRIu64 ", \"differing\": %" PRIu64
        ", \"ours_alone\": %" PRIu64 ", \"bytes\": %" PRIu64 "}\n",
        counts.instructions,
        counts.unknown,
        counts.differing,
        counts.ours_alone,
        walked
    );
    return 0;
}

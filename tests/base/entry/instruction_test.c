#include "base/entry/instruction.h"

#include <string.h>

#include <check.h>

#include "tests/suite.h"

enum {
    PLAIN = ML_INSTRUCTION_PLAIN,
    RIP = ML_INSTRUCTION_RIP_RELATIVE,
    BRANCH = ML_INSTRUCTION_BRANCH,
    JUMP = ML_INSTRUCTION_JUMP,
    CALL = ML_INSTRUCTION_CALL,
    LOOP = ML_INSTRUCTION_LOOP,
    END = ML_INSTRUCTION_END
};

/* By hand, after Intel's manual; tests/base/entry/lengths_test.py asks Zydis about millions. */
static const struct {
    const char *bytes;
    size_t length;
    int kind;
    int displacement_at;
    int relative_at;
    int relative_bytes;
} known[] = {
    {"\x55", 1, PLAIN, 0, 0, 0},                                      /* push %rbp */
    {"\x48\x89\xe5", 3, PLAIN, 0, 0, 0},                              /* mov %rsp,%rbp */
    {"\x41\x57", 2, PLAIN, 0, 0, 0},                                  /* push %r15 */
    {"\xf3\x0f\x1e\xfa", 4, PLAIN, 0, 0, 0},                          /* endbr64 */
    {"\x48\x83\xec\x18", 4, PLAIN, 0, 0, 0},                          /* sub $24,%rsp */
    {"\x48\x81\xec\x00\x10\x00\x00", 7, PLAIN, 0, 0, 0},              /* sub $4096,%rsp */
    {"\x66\x81\xc1\x34\x12", 5, PLAIN, 0, 0, 0},                      /* add $0x1234,%cx */
    {"\x66\x48\x81\xc1\x78\x56\x34\x12", 8, PLAIN, 0, 0, 0},          /* the same with REX.W */
    {"\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, PLAIN, 0, 0, 0}, /* movabs, %rax */
    {"\xb8\x01\x02\x03\x04", 5, PLAIN, 0, 0, 0},                      /* mov $..,%eax */
    {"\x66\xb8\x01\x02", 4, PLAIN, 0, 0, 0},                          /* mov $..,%ax */
    {"\xa1\x01\x02\x03\x04\x05\x06\x07\x08", 9, PLAIN, 0, 0, 0},      /* movabs 8 bytes,%eax */
    {"\x67\xa1\x01\x02\x03\x04", 6, PLAIN, 0, 0, 0},                  /* movabs 4 bytes,%eax */
    {"\x48\x8b\x05\x01\x02\x03\x04", 7, RIP, 3, 0, 0},                /* mov x(%rip),%rax */
    {"\x83\x3d\x01\x02\x03\x04\x07", 7, RIP, 2, 0, 0},                /* cmpl $7,x(%rip) */
    {"\x48\x8d\x3d\x01\x02\x03\x04", 7, RIP, 3, 0, 0},                /* lea x(%rip),%rdi */
    {"\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9, PLAIN, 0, 0, 0},      /* mov %fs:40,%rax */
    {"\x8b\x44\x24\x08", 4, PLAIN, 0, 0, 0},                          /* mov 8(%rsp),%eax */
    {"\x8b\x84\x24\x08\x00\x00\x00", 7, PLAIN, 0, 0, 0},
    {"\x8b\x04\x85\x08\x00\x00\x00", 7, PLAIN, 0, 0, 0}, /* mov 8(,%rax,4),%eax */
    {"\x8b\x44\x85\x08", 4, PLAIN, 0, 0, 0},
    {"\x8b\x85\x08\x00\x00\x00", 6, PLAIN, 0, 0, 0},
    {"\xf6\x07\x01", 3, PLAIN, 0, 0, 0},             /* testb $1,(%rdi) */
    {"\xf6\x1f", 2, PLAIN, 0, 0, 0},                 /* negb (%rdi) */
    {"\xf7\x07\x01\x00\x00\x00", 6, PLAIN, 0, 0, 0}, /* testl $1,(%rdi) */
    {"\x48\xf7\xd8", 3, PLAIN, 0, 0, 0},             /* neg %rax */
    {"\xc8\x10\x00\x00", 4, PLAIN, 0, 0, 0},         /* enter $16,$0 */
    {"\x68\x01\x02\x03\x04", 5, PLAIN, 0, 0, 0},     /* push $.. */
    {"\x0f\x1f\x44\x00\x00", 5, PLAIN, 0, 0, 0},     /* nop */
    {"\x0f\xb6\x07", 3, PLAIN, 0, 0, 0},             /* movzbl (%rdi),%eax */
    {"\x0f\xba\xe0\x05", 4, PLAIN, 0, 0, 0},         /* bt $5,%eax */
    {"\xf3\x0f\xb8\xc7", 4, PLAIN, 0, 0, 0},         /* popcnt */
    {"\x66\x0f\x70\xc0\x1b", 5, PLAIN, 0, 0, 0},     /* pshufd */
    {"\x66\x0f\x38\x00\xc1", 5, PLAIN, 0, 0, 0},     /* pshufb */
    {"\x66\x0f\x3a\x0f\xc1\x04", 6, PLAIN, 0, 0, 0}, /* palignr */
    {"\x66\x0f\x3a\x0f\x05\x01\x02\x03\x04\x04", 10, RIP, 5, 0, 0},
    {"\xf0\x0f\xb1\x0d\x01\x02\x03\x04", 8, RIP, 4, 0, 0}, /* lock cmpxchg */
    {"\xc5\xf8\x77", 3, PLAIN, 0, 0, 0},                   /* vzeroupper */
    {"\xc5\xfe\x6f\x05\x01\x02\x03\x04", 8, RIP, 4, 0, 0}, /* vmovdqu x(%rip),%ymm0 */
    {"\xc5\xf9\x70\xc0\x1b", 5, PLAIN, 0, 0, 0},           /* vpshufd */
    {"\xc4\xe2\x7d\x18\x05\x01\x02\x03\x04", 9, RIP, 5, 0, 0},
    {"\xc4\xe3\x7d\x39\xc1\x01", 6, PLAIN, 0, 0, 0},                /* vextracti128 */
    {"\xc4\xe3\xfb\xf0\xc7\x05", 6, PLAIN, 0, 0, 0},                /* rorx */
    {"\x62\xf1\xfe\x28\x6f\x05\x01\x02\x03\x04", 10, RIP, 6, 0, 0}, /* vmovdqu64 */
    {"\x62\xf1\xfe\x48\x7f\x47\x01", 7, PLAIN, 0, 0, 0},
    {"\x62\xf3\x7d\x48\x3b\xc1\x01", 7, PLAIN, 0, 0, 0}, /* vextracti32x8 */
    {"\x74\x05", 2, BRANCH, 0, 1, 1},
    {"\x0f\x8f\x01\x02\x03\x04", 6, BRANCH, 0, 2, 4},
    {"\xeb\xfe", 2, JUMP, 0, 1, 1},
    {"\xe9\x01\x02\x03\x04", 5, JUMP, 0, 1, 4},
    {"\xf2\xe9\x01\x02\x03\x04", 6, JUMP, 0, 2, 4}, /* bnd jmp */
    {"\xe8\x01\x02\x03\x04", 5, CALL, 0, 1, 4},
    {"\x66\x48\xe8\x01\x02\x03\x04", 7, CALL, 0, 3, 4}, /* before __tls_get_addr */
    {"\xff\xd0", 2, CALL, 0, 0, 0},
    {"\xff\x15\x01\x02\x03\x04", 6, CALL, 2, 0, 0},
    {"\x41\xff\x54\xc5\x08", 5, CALL, 0, 0, 0},
    {"\xff\x18", 2, CALL, 0, 0, 0}, /* far */
    {"\xe2\xfe", 2, LOOP, 0, 1, 1},
    {"\xe3\xfe", 2, LOOP, 0, 1, 1},
    {"\x67\xe3\xfd", 3, LOOP, 0, 2, 1},                             /* jecxz */
    {"\xc7\xf8\x01\x02\x03\x04", 6, LOOP, 0, 2, 4},                 /* xbegin */
    {"\xc6\xf8\x01", 3, PLAIN, 0, 0, 0},                            /* xabort */
    {"\xc7\x05\x01\x02\x03\x04\x05\x06\x07\x08", 10, RIP, 2, 0, 0}, /* movl $..,x(%rip) */
    {"\xc3", 1, END, 0, 0, 0},
    {"\xf3\xc3", 2, END, 0, 0, 0},
    {"\xc2\x08\x00", 3, END, 0, 0, 0},
    {"\x0f\x0b", 2, END, 0, 0, 0},
    {"\xf4", 1, END, 0, 0, 0},
    {"\xcc", 1, END, 0, 0, 0},
    {"\xff\xe0", 2, END, 0, 0, 0},
    {"\x3e\xff\xe0", 3, END, 0, 0, 0}, /* notrack jmp *%rax */
    {"\xff\x25\x01\x02\x03\x04", 6, END, 2, 0, 0},
    {"\xff\x24\xc5\x01\x02\x03\x04", 7, END, 0, 0, 0},
    {"\xff\x35\x01\x02\x03\x04", 6, RIP, 2, 0, 0}, /* push x(%rip) */
};

enum { KNOWN = sizeof known / sizeof known[0] };

START_TEST(lengths_and_parts_are_those_of_the_manual) {
    for (size_t i = 0; i < KNOWN; i++) {
        struct ml_instruction instruction;
        uint8_t code[ML_INSTRUCTION_BYTES_MAX + 1];
        memset(code, 0x90, sizeof code);
        memcpy(code, known[i].bytes, known[i].length);
        ck_assert_msg(ml_instruction_decode(code, sizeof code, &instruction), "%zu", i);
        ck_assert_msg(instruction.length == known[i].length, "%zu: %d", i, instruction.length);
        ck_assert_msg((int)instruction.kind == known[i].kind, "%zu", i);
        ck_assert_msg(instruction.displacement_at == known[i].displacement_at, "%zu", i);
        ck_assert_msg(instruction.relative_at == known[i].relative_at, "%zu", i);
        ck_assert_msg(instruction.relative_bytes == known[i].relative_bytes, "%zu", i);
    }
}
END_TEST

START_TEST(an_instruction_that_is_cut_anywhere_is_not_known) {
    for (size_t i = 0; i < KNOWN; i++) {
        for (size_t bytes = 0; bytes < known[i].length; bytes++) {
            struct ml_instruction instruction;
            ck_assert(!ml_instruction_decode((const uint8_t *)known[i].bytes, bytes, &instruction));
        }
    }
}
END_TEST

START_TEST(what_is_not_certain_is_not_known) {
    static const struct {
        const char *bytes;
        size_t length;
    } unknown[] = {
        {"\x06", 1},                                 /* push %es: not in 64-bit mode */
        {"\x60", 1},                                 /* pusha */
        {"\xd5\x00\x00", 3},                         /* REX2 of processors to come */
        {"\x66\xe9\x00\x00\x00\x00", 6},             /* its length depends on the maker */
        {"\x66\x74\x00", 3},                         /* likewise */
        {"\x66\xc7\xf8\x00\x00\x00\x00", 7},         /* xbegin rel16 */
        {"\x67\x8b\x05\x00\x00\x00\x00", 7},         /* relative to %eip */
        {"\x48\x66\x90", 3},                         /* REX that is no last prefix */
        {"\x48\x49\x90", 3},                         /* two of them */
        {"\x0f\x0f\xc1\x9e", 4},                     /* 3DNow! */
        {"\x0f\x04", 2},                             /* no instruction */
        {"\x0f\x20\xc0", 3},                         /* mov %cr0 */
        {"\x0f\xb8\xc0", 3},                         /* popcnt without its prefix */
        {"\x0f\xff\xc0", 3},                         /* ud0 */
        {"\x8f\xe8\x78\x97\xd1\x20", 6},             /* XOP */
        {"\x66\xc5\xf8\x77", 4},                     /* a prefix before VEX */
        {"\x48\xc5\xf8\x77", 4},                     /* REX before VEX */
        {"\xc5\xf8\x84\xc0\x00\x00\x00", 7},         /* a branch of Xeon Phi */
        {"\xc4\xe0\x78\x10\xc0", 5},                 /* VEX without a map */
        {"\xc4\xe7\x78\xf8\xc0\x00\x00\x00\x00", 9}, /* VEX map 7 */
        {"\x62\xf4\x7c\x08\x10\xc0", 6},             /* EVEX map 4 */
        {"\x62\xf9\x7c\x08\x10\xc0", 6},             /* EVEX with a fixed bit set */
        {"\x62\xf1\x78\x08\x10\xc0", 6},             /* EVEX with a fixed bit clear */
        {"\x62\xf1\x7c\x08\x77\xc0", 6},             /* no vzeroupper in EVEX */
        {"\xff\xf8", 2},                             /* group 5 has no 7 */
        {"\xff\xd8", 2},                             /* a far call to a register */
        {"\xfe\xd0", 2},                             /* group 4 has no 2 */
        {"\xc7\xc8\x00\x00\x00\x00", 6},             /* group 11 has no 1 */
        {"\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66", 15},
    };
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        struct ml_instruction instruction;
        uint8_t code[2 * ML_INSTRUCTION_BYTES_MAX];
        memset(code, 0x90, sizeof code);
        memcpy(code, unknown[i].bytes, unknown[i].length);
        ck_assert_msg(!ml_instruction_decode(code, sizeof code, &instruction), "%zu", i);
    }
}
END_TEST

static struct ml_instruction decoded(const char *bytes, size_t length) {
    struct ml_instruction instruction;
    ck_assert(ml_instruction_decode((const uint8_t *)bytes, length, &instruction));
    return instruction;
}

START_TEST(what_looks_like_padding_is_told_from_what_does_something) {
    ck_assert(decoded("\x90", 1).is_nop);
    ck_assert(decoded("\x66\x90", 2).is_nop);
    ck_assert(decoded("\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00", 10).is_nop);
    ck_assert(decoded("\x0f\x1f\x00", 3).is_nop);
    ck_assert(!decoded("\x41\x90", 2).is_nop); /* xchg %r8,%rax */
    ck_assert(!decoded("\xf3\x90", 2).is_nop); /* pause */
    ck_assert(!decoded("\x91", 1).is_nop);
    ck_assert(!decoded("\xcc", 1).is_nop);
}
END_TEST

START_TEST(tables_of_a_switch_are_told_from_pointers) {
    ck_assert(decoded("\xff\x24\xc5\x00\x00\x00\x00", 7).is_table_jump);  /* jmp *t(,%rax,8) */
    ck_assert(decoded("\x3e\xff\x24\xc7", 4).is_table_jump);              /* jmp *(%rdi,%rax,8) */
    ck_assert(!decoded("\xff\x24\x24", 3).is_table_jump);                 /* jmp *(%rsp) */
    ck_assert(!decoded("\xff\x60\x08", 3).is_table_jump);                 /* jmp *8(%rax) */
    ck_assert(!decoded("\xff\x34\xc5\x00\x00\x00\x00", 7).is_table_jump); /* push */
    ck_assert(decoded("\xff\xe0", 2).is_register);
    ck_assert(!decoded("\xff\x60\x08", 3).is_register);
    ck_assert(decoded("\x48\x63\x04\x8a", 4).is_table_load); /* movslq (%rdx,%rcx,4),%rax */
    ck_assert(!decoded("\x48\x63\x07", 3).is_table_load);    /* movslq (%rdi),%rax */
}
END_TEST

START_TEST(targets_are_counted_from_the_end) {
    struct ml_instruction jump = decoded("\xeb\xfe", 2);
    ck_assert_uint_eq(ml_instruction_target(&jump, (const uint8_t *)"\xeb\xfe", 1000), 1000);
    jump = decoded("\x0f\x84\x00\xff\xff\xff", 6);
    ck_assert_uint_eq(
        ml_instruction_target(&jump, (const uint8_t *)"\x0f\x84\x00\xff\xff\xff", 1000), 1006 - 256
    );
    ck_assert_uint_eq(jump.condition, 4);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("instruction");
    tcase_add_test(tcase, lengths_and_parts_are_those_of_the_manual);
    tcase_add_test(tcase, an_instruction_that_is_cut_anywhere_is_not_known);
    tcase_add_test(tcase, what_is_not_certain_is_not_known);
    tcase_add_test(tcase, what_looks_like_padding_is_told_from_what_does_something);
    tcase_add_test(tcase, tables_of_a_switch_are_told_from_pointers);
    tcase_add_test(tcase, targets_are_counted_from_the_end);
    return run_suite("base/entry/instruction", tcase);
}

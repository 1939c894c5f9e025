#include "client/unwind/cfi.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <check.h>

#include "client/unwind/modules.h"
#include "tests/suite.h"

enum { PAGE = 4096, LOOKUPS = 150000 };

/* ---- a table made by hand: .eh_frame_hdr, one common entry, one function of 64 bytes ---- */

enum { CODE_AT = 0x10000, CODE_BYTES = 64 }; /* the code is never looked at */

struct table {
    uint8_t *bytes;
    size_t used;
    size_t room;
    struct ml_cfi_table cfi;
};

static void put(struct table *table, const void *bytes, size_t count) {
    ck_assert_uint_le(table->used + count, table->room);
    memcpy(table->bytes + table->used, bytes, count);
    table->used += count;
}

static void put_u32(struct table *table, uint32_t value) {
    put(table, &value, sizeof value);
}

/* The table ends where its page does, and what is behind faults. */
static struct table table_make(const uint8_t *program, size_t program_bytes) {
    static const uint8_t header[] = {1, 0xff, 0x03, 0x3b};
    static const uint8_t common[] = {
        1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0};
    uint8_t *pages =
        mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(pages != MAP_FAILED);
    ck_assert_int_eq(mprotect(pages + PAGE, PAGE, PROT_NONE), 0);
    size_t function_bytes = 4 + 4 + 4 + 1 + program_bytes;
    size_t padded = (function_bytes + 3) & ~(size_t)3;
    size_t all = 4 + 4 + 8 + (4 + 4 + sizeof common) + (4 + padded);
    struct table table = {.bytes = pages + PAGE - all, .room = all};
    uintptr_t at = (uintptr_t)table.bytes;
    uint32_t common_at = 16;
    uint32_t function_at = common_at + 8 + (uint32_t)sizeof common;
    put(&table, header, sizeof header);
    put_u32(&table, 1);
    put_u32(&table, CODE_AT);
    put_u32(&table, function_at);
    put_u32(&table, 4 + (uint32_t)sizeof common);
    put_u32(&table, 0);
    put(&table, common, sizeof common);
    put_u32(&table, (uint32_t)padded);
    put_u32(&table, function_at + 4 - common_at);
    put_u32(&table, CODE_AT - (function_at + 8));
    put_u32(&table, CODE_BYTES);
    put(&table, "", 1);
    put(&table, program, program_bytes);
    memset(table.bytes + table.used, 0, all - table.used); /* DW_CFA_nop */
    table.cfi = (struct ml_cfi_table){.header = at, .segment_lo = at, .segment_hi = at + all};
    return table;
}

static void table_free(struct table *table) {
    munmap((void *)((uintptr_t)table->bytes & ~(uintptr_t)(PAGE - 1)), 2 * PAGE);
}

/* push %rbp; mov %rsp,%rbp; ...; remembered; leave; restored; and the rarer operations */
static const uint8_t ordinary[] = {
    0x41,                      /* advance 1 */
    0x0e, 16,                  /* def_cfa_offset 16 */
    0x86, 2,                   /* rbp at cfa-16 */
    0x43,                      /* advance 3 */
    0x0d, 6,                   /* def_cfa_register rbp */
    0x02, 10,                  /* advance_loc1 10: at 14 */
    0x83, 3,                   /* rbx at cfa-24 */
    0x0a,                      /* remember */
    0x03, 10,   0,             /* advance_loc2: at 24 */
    0x0c, 7,    8,             /* def_cfa rsp 8 */
    0xc6,                      /* restore rbp */
    0x04, 8,    0,    0,    0, /* advance_loc4: at 32 */
    0x0b,                      /* restore_state */
    0x48,                      /* at 40 */
    0x16, 6,    2,    0x71, 0, /* val_expression rbp: breg1 0 */
    0x0f, 2,    0x76, 0x78,    /* def_cfa_expression breg6 -8 */
    0x05, 0x11, 4,             /* offset_extended xmm0: read and dropped */
    0x2e, 16,                  /* GNU_args_size */
    0x48,                      /* at 48 */
    0x07, 16,                  /* return address undefined */
};

/* Whatever it answers. */
static void
survive(const struct ml_cfi_table *table, uintptr_t pc, struct ml_cfi_scratch *scratch) {
    bool found = ml_cfi_find_row(table, pc, scratch);
    ck_assert(!found || scratch->row.cfa.kind != ML_CFI_UNSPECIFIED);
}

START_TEST(reads_rows_of_an_ordinary_function) {
    struct table table = table_make(ordinary, sizeof ordinary);
    struct ml_cfi_scratch scratch;
    uintptr_t code = table.cfi.header + CODE_AT;
    const struct ml_cfi_row *row = &scratch.row;
    ck_assert(ml_cfi_find_row(&table.cfi, code, &scratch));
    ck_assert_uint_eq(row->cfa_register, ML_ARCH_SP);
    ck_assert_uint_eq(row->cfa.value, 8);
    ck_assert_uint_eq(row->registers[ML_ARCH_RA].kind, ML_CFI_OFFSET);
    ck_assert_int_eq((int64_t)row->registers[ML_ARCH_RA].value, -8);
    ck_assert(!scratch.signal_frame);
    ck_assert(ml_cfi_find_row(&table.cfi, code + 1, &scratch));
    ck_assert_uint_eq(row->cfa.value, 16);
    ck_assert_int_eq((int64_t)row->registers[ML_ARCH_FP].value, -16);
    ck_assert(ml_cfi_find_row(&table.cfi, code + 20, &scratch));
    ck_assert_uint_eq(row->cfa_register, ML_ARCH_FP);
    ck_assert_int_eq((int64_t)row->registers[ML_ARCH_RBX].value, -24);
    ck_assert(ml_cfi_find_row(&table.cfi, code + 24, &scratch));
    ck_assert_uint_eq(row->cfa_register, ML_ARCH_SP);
    ck_assert_uint_eq(row->registers[ML_ARCH_FP].kind, ML_CFI_UNSPECIFIED);
    ck_assert(ml_cfi_find_row(&table.cfi, code + 39, &scratch));
    ck_assert_uint_eq(row->cfa_register, ML_ARCH_FP);
    ck_assert_uint_eq(row->registers[ML_ARCH_FP].kind, ML_CFI_OFFSET);
    ck_assert(ml_cfi_find_row(&table.cfi, code + 40, &scratch));
    ck_assert_uint_eq(row->cfa.kind, ML_CFI_EXPRESSION);
    ck_assert_uint_eq(row->registers[ML_ARCH_FP].kind, ML_CFI_VAL_EXPRESSION);
    ck_assert(ml_cfi_find_row(&table.cfi, code + 63, &scratch));
    ck_assert_uint_eq(row->registers[ML_ARCH_RA].kind, ML_CFI_UNDEFINED);
    ck_assert(!ml_cfi_find_row(&table.cfi, code + 64, &scratch));
    ck_assert(!ml_cfi_find_row(&table.cfi, code - 1, &scratch));
    ck_assert(ml_cfi_starts_function(&table.cfi, code));
    ck_assert(!ml_cfi_starts_function(&table.cfi, code + 1));
    table_free(&table);
}
END_TEST

START_TEST(refuses_programs_that_it_does_not_understand) {
    static const uint8_t programs[][8] = {
        {0x0b},                                           /* restore_state without remember */
        {0x3f},                                           /* no such operation */
        {0x0c, 17, 8},                                    /* CFA from a vector register */
        {0x0c, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, /* a number without end */
        {0x0f, 1, 0x50, 0x0d, 6},                   /* a register for a CFA that is an expression */
        {0x0f, 100},                                /* an expression longer than the entry */
        {0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a}, /* remembered too often */
        {0x2d},                                     /* GNU_window_save, of another processor */
    };
    struct ml_cfi_scratch scratch;
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        struct table table = table_make(programs[i], sizeof programs[i]);
        ck_assert(!ml_cfi_find_row(&table.cfi, table.cfi.header + CODE_AT + 8, &scratch));
        table_free(&table);
    }
}
END_TEST

START_TEST(survives_each_flipped_bit_and_each_truncation) {
    struct table table = table_make(ordinary, sizeof ordinary);
    struct ml_cfi_scratch scratch;
    for (size_t bit = 0; bit < table.room * 8; bit++) {
        table.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        for (uintptr_t offset = 0; offset < CODE_BYTES; offset += 9) {
            survive(&table.cfi, table.cfi.header + CODE_AT + offset, &scratch);
        }
        table.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t left = 0; left < table.room; left++) {
        struct ml_cfi_table cut = table.cfi;
        cut.segment_hi = cut.segment_lo + left;
        survive(&cut, table.cfi.header + CODE_AT + 50, &scratch);
    }
    struct ml_cfi_table none = {0};
    ck_assert(!ml_cfi_find_row(&none, 4096, &scratch));
    table_free(&table);
}
END_TEST

/* libc's own table, moved to where what is around it faults, with bytes changed at random. */
START_TEST(survives_random_damage_to_a_real_table) {
    struct ml_image image;
    struct ml_cfi_scratch scratch;
    struct ml_cfi_scratch moved;
    uintptr_t pc = (uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    ck_assert(ml_image_find(pc, &image));
    size_t bytes = image.cfi.segment_hi - image.cfi.segment_lo;
    size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    uint8_t *memory = mmap(NULL, pages + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(memory != MAP_FAILED);
    ck_assert_int_eq(mprotect(memory + PAGE, pages, PROT_READ | PROT_WRITE), 0);
    uint8_t *copy = memory + PAGE + pages - bytes;
    memcpy(copy, (const void *)image.cfi.segment_lo, bytes);
    uintptr_t shift = (uintptr_t)copy - image.cfi.segment_lo;
    struct ml_cfi_table table = {
        .header = image.cfi.header + shift,
        .segment_lo = (uintptr_t)copy,
        .segment_hi = (uintptr_t)copy + bytes};
    uint64_t random = 88172645463325252U;
    uint32_t same = 0;
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        uintptr_t at = image.start + random % (image.end - image.start);
        if (i < LOOKUPS / 10) { /* unharmed: the copy says what the original does */
            bool has = ml_cfi_find_row(&image.cfi, at, &scratch);
            ck_assert(has == ml_cfi_find_row(&table, at + shift, &moved));
            same += has && scratch.row.cfa_register == moved.row.cfa_register &&
                    memcmp(&scratch.row.registers, &moved.row.registers, sizeof(uint64_t)) == 0;
            continue;
        }
        copy[(random >> 20) % bytes] = (uint8_t)(random >> 50);
        survive(&table, at + shift, &moved);
    }
    ck_assert_uint_gt(same, LOOKUPS / 50);
}
END_TEST

/* ---- expressions ---- */

static const uint64_t words[4] = {11, 22, 33, 0x1122334455667788};

static bool load(void *context, uintptr_t address, uint64_t *out_word) {
    (void)context;
    if (address < (uintptr_t)words || address >= (uintptr_t)(words + 4)) {
        return false;
    }
    *out_word = *(const uint64_t *)address;
    return true;
}

struct expression {
    uint8_t bytes[24]; /* length first */
    bool valid;
    uint64_t value;
};

static const struct expression expressions[] = {
    {{2, 0x76, 0x78}, true, 0x1000 - 8},               /* breg6 -8 */
    {{3, 0x35, 0x32, 0x22}, true, 7},                  /* lit5 lit2 plus */
    {{3, 0x35, 0x32, 0x1c}, true, 3},                  /* minus */
    {{4, 0x08, 200, 0x32, 0x24}, true, 800},           /* const1u 200 lit2 shl */
    {{5, 0x09, 0xf0, 0x32, 0x26}, false, 0},           /* runs out: four operations, five bytes */
    {{4, 0x09, 0xf0, 0x32, 0x26}, true, (uint64_t)-4}, /* const1s -16 lit2 shra */
    {{4, 0x09, 0xf0, 0x32, 0x25}, true, (uint64_t)-16 >> 2}, /* shr */
    {{3, 0x35, 0x30, 0x1b}, false, 0},                       /* lit5 lit0 div */
    {{3, 0x35, 0x30, 0x1d}, false, 0},                       /* mod 0 */
    {{1, 0x22}, false, 0},                                   /* plus of nothing */
    {{2, 0x70, 0}, false, 0},                                /* breg0: not known */
    {{2, 0x8f, 0}, false, 0},                                /* breg31: none */
    {{3, 0x30, 0x35, 0x06}, false, 0},                       /* deref of 5 */
    {{1, 0x96}, false, 0},                                   /* nop: nothing left to answer */
    {{3, 0x2f, 0xfd, 0xff}, false, 0},                       /* skip -3: for ever */
    {{3, 0x2f, 0xf0, 0xff}, false, 0},                       /* skip to before the beginning */
    {{3, 0x2f, 0x10, 0x00}, false, 0},                       /* skip behind the end */
    {{1, 0xe0}, false, 0},                                   /* no such operation */
    {{6, 0x31, 0x28, 0x01, 0x00, 0x33, 0x34}, true, 4},      /* lit1 bra +1, over lit3: lit4 */
    {{6, 0x30, 0x28, 0x01, 0x00, 0x33, 0x34}, true, 4},      /* not taken: both, lit4 on top */
    {{4, 0x31, 0x32, 0x16, 0x1c}, true, 1},                  /* swap minus: 2 - 1 */
    {{5, 0x31, 0x32, 0x33, 0x17, 0x13}, true, 1},            /* rot drop: 3 1 2 -> 1 is second */
    {{4, 0x31, 0x32, 0x15, 1}, true, 1},                     /* pick 1 */
    {{3, 0x31, 0x15, 1}, false, 0},                          /* pick too deep */
    {{3, 0x31, 0x12, 0x2d}, true, 0},                        /* dup lt */
    {{3, 0x10, 0x80, 0x01}, true, 128},                      /* constu */
    {{3, 0x11, 0xff, 0x7e}, true, (uint64_t)-129},           /* consts */
    {{3, 0x35, 0x23, 0x07}, true, 12},                       /* plus_uconst */
    {{3, 0x92, 6, 0x10}, true, 0x1010},                      /* bregx 6 16 */
    {{13, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31, 0x31}, false, 0},
};

START_TEST(computes_expressions_and_refuses_bad_ones) {
    uint64_t registers[ML_ARCH_CFI_REGISTERS] = {[ML_ARCH_FP] = 0x1000};
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++) {
        const struct expression *expression = &expressions[i];
        uintptr_t at = (uintptr_t)expression->bytes;
        struct ml_cfi_machine machine = {
            .registers = registers,
            .known = 1U << ML_ARCH_FP,
            .load = load,
            .limit = at + sizeof expression->bytes};
        uint64_t value = 0;
        bool valid = ml_cfi_evaluate(&machine, at, NULL, &value);
        ck_assert_msg(valid == expression->valid, "expression %zu", i);
        if (valid) {
            ck_assert_msg(value == expression->value, "expression %zu: %lx", i, (long)value);
        }
    }
}
END_TEST

START_TEST(expressions_load_only_what_the_walk_permits) {
    uint64_t registers[ML_ARCH_CFI_REGISTERS] = {[ML_ARCH_SP] = (uintptr_t)words};
    static const uint8_t second[] = {3, 0x77, 8, 0x06};
    static const uint8_t half[] = {4, 0x77, 24, 0x94, 4};
    static const uint8_t beyond[] = {3, 0x77, 32, 0x06};
    struct ml_cfi_machine machine = {
        .registers = registers, .known = 1U << ML_ARCH_SP, .load = load, .limit = UINTPTR_MAX};
    uint64_t value = 0;
    uint64_t initial = 5;
    ck_assert(ml_cfi_evaluate(&machine, (uintptr_t)second, NULL, &value));
    ck_assert_uint_eq(value, 22);
    ck_assert(ml_cfi_evaluate(&machine, (uintptr_t)half, &initial, &value));
    ck_assert_uint_eq(value, 0x55667788);
    ck_assert(!ml_cfi_evaluate(&machine, (uintptr_t)beyond, NULL, &value));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("cfi");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, reads_rows_of_an_ordinary_function);
    tcase_add_test(tcase, refuses_programs_that_it_does_not_understand);
    tcase_add_test(tcase, survives_each_flipped_bit_and_each_truncation);
    tcase_add_test(tcase, survives_random_damage_to_a_real_table);
    tcase_add_test(tcase, computes_expressions_and_refuses_bad_ones);
    tcase_add_test(tcase, expressions_load_only_what_the_walk_permits);
    return run_suite("client/cfi", tcase);
}

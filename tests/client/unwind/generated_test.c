/* Code without tables: trampolines of every shape between ordinary functions, walked by what they
 * do. What is on the stack is written down beside it. */
#include <alloca.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <check.h>

#include "client/unwind/internal.h"
#include "tests/client/unwind/oracle.h"
#include "tests/suite.h"

enum { SHAPES = 7, SHAPE_BYTES = 64, DEPTH_MAX = 24, ROUNDS = 600, BYTES_MAX = 24 };

typedef void callee(void *context, long depth);
typedef void trampoline(void *context, long depth, callee *to);

/* Each calls %rdx; `returns` is where its call returns to. */
static const struct {
    uint8_t code[SHAPE_BYTES];
    uint32_t bytes, returns;
} shapes[SHAPES] = {
    /* CPython 3.12: sub $8,%rsp; call; add $8,%rsp; ret */
    {{0x48, 0x83, 0xec, 0x08, 0xff, 0xd2, 0x48, 0x83, 0xc4, 0x08, 0xc3}, 11, 6},
    /* CPython of later: push %rbp; mov %rsp,%rbp; call; pop %rbp; ret */
    {{0x55, 0x48, 0x89, 0xe5, 0xff, 0xd2, 0x5d, 0xc3}, 8, 6},
    /* %rbp is somebody's number: push %rbp; mov $0x1234567,%ebp; call; pop %rbp; ret */
    {{0x55, 0xbd, 0x67, 0x45, 0x23, 0x01, 0xff, 0xd2, 0x5d, 0xc3}, 10, 8},
    /* push %rbx, %r12, %r13; call; pop them; ret */
    {{0x53, 0x41, 0x54, 0x41, 0x55, 0xff, 0xd2, 0x41, 0x5d, 0x41, 0x5c, 0x5b, 0xc3}, 13, 7},
    /* sub $4104,%rsp; call; add $4104,%rsp; ret */
    {{0x48, 0x81, 0xec, 0x08, 0x10, 0, 0, 0xff, 0xd2, 0x48, 0x81, 0xc4, 0x08, 0x10, 0, 0, 0xc3},
     17,
     9},
    /* push %rbp, %rbx; sub $8,%rsp; xor %ebp,%ebp; call; add $8,%rsp; pop %rbx, %rbp; repz ret */
    {{0x55,
      0x53,
      0x48,
      0x83,
      0xec,
      0x08,
      0x31,
      0xed,
      0xff,
      0xd2,
      0x48,
      0x83,
      0xc4,
      0x08,
      0x5b,
      0x5d,
      0xf3,
      0xc3},
     18,
     10},
    /* by frame pointer: push %rbp; mov %rsp,%rbp; sub $16,%rsp; call; leave; ret */
    {{0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x10, 0xff, 0xd2, 0xc9, 0xc3}, 12, 10},
};

static struct ml_oracle *oracle;
static uint8_t *made;
static uintptr_t shadow[DEPTH_MAX]; /* addresses of calls in generated code, outermost first */
static uint32_t shadow_count;
static uint64_t compared;

static void make(void) {
    made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(made != MAP_FAILED);
    for (size_t i = 0; i < SHAPES; i++) {
        /* The last one ends with its page. */
        uint8_t *at = i + 1 < SHAPES ? made + i * SHAPE_BYTES : made + 4096 - shapes[i].bytes;
        memcpy(at, shapes[i].code, shapes[i].bytes);
    }
    ck_assert_int_eq(mprotect(made, 4096, PROT_READ | PROT_EXEC), 0);
}

static uint8_t *place_of(size_t shape) {
    return shape + 1 < SHAPES ? made + shape * SHAPE_BYTES : made + 4096 - shapes[shape].bytes;
}

/* The frames without a module are just those that were called, in that order. */
static void compare(void) {
    const struct ml_unwind_thread *thread = oracle->thread;
    uint32_t met = 0;
    for (uint32_t i = 0; i < thread->count; i++) {
        ck_assert_int_eq(ml_unwind_kind(thread, i), ML_FRAME_ADDRESS);
        if (ml_unwind_module(thread, i) == 0) {
            ck_assert_uint_lt(met, shadow_count);
            ck_assert_uint_eq(ml_unwind_address(thread, i), shadow[met]);
            met++;
        }
    }
    ck_assert_uint_eq(met, shadow_count);
    compared++;
}

__attribute__((noinline)) static void probe(void) {
    ml_oracle_probe(oracle);
    compare();
    __asm__ volatile("" ::: "memory");
}

static void through(long depth, callee *to) {
    const size_t shape = (size_t)random() % SHAPES;
    trampoline *run;
    uint8_t *code = place_of(shape);
    memcpy(&run, &code, sizeof code);
    shadow[shadow_count++] = (uintptr_t)code + shapes[shape].returns - 1;
    run(NULL, depth, to);
    shadow_count--;
}

static void descend(void *context, long depth);

/* Its frame is realigned, so the stack is walked by all registers from here on. */
__attribute__((noinline, force_align_arg_pointer)) static void
realigned(void *context, long depth) {
    _Alignas(128) volatile char room[128];
    volatile char *more = alloca((size_t)depth + 1);
    more[0] = (char)depth;
    room[0] = more[0];
    descend(context, depth);
    room[1] = room[0];
}

__attribute__((noinline)) static void descend(void *context, long depth) {
    (void)context;
    if (depth == 0 || random() % 3 == 0) {
        probe();
    }
    for (long i = 0; depth > 0 && i <= random() % 2; i++) {
        through(depth - 1, random() % 8 == 0 ? realigned : descend);
        if (random() % 4 == 0) {
            probe();
        }
    }
}

START_TEST(trampolines_of_every_shape_are_walked_to_the_end) {
    oracle = ml_oracle_new(NULL, 0);
    make();
    srandom(3);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        descend(NULL, random() % 10);
    }
    ck_assert_uint_eq(oracle->wrong, 0);
    ck_assert_uint_eq(oracle->wrong_nodes, 0);
    ck_assert_uint_eq(oracle->wrong_memo, 0);
    ck_assert_uint_eq(oracle->broken, 0);
    ck_assert_uint_gt(oracle->full, 0);
    ck_assert_uint_gt(compared, 2 * ROUNDS);
    ml_oracle_free(oracle);
}
END_TEST

/* Other code at the same address has its own rule, at once. */
START_TEST(code_that_is_replaced_is_walked_as_it_is_now) {
    oracle = ml_oracle_new(NULL, 0);
    make();
    ck_assert_int_eq(mprotect(made, 4096, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
    static const size_t those[] = {0, 1}; /* their calls return to the same address */
    ck_assert_uint_eq(shapes[0].returns, shapes[1].returns);
    for (int i = 0; i < 20; i++) {
        const size_t shape = those[i % 2];
        memcpy(made, shapes[shape].code, shapes[shape].bytes);
        trampoline *run;
        memcpy(&run, &made, sizeof made);
        shadow[0] = (uintptr_t)made + shapes[shape].returns - 1;
        shadow_count = 1;
        run(NULL, 0, descend);
        shadow_count = 0;
    }
    ck_assert_uint_eq(oracle->wrong, 0);
    ck_assert_uint_eq(oracle->broken, 0);
    ml_oracle_free(oracle);
}
END_TEST

/* Return addresses that are none, in memory that cannot be read, or is not there. */
START_TEST(an_address_of_no_code_is_not_read) {
    oracle = ml_oracle_new(NULL, 0);
    struct ml_module_seen deaf = {0};
    uintptr_t words[8] = {0};
    uint8_t *hidden = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(hidden != MAP_FAILED);
    ck_assert_int_eq(mprotect(hidden, 4096, PROT_READ), 0); /* the second page stays hidden */
    const uintptr_t bad[] = {
        (uintptr_t)hidden + 4090,
        (uintptr_t)hidden + 4096,
        1,
        4095,
        (uintptr_t)1 << 46,
        (uintptr_t)1 << 60,
        UINTPTR_MAX,
        UINTPTR_MAX - 5};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct ml_unwind_entry entry = {.pc = bad[i], .sp = (uintptr_t)&words[1], .fp = 1};
        const struct ml_unwind_result result =
            ml_unwind(oracle->process, oracle->thread, &entry, &deaf);
        ck_assert_uint_eq(result.flags & ML_UNWIND_BROKEN, ML_UNWIND_BROKEN);
    }
    ml_oracle_free(oracle);
}
END_TEST

START_TEST(code_says_where_the_caller_is_or_nothing) {
    static const struct {
        uint8_t code[BYTES_MAX];
        uint32_t bytes;
        uint64_t words, fp_words; /* words 0: it says nothing */
    } cases[] = {
        {{0xc3}, 1, 1, 0},
        {{0xf3, 0xc3}, 2, 1, 0},
        {{0x48, 0x83, 0xc4, 0x08, 0xc3}, 5, 2, 0},
        {{0x48, 0x83, 0xc4, 0x78, 0xc3}, 5, 16, 0},
        {{0x48, 0x83, 0xc4, 0x80, 0xc3}, 5, 0, 0}, /* a negative number */
        {{0x48, 0x83, 0xc4, 0x07, 0xc3}, 5, 0, 0}, /* no whole words */
        {{0x48, 0x83, 0xec, 0x08, 0xc3}, 5, 0, 0}, /* sub */
        {{0x48, 0x81, 0xc4, 0x00, 0x01, 0, 0, 0xc3}, 8, 33, 0},
        {{0x48, 0x81, 0xc4, 0xff, 0xff, 0xff, 0x7f, 0xc3}, 8, 0, 0},
        {{0x48, 0x81, 0xc4, 0x00, 0x00, 0x01, 0x00, 0xc3}, 8, 0, 0}, /* more than a recipe holds */
        {{0x5d, 0xc3}, 2, 2, 2},
        {{0x5b, 0x5d, 0xc3}, 3, 3, 2},
        {{0x5d, 0x5b, 0xc3}, 3, 3, 3},
        {{0x41, 0x5d, 0xc3}, 3, 2, 0}, /* %r13 is not %rbp */
        {{0x5c, 0xc3}, 2, 0, 0},       /* pop %rsp */
        {{0xc9, 0xc3}, 2, 0, 0},       /* leave: by the frame pointer */
        {{0xc2, 0x08, 0x00}, 3, 0, 0}, /* ret $8 */
        {{0x90, 0xc3}, 2, 0, 0},
        {{0x48, 0x83, 0xc4, 0x08}, 4, 0, 0}, /* the rest cannot be read */
        {{0x5d}, 1, 0, 0},
        {{0x41}, 1, 0, 0},
        {{0xf3}, 1, 0, 0},
        {{0}, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t recipe = ml_unwind_rule_of_code(cases[i].code, cases[i].bytes);
        if (cases[i].words == 0) {
            ck_assert_msg(recipe == 0, "case %zu", i);
            continue;
        }
        ck_assert_int_eq(ml_recipe_kind(recipe), ML_RECIPE_SP);
        ck_assert_uint_eq(ml_recipe_cfa_bytes(recipe), cases[i].words * ML_ARCH_WORD_BYTES);
        ck_assert_uint_eq(ml_recipe_fp_words(recipe), cases[i].fp_words);
        ck_assert_uint_eq(ml_recipe_module(recipe), 0);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("generated");
    tcase_add_test(tests, trampolines_of_every_shape_are_walked_to_the_end);
    tcase_add_test(tests, code_that_is_replaced_is_walked_as_it_is_now);
    tcase_add_test(tests, an_address_of_no_code_is_not_read);
    tcase_add_test(tests, code_says_where_the_caller_is_or_nothing);
    tcase_set_timeout(tests, 300); /* under sanitizers on a busy machine */
    return run_suite("client/unwind/generated", tests);
}

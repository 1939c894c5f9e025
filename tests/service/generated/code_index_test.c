#include "service/generated/code_index.h"

#include <stdlib.h>

#include "tests/suite.h"

enum { LINES = 60, TARGETS = 37, ROUNDS = 400, ADDRESSES = 64 };

static struct ml_budget budget = {.max_bytes = UINT64_MAX};
static struct ml_code_index code_index;

/* What was told, for the slow way. */
static struct { uint64_t start, end, time; } told[LINES];

/* The last line over the address up to that time, looked for from the end; 0: none. */
static uint64_t slow_line(uint64_t address, uint64_t time) {
    for (uint32_t i = LINES; i > 0; i--) {
        if (told[i - 1].start <= address && address < told[i - 1].end && told[i - 1].time <= time) {
            return i;
        }
    }
    return 0;
}

static void fill(uint32_t count, bool has_times) {
    ck_assert_int_eq(ml_code_index_init(&code_index, &budget, count), ML_OK);
    for (uint32_t i = 0; i < count; i++) {
        code_index.targets[i] = (struct ml_code_target
        ){.address = (uint64_t)(random() % ADDRESSES),
          .time = has_times ? (uint64_t)(random() % LINES) : UINT64_MAX,
          .node = i};
    }
    ml_code_index_sort(&code_index);
}

static void tell(bool has_times) {
    for (uint32_t i = 0; i < LINES; i++) {
        const uint64_t start = (uint64_t)(random() % ADDRESSES);
        const struct ml_code_line line = {.name_at = i + 1, .name_bytes = 1};
        told[i].start = start;
        told[i].end = start + 1 + (uint64_t)(random() % 20);
        told[i].time = has_times ? i : 0;
        ck_assert_int_eq(
            ml_code_index_add(&code_index, told[i].start, told[i].end, told[i].time, &line), ML_OK
        );
    }
    ml_code_index_settle(&code_index);
}

START_TEST(the_last_line_up_to_the_moment_wins_as_by_the_slow_way) {
    srandom(7);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        const bool has_times = round % 2 == 1;
        fill(round % TARGETS, has_times);
        tell(has_times);
        for (uint32_t i = 0; i < code_index.targets_count; i++) {
            const struct ml_code_target *target = &code_index.targets[i];
            const uint64_t name_at =
                target->line == 0 ? 0 : code_index.lines[target->line - 1].name_at;
            ck_assert_uint_eq(name_at, slow_line(target->address, target->time));
        }
        ml_code_index_fini(&code_index);
        ck_assert_uint_eq(budget.used_bytes, 0);
    }
}
END_TEST

START_TEST(a_line_over_no_address_is_not_kept) {
    const struct ml_code_line line = {.name_bytes = 1};
    ck_assert_int_eq(ml_code_index_init(&code_index, &budget, 1), ML_OK);
    code_index.targets[0] = (struct ml_code_target){.address = 100, .time = UINT64_MAX};
    ml_code_index_sort(&code_index);
    ck_assert_int_eq(ml_code_index_add(&code_index, 0, 100, 0, &line), ML_OK);
    ck_assert_int_eq(ml_code_index_add(&code_index, 101, UINT64_MAX, 0, &line), ML_OK);
    ck_assert_uint_eq(code_index.lines_count, 0);
    ml_code_index_fini(&code_index);
}
END_TEST

START_TEST(more_lines_than_the_limit_are_refused) {
    enum ml_status status = ML_OK;
    const struct ml_code_line line = {.name_bytes = 1};
    ck_assert_int_eq(ml_code_index_init(&code_index, &budget, 1), ML_OK);
    code_index.targets[0] = (struct ml_code_target){.address = 100, .time = UINT64_MAX};
    ml_code_index_sort(&code_index);
    for (uint32_t i = 0; i < ML_CODE_LINES_MAX && status == ML_OK; i++) {
        status = ml_code_index_add(&code_index, 0, 200, 0, &line);
    }
    ck_assert_int_eq(status, ML_OK);
    ck_assert_int_eq(ml_code_index_add(&code_index, 0, 200, 0, &line), ML_PEER_LIMIT);
    ml_code_index_fini(&code_index);
}
END_TEST

START_TEST(without_memory_it_says_so) {
    struct ml_budget small = {.max_bytes = 4096};
    enum ml_status status = ML_OK;
    const struct ml_code_line line = {.name_bytes = 1};
    ck_assert_int_eq(ml_code_index_init(&code_index, &small, 1000), ML_ENV_MEMORY);
    ml_code_index_fini(&code_index);
    ck_assert_uint_eq(small.used_bytes, 0);
    ck_assert_int_eq(ml_code_index_init(&code_index, &small, 1), ML_OK);
    ml_code_index_sort(&code_index);
    for (uint32_t i = 0; i < 1000 && status == ML_OK; i++) {
        status = ml_code_index_add(&code_index, 0, 1, 0, &line);
    }
    ck_assert_int_eq(status, ML_ENV_MEMORY);
    ml_code_index_fini(&code_index);
    ck_assert_uint_eq(small.used_bytes, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("code_index");
    tcase_add_test(tests, the_last_line_up_to_the_moment_wins_as_by_the_slow_way);
    tcase_add_test(tests, a_line_over_no_address_is_not_kept);
    tcase_add_test(tests, more_lines_than_the_limit_are_refused);
    tcase_add_test(tests, without_memory_it_says_so);
    return run_suite("service/generated/code_index", tests);
}

#include "service/ingest/poll_policy.h"

#include <check.h>
#include <stdlib.h>

#include "tests/suite.h"

enum { MS = 1000000, PIPE = 1 << 20, CHUNK = 4096 };

/* A writer of so many bytes a millisecond, looked at once a millisecond for so long. */
static uint64_t write_for(
    struct ml_poll_policy *poll_policy,
    struct ml_poll_policy_pipe *pipe,
    uint64_t now_ns,
    uint64_t bytes_ms,
    int ms
) {
    for (int i = 0; i < ms; i++) {
        now_ns += MS;
        ml_poll_policy_read(poll_policy, pipe, bytes_ms, false);
        ml_poll_policy_looked(poll_policy, now_ns);
    }
    return now_ns;
}

START_TEST(a_busy_pipe_is_looked_at_by_the_clock) {
    struct ml_poll_policy poll_policy = {0};
    struct ml_poll_policy_pipe pipe = {.capacity_bytes = PIPE};
    const uint64_t now_ns = write_for(&poll_policy, &pipe, 0, 40 * CHUNK, 20);
    ck_assert(poll_policy.by_clock);
    (void)write_for(&poll_policy, &pipe, now_ns, 0, 20);
    ck_assert(!poll_policy.by_clock);
}
END_TEST

START_TEST(a_pipe_that_could_fill_up_meanwhile_is_slept_on) {
    struct ml_poll_policy poll_policy = {0};
    struct ml_poll_policy_pipe pipe = {.capacity_bytes = 1 << 16};
    (void)write_for(&poll_policy, &pipe, 0, 4 * CHUNK, 20);
    ck_assert(!poll_policy.by_clock);
    struct ml_poll_policy_pipe unknown = {.capacity_bytes = 0};
    (void)write_for(&poll_policy, &unknown, 20 * MS, CHUNK, 20);
    ck_assert(!poll_policy.by_clock);
}
END_TEST

START_TEST(a_chunk_now_and_then_is_slept_on) {
    struct ml_poll_policy poll_policy = {0};
    struct ml_poll_policy_pipe pipe = {.capacity_bytes = PIPE};
    uint64_t now_ns = 0;
    for (int i = 0; i < 100; i++) {
        now_ns += 10 * MS;
        ml_poll_policy_read(&poll_policy, &pipe, CHUNK, false);
        ml_poll_policy_looked(&poll_policy, now_ns);
        ck_assert(!poll_policy.by_clock);
    }
}
END_TEST

START_TEST(a_sudden_rush_ends_it_at_the_next_look) {
    struct ml_poll_policy poll_policy = {0};
    struct ml_poll_policy_pipe pipe = {.capacity_bytes = PIPE};
    uint64_t now_ns = write_for(&poll_policy, &pipe, 0, CHUNK * 10, 20);
    ck_assert(poll_policy.by_clock);
    now_ns += MS;
    ml_poll_policy_read(&poll_policy, &pipe, PIPE / 2 + CHUNK, false);
    ml_poll_policy_looked(&poll_policy, now_ns);
    ck_assert(!poll_policy.by_clock);
    now_ns = write_for(&poll_policy, &pipe, now_ns, CHUNK * 10, 20);
    ck_assert(poll_policy.by_clock);
    ml_poll_policy_read(&poll_policy, &pipe, CHUNK, true);
    ml_poll_policy_looked(&poll_policy, now_ns + MS);
    ck_assert(!poll_policy.by_clock);
}
END_TEST

START_TEST(many_slow_pipes_are_busy_and_one_fast_one_counts) {
    struct ml_poll_policy poll_policy = {0};
    struct ml_poll_policy_pipe slow[50];
    for (size_t i = 0; i < 50; i++) {
        slow[i] = (struct ml_poll_policy_pipe){.capacity_bytes = 1 << 16};
    }
    struct ml_poll_policy_pipe fast = {.capacity_bytes = 1 << 16};
    for (uint64_t turn = 1; turn <= 40; turn++) {
        ml_poll_policy_read(&poll_policy, &slow[turn % 50], CHUNK, false);
        ml_poll_policy_looked(&poll_policy, turn * MS);
    }
    ck_assert(poll_policy.by_clock);
    for (uint64_t turn = 41; turn <= 60; turn++) {
        ml_poll_policy_read(&poll_policy, &fast, 8 * CHUNK - 1, false);
        ml_poll_policy_looked(&poll_policy, turn * MS);
    }
    ck_assert(!poll_policy.by_clock);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("pace");
    tcase_add_test(tcase, a_busy_pipe_is_looked_at_by_the_clock);
    tcase_add_test(tcase, a_pipe_that_could_fill_up_meanwhile_is_slept_on);
    tcase_add_test(tcase, a_chunk_now_and_then_is_slept_on);
    tcase_add_test(tcase, a_sudden_rush_ends_it_at_the_next_look);
    tcase_add_test(tcase, many_slow_pipes_are_busy_and_one_fast_one_counts);
    return run_suite("service/pace", tcase);
}

/* What the client adds up of its own cost: one hook of sixteen, by chance, stands for sixteen; one
 * that was interrupted counts little; calls that are passed over are counted. */
#include "client/stream/cost.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <check.h>

#include "client/recording/sampler.h"
#include "tests/suite.h"

static struct ml_control_page control;
static struct ml_staging_header header;
static struct ml_gate_page gate_page;

static struct ml_thread *begin(bool measures) {
    control = (struct ml_control_page){.measures_cost = measures ? 1 : 0};
    header = (struct ml_staging_header){.slots = 1};
    ml_process.control = &control;
    ml_process.staging = (uint8_t *)&header;
    ml_process.gate_page = &gate_page;
    ml_process.clock = ML_CLOCK_TSC;
    atomic_store(&ml_process.pass_ticks_256, 512);
    ml_thread = (struct ml_thread){.chance = 1};
    return &ml_thread;
}

START_TEST(nothing_is_timed_without_a_promise) {
    struct ml_thread *thread = begin(false);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_uint_eq(ml_cost_begin(thread), 0);
        ck_assert_uint_eq(ml_cost_resume(thread), 0);
        thread->skipped += ML_COST_PASSES_TOLD;
        ml_cost_end(thread);
    }
    ck_assert_uint_eq(header.recording_ticks, 0);
    ck_assert_uint_eq(header.passed_calls, 0);
}
END_TEST

/* Every hook spends 1,000 ticks by its own word: the sum is what all have spent, within chance. */
START_TEST(a_sixteenth_stands_for_all) {
    enum { HOOKS = 160000, SPENT = 1000 };
    struct ml_thread *thread = begin(true);
    unsigned timed = 0;
    for (unsigned i = 0; i < HOOKS; i++) {
        const bool is_timed = ml_cost_begin(thread) != 0;
        ck_assert_uint_eq(ml_cost_resume(thread) != 0, is_timed);
        timed += is_timed;
        thread->spent_ticks += is_timed ? SPENT : 0;
        ml_cost_end(thread);
        ck_assert_uint_eq(thread->timed, 0);
    }
    ck_assert_uint_eq(header.recording_ticks, (uint64_t)timed * SPENT * ML_COST_EVERY);
    /* Five standard errors of 10,000 draws. */
    ck_assert_uint_gt(timed, HOOKS / ML_COST_EVERY - 500);
    ck_assert_uint_lt(timed, HOOKS / ML_COST_EVERY + 500);
}
END_TEST

START_TEST(a_hook_that_was_interrupted_counts_little) {
    struct ml_thread *thread = begin(true);
    while (ml_cost_begin(thread) == 0) {
    }
    thread->spent_ticks = UINT64_C(1) << 40;
    ml_cost_end(thread);
    ck_assert_uint_eq(header.recording_ticks, (uint64_t)ML_COST_MOST_TICKS * ML_COST_EVERY);
}
END_TEST

START_TEST(a_hook_left_by_longjmp_leaves_nothing_to_the_next) {
    struct ml_thread *thread = begin(true);
    while (ml_cost_begin(thread) == 0) {
    }
    thread->spent_ticks = ML_COST_MOST_TICKS;
    while (ml_cost_begin(thread) == 0) { /* it never came to its end */
    }
    ck_assert_uint_eq(thread->spent_ticks, 0);
}
END_TEST

/* The allocator's own time is between the two. */
START_TEST(only_our_code_is_timed) {
    struct ml_thread *thread = begin(true);
    uint64_t since = 0;
    while (since == 0) {
        since = ml_cost_begin(thread);
    }
    ml_cost_spent(thread, since);
    const uint64_t before = thread->spent_ticks;
    for (const uint64_t until = ml_cost_now() + 1000000; ml_cost_now() < until;) {
    }
    since = ml_cost_resume(thread);
    ml_cost_spent(thread, since);
    ck_assert_uint_ge(thread->spent_ticks, before);
    ck_assert_uint_lt(thread->spent_ticks, 1000000);
}
END_TEST

START_TEST(calls_that_are_passed_over_are_counted_once) {
    struct ml_thread *thread = begin(true);
    thread->interval = UINT32_MAX;
    uint64_t passed = 0;
    for (unsigned i = 0; i < 100000; i++) {
        thread->left = UINT32_MAX;
        ck_assert(ml_sampler_passes(thread, 16));
        passed++;
        if (i % 100 == 99) {
            (void)ml_cost_begin(thread);
            ml_cost_end(thread);
        }
    }
    const uint32_t kept_back = thread->passed + thread->skipped - thread->passed_told;
    ck_assert_uint_eq(header.passed_calls + kept_back, passed);
    ck_assert_uint_le(kept_back, ML_COST_PASSES_TOLD + 100);
    ck_assert_uint_eq(header.pass_ticks_256, 512);
}
END_TEST

/* Who writes 1 over a larger count takes calls back: none are added then, and those that follow
 * count. */
START_TEST(a_count_that_falls_adds_nothing) {
    struct ml_thread *thread = begin(true);
    thread->skipped = 5000;
    thread->timed = 1;
    ml_cost_end(thread);
    ck_assert_uint_eq(header.passed_calls, 5000);
    thread->skipped = 1;
    thread->timed = 1;
    ml_cost_end(thread);
    ck_assert_uint_eq(header.passed_calls, 5000);
    thread->skipped = 11;
    thread->timed = 1;
    ml_cost_end(thread);
    ck_assert_uint_eq(header.passed_calls, 5010);
}
END_TEST

/* A hook that was timed in two spans stands for sixteen, whose clock nobody reads. */
START_TEST(the_clock_counts_where_it_was_read) {
    enum { CLOCK = 1000, OURS = 300, SPANS = 2 };
    struct ml_thread *thread = begin(true);
    atomic_store(&ml_process.clock_ticks, CLOCK);
    while (ml_cost_begin(thread) == 0) {
    }
    for (unsigned i = 0; i < SPANS; i++) {
        ml_cost_spent(thread, ml_cost_now());
    }
    thread->spent_ticks = SPANS * (CLOCK + OURS);
    ml_cost_end(thread);
    ck_assert_uint_eq(
        header.recording_ticks, SPANS * OURS * ML_COST_EVERY + (uint64_t)2 * SPANS * CLOCK
    );
}
END_TEST

/* From now on each clock_gettime runs through some ten thousand divisions in filters. */
static bool slow_the_clock(void) {
    enum { DIVISIONS = 4000, FILTERS = 6, CALL_OFFSET = 0, ARGUMENT_OFFSET = 16 };
    static struct sock_filter filter[DIVISIONS + 5];
    unsigned count = 0;
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, CALL_OFFSET);
    filter[count++] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 1, 0);
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    /* Not a constant: the kernel would not run the filter. */
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT_OFFSET);
    for (unsigned i = 0; i < DIVISIONS; i++) {
        filter[count++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_DIV | BPF_K, 1);
    }
    filter[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {.len = (unsigned short)count, .filter = filter};
    bool put_up = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    for (unsigned i = 0; i < FILTERS && put_up; i++) {
        put_up = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
    }
    return put_up;
}

/* The reading takes as long as thousands of calls that are passed over; their cost is not it. */
START_TEST(a_slow_clock_is_not_in_a_call_that_is_passed_over) {
    enum { CALLS_OF_A_ROUND = 128 };
    static _Alignas(64) uint8_t sampled[ML_SAMPLED_FIRST_BYTES];
    struct ml_thread *thread = begin(true);
    ml_process.clock = ML_CLOCK_MONOTONIC;
    atomic_store(&ml_process.pass_ticks_256, 0);
    control.sampling_bytes = 4096;
    ml_sampled_set_begin(&ml_process.sampled, sampled, NULL);
    ck_assert(slow_the_clock());
    ml_sampler_follow(thread, true);
    const uint64_t clock_ticks = atomic_load(&ml_process.clock_ticks);
    const uint64_t pass_256 = atomic_load(&ml_process.pass_ticks_256);
    ck_assert_uint_gt(clock_ticks, 10000);
    ck_assert_uint_gt(pass_256, 0);
    ck_assert_uint_lt(pass_256 * CALLS_OF_A_ROUND, clock_ticks * ML_COST_PASS_PART);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("cost");
    tcase_add_test(tcase, nothing_is_timed_without_a_promise);
    tcase_add_test(tcase, a_sixteenth_stands_for_all);
    tcase_add_test(tcase, a_hook_that_was_interrupted_counts_little);
    tcase_add_test(tcase, a_hook_left_by_longjmp_leaves_nothing_to_the_next);
    tcase_add_test(tcase, only_our_code_is_timed);
    tcase_add_test(tcase, calls_that_are_passed_over_are_counted_once);
    tcase_add_test(tcase, a_count_that_falls_adds_nothing);
    tcase_add_test(tcase, the_clock_counts_where_it_was_read);
    tcase_add_test(tcase, a_slow_clock_is_not_in_a_call_that_is_passed_over);
    return run_suite("client/cost", tcase);
}

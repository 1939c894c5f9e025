/* The governor of --overhead against programs that are simulated: what it costs to record them is
 * known, so it can be seen whether the promise is kept, and whether the interval comes to rest. */
#include "host/policy/overhead.h"

#include <check.h>
#include <string.h>

#include "tests/suite.h"

#define LOOK_NS UINT64_C(500000000)
#define TICKS_PER_NS 3

/* A program on one processor: at which interval recording would take all of its time, and which
 * share of it the calls take that are passed over. */
struct program {
    double all_at_bytes;
    double passing;
    double noise; /* of what is measured */
};

struct run {
    struct ml_overhead overhead;
    struct ml_overhead_rule rule;
    struct ml_overhead_reading now;
    uint64_t interval_bytes;
    unsigned changes;
    uint64_t random;
};

static double noise_of(struct run *run, double width) {
    run->random = run->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    const double unit = (double)(run->random >> 11) / (double)(UINT64_C(1) << 53);
    return 1 + width * (2 * unit - 1);
}

static double recording_of(const struct run *run, const struct program *program) {
    return program->all_at_bytes / (double)run->interval_bytes;
}

static void look(struct run *run, const struct program *program) {
    const double recording = recording_of(run, program) * noise_of(run, program->noise);
    run->now.at_ns += LOOK_NS;
    run->now.cpu_ns += LOOK_NS;
    run->now.ticks += LOOK_NS * TICKS_PER_NS;
    run->now.recording_ticks += (uint64_t)(recording * (double)LOOK_NS * TICKS_PER_NS);
    run->now.passing_ticks += (uint64_t)(program->passing * (double)LOOK_NS * TICKS_PER_NS);
    run->now.passed_calls += 1000;
    const uint64_t wanted =
        ml_overhead_step(&run->overhead, &run->rule, run->interval_bytes, &run->now);
    run->changes += wanted != run->interval_bytes;
    run->interval_bytes = wanted;
}

static void begin(struct run *run) {
    *run = (struct run){.rule = {.promised_ppm = 10000, .least_bytes = 4096}, .random = 7};
    run->now = (struct ml_overhead_reading){.at_ns = 1000, .ticks = 3000};
    run->interval_bytes = ml_overhead_start(&run->rule);
    ck_assert_uint_eq(
        ml_overhead_step(&run->overhead, &run->rule, run->interval_bytes, &run->now),
        run->interval_bytes
    );
}

static double cost_of(const struct run *run, const struct program *program) {
    return recording_of(run, program) + program->passing;
}

static void looks(struct run *run, const struct program *program, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        look(run, program);
    }
}

START_TEST(an_idle_allocator_is_sampled_at_the_finest) {
    struct run run;
    begin(&run);
    looks(&run, &(struct program){.all_at_bytes = 1}, 40);
    ck_assert_uint_eq(run.interval_bytes, 4096);
    ck_assert(!run.overhead.is_broken);
    ck_assert_uint_eq(run.overhead.shortest_bytes, 4096);
    ck_assert_uint_eq(run.overhead.longest_bytes, ML_OVERHEAD_START_BYTES);
}
END_TEST

/* Over four decades of programs. */
START_TEST(it_comes_to_rest_within_the_promise) {
    for (double all = 30; all < 400000; all *= 1.7) {
        struct run run;
        begin(&run);
        const struct program program = {.all_at_bytes = all, .passing = 0.003};
        looks(&run, &program, 60);
        ck_assert_double_le(cost_of(&run, &program), 0.01);
        const bool is_finest = run.interval_bytes == 4096;
        /* And not much below it: at a half of the interval it would cost more than the aim. */
        ck_assert(is_finest || recording_of(&run, &program) * 2 > 0.7 * (0.01 - 0.003) - 1e-6);
        run.changes = 0;
        looks(&run, &program, 400);
        ck_assert_uint_eq(run.changes, 0);
    }
}
END_TEST

/* What is measured wavers by a third. */
START_TEST(noise_moves_it_seldom) {
    struct run run;
    begin(&run);
    const struct program program = {.all_at_bytes = 3000, .passing = 0.002, .noise = 0.3};
    looks(&run, &program, 60);
    run.changes = 0;
    double sum = 0;
    for (unsigned i = 0; i < 2000; i++) {
        look(&run, &program);
        sum += cost_of(&run, &program);
    }
    ck_assert_double_le(sum / 2000, 0.01);
    ck_assert_uint_le(run.changes, 20);
}
END_TEST

START_TEST(a_program_that_becomes_busy_is_coarser_at_the_next_look) {
    struct run run;
    begin(&run);
    looks(&run, &(struct program){.all_at_bytes = 10}, 40);
    ck_assert_uint_eq(run.interval_bytes, 4096);
    const struct program busy = {.all_at_bytes = 1000, .passing = 0.001};
    look(&run, &busy);
    ck_assert_double_le(cost_of(&run, &busy), 0.01);
    looks(&run, &(struct program){.all_at_bytes = 10}, 40);
    ck_assert_uint_eq(run.interval_bytes, 4096);
}
END_TEST

START_TEST(calls_alone_can_break_the_promise_and_it_is_said) {
    struct run run;
    char text[ML_OVERHEAD_TEXT_BYTES];
    begin(&run);
    ck_assert_str_eq(ml_overhead_trouble(&run.overhead, &run.rule, text), "");
    const struct program program = {.all_at_bytes = 20000, .passing = 0.013};
    looks(&run, &program, 60);
    ck_assert(run.overhead.is_broken);
    /* A sample is left, which takes little. */
    ck_assert_double_le(recording_of(&run, &program), 1.25 * 0.01 / 16);
    ck_assert_uint_lt(run.interval_bytes, ML_OVERHEAD_MOST_BYTES);
    ml_overhead_trouble(&run.overhead, &run.rule, text);
    ck_assert_ptr_nonnull(strstr(text, "cost 1.4 %, promised 1 %: its 2000 calls"));
    ck_assert_ptr_nonnull(strstr(text, "cost 1.3 % alone"));
    run.changes = 0;
    looks(&run, &program, 200);
    ck_assert_uint_eq(run.changes, 0);
}
END_TEST

START_TEST(blocks_that_are_always_recorded_can_break_it_too) {
    struct run run;
    char text[ML_OVERHEAD_TEXT_BYTES];
    begin(&run);
    const struct program program = {.all_at_bytes = 3e7};
    looks(&run, &program, 30);
    ck_assert_uint_eq(run.interval_bytes, ML_OVERHEAD_MOST_BYTES);
    ck_assert(run.overhead.is_broken);
    ml_overhead_trouble(&run.overhead, &run.rule, text);
    ck_assert_ptr_nonnull(strstr(text, "at the longest interval, 64.0 MiB, recording costs 45 %"));
}
END_TEST

/* Whatever a client says: the interval stays between its bounds, and nothing else happens. */
START_TEST(a_client_that_lies_moves_its_interval_alone) {
    struct run run;
    begin(&run);
    uint64_t random = 1;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t words[6];
        for (unsigned k = 0; k < 6; k++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            words[k] = (random >> 60) == 0 ? UINT64_MAX : random >> (random & 63);
        }
        const struct ml_overhead_reading now = {
            words[0], words[1], words[2], words[3], words[4], words[5]};
        run.interval_bytes = ml_overhead_step(&run.overhead, &run.rule, run.interval_bytes, &now);
        ck_assert_uint_ge(run.interval_bytes, 4096);
        ck_assert_uint_le(run.interval_bytes, ML_OVERHEAD_MOST_BYTES);
        ck_assert_uint_le(run.overhead.whole.recording_ppm, ML_PPM);
        ck_assert_uint_le(run.overhead.recent.passing_ppm, ML_PPM);
        char text[ML_OVERHEAD_TEXT_BYTES];
        ck_assert_uint_lt(
            strlen(ml_overhead_trouble(&run.overhead, &run.rule, text)), sizeof(text) - 1
        );
    }
}
END_TEST

START_TEST(a_process_that_sleeps_is_not_judged) {
    struct run run;
    begin(&run);
    for (unsigned i = 0; i < 100; i++) {
        run.now.at_ns += LOOK_NS;
        run.now.ticks += LOOK_NS * TICKS_PER_NS;
        run.now.cpu_ns += 100000;
        run.now.recording_ticks += 100000; /* a third of that */
        run.interval_bytes =
            ml_overhead_step(&run.overhead, &run.rule, run.interval_bytes, &run.now);
    }
    ck_assert(!run.overhead.is_measured);
    ck_assert_uint_eq(run.interval_bytes, ML_OVERHEAD_START_BYTES);
}
END_TEST

START_TEST(shares_are_read) {
    static const struct {
        const char *text;
        uint32_t ppm;
    } good[] = {{"1%", 10000}, {"0.5%", 5000}, {"50%", 500000}, {"0.01%", 100}, {"12.5%", 125000}};
    static const char *const bad[] = {
        "", "%", "1", "0%", "0.0%", "51%", ".5%", "5.%", "1.2.3%", "-1%", "1 %", "1%%", "123456%"};
    uint32_t ppm = 0;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        ck_assert(ml_overhead_read(good[i].text, &ppm));
        ck_assert_uint_eq(ppm, good[i].ppm);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        ck_assert_msg(!ml_overhead_read(bad[i], &ppm), "%s", bad[i]);
    }
}
END_TEST

START_TEST(shares_are_written) {
    char text[16];
    ck_assert_str_eq(ml_overhead_percent(0, text), "0.00 %");
    ck_assert_str_eq(ml_overhead_percent(420, text), "0.04 %");
    ck_assert_str_eq(ml_overhead_percent(6000, text), "0.6 %");
    ck_assert_str_eq(ml_overhead_percent(10000, text), "1 %");
    ck_assert_str_eq(ml_overhead_percent(14100, text), "1.4 %");
    ck_assert_str_eq(ml_overhead_percent(1000000, text), "100 %");
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("overhead");
    tcase_add_test(tcase, an_idle_allocator_is_sampled_at_the_finest);
    tcase_add_test(tcase, it_comes_to_rest_within_the_promise);
    tcase_add_test(tcase, noise_moves_it_seldom);
    tcase_add_test(tcase, a_program_that_becomes_busy_is_coarser_at_the_next_look);
    tcase_add_test(tcase, calls_alone_can_break_the_promise_and_it_is_said);
    tcase_add_test(tcase, blocks_that_are_always_recorded_can_break_it_too);
    tcase_add_test(tcase, a_client_that_lies_moves_its_interval_alone);
    tcase_add_test(tcase, a_process_that_sleeps_is_not_judged);
    tcase_add_test(tcase, shares_are_read);
    tcase_add_test(tcase, shares_are_written);
    return run_suite("host/overhead", tcase);
}

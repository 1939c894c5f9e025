/* Messages of an analyzer that may have been taken over by what it reads. */
#include "host/collect/report.h"

#include <string.h>

#include <check.h>

#include "tests/suite.h"

static struct ml_collect_report report;
static struct memlog_fleet_begin_request head;
static struct memlog_fleet_frame frames[2];
static struct memlog_fleet_stack stacks[2];
static struct memlog_fleet_row rows[1];

static const struct memlog_fleet_frames_request two_frames = {
    .frames = {.items = frames, .count = 2}};
static const struct memlog_fleet_stacks_request two_stacks = {
    .stacks = {.items = stacks, .count = 2}};
static const struct memlog_fleet_rows_request one_row = {.rows = {.items = rows, .count = 1}};

static void setup(void) {
    head = (struct memlog_fleet_begin_request
    ){.version = MEMLOG_FLEET_FLEET_VERSION, .program = ml_string_of("prog")};
    frames[0].function = ml_string_of("main");
    frames[1].function = ml_string_of("leak");
    stacks[0] = (struct memlog_fleet_stack){.parent = 0, .frame = 1};
    stacks[1] = (struct memlog_fleet_stack){.parent = 1, .frame = 2};
    rows[0] = (struct memlog_fleet_row){.stack = 2, .figures = {.live_bytes = 7}};
}

static void teardown(void) {
    ml_collect_report_fini(&report);
}

static void come(void) {
    ck_assert_int_eq(ml_collect_report_begin(&report, &head), ML_OK);
    ck_assert_int_eq(ml_collect_report_frames(&report, &two_frames), ML_OK);
    ck_assert_int_eq(ml_collect_report_stacks(&report, &two_stacks), ML_OK);
    ck_assert_int_eq(ml_collect_report_rows(&report, &one_row), ML_OK);
}

START_TEST(a_whole_report_has_copies_of_what_came) {
    char name[] = "prog";

    head.program.data = name;
    come();
    memset(name, 'x', sizeof name - 1);
    ck_assert_int_eq(
        ml_collect_report_end(
            &report, &(struct memlog_fleet_end_request){.frames = 2, .stacks = 2, .rows = 1}
        ),
        ML_OK
    );
    ck_assert_int_eq(report.state, ML_COLLECT_REPORT_WHOLE);
    ck_assert_str_eq(report.head.program.data, "prog");
    ck_assert_str_eq(report.frames[1].function.data, "leak");
    ck_assert_uint_eq(report.sums.live_bytes, 7);
}
END_TEST

START_TEST(messages_have_their_order) {
    ck_assert_int_eq(ml_collect_report_frames(&report, &two_frames), ML_PEER_STATE);
    ck_assert_int_eq(ml_collect_report_stacks(&report, &two_stacks), ML_PEER_STATE);
    ck_assert_int_eq(ml_collect_report_rows(&report, &one_row), ML_PEER_STATE);
    ck_assert_int_eq(
        ml_collect_report_end(&report, &(struct memlog_fleet_end_request){.frames = 0}),
        ML_PEER_STATE
    );
    come();
    ck_assert_int_eq(ml_collect_report_begin(&report, &head), ML_PEER_STATE);
    ck_assert_int_eq(ml_collect_report_frames(&report, &two_frames), ML_PEER_STATE);
    ck_assert_int_eq(ml_collect_report_stacks(&report, &two_stacks), ML_PEER_STATE);
    ck_assert_int_eq(
        ml_collect_report_refused(
            &report, &(struct memlog_fleet_refused_request){.reason = ml_string_of("x")}
        ),
        ML_PEER_STATE
    );
}
END_TEST

START_TEST(another_version_is_none) {
    head.version++;
    ck_assert_int_eq(ml_collect_report_begin(&report, &head), ML_PEER_STATE);
}
END_TEST

START_TEST(numbers_name_what_came_before) {
    ck_assert_int_eq(ml_collect_report_begin(&report, &head), ML_OK);
    ck_assert_int_eq(ml_collect_report_frames(&report, &two_frames), ML_OK);
    stacks[1].parent = 2; /* itself */
    ck_assert_int_eq(ml_collect_report_stacks(&report, &two_stacks), ML_PEER_RANGE);
    ml_collect_report_fini(&report);
    setup();
    stacks[0].frame = 3;
    ck_assert_int_eq(ml_collect_report_begin(&report, &head), ML_OK);
    ck_assert_int_eq(ml_collect_report_frames(&report, &two_frames), ML_OK);
    ck_assert_int_eq(ml_collect_report_stacks(&report, &two_stacks), ML_PEER_RANGE);
    ml_collect_report_fini(&report);
    setup();
    rows[0].stack = 3;
    ck_assert_int_eq(ml_collect_report_begin(&report, &head), ML_OK);
    ck_assert_int_eq(ml_collect_report_frames(&report, &two_frames), ML_OK);
    ck_assert_int_eq(ml_collect_report_stacks(&report, &two_stacks), ML_OK);
    ck_assert_int_eq(ml_collect_report_rows(&report, &one_row), ML_PEER_RANGE);
}
END_TEST

START_TEST(sums_are_those_of_a_machine) {
    rows[0].figures.total_bytes = ML_COLLECT_REPORT_FIGURE_MAX;
    come();
    rows[0].figures.total_bytes = 1;
    ck_assert_int_eq(ml_collect_report_rows(&report, &one_row), ML_PEER_RANGE);
}
END_TEST

START_TEST(an_end_counts_what_came) {
    come();
    ck_assert_int_eq(
        ml_collect_report_end(
            &report, &(struct memlog_fleet_end_request){.frames = 2, .stacks = 2, .rows = 2}
        ),
        ML_PEER_RANGE
    );
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("report");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_whole_report_has_copies_of_what_came);
    tcase_add_test(tests, messages_have_their_order);
    tcase_add_test(tests, another_version_is_none);
    tcase_add_test(tests, numbers_name_what_came_before);
    tcase_add_test(tests, sums_are_those_of_a_machine);
    tcase_add_test(tests, an_end_counts_what_came);
    return run_suite("report", tests);
}

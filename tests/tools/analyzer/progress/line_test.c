/* What the line of progress says, and when. */
#include "tools/analyzer/progress/line.h"

#include <string.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { SECOND_NS = 1000000000, START_NS = 5 };

static const struct ml_progress half = {
    .work = "Reading symbols", .done = 150, .total = 300, .name = "/usr/lib/libxul.so"};

static const char *text_of(struct ml_progress now, size_t columns) {
    static char text[ML_PROGRESS_TEXT_BYTES];

    ml_progress_text(&now, columns, text);
    return text;
}

START_TEST(it_says_work_share_pieces_and_name) {
    ck_assert_str_eq(text_of(half, 80), "Reading symbols: 50% (150/300), libxul.so");
    const struct ml_progress bytes = {
        .work = "Reading", .done = 3 << 20, .total = 12 << 20, .are_bytes = true};
    ck_assert_str_eq(text_of(bytes, 80), "Reading: 25% (3/12 MiB)");
}
END_TEST

START_TEST(only_all_is_a_hundred_percent) {
    const struct ml_progress nearly = {.work = "A", .done = 999, .total = 1000};
    const struct ml_progress more = {.work = "A", .done = 1001, .total = 1000};
    ck_assert_str_eq(text_of(nearly, 80), "A: 99% (999/1000)");
    ck_assert_str_eq(text_of(more, 80), "A: 100% (1000/1000)");
}
END_TEST

START_TEST(without_a_total_it_says_how_much) {
    const struct ml_progress bytes = {.work = "A", .done = 7 << 20, .are_bytes = true};
    const struct ml_progress pieces = {.work = "A", .done = 7, .name = "x"};
    ck_assert_str_eq(text_of(bytes, 80), "A: 7 MiB");
    ck_assert_str_eq(text_of(pieces, 80), "A: 7, x");
}
END_TEST

START_TEST(hostile_names_stay_in_the_line) {
    struct ml_progress now = {.work = "A", .done = 1, .total = 2, .name = "a\n\x1b[2Jb"};
    ck_assert_str_eq(text_of(now, 80), "A: 50% (1/2), a??[2Jb");
    ck_assert_str_eq(text_of(half, 20), "Reading symbols: 50%");
    ck_assert_str_eq(text_of(half, 0), "");
    char name[3 * ML_PROGRESS_TEXT_BYTES];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    now.name = name;
    ck_assert_uint_eq(strlen(text_of(now, SIZE_MAX)), ML_PROGRESS_COLUMNS_MAX);
}
END_TEST

START_TEST(nothing_is_due_within_the_first_second) {
    struct ml_progress_line line;

    ml_progress_line_begin(&line, START_NS);
    ck_assert(!ml_progress_line_is_due(&line, START_NS));
    ck_assert(!ml_progress_line_is_due(&line, START_NS + SECOND_NS - 1));
    ck_assert(ml_progress_line_is_due(&line, START_NS + SECOND_NS));
    ck_assert(!ml_progress_line_is_due(&line, START_NS + SECOND_NS + 1));
    ck_assert(ml_progress_line_is_due(&line, START_NS + SECOND_NS + SECOND_NS / 10));
}
END_TEST

/* All that was written into the pipe. */
static const char *written(const int fds[2]) {
    static char bytes[4096];

    (void)close(fds[1]);
    const ssize_t count = read(fds[0], bytes, sizeof bytes - 1);
    (void)close(fds[0]);
    bytes[count > 0 ? count : 0] = '\0';
    return bytes;
}

START_TEST(what_was_written_is_erased_once) {
    struct ml_progress_line line;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    ml_progress_line_begin(&line, START_NS);
    ml_progress_line_put(&line, fds[1], &half, 21);
    ml_progress_line_erase(&line, fds[1]);
    ml_progress_line_erase(&line, fds[1]);
    ck_assert_str_eq(written(fds), "\rReading symbols: 50%\x1b[K\r\x1b[K");
}
END_TEST

START_TEST(what_was_not_written_is_not_erased) {
    struct ml_progress_line line;
    int fds[2];

    ck_assert_int_eq(pipe(fds), 0);
    ml_progress_line_begin(&line, START_NS);
    ml_progress_line_erase(&line, fds[1]);
    ck_assert_str_eq(written(fds), "");
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("line");
    tcase_add_test(tests, it_says_work_share_pieces_and_name);
    tcase_add_test(tests, only_all_is_a_hundred_percent);
    tcase_add_test(tests, without_a_total_it_says_how_much);
    tcase_add_test(tests, hostile_names_stay_in_the_line);
    tcase_add_test(tests, nothing_is_due_within_the_first_second);
    tcase_add_test(tests, what_was_written_is_erased_once);
    tcase_add_test(tests, what_was_not_written_is_not_erased);
    return run_suite("line", tests);
}

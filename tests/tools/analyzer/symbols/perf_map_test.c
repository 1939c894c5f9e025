#include "tools/analyzer/symbols/perf_map.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static char path[] = "/tmp/memlog-perf-map-XXXXXX";
static struct ml_perf_map map;

static void write_map(const char *text) {
    FILE *file = NULL;

    strcpy(path + strlen(path) - 6, "XXXXXX");
    file = fdopen(mkstemp(path), "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    ck_assert_int_eq(fclose(file), 0);
}

static void teardown(void) {
    ml_perf_map_fini(&map);
    unlink(path);
}

START_TEST(an_address_has_the_name_of_its_line) {
    write_map("2000 100 JS:*second file.js:7\n1000 80 first\n");
    ck_assert(ml_perf_map_read_file(&map, path, 0, UINT64_MAX));
    ck_assert_str_eq(ml_perf_map_find(&map, 0x1000), "first");
    ck_assert_str_eq(ml_perf_map_find(&map, 0x107f), "first");
    ck_assert_str_eq(ml_perf_map_find(&map, 0x20ff), "JS:*second file.js:7");
    ck_assert_ptr_null(ml_perf_map_find(&map, 0xfff));
    ck_assert_ptr_null(ml_perf_map_find(&map, 0x1080));
    ck_assert_ptr_null(ml_perf_map_find(&map, 0x2100));
    ck_assert_ptr_null(ml_perf_map_find(&map, UINT64_MAX));
}
END_TEST

START_TEST(code_that_took_anothers_place_has_the_later_name) {
    write_map("1000 80 before\n1000 40 after\n");
    ck_assert(ml_perf_map_read_file(&map, path, 0, UINT64_MAX));
    ck_assert_str_eq(ml_perf_map_find(&map, 0x1010), "after");
    ck_assert_str_eq(ml_perf_map_find(&map, 0x1050), "before");
}
END_TEST

START_TEST(lines_that_are_none_are_skipped) {
    write_map(
        "\n#\n1000\n1000 0 empty\nffffffffffffffff 20 beyond\nxyz 1 no\n1000 zz no\n2000 10 yes\r\n"
    );
    ck_assert(ml_perf_map_read_file(&map, path, 0, UINT64_MAX));
    ck_assert_uint_eq(map.count, 1);
    ck_assert_str_eq(ml_perf_map_find(&map, 0x2000), "yes");
}
END_TEST

START_TEST(a_fifo_in_its_place_keeps_nobody_waiting) {
    write_map("");
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    ck_assert(!ml_perf_map_read_file(&map, path, 0, UINT64_MAX));
}
END_TEST

START_TEST(a_map_older_than_its_process_is_anothers) {
    struct stat status;
    uint64_t written_ns = 0;

    write_map("1000 80 first\n");
    ck_assert_int_eq(stat(path, &status), 0);
    written_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000 + (uint64_t)status.st_mtim.tv_nsec;
    ck_assert(!ml_perf_map_read_file(&map, path, written_ns + 1, UINT64_MAX));
    ck_assert(!ml_perf_map_read_file(&map, path, 0, written_ns - 1));
    ck_assert(ml_perf_map_read_file(&map, path, written_ns, written_ns));
}
END_TEST

START_TEST(no_map_is_no_trouble) {
    ck_assert(!ml_perf_map_read_file(&map, "/nonexistent/perf.map", 0, UINT64_MAX));
    ck_assert(!ml_perf_map_read_file(&map, "/tmp", 0, UINT64_MAX));
    ck_assert_ptr_null(ml_perf_map_find(&map, 0x1000));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, NULL, teardown);
    tcase_add_test(tests, an_address_has_the_name_of_its_line);
    tcase_add_test(tests, code_that_took_anothers_place_has_the_later_name);
    tcase_add_test(tests, lines_that_are_none_are_skipped);
    tcase_add_test(tests, a_fifo_in_its_place_keeps_nobody_waiting);
    tcase_add_test(tests, a_map_older_than_its_process_is_anothers);
    tcase_add_test(tests, no_map_is_no_trouble);
    return run_suite("tools/perf_map", tests);
}

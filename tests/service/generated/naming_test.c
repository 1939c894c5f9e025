#include "service/generated/naming.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/suite.h"

static struct ml_budget budget;
static struct ml_stack_store store;
static int fd;
static uint64_t dump_bytes;

/* Ticks are ns: a node's moment is its lane's next event. */
static const struct ml_naming_clock even = {.ticks_are_ns = true};

static void setup(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    ml_stack_store_init(&store, &budget);
    fd = memfd_create("code", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    dump_bytes = 0;
}

static void teardown(void) {
    ml_stack_store_fini(&store);
    ck_assert_uint_eq(budget.used_bytes, 0);
    (void)close(fd);
}

static void define(uint32_t id, uint64_t address, uint64_t ticks) {
    const struct ml_event event = {
        .kind = ML_EVENT_NODE, .node = {.id = id, .frame = ML_FRAME_ADDRESS, .address = address}};
    const uint32_t unnamed = store.unnamed_count;
    ck_assert_int_eq(ml_stack_store_define(&store, &event), ML_OK);
    ck_assert_uint_eq(store.unnamed_count, unnamed + 1);
    ml_stack_store_await(&store, 0, unnamed);
    if (ticks != 0) {
        ml_stack_store_event(&store, 0, ticks);
    }
}

static void write_text(const char *text) {
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(pwrite(fd, text, strlen(text), 0), (ssize_t)strlen(text));
}

static const char *name_of(uint32_t id) {
    static char text[2048];
    const struct ml_stored_node *node = ml_stack_store_node(&store, id);
    if (node->frame != ML_FRAME_SCRIPT) {
        return "";
    }
    const struct ml_stored_string *string = ml_stack_store_string_of(&store, node);
    (void
    )snprintf(text, sizeof(text), "%.*s", (int)string->count_bytes, (const char *)string->bytes);
    return text;
}

static enum ml_status read_map(void) {
    return ml_naming_read(&store, fd, ML_CODE_PERF_MAP, &even, NULL);
}

START_TEST(a_node_has_the_name_of_the_line_over_it) {
    define(1, 0x1010, 1);
    define(2, 0x1080, 1);
    define(3, 0x203f, 1);
    define(4, 0x2040, 1);
    write_text("1000 80 JS:*first /a.js:1:2\n2000 40 second\n");
    ck_assert_int_eq(read_map(), ML_OK);
    ck_assert_str_eq(name_of(1), "JS:*first /a.js:1:2");
    ck_assert_str_eq(name_of(2), "");
    ck_assert_str_eq(name_of(3), "second");
    ck_assert_str_eq(name_of(4), "");
    ck_assert_uint_eq(store.unnamed_count, 2);
}
END_TEST

START_TEST(of_a_map_the_last_line_counts_and_a_name_that_was_found_stays) {
    define(1, 0x1010, 1);
    write_text("1000 80 before\n1000 40 last\n");
    ck_assert_int_eq(read_map(), ML_OK);
    ck_assert_str_eq(name_of(1), "last");
    define(2, 0x1010, 1);
    write_text("1000 80 before\n1000 40 last\n1000 40 later\n");
    ck_assert_int_eq(read_map(), ML_OK);
    ck_assert_str_eq(name_of(1), "last");
    ck_assert_str_eq(name_of(2), "later");
}
END_TEST

START_TEST(lines_that_are_none_or_not_whole_are_passed_over) {
    define(1, 0x1000, 1);
    define(2, 0x2000, 1);
    define(3, 0xffffffffffffULL, 1);
    write_text("\n#\n1000\n1000 0 empty\n1000 zz no\nxyz 1 no\n1000 10\n-1000 10 no\n"
               "11111111111111111 ffff no\nffffffffffffffff 20 beyond\n"
               "0x2000 0x10 yes\r\n1000 10 \n1000 10 not written to its end");
    ck_assert_int_eq(read_map(), ML_OK);
    ck_assert_str_eq(name_of(1), "");
    ck_assert_str_eq(name_of(2), "yes");
    ck_assert_str_eq(name_of(3), "");
}
END_TEST

START_TEST(lines_over_the_edges_of_blocks_and_long_ones_are_read) {
    enum { PAD = 50, LONG = 3 * ML_CODE_BLOCK_BYTES };
    static char text[8 * ML_CODE_BLOCK_BYTES];
    size_t at = 0;
    uint32_t lines = 0;
    for (; at < 4 * (size_t)ML_CODE_BLOCK_BYTES; lines++) {
        at += (size_t
        )sprintf(text + at, "%x 10 function%u %*s\n", 0x100000 + lines * 16, lines, PAD, "");
    }
    at += (size_t)sprintf(text + at, "50 10 long");
    memset(text + at, 'x', LONG);
    at += LONG;
    at += (size_t)sprintf(text + at, "\n60 10 behind\n");
    for (uint32_t i = 0; i < lines; i++) {
        define(i + 1, 0x100000 + i * 16 + 3, 1);
    }
    define(lines + 1, 0x55, 1);
    define(lines + 2, 0x65, 1);
    write_text(text);
    ck_assert_int_eq(read_map(), ML_OK);
    for (uint32_t i = 0; i < lines; i++) {
        char begin[32];
        (void)snprintf(begin, sizeof(begin), "function%u ", i);
        ck_assert_int_eq(strncmp(name_of(i + 1), begin, strlen(begin)), 0);
    }
    ck_assert_uint_eq(strlen(name_of(lines + 1)), ML_CODE_NAME_MAX_BYTES);
    ck_assert_str_eq(name_of(lines + 2), "behind");
}
END_TEST

START_TEST(a_map_that_is_too_long_is_refused) {
    define(1, 0x1000, 1);
    ck_assert_int_eq(ftruncate(fd, (off_t)ML_PERF_MAP_MAX_BYTES + 1), 0);
    ck_assert_int_eq(read_map(), ML_PEER_LIMIT);
}
END_TEST

/* ---- jitdumps */

static void put(const void *bytes, size_t count) {
    ck_assert_int_eq(pwrite(fd, bytes, count, (off_t)dump_bytes), (ssize_t)count);
    dump_bytes += count;
}

static void put_header(uint64_t flags) {
    const struct {
        uint32_t magic, version, bytes, machine, padding, pid;
        uint64_t time, flags;
    } header = {0x4a695444, 1, 40, 62, 0, 1, 0, flags};
    put(&header, sizeof(header));
}

static void put_load(uint64_t time, uint64_t address, uint64_t size, const char *name) {
    const struct {
        uint32_t id, bytes;
        uint64_t time;
        uint32_t pid, thread;
        uint64_t vma, address, size, number;
    } load = {0, (uint32_t)(56 + strlen(name) + 1 + size), time, 1, 1, address, address, size, 0};
    put(&load, sizeof(load));
    put(name, strlen(name) + 1);
    for (uint64_t i = 0; i < size; i++) {
        put("\xcc", 1);
    }
}

static void put_move(uint64_t time, uint64_t from, uint64_t to, uint64_t size) {
    const struct {
        uint32_t id, bytes;
        uint64_t time;
        uint32_t pid, thread;
        uint64_t vma, from, to, size, number;
    } move = {1, 64, time, 1, 1, to, from, to, size, 0};
    put(&move, sizeof(move));
}

static enum ml_status read_dump(const struct ml_naming_clock *clock) {
    return ml_naming_read(&store, fd, ML_CODE_JIT_DUMP, clock, NULL);
}

START_TEST(of_a_jitdump_a_node_has_the_name_of_its_moment) {
    const uint64_t second = 1000000000;
    put_header(0);
    put_load(10 * second, 0x1000, 64, "old");
    put_load(20 * second, 0x1000, 64, "new");
    define(1, 0x1010, 5 * second);
    define(2, 0x1010, 15 * second);
    define(3, 0x1010, 25 * second);
    define(4, 0x1010, 0); /* its event has not come: the last one */
    ck_assert_int_eq(read_dump(&even), ML_OK);
    ck_assert_str_eq(name_of(1), "");
    ck_assert_str_eq(name_of(2), "old");
    ck_assert_str_eq(name_of(3), "new");
    ck_assert_str_eq(name_of(4), "new");
}
END_TEST

START_TEST(ticks_become_the_dumps_clock) {
    const struct ml_naming_clock clock = {
        .start_ticks = 1000, .start_ns = 5000000000, .now_ticks = 3001000, .now_ns = 8000000000};
    put_header(0);
    put_load(6000000000, 0x1000, 64, "old"); /* 1 s after the start: a third of the ticks */
    put_load(7000000000, 0x1000, 64, "new");
    define(1, 0x1010, 1000 + 900000);
    define(2, 0x1010, 1000 + 1500000);
    define(3, 0x1010, 1000 + 2500000);
    ck_assert_int_eq(read_dump(&clock), ML_OK);
    ck_assert_str_eq(name_of(1), "");
    ck_assert_str_eq(name_of(2), "old");
    ck_assert_str_eq(name_of(3), "new");
}
END_TEST

START_TEST(a_dump_in_ticks_is_compared_in_ticks) {
    const struct ml_naming_clock clock = {
        .start_ticks = 1, .start_ns = 1, .now_ticks = 1000, .now_ns = 9000000000};
    put_header(1);
    put_load(10, 0x1000, 64, "old");
    put_load(20, 0x1000, 64, "new");
    define(1, 0x1010, 15);
    ck_assert_int_eq(read_dump(&clock), ML_OK);
    ck_assert_str_eq(name_of(1), "old");
}
END_TEST

START_TEST(where_code_was_moved_to_it_has_no_name) {
    put_header(0);
    put_load(10, 0x1000, 64, "work");
    put_move(20, 0x1000, 0x2000, 64);
    define(1, 0x1010, 5000000000);
    define(2, 0x2010, 5000000000);
    ck_assert_int_eq(read_dump(&even), ML_OK);
    ck_assert_str_eq(name_of(1), "work");
    ck_assert_str_eq(name_of(2), "");
}
END_TEST

START_TEST(reading_ends_at_the_first_record_that_is_not_whole) {
    define(1, 0x1010, 5000000000);
    define(2, 0x2010, 5000000000);
    put_header(0);
    put_load(10, 0x1000, 64, "whole");
    put_load(20, 0x2000, 64, "cut");
    ck_assert_int_eq(ftruncate(fd, (off_t)dump_bytes - 1), 0);
    ck_assert_int_eq(read_dump(&even), ML_OK);
    ck_assert_str_eq(name_of(1), "whole");
    ck_assert_str_eq(name_of(2), "");
}
END_TEST

START_TEST(what_is_no_jitdump_is_refused) {
    define(1, 0x1010, 1);
    write_text("1000 80 a perf map\n1000 80 and another line, so that it is long enough\n");
    ck_assert_int_eq(read_dump(&even), ML_PEER_UNKNOWN);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert_int_eq(read_dump(&even), ML_PEER_UNKNOWN);
}
END_TEST

START_TEST(events_of_another_lane_do_not_tell_the_moment) {
    define(1, 0x1010, 0);
    ml_stack_store_event(&store, 3, 77);
    ck_assert_uint_eq(store.unnamed[0].ticks, 0);
    ml_stack_store_event(&store, 0, 78);
    ck_assert_uint_eq(store.unnamed[0].ticks, 78);
    ml_stack_store_event(&store, 0, 79);
    ck_assert_uint_eq(store.unnamed[0].ticks, 78);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("naming");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_node_has_the_name_of_the_line_over_it);
    tcase_add_test(tests, of_a_map_the_last_line_counts_and_a_name_that_was_found_stays);
    tcase_add_test(tests, lines_that_are_none_or_not_whole_are_passed_over);
    tcase_add_test(tests, lines_over_the_edges_of_blocks_and_long_ones_are_read);
    tcase_add_test(tests, a_map_that_is_too_long_is_refused);
    tcase_add_test(tests, of_a_jitdump_a_node_has_the_name_of_its_moment);
    tcase_add_test(tests, ticks_become_the_dumps_clock);
    tcase_add_test(tests, a_dump_in_ticks_is_compared_in_ticks);
    tcase_add_test(tests, where_code_was_moved_to_it_has_no_name);
    tcase_add_test(tests, reading_ends_at_the_first_record_that_is_not_whole);
    tcase_add_test(tests, what_is_no_jitdump_is_refused);
    tcase_add_test(tests, events_of_another_lane_do_not_tell_the_moment);
    return run_suite("service/generated/naming", tests);
}

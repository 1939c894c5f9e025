#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#include "host/process/view.h"

static struct ml_process_view view;

static void setup(void) {
    ml_process_view_init(&view, 0);
}

static void teardown(void) {
    ml_process_view_fini(&view);
}

static void read_text(const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ml_process_view_line(&view, lines[i]);
    }
}

static const struct ml_process_mapping *mapping(const char *name) {
    for (uint32_t i = 0; i < view.mappings_count; i++) {
        if (strcmp(view.mappings[i].name, name) == 0) {
            return &view.mappings[i];
        }
    }
    ck_abort_msg("no mapping %s", name);
    return NULL;
}

START_TEST(mappings_of_one_name_add_up) {
    static const char *const lines[] = {
        "55d0a0000000-55d0a0001000 r--p 00000000 fe:01 99    /usr/bin/a program\n",
        "Size:                 40 kB\n",
        "Rss:                  36 kB\n",
        "Pss:                  18 kB\n",
        "Pss_Dirty:             7 kB\n",
        "Shared_Clean:         30 kB\n",
        "Shared_Dirty:          1 kB\n",
        "Private_Clean:         2 kB\n",
        "Private_Dirty:         3 kB\n",
        "Swap:                  4 kB\n",
        "SwapPss:               9 kB\n",
        "VmFlags: rd mr mw me sd\n",
        "7f00c0000000-7f00c0021000 rw-p 00000000 00:00 0 \n",
        "Size:                132 kB\n",
        "Private_Dirty:       100 kB\n",
        "55d0a0001000-55d0a0002000 r-xp 00001000 fe:01 99    /usr/bin/a program\n",
        "Size:                  4 kB\n",
        "Private_Dirty:         8 kB\n",
    };
    static const uint64_t expected[ML_MAPPING_FIGURES] = {44, 2, 11, 30, 1, 18, 4};
    read_text(lines, sizeof lines / sizeof lines[0]);
    ck_assert_uint_eq(view.mappings_count, 2);
    ck_assert_mem_eq(mapping("/usr/bin/a program")->figures_kb, expected, sizeof expected);
    ck_assert_uint_eq(mapping("[anon]")->figures_kb[ML_MAPPING_PRIVATE_DIRTY], 100);
}
END_TEST

START_TEST(a_libc_that_is_executed_is_counted_each_time) {
    static const char *const lines[] = {
        "7f0000000000-7f0000028000 r--p 00000000 08:01 7     /usr/lib/x86_64-linux-gnu/libc.so.6\n",
        "7f0000028000-7f00001bd000 r-xp 00028000 08:01 7     /usr/lib/x86_64-linux-gnu/libc.so.6\n",
        "7f1000000000-7f1000200000 r--p 00000000 08:01 7     /usr/lib/x86_64-linux-gnu/libc.so.6\n",
        "7f2000000000-7f2000200000 r-xp 00000000 08:01 8     /usr/lib/not-libc.so.6\n",
        "7f3000000000-7f3000200000 r-xp 00000000 00:00 0 \n",
    };
    static const char one_more[] =
        "7f4000000000-7f4000100000 r-xp 00028000 08:01 9     /old/libc-2.31.so\n";
    read_text(lines, sizeof lines / sizeof lines[0]);
    ck_assert_uint_eq(view.libcs_count, 1);
    ml_process_view_line(&view, one_more);
    ck_assert_uint_eq(view.libcs_count, 2);
}
END_TEST

START_TEST(figures_ahead_of_every_mapping_belong_to_none) {
    static const char *const lines[] = {"Size: 40 kB", "", "-", "x", "Private_Dirty: 7 kB"};
    read_text(lines, sizeof lines / sizeof lines[0]);
    ck_assert_uint_eq(view.mappings_count, 0);
}
END_TEST

START_TEST(more_names_than_there_is_room_for_become_one) {
    enum { NAMES = ML_PROCESS_VIEW_MAPPINGS * 2 };
    uint64_t sum = 0;
    for (int i = 0; i < NAMES; i++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "1000-2000 r--p 0 0:0 1 /lib/%d", i);
        ml_process_view_line(&view, line);
        ml_process_view_line(&view, "Size: 4 kB");
    }
    ck_assert_uint_eq(view.mappings_count, ML_PROCESS_VIEW_MAPPINGS);
    ck_assert_uint_eq(
        mapping("[others]")->figures_kb[ML_MAPPING_SIZE], 4 * (NAMES - ML_PROCESS_VIEW_MAPPINGS + 1)
    );
    for (uint32_t i = 0; i < view.mappings_count; i++) {
        sum += view.mappings[i].figures_kb[ML_MAPPING_SIZE];
    }
    ck_assert_uint_eq(sum, 4 * NAMES);
}
END_TEST

static void *wait_there(void *context) {
    pthread_barrier_t *barrier = context;
    (void)pthread_barrier_wait(barrier);
    (void)pthread_barrier_wait(barrier);
    return NULL;
}

START_TEST(threads_and_memory_of_a_process_are_read) {
    pthread_barrier_t barrier;
    pthread_t thread;
    bool seen = false;
    uint64_t private_kb = 0;
    uint64_t footprint_bytes = 0;
    uint64_t resident_bytes = 0;
    ck_assert_int_eq(pthread_barrier_init(&barrier, NULL, 2), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_there, &barrier), 0);
    ck_assert_int_eq(pthread_setname_np(thread, "fifteen-letters"), 0);
    (void)pthread_barrier_wait(&barrier);
    ml_process_view_fini(&view);
    ml_process_view_init(&view, getpid());
    ml_process_footprint(getpid(), &footprint_bytes, &resident_bytes);
    (void)pthread_barrier_wait(&barrier);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_ge(view.threads_count, 2);
    ck_assert_uint_eq(view.threads[0].tid, (uint32_t)getpid());
    for (uint32_t i = 0; i < view.threads_count; i++) {
        seen = seen || strcmp(view.threads[i].name, "fifteen-letters") == 0;
    }
    ck_assert(seen);
    for (uint32_t i = 0; i < view.mappings_count; i++) {
        private_kb += view.mappings[i].figures_kb[ML_MAPPING_PRIVATE_CLEAN] +
                      view.mappings[i].figures_kb[ML_MAPPING_PRIVATE_DIRTY];
    }
    ck_assert_uint_gt(mapping("[stack]")->figures_kb[ML_MAPPING_PRIVATE_DIRTY], 0);
    /* Read one after the other: the second reading made pages of its own. */
    ck_assert_uint_gt(private_kb * 1024, footprint_bytes / 2);
    ck_assert_uint_lt(private_kb * 1024, footprint_bytes * 2);
}
END_TEST

START_TEST(a_process_that_is_gone_has_nothing) {
    ml_process_view_fini(&view);
    ml_process_view_init(&view, 0x7ffffffe);
    ck_assert_uint_eq(view.threads_count, 0);
    ck_assert_uint_eq(view.mappings_count, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, mappings_of_one_name_add_up);
    tcase_add_test(tests, a_libc_that_is_executed_is_counted_each_time);
    tcase_add_test(tests, figures_ahead_of_every_mapping_belong_to_none);
    tcase_add_test(tests, more_names_than_there_is_room_for_become_one);
    tcase_add_test(tests, threads_and_memory_of_a_process_are_read);
    tcase_add_test(tests, a_process_that_is_gone_has_nothing);
    return run_suite("host/process_view", tests);
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#include "host/memory/regions.h"

static struct ml_memory_regions regions;

static void setup(void) {
    regions = (struct ml_memory_regions){0};
}

static void teardown(void) {
    ml_memory_regions_fini(&regions);
}

static void read_text(const char *const *lines, size_t count) {
    for (size_t i = 0; i < count; i++) {
        ck_assert(ml_memory_regions_line(&regions, lines[i]));
    }
}

START_TEST(each_mapping_is_a_region_with_its_figures) {
    static const char *const lines[] = {
        "55d0a0000000-55d0a000a000 r--p 00003000 fe:01 99    /usr/bin/a program\n",
        "Size:                 40 kB\n",
        "KernelPageSize:        4 kB\n",
        "Rss:                  36 kB\n",
        "Pss:                  18 kB\n",
        "Pss_Dirty:             7 kB\n",
        "Shared_Clean:         30 kB\n",
        "Shared_Dirty:          1 kB\n",
        "Private_Clean:         2 kB\n",
        "Private_Dirty:         3 kB\n",
        "Referenced:           36 kB\n",
        "Anonymous:             5 kB\n",
        "Swap:                  4 kB\n",
        "SwapPss:               9 kB\n",
        "VmFlags: rd mr mw me sd\n",
        "7f00c0000000-7f00c0021000 rw-s 00000000 00:00 0 \n",
        "Size:                132 kB\n",
    };
    static const uint64_t expected_kb[ML_MEMORY_FIGURES] = {40, 36, 18, 2, 3, 30, 1, 5, 4};
    read_text(lines, sizeof lines / sizeof lines[0]);
    ck_assert_uint_eq(regions.count, 2);
    const struct ml_memory_region *first = &regions.items[0];
    ck_assert_uint_eq(first->start, 0x55d0a0000000);
    ck_assert_uint_eq(first->end, 0x55d0a000a000);
    ck_assert_uint_eq(first->permissions, ML_MEMORY_READ);
    ck_assert_uint_eq(first->offset, 0x3000);
    ck_assert_uint_eq(first->inode, 99);
    ck_assert_str_eq(first->name, "/usr/bin/a program");
    ck_assert_mem_eq(first->figures_kb, expected_kb, sizeof expected_kb);
    const struct ml_memory_region *second = &regions.items[1];
    ck_assert_uint_eq(second->permissions, ML_MEMORY_READ | ML_MEMORY_WRITE | ML_MEMORY_SHARED);
    ck_assert_str_eq(second->name, "");
    ck_assert_uint_eq(second->figures_kb[ML_MEMORY_SIZE], 132);
}
END_TEST

START_TEST(figures_ahead_of_every_mapping_belong_to_none) {
    static const char *const lines[] = {"Size: 40 kB", "", "-", "x", "Private_Dirty: 7 kB"};
    read_text(lines, sizeof lines / sizeof lines[0]);
    ck_assert_uint_eq(regions.count, 0);
}
END_TEST

START_TEST(a_line_that_is_cut_anywhere_is_read_as_far_as_it_goes) {
    static const char whole[] = "1000-2000 r-xp 00001000 fe:01 99 /a";
    for (size_t count = sizeof("1000-"); count < sizeof whole; count++) {
        char *line = strndup(whole, count);
        ck_assert_ptr_nonnull(line);
        ck_assert(ml_memory_regions_line(&regions, line));
        ck_assert_uint_eq(regions.items[regions.count - 1].start, 0x1000);
        free(line);
    }
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
    ck_assert_uint_eq(ml_memory_regions_libcs(&regions), 1);
    ck_assert(ml_memory_regions_line(&regions, one_more));
    ck_assert_uint_eq(ml_memory_regions_libcs(&regions), 2);
}
END_TEST

START_TEST(a_mapping_that_grew_while_it_was_read_is_told_once) {
    static const char *const lines[] = {
        "1000-2000 rw-p 0 0:0 0 \n",
        "Rss: 4 kB\n",
        "3000-5000 rw-p 0 0:0 0 \n",
        "Rss: 8 kB\n",
        "6000-7000 rw-p 0 0:0 0 \n",
        "Rss: 4 kB\n",
        "3000-9000 rw-p 0 0:0 0 \n", /* the one between them was mapped, and all became one */
        "Rss: 24 kB\n",
    };
    read_text(lines, sizeof lines / sizeof lines[0]);
    ck_assert_uint_eq(regions.count, 2);
    ck_assert_uint_eq(regions.items[1].start, 0x3000);
    ck_assert_uint_eq(regions.items[1].end, 0x9000);
    ck_assert_uint_eq(regions.items[1].figures_kb[ML_MEMORY_RESIDENT], 24);
}
END_TEST

START_TEST(mappings_beyond_the_limit_are_one_region_and_sums_stay) {
    enum { MAPPINGS = ML_MEMORY_REGIONS_MAX + 10 };
    uint64_t sum_kb = 0;
    for (int i = 0; i < MAPPINGS; i++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "%x000-%x000 r--p 0 0:0 1 /lib/x", i + 1, i + 2);
        ck_assert(ml_memory_regions_line(&regions, line));
        ck_assert(ml_memory_regions_line(&regions, "Rss: 4 kB"));
    }
    ck_assert_uint_eq(regions.count, ML_MEMORY_REGIONS_MAX);
    const struct ml_memory_region *last = &regions.items[regions.count - 1];
    ck_assert_uint_eq(last->start + last->end, 0);
    for (uint32_t i = 0; i < regions.count; i++) {
        sum_kb += regions.items[i].figures_kb[ML_MEMORY_RESIDENT];
    }
    ck_assert_uint_eq(sum_kb, 4 * MAPPINGS);
}
END_TEST

START_TEST(a_process_own_mapping_of_a_file_is_among_its_regions) {
    enum { PAGES = 3, PAGE = 4096 };
    FILE *file = tmpfile();
    struct stat status;
    bool found = false;
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ftruncate(fileno(file), PAGES * PAGE), 0);
    ck_assert_int_eq(fstat(fileno(file), &status), 0);
    char *mapped = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    ck_assert_ptr_ne(mapped, MAP_FAILED);
    mapped[PAGE] = 1; /* its copy is this process's own */
    ml_memory_regions_init(&regions, getpid());
    for (uint32_t i = 0; i < regions.count; i++) {
        const struct ml_memory_region *region = &regions.items[i];
        ck_assert(i == 0 || regions.items[i - 1].end <= region->start);
        if (region->start == (uint64_t)(uintptr_t)mapped) {
            found = true;
            ck_assert_uint_eq(region->end, region->start + PAGES * PAGE);
            ck_assert_uint_eq(region->inode, status.st_ino);
            ck_assert_uint_eq(region->device, status.st_dev);
            ck_assert_uint_eq(region->figures_kb[ML_MEMORY_ANONYMOUS], PAGE / 1024);
        }
    }
    ck_assert(found);
    ck_assert_int_eq(munmap(mapped, PAGES * PAGE), 0);
    (void)fclose(file);
}
END_TEST

START_TEST(of_a_process_that_is_gone_there_is_none) {
    ml_memory_regions_init(&regions, 0x3fffffff);
    ck_assert_uint_eq(regions.count, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, each_mapping_is_a_region_with_its_figures);
    tcase_add_test(tests, figures_ahead_of_every_mapping_belong_to_none);
    tcase_add_test(tests, a_line_that_is_cut_anywhere_is_read_as_far_as_it_goes);
    tcase_add_test(tests, a_libc_that_is_executed_is_counted_each_time);
    tcase_add_test(tests, a_mapping_that_grew_while_it_was_read_is_told_once);
    tcase_add_test(tests, mappings_beyond_the_limit_are_one_region_and_sums_stay);
    tcase_add_test(tests, a_process_own_mapping_of_a_file_is_among_its_regions);
    tcase_add_test(tests, of_a_process_that_is_gone_there_is_none);
    return run_suite("host/memory_regions", tests);
}

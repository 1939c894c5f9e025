/* Held against what this test itself has touched; a child waits meanwhile where pages shall be
 * shared. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"
#include "tests/zeros.h"

#include "host/memory/pages.h"

enum { PAGE = 4096, PAGES = 600 };

static struct ml_memory_regions regions;
static struct ml_memory_pages pages;
static char *mapped;

static void setup(void) {
    /* Apart from whatever lies beside it, and of small pages. */
    mapped =
        mmap(NULL, (PAGES + 2) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(mapped, MAP_FAILED);
    ck_assert_int_eq(mprotect(mapped, PAGE, PROT_NONE), 0);
    mapped += PAGE;
    ck_assert_int_eq(mprotect(mapped + PAGES * PAGE, PAGE, PROT_NONE), 0);
    ck_assert_int_eq(madvise(mapped, PAGES * PAGE, MADV_NOHUGEPAGE), 0);
}

static void teardown(void) {
    ml_memory_pages_fini(&pages);
    ml_memory_regions_fini(&regions);
    (void)munmap(mapped - PAGE, (PAGES + 2) * PAGE);
}

static const struct ml_memory_region *read_of(pid_t pid) {
    ml_memory_regions_init(&regions, pid);
    ml_memory_pages_init(&pages, pid, &regions);
    for (uint32_t i = 0; i < regions.count; i++) {
        if (regions.items[i].start == (uint64_t)(uintptr_t)mapped) {
            return &regions.items[i];
        }
    }
    ck_abort_msg("the mapping is not there");
    return NULL;
}

/* Pages of the mapping: 'p' private, 's' shared, '.' none. */
static void draw(char picture[PAGES]) {
    memset(picture, '.', PAGES);
    const uint64_t start = (uint64_t)(uintptr_t)mapped;
    for (uint32_t i = 0; i < pages.count; i++) {
        const struct ml_memory_pages_run *run = &pages.items[i];
        ck_assert(i == 0 || pages.items[i - 1].address + pages.items[i - 1].bytes <= run->address);
        for (uint64_t at = run->address; at < run->address + run->bytes; at += PAGE) {
            if (at >= start && at < start + PAGES * PAGE) {
                picture[(at - start) / PAGE] = run->shared ? 's' : 'p';
            }
        }
    }
}

START_TEST(each_page_that_was_written_is_told_and_no_other) {
    char expected[PAGES];
    char picture[PAGES];
    memset(expected, '.', sizeof expected);
    for (int i = 0; i < PAGES; i += i % 7 == 0 ? 1 : 2) { /* more ranges than one request has */
        mapped[i * PAGE] = 1;
        expected[i] = 'p';
    }
    ck_assert(read_of(getpid())->has_pages);
    draw(picture);
    ck_assert_mem_eq(picture, expected, PAGES);
}
END_TEST

START_TEST(a_page_that_was_only_read_is_the_page_of_zeros_and_not_told) {
    char picture[PAGES];
    volatile char sum = 0;
    mapped[0] = 1;
    sum = (char)(sum + mapped[2 * PAGE]);
    ck_assert(read_of(getpid())->has_pages);
    draw(picture);
    ck_assert_int_eq(picture[0], 'p');
    ck_assert_int_eq(picture[2], has_page_of_zeros() ? '.' : 'p');
}
END_TEST

START_TEST(a_region_that_is_resident_as_a_whole_needs_no_pages) {
    char picture[PAGES];
    memset(mapped, 1, PAGES * PAGE);
    const struct ml_memory_region *region = read_of(getpid());
    ck_assert(!region->has_pages);
    ck_assert_uint_eq(region->figures_kb[ML_MEMORY_RESIDENT], PAGES * PAGE / 1024);
    draw(picture);
    ck_assert_ptr_null(memchr(picture, 'p', PAGES));
}
END_TEST

START_TEST(pages_that_a_forked_child_has_too_are_told_apart) {
    char expected[PAGES];
    char picture[PAGES];
    int go_on[2];
    memset(mapped, 1, PAGES * PAGE);
    memset(expected, 's', PAGES);
    ck_assert_int_eq(pipe(go_on), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        char byte = 0;
        (void)close(go_on[1]);
        (void)!read(go_on[0], &byte, 1);
        _exit(0);
    }
    for (int i = 0; i < PAGES; i += 3) {
        mapped[i * PAGE] = 2;
        expected[i] = 'p';
    }
    const struct ml_memory_region *region = read_of(getpid());
    ck_assert(region->has_pages);
    draw(picture);
    (void)close(go_on[0]);
    (void)close(go_on[1]);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    ck_assert_mem_eq(picture, expected, PAGES);
    const uint64_t private_kb =
        region->figures_kb[ML_MEMORY_PRIVATE_CLEAN] + region->figures_kb[ML_MEMORY_PRIVATE_DIRTY];
    ck_assert_uint_eq(private_kb, PAGES / 3 * PAGE / 1024);
}
END_TEST

START_TEST(of_a_process_that_is_gone_there_is_none) {
    ml_memory_regions_init(&regions, 0x3fffffff);
    ml_memory_pages_init(&pages, 0x3fffffff, &regions);
    ck_assert_uint_eq(pages.count, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, each_page_that_was_written_is_told_and_no_other);
    tcase_add_test(tests, a_page_that_was_only_read_is_the_page_of_zeros_and_not_told);
    tcase_add_test(tests, a_region_that_is_resident_as_a_whole_needs_no_pages);
    tcase_add_test(tests, pages_that_a_forked_child_has_too_are_told_apart);
    tcase_add_test(tests, of_a_process_that_is_gone_there_is_none);
    return run_suite("host/memory_pages", tests);
}

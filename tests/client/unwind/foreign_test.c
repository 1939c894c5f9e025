#include "client/unwind/foreign.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/suite.h"

enum { PAGE = 4096 };

/* Pages of which the one in the middle is not there. */
static char *with_hole(void) {
    char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(pages, MAP_FAILED);
    ck_assert_int_eq(munmap(pages + PAGE, PAGE), 0);
    return pages;
}

START_TEST(a_range_is_readable_if_all_of_its_pages_are) {
    char *pages = with_hole();
    struct ml_foreign foreign = {0};
    errno = 77;
    ck_assert(ml_foreign_readable(&foreign, pages, PAGE));
    ck_assert(ml_foreign_readable(&foreign, pages + PAGE - 8, 8));
    ck_assert(!ml_foreign_readable(&foreign, pages + PAGE - 8, 9));
    ck_assert(!ml_foreign_readable(&foreign, pages + PAGE - 8, (size_t)PAGE + 9));
    ck_assert(!ml_foreign_readable(&foreign, pages + PAGE, 1));
    ck_assert(ml_foreign_readable(&foreign, pages + 2 * PAGE, PAGE));
    ck_assert(ml_foreign_readable(&foreign, NULL, 0));
    ck_assert(!ml_foreign_readable(&foreign, NULL, 1));
    ck_assert(!ml_foreign_readable(&foreign, (void *)16, 1));
    ck_assert(!ml_foreign_readable(&foreign, (void *)(UINTPTR_MAX - 4), 8));
    ck_assert_int_eq(errno, 77);
}
END_TEST

START_TEST(a_string_ends_before_memory_does) {
    char *pages = with_hole();
    struct ml_foreign foreign = {0};
    size_t length = 0;
    (void)strcpy(pages + PAGE - 6, "hello");
    ck_assert(ml_foreign_string(&foreign, pages + PAGE - 6, &length));
    ck_assert_uint_eq(length, 5);
    pages[PAGE - 1] = '!';
    ck_assert(!ml_foreign_string(&foreign, pages + PAGE - 6, &length));
    ck_assert(!ml_foreign_string(&foreign, NULL, &length));
    ck_assert(!ml_foreign_string(&foreign, (char *)(UINTPTR_MAX - 4), NULL));
}
END_TEST

START_TEST(a_string_is_no_longer_than_the_kernel_takes) {
    enum { MAX = ML_FOREIGN_STRING_MAX_BYTES };
    char *text = mmap(NULL, 2 * MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct ml_foreign foreign = {0};
    size_t length = 0;
    ck_assert_ptr_ne(text, MAP_FAILED);
    memset(text, 'x', MAX + 5);
    ck_assert(!ml_foreign_string(&foreign, text, NULL));
    ck_assert(!ml_foreign_string(&foreign, text + 5, NULL));
    ck_assert(ml_foreign_string(&foreign, text + 6, &length));
    ck_assert_uint_eq(length, MAX - 1);
}
END_TEST

START_TEST(a_list_is_readable_if_all_of_its_strings_are) {
    char *pages = with_hole();
    struct ml_foreign foreign = {0};
    size_t count = 7;
    char *list[] = {pages, pages + 2 * PAGE, pages, NULL};
    ck_assert(ml_foreign_strings(&foreign, list, 3, &count));
    ck_assert_uint_eq(count, 3);
    ck_assert(!ml_foreign_strings(&foreign, list, 2, &count));
    list[1] = pages + PAGE;
    ck_assert(!ml_foreign_strings(&foreign, list, 3, &count));
    ck_assert(ml_foreign_strings(&foreign, NULL, 3, &count));
    ck_assert_uint_eq(count, 0);
    char **last = (char **)(void *)(pages + PAGE) - 2;
    last[0] = pages;
    last[1] = NULL;
    ck_assert(ml_foreign_strings(&foreign, last, 3, &count));
    ck_assert_uint_eq(count, 1);
    last[1] = pages;
    ck_assert(!ml_foreign_strings(&foreign, last, 3, &count));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("foreign");
    tcase_add_test(tcase, a_range_is_readable_if_all_of_its_pages_are);
    tcase_add_test(tcase, a_string_ends_before_memory_does);
    tcase_add_test(tcase, a_string_is_no_longer_than_the_kernel_takes);
    tcase_add_test(tcase, a_list_is_readable_if_all_of_its_strings_are);
    return run_suite("client/foreign", tcase);
}

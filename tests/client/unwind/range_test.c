#include "client/unwind/range.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <check.h>

#include "client/unwind/arch.h"
#include "tests/suite.h"

enum { PAGE = ML_ARCH_PAGE_BYTES, PAGES = 6 };

/* Six pages that can be read between two that cannot. */
static uintptr_t pages_make(void) {
    uint8_t *memory = mmap(
        NULL, (PAGES + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0
    );
    ck_assert(memory != MAP_FAILED);
    ck_assert_int_eq(mprotect(memory + PAGE, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
    return (uintptr_t)memory + PAGE;
}

START_TEST(the_probe_tells_readable_from_not_and_leaves_errno_alone) {
    uintptr_t pages = pages_make();
    errno = 77;
    ck_assert(ml_arch_readable(pages));
    ck_assert(!ml_arch_readable(pages - PAGE));
    ck_assert(!ml_arch_readable(pages + PAGES * PAGE));
    ck_assert(!ml_arch_readable(0));
    ck_assert(!ml_arch_readable(UINTPTR_MAX - 7));
    ck_assert(!ml_arch_readable((uintptr_t)1 << 47));
    ck_assert_int_eq(errno, 77);
}
END_TEST

START_TEST(a_range_grows_to_the_last_readable_page_and_no_further) {
    struct ml_unwind_ranges ranges = {0};
    uintptr_t pages = pages_make();
    bool changed;
    uint32_t index = ml_unwind_range_enter(&ranges, pages + PAGE + 64, &changed);
    ck_assert(changed);
    ck_assert(ml_unwind_range_reach(&ranges, index, pages + PAGE + 64, pages + 3 * PAGE));
    ck_assert_uint_eq(ranges.list[index].hi, pages + 3 * PAGE);
    ck_assert(ml_unwind_range_reach(&ranges, index, pages + PAGE + 64, pages + PAGES * PAGE));
    ck_assert(!ml_unwind_range_reach(&ranges, index, pages + PAGE + 64, pages + PAGES * PAGE + 8));
    ck_assert_uint_eq(ranges.list[index].hi, pages + PAGES * PAGE);
    ck_assert(!ml_unwind_range_reach(&ranges, index, pages + 8, pages + 16));
    ck_assert(!ml_unwind_range_reach(&ranges, index, UINTPTR_MAX - 7, 8));
    ck_assert(!ml_unwind_range_reach(&ranges, index, pages + PAGE, UINTPTR_MAX));
}
END_TEST

START_TEST(a_deeper_stack_extends_the_range_and_another_replaces_it) {
    struct ml_unwind_ranges ranges = {0};
    uintptr_t pages = pages_make();
    uintptr_t other = pages_make();
    bool changed;
    uint32_t index = ml_unwind_range_enter(&ranges, pages + 4 * PAGE + 64, &changed);
    ck_assert_uint_eq(ml_unwind_range_enter(&ranges, pages + 64, &changed), index);
    ck_assert(!changed);
    ck_assert_uint_eq(ranges.list[index].lo, pages);
    (void)ml_unwind_range_enter(&ranges, other + 64, &changed);
    ck_assert(changed);
    ck_assert(!ml_unwind_range_reach(&ranges, ranges.current, pages + 64, pages + 72));
    (void)ml_unwind_range_enter(&ranges, pages + 64, &changed);
    ck_assert(changed);
    ck_assert_uint_eq(ranges.list[ranges.current].hi, pages + PAGE); /* known anew, page by page */
}
END_TEST

/* The own stack is known by what lies at its outer end, and is never forgotten. */
START_TEST(the_own_stack_is_recognised_and_kept) {
    struct ml_unwind_ranges ranges = {0};
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    uintptr_t other = pages_make();
    bool changed;
    uint32_t index = ml_unwind_range_enter(&ranges, here, &changed);
    for (uintptr_t end = here; ranges.list[0].hi == 0 && end < here + 64 * PAGE; end += PAGE) {
        ck_assert(ml_unwind_range_reach(&ranges, index, here, end));
        ml_unwind_range_settle(&ranges);
    }
    ck_assert_uint_ne(ranges.list[0].hi, 0);
    uintptr_t own_end = ranges.list[0].hi;
    (void)ml_unwind_range_enter(&ranges, other + 64, &changed);
    ck_assert_uint_ne(ranges.current, 0);
    ck_assert_uint_eq(ml_unwind_range_enter(&ranges, here, &changed), 0);
    ck_assert_uint_eq(ranges.list[0].hi, own_end);
    ck_assert(!ml_unwind_range_reach(&ranges, 0, here, own_end + 8));
}
END_TEST

START_TEST(behind_a_signal_frame_any_readable_stack_will_do) {
    struct ml_unwind_ranges ranges = {0};
    uintptr_t pages = pages_make();
    uintptr_t other = pages_make();
    bool changed;
    (void)ml_unwind_range_enter(&ranges, pages + 64, &changed);
    uint32_t index = ml_unwind_range_switch(&ranges, other + 64, other + 72);
    ck_assert_uint_lt(index, ML_UNWIND_RANGES);
    ck_assert(ml_unwind_range_reach(&ranges, index, other + 64, other + PAGES * PAGE));
    ck_assert_uint_eq(ml_unwind_range_switch(&ranges, other - 64, other), ML_UNWIND_RANGES);
    ck_assert_uint_eq(ml_unwind_range_switch(&ranges, pages + 128, pages + 136), ranges.current);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("range");
    tcase_add_test(tcase, the_probe_tells_readable_from_not_and_leaves_errno_alone);
    tcase_add_test(tcase, a_range_grows_to_the_last_readable_page_and_no_further);
    tcase_add_test(tcase, a_deeper_stack_extends_the_range_and_another_replaces_it);
    tcase_add_test(tcase, the_own_stack_is_recognised_and_kept);
    tcase_add_test(tcase, behind_a_signal_frame_any_readable_stack_will_do);
    return run_suite("client/unwind_range", tcase);
}

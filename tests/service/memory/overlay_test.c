/* Held against a model with a mark for each byte of a small address space. */
#include <string.h>

#include <check.h>

#include "tests/suite.h"

#include "service/memory/overlay.h"

enum { PAGE = 4096, FIRST_PAGE = 16, PAGES = 64, BYTES = PAGES * PAGE, BLOCK_MAX = 3 * PAGE };

static const uint64_t base = (uint64_t)FIRST_PAGE * PAGE;

static uint64_t random_state;
static char pages[PAGES]; /* 'p' private, 's' shared, '.' none */
static struct memlog_service_memory_region regions[PAGES + 1];
static struct memlog_service_page_run runs[PAGES];
static struct memlog_service_process_view view;
static struct ml_overlay overlay;

static uint32_t pick(uint32_t below) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((random_state >> 33) % below);
}

static uint32_t count_of(char mark, uint32_t from, uint32_t to) {
    uint32_t count = 0;
    for (uint32_t i = from; i < to; i++) {
        count += pages[i] == mark ? 1 : 0;
    }
    return count;
}

/* Regions of some pages each, with holes between some of them; runs where pages differ. */
static void draw(void) {
    uint32_t regions_count = 0;
    uint32_t runs_count = 0;
    for (uint32_t i = 0; i < PAGES; i++) {
        pages[i] = "ps."[pick(3)];
    }
    for (uint32_t at = 0; at < PAGES;) {
        const uint32_t left = PAGES - at;
        const uint32_t count = 1 + pick(left < 9 ? left : 9);
        const uint32_t private_pages = count_of('p', at, at + count);
        const uint32_t shared_pages = count_of('s', at, at + count);
        regions[regions_count] = (struct memlog_service_memory_region){
            .start = base + (uint64_t)at * PAGE,
            .end = base + (uint64_t)(at + count) * PAGE,
            .size_kb = count * PAGE / 1024,
            .private_dirty_kb = private_pages * PAGE / 1024,
            .shared_dirty_kb = shared_pages * PAGE / 1024,
            .has_pages =
                private_pages != count && shared_pages != count && private_pages + shared_pages > 0,
        };
        for (uint32_t i = at; i < at + count && regions[regions_count].has_pages; i++) {
            if (pages[i] != '.') {
                runs[runs_count++] = (struct memlog_service_page_run
                ){.address = base + (uint64_t)i * PAGE, .bytes = PAGE, .shared = pages[i] == 's'};
            }
        }
        if (pick(4) == 0) { /* a hole: nothing of it is told */
            memset(pages + at, 'x', count);
            while (runs_count > 0 && runs[runs_count - 1].address >= base + (uint64_t)at * PAGE) {
                runs_count--;
            }
        } else {
            regions_count++;
        }
        at += count;
    }
    view = (struct memlog_service_process_view
    ){.regions = {regions, regions_count}, .pages = {runs, runs_count}};
}

/* Pages of private or shared ones that blocks touch, by their marks. */
static char touched[PAGES];

static uint64_t pages_of(char mark) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < PAGES; i++) {
        count += touched[i] != 0 && pages[i] == mark ? 1 : 0;
    }
    return count;
}

static uint64_t sum_of(bool shared) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < view.regions.count; i++) {
        sum += shared ? overlay.heaps[i].bytes.shared : overlay.heaps[i].bytes.private;
    }
    return sum;
}

START_TEST(agrees_with_a_mark_for_each_byte) {
    uint64_t expected_private = 0;
    uint64_t expected_shared = 0;
    uint64_t requested = 0;
    struct ml_resident sum = {0};
    uint64_t blocks = 0;
    random_state = 100 + (uint64_t)_i;
    memset(touched, 0, sizeof(touched));
    draw();
    ck_assert_int_eq(ml_overlay_init(&overlay, &view), ML_OK);
    for (uint32_t at = pick(BLOCK_MAX); at < BYTES; at += pick(BLOCK_MAX)) {
        const uint32_t left = BYTES - at;
        const uint32_t bytes = pick(left < BLOCK_MAX ? left : BLOCK_MAX);
        ck_assert(ml_overlay_add(&overlay, base + at, bytes));
        requested += bytes;
        blocks += pages[at / PAGE] != 'x' ? 1 : 0;
        for (uint32_t i = at; i < at + bytes && pages[at / PAGE] != 'x'; i++) {
            expected_private += pages[i / PAGE] == 'p' ? 1 : 0;
            expected_shared += pages[i / PAGE] == 's' ? 1 : 0;
            touched[i / PAGE] = 1;
        }
        at += bytes;
    }
    ck_assert_uint_eq(sum_of(false), expected_private);
    ck_assert_uint_eq(sum_of(true), expected_shared);
    for (uint32_t i = 0; i < view.regions.count; i++) {
        ck_assert_uint_le(overlay.heaps[i].bytes.private, regions[i].private_dirty_kb * 1024);
        ck_assert_uint_le(overlay.heaps[i].bytes.shared, regions[i].shared_dirty_kb * 1024);
        ck_assert_uint_le(overlay.heaps[i].bytes.private, overlay.heaps[i].pages.private);
        ck_assert_uint_le(overlay.heaps[i].bytes.shared, overlay.heaps[i].pages.shared);
        sum.private += overlay.heaps[i].pages.private;
        sum.shared += overlay.heaps[i].pages.shared;
        requested -= overlay.heaps[i].requested_bytes;
        blocks -= overlay.heaps[i].blocks;
    }
    ck_assert_uint_eq(sum.private, pages_of('p') * PAGE);
    ck_assert_uint_eq(sum.shared, pages_of('s') * PAGE);
    ck_assert_uint_eq(requested, overlay.elsewhere_bytes);
    ck_assert_uint_eq(blocks, 0);
    ck_assert(!overlay.is_estimated);
    ml_overlay_fini(&overlay);
}
END_TEST

START_TEST(where_pages_are_not_told_a_block_counts_by_its_region_and_that_is_said) {
    regions[0] = (struct memlog_service_memory_region
    ){.start = base,
      .end = base + 8ULL * PAGE,
      .size_kb = 32,
      .private_dirty_kb = 8,
      .shared_clean_kb = 4};
    view = (struct memlog_service_process_view){.regions = {regions, 1}};
    ck_assert_int_eq(ml_overlay_init(&overlay, &view), ML_OK);
    ck_assert(ml_overlay_add(&overlay, base + 100, 1600));
    ck_assert_uint_eq(overlay.heaps[0].bytes.private, 400);
    ck_assert_uint_eq(overlay.heaps[0].bytes.shared, 200);
    ck_assert(overlay.is_estimated);
    ml_overlay_fini(&overlay);
}
END_TEST

START_TEST(mappings_without_an_address_hold_no_block) {
    regions[0] = (struct memlog_service_memory_region
    ){.start = base, .end = base + PAGE, .size_kb = 4, .private_dirty_kb = 4};
    regions[1] = (struct memlog_service_memory_region){.size_kb = 400, .private_dirty_kb = 400};
    view = (struct memlog_service_process_view){.regions = {regions, 2}};
    ck_assert_int_eq(ml_overlay_init(&overlay, &view), ML_OK);
    ck_assert(ml_overlay_add(&overlay, base + PAGE, 10));
    ck_assert(ml_overlay_add(&overlay, UINT64_MAX - 4, 10));
    ck_assert(ml_overlay_add(&overlay, 0, 10));
    ck_assert_uint_eq(overlay.elsewhere_bytes, 30);
    ck_assert(ml_overlay_add(&overlay, base + PAGE - 6, 10)); /* its end was mapped since */
    ck_assert_uint_eq(overlay.heaps[0].bytes.private, 6);
    ck_assert_uint_eq(overlay.heaps[1].bytes.private, 0);
    ml_overlay_fini(&overlay);
}
END_TEST

/* What a process may tell that lies: laying it all would take minutes. */
START_TEST(blocks_over_blocks_and_on_too_many_pages_end_the_overlay) {
    const uint64_t huge = UINT64_C(1) << 41;
    regions[0] = (struct memlog_service_memory_region
    ){.start = base, .end = base + huge, .size_kb = huge / 1024};
    view = (struct memlog_service_process_view){.regions = {regions, 1}};
    ck_assert_int_eq(ml_overlay_init(&overlay, &view), ML_OK);
    ck_assert(!ml_overlay_add(&overlay, base, huge));
    ck_assert(ml_overlay_add(&overlay, base + 10ULL * PAGE, 3));
    ck_assert(ml_overlay_add(&overlay, base + 10ULL * PAGE + 3, PAGE)); /* a page is shared */
    ck_assert(ml_overlay_add(&overlay, base + 8ULL * PAGE + 5, 2ULL * PAGE - 5));
    ck_assert(ml_overlay_add(&overlay, base + 100, 0));
    ck_assert(!ml_overlay_add(&overlay, base + 7ULL * PAGE, 5ULL * PAGE));
    ml_overlay_fini(&overlay);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, agrees_with_a_mark_for_each_byte, 0, 200);
    tcase_add_test(tests, where_pages_are_not_told_a_block_counts_by_its_region_and_that_is_said);
    tcase_add_test(tests, mappings_without_an_address_hold_no_block);
    tcase_add_test(tests, blocks_over_blocks_and_on_too_many_pages_end_the_overlay);
    return run_suite("service/overlay", tests);
}

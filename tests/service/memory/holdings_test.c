/* Who holds what of mappings whose pages are known one by one. */
#include "service/memory/holdings.h"

#include <check.h>

#include "tests/suite.h"

enum { PAGE = 4096, REGIONS = 3 };

#define ARENA ((uint64_t)64 << 20)

static struct ml_budget budget = {.max_bytes = UINT64_MAX};
static struct memlog_service_memory_region regions[REGIONS];
static struct memlog_service_page_run runs[16];
static struct memlog_service_process_view view;
static struct ml_overlay overlay;
static struct ml_holdings holdings;

/* Region i begins at a multiple of 64 MiB and has 100 pages. Resident are the first 50, every
 * second of them (in the second region alone) shared. */
static void make_view(void) {
    uint32_t runs_count = 0;
    for (uint32_t i = 0; i < REGIONS; i++) {
        const uint64_t start = (i + 1) * ARENA;
        regions[i] = (struct memlog_service_memory_region
        ){.start = start,
          .end = start + UINT64_C(100) * PAGE,
          .size_kb = 400,
          .private_dirty_kb = i == 1 ? 100 : 200,
          .shared_dirty_kb = i == 1 ? 100 : 0,
          .has_pages = true};
        runs[runs_count++] =
            (struct memlog_service_page_run){.address = start, .bytes = UINT64_C(25) * PAGE};
        runs[runs_count++] = (struct memlog_service_page_run
        ){.address = start + UINT64_C(25) * PAGE, .bytes = UINT64_C(25) * PAGE, .shared = i == 1};
    }
    view = (struct memlog_service_process_view
    ){.regions = {regions, REGIONS}, .pages = {runs, runs_count}};
    ck_assert_int_eq(ml_overlay_init(&overlay, &view, &budget, 1), ML_OK);
}

static uint64_t page(uint32_t region, uint32_t number) {
    return regions[region].start + (uint64_t)number * PAGE;
}

static struct ml_mapping piece(uint32_t region, uint32_t first, uint32_t behind, uint32_t marks) {
    return (struct ml_mapping
    ){.start = page(region, first), .end = page(region, behind), .node = 7, .marks = marks};
}

static void make(const struct ml_mapping *pieces, uint32_t count) {
    struct ml_holdings_work work = {
        .view = &view, .overlay = &overlay, .pieces = pieces, .pieces_count = count};
    while (ml_holdings_add(&holdings, &work)) {
    }
}

static void end(void) {
    ml_holdings_fini(&holdings);
    ml_overlay_fini(&overlay);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

static void
is_holding(uint32_t i, uint32_t region, uint32_t kind, uint64_t private_pages, uint64_t shared) {
    ck_assert_uint_lt(i, holdings.count);
    const struct ml_holding *holding = &holdings.items[i];
    ck_assert_uint_eq(holding->region, region);
    ck_assert_uint_eq(holding->kind, kind);
    ck_assert_uint_eq(holding->bytes.private, private_pages * PAGE);
    ck_assert_uint_eq(holding->bytes.shared, shared * PAGE);
}

START_TEST(each_piece_has_its_resident_pages) {
    make_view();
    const struct ml_mapping pieces[] = {
        piece(0, 0, 10, 0),
        piece(0, 10, 20, ML_MAPPED_AS_STACK),
        piece(0, 40, 60, ML_MAPPED_BY_MEMLOG),
        piece(0, 60, 70, 0), /* nothing of it is resident */
        piece(1, 20, 30, 0)};
    make(pieces, 5);
    ck_assert_uint_eq(holdings.count, 5);
    is_holding(0, 0, ML_OWNER_MAPPED, 10, 0);
    ck_assert_uint_eq(holdings.items[0].node, 7);
    is_holding(1, 0, ML_OWNER_STACK, 10, 0);
    is_holding(2, 0, ML_OWNER_MEMLOG, 10, 0);
    ck_assert_uint_eq(holdings.items[2].mapped_bytes, UINT64_C(20) * PAGE);
    is_holding(3, 0, ML_OWNER_MAPPED, 0, 0);
    is_holding(4, 1, ML_OWNER_MAPPED, 5, 5);
    end();
}
END_TEST

START_TEST(pages_with_blocks_are_the_heaps_and_the_rest_of_their_mapping_the_allocators) {
    make_view();
    ck_assert(ml_overlay_add(&overlay, page(0, 3) + 100, 2 * PAGE, 0, 1)); /* on three pages */
    const struct ml_mapping pieces[] = {
        piece(0, 0, 10, 0), piece(0, 10, 20, 0), piece(0, 20, 30, ML_MAPPED_BY_ALLOCATOR)};
    make(pieces, 3);
    ck_assert_uint_eq(holdings.count, 3);
    is_holding(0, 0, ML_OWNER_ALLOCATOR, 7, 0);
    ck_assert_uint_eq(holdings.items[0].node, 0);
    is_holding(1, 0, ML_OWNER_MAPPED, 10, 0);
    is_holding(2, 0, ML_OWNER_ALLOCATOR, 10, 0);
    ck_assert_uint_eq(holdings.private_bytes, UINT64_C(27) * PAGE);
    ck_assert_uint_eq(holdings.allocator_bytes, UINT64_C(17) * PAGE);
    end();
}
END_TEST

START_TEST(an_arena_of_glibcs_needs_a_block_and_its_place) {
    make_view();
    ck_assert(ml_overlay_add(&overlay, page(0, 30), 64, 0, 1));
    regions[1].start += PAGE; /* no multiple of 64 MiB */
    ck_assert(ml_overlay_add(&overlay, page(1, 30), 64, 0, 1));
    make(NULL, 0);
    ck_assert_uint_eq(holdings.count, 1);
    is_holding(0, 0, ML_OWNER_ALLOCATOR, 49, 0);
    end();
}
END_TEST

START_TEST(a_piece_of_unknown_length_reaches_to_the_end_of_its_mapping) {
    make_view();
    const struct ml_mapping pieces[] = {
        piece(0, 0, 1, ML_MAPPED_WHOLE),
        piece(1, 5, 6, ML_MAPPED_WHOLE) /* the kernel's mapping does not begin there */};
    make(pieces, 2);
    ck_assert_uint_eq(holdings.count, 2);
    is_holding(0, 0, ML_OWNER_MAPPED, 50, 0);
    is_holding(1, 1, ML_OWNER_MAPPED, 1, 0);
    end();
}
END_TEST

START_TEST(one_piece_may_lie_in_several_mappings_and_neighbours_of_one_owner_are_one) {
    make_view();
    const struct ml_mapping pieces[] = {
        {.start = page(0, 40), .end = page(1, 10), .node = 7},
        {.start = page(1, 10), .end = page(2, 100), .node = 7}};
    make(pieces, 2);
    ck_assert_uint_eq(holdings.count, 3);
    is_holding(0, 0, ML_OWNER_MAPPED, 10, 0);
    is_holding(1, 1, ML_OWNER_MAPPED, 25, 25);
    is_holding(2, 2, ML_OWNER_MAPPED, 50, 0);
    ck_assert_uint_eq(holdings.private_bytes, UINT64_C(85) * PAGE);
    end();
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("holdings");
    tcase_add_test(cases, each_piece_has_its_resident_pages);
    tcase_add_test(
        cases, pages_with_blocks_are_the_heaps_and_the_rest_of_their_mapping_the_allocators
    );
    tcase_add_test(cases, an_arena_of_glibcs_needs_a_block_and_its_place);
    tcase_add_test(cases, a_piece_of_unknown_length_reaches_to_the_end_of_its_mapping);
    tcase_add_test(
        cases, one_piece_may_lie_in_several_mappings_and_neighbours_of_one_owner_are_one
    );
    return run_suite("holdings", cases);
}

/* Held against a model with a mark for each byte of a small address space. */
#include <string.h>

#include <check.h>

#include "tests/suite.h"

#include "service/memory/overlay.h"

enum {
    PAGE = 4096,
    FIRST_PAGE = 16,
    PAGES = 64,
    BYTES = PAGES * PAGE,
    BLOCK_MAX = 3 * PAGE,
    CELLS = 7
};

static const uint64_t base = (uint64_t)FIRST_PAGE * PAGE;

static uint64_t random_state;
static char pages[PAGES]; /* 'p' private, 's' shared, '.' none */
static struct memlog_service_memory_region regions[PAGES + 1];
static struct memlog_service_page_run runs[PAGES];
static struct memlog_service_process_view view;
static struct ml_overlay overlay;
static struct ml_budget budget = {.max_bytes = UINT64_MAX};

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

/* The blocks that were added. */
static struct { uint32_t at, bytes, cell; } blocks[BYTES];
static uint32_t blocks_count;

/* Two cells are of one stack. */
static uint32_t node_of(uint32_t cell) {
    return cell / 2 + 1;
}

static uint32_t bytes_on(uint32_t block, uint32_t page) {
    const uint32_t first = page * PAGE;
    const uint32_t from = blocks[block].at > first ? blocks[block].at : first;
    const uint32_t end = blocks[block].at + blocks[block].bytes;
    const uint32_t to = end < first + PAGE ? end : first + PAGE;
    return pages[blocks[block].at / PAGE] != 'x' && from < to ? to - from : 0;
}

static uint64_t expected_alone[CELLS], expected_waste[CELLS];

/* What a page's blocks leave of it is theirs by bytes; the first one has what rounding leaves. */
static void expect_of_page(uint32_t page) {
    uint32_t used = 0;
    uint32_t first = UINT32_MAX;
    bool is_alone = true;
    for (uint32_t i = 0; i < blocks_count; i++) {
        if (bytes_on(i, page) > 0) {
            first = first == UINT32_MAX ? i : first;
            used += bytes_on(i, page);
            is_alone = is_alone && node_of(blocks[i].cell) == node_of(blocks[first].cell);
        }
    }
    if (used == 0 || pages[page] == '.' || pages[page] == 'x') {
        return;
    }
    uint32_t left = PAGE - used;
    for (uint32_t i = first + 1; i < blocks_count; i++) {
        const uint32_t share = (PAGE - used) * bytes_on(i, page) / used;
        expected_waste[blocks[i].cell] += share;
        left -= share;
    }
    expected_waste[blocks[first].cell] += left;
    expected_alone[blocks[first].cell] += is_alone ? PAGE : 0;
}

static void share_and_settle(void) {
    for (uint32_t i = blocks_count; i > 0; i--) { /* in another order */
        ml_overlay_share(
            &overlay, base + blocks[i - 1].at, blocks[i - 1].bytes, blocks[i - 1].cell
        );
    }
    while (ml_overlay_settle(&overlay)) {
    }
}

static void check_pages_between(void) {
    for (uint32_t i = 0; i < view.regions.count; i++) {
        const uint64_t pages_count = (regions[i].end - regions[i].start) / PAGE;
        const uint64_t first = pick((uint32_t)pages_count);
        const uint64_t behind = first + pick((uint32_t)(pages_count - first) + 1);
        struct ml_resident expected = {0};
        for (uint64_t page = first; page < behind; page++) {
            const uint64_t at = (regions[i].start - base) / PAGE + page;
            expected.private += touched[at] != 0 && pages[at] == 'p' ? PAGE : 0;
            expected.shared += touched[at] != 0 && pages[at] == 's' ? PAGE : 0;
        }
        const struct ml_resident sum = ml_overlay_pages(
            &overlay, i, regions[i].start + first * PAGE, regions[i].start + behind * PAGE
        );
        ck_assert_uint_eq(sum.private, expected.private);
        ck_assert_uint_eq(sum.shared, expected.shared);
    }
}

static void check_cells(struct ml_resident pages_sum) {
    struct ml_resident sum = {0};
    uint64_t waste = 0;
    memset(expected_alone, 0, sizeof(expected_alone));
    memset(expected_waste, 0, sizeof(expected_waste));
    for (uint32_t page = 0; page < PAGES; page++) {
        expect_of_page(page);
    }
    ck_assert(overlay.has_cells);
    for (uint32_t i = 0; i < overlay.cells_count; i++) {
        const struct ml_cell_memory *memory = &overlay.cells[i];
        sum.private += memory->bytes.private;
        sum.shared += memory->bytes.shared;
        waste += memory->waste_bytes;
        ck_assert_uint_eq(memory->node, node_of(memory->cell));
        ck_assert_uint_eq(memory->waste_bytes, expected_waste[memory->cell]);
        ck_assert_uint_eq(memory->alone_bytes, expected_alone[memory->cell]);
        expected_waste[memory->cell] = 0;
        expected_alone[memory->cell] = 0;
    }
    ck_assert_uint_eq(sum.private, sum_of(false));
    ck_assert_uint_eq(sum.shared, sum_of(true));
    ck_assert_uint_eq(waste, pages_sum.private + pages_sum.shared - sum.private - sum.shared);
    for (uint32_t i = 0; i < CELLS; i++) { /* a cell that is not there holds nothing */
        ck_assert_uint_eq(expected_waste[i] + expected_alone[i], 0);
    }
}

START_TEST(agrees_with_a_mark_for_each_byte) {
    uint64_t expected_private = 0;
    uint64_t expected_shared = 0;
    uint64_t requested = 0;
    struct ml_resident sum = {0};
    uint64_t begun = 0;
    blocks_count = 0;
    const uint32_t largest = _i % 2 == 0 ? BLOCK_MAX : PAGE / 8;
    random_state = 100 + (uint64_t)_i;
    memset(touched, 0, sizeof(touched));
    draw();
    ck_assert_int_eq(ml_overlay_init(&overlay, &view, &budget, CELLS), ML_OK);
    for (uint32_t at = pick(BLOCK_MAX); at < BYTES; at += pick(largest)) {
        const uint32_t left = BYTES - at;
        const uint32_t bytes = pick(left < largest ? left : largest);
        const uint32_t cell = pick(pick(2) == 0 ? CELLS : 2);
        ck_assert(ml_overlay_add(&overlay, base + at, bytes, cell, node_of(cell)));
        blocks[blocks_count].at = at;
        blocks[blocks_count].bytes = bytes;
        blocks[blocks_count++].cell = cell;
        requested += bytes;
        begun += pages[at / PAGE] != 'x' ? 1 : 0;
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
        begun -= overlay.heaps[i].blocks;
    }
    ck_assert_uint_eq(sum.private, pages_of('p') * PAGE);
    ck_assert_uint_eq(sum.shared, pages_of('s') * PAGE);
    ck_assert_uint_eq(requested, overlay.elsewhere_bytes);
    ck_assert_uint_eq(begun, 0);
    ck_assert(!overlay.is_estimated);
    check_pages_between();
    share_and_settle();
    ml_overlay_end(&overlay);
    check_cells(sum);
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
    ck_assert_int_eq(ml_overlay_init(&overlay, &view, &budget, CELLS), ML_OK);
    ck_assert(ml_overlay_add(&overlay, base + 100, 1600, 0, 1));
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
    ck_assert_int_eq(ml_overlay_init(&overlay, &view, &budget, CELLS), ML_OK);
    ck_assert(ml_overlay_add(&overlay, base + PAGE, 10, 0, 1));
    ck_assert(ml_overlay_add(&overlay, UINT64_MAX - 4, 10, 0, 1));
    ck_assert(ml_overlay_add(&overlay, 0, 10, 0, 1));
    ck_assert_uint_eq(overlay.elsewhere_bytes, 30);
    ck_assert(ml_overlay_add(&overlay, base + PAGE - 6, 10, 0, 1)); /* its end was mapped since */
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
    ck_assert_int_eq(ml_overlay_init(&overlay, &view, &budget, CELLS), ML_OK);
    ck_assert(!ml_overlay_add(&overlay, base, huge, 0, 1));
    ck_assert(ml_overlay_add(&overlay, base + 10ULL * PAGE, 3, 0, 1));
    ck_assert(ml_overlay_add(&overlay, base + 10ULL * PAGE + 3, PAGE, 0, 1)); /* a page is shared */
    ck_assert(ml_overlay_add(&overlay, base + 8ULL * PAGE + 5, 2ULL * PAGE - 5, 0, 1));
    ck_assert(ml_overlay_add(&overlay, base + 100, 0, 0, 1));
    ck_assert(!ml_overlay_add(&overlay, base + 7ULL * PAGE, 5ULL * PAGE, 0, 1));
    ml_overlay_fini(&overlay);
}
END_TEST

/* One private mapping of so many pages, all resident. */
static void begin(uint32_t count) {
    regions[0] = (struct memlog_service_memory_region
    ){.start = base,
      .end = base + (uint64_t)count * PAGE,
      .size_kb = count * PAGE / 1024,
      .private_dirty_kb = count * PAGE / 1024};
    view = (struct memlog_service_process_view){.regions = {regions, 1}};
    blocks_count = 0;
    ck_assert_int_eq(ml_overlay_init(&overlay, &view, &budget, CELLS), ML_OK);
}

static void lay(uint32_t at, uint32_t bytes, uint32_t cell) {
    ck_assert(ml_overlay_add(&overlay, base + at, bytes, cell, node_of(cell)));
    blocks[blocks_count].at = at;
    blocks[blocks_count].bytes = bytes;
    blocks[blocks_count++].cell = cell;
}

static void finish(void) {
    share_and_settle();
    ml_overlay_end(&overlay);
    ck_assert(overlay.has_cells);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

static struct ml_cell_memory memory_of(uint32_t cell) {
    for (uint32_t i = 0; i < overlay.cells_count; i++) {
        if (overlay.cells[i].cell == cell) {
            return overlay.cells[i];
        }
    }
    return (struct ml_cell_memory){0};
}

/* 48 bytes each 64, and one block in a hundred is left. */
START_TEST(one_block_in_a_hundred_keeps_every_page_that_it_lies_on) {
    begin(64);
    for (uint32_t i = 0; i < BYTES / 64; i += 100) {
        lay(i * 64, 48, 0);
    }
    finish(); /* 41 of 4096 blocks, each on a page of its own */
    ck_assert_uint_eq(memory_of(0).bytes.private, 41 * 48);
    ck_assert_uint_eq(memory_of(0).alone_bytes, 41 * PAGE);
    ck_assert_uint_eq(memory_of(0).waste_bytes, 41 * (PAGE - 48));
    ml_overlay_fini(&overlay);
}
END_TEST

/* Of cells 0 and 2, of two stacks, in turn: what the other half was is theirs by bytes. */
START_TEST(every_second_block_has_its_share_of_the_pages) {
    begin(4);
    for (uint32_t i = 0; i < 4U * PAGE / 64; i += 2) {
        lay(i * 64, i % 4 == 0 ? 48 : 16, i % 4 == 0 ? 0 : 2);
    }
    finish(); /* a page has 16 blocks of each: 1024 of 4096 bytes used, 3072 shared 3 : 1 */
    ck_assert_uint_eq(memory_of(0).waste_bytes, 4 * 2304);
    ck_assert_uint_eq(memory_of(2).waste_bytes, 4 * 768);
    ck_assert_uint_eq(memory_of(0).alone_bytes + memory_of(2).alone_bytes, 0);
    ml_overlay_fini(&overlay);
}
END_TEST

START_TEST(what_rounding_leaves_of_a_page_is_for_its_lowest_block) {
    begin(1);
    lay(300, 100, 0);
    lay(100, 100, 2);
    lay(500, 100, 4);
    finish(); /* 3796 by three: 1265 and a third */
    ck_assert_uint_eq(memory_of(0).waste_bytes, 1265);
    ck_assert_uint_eq(memory_of(2).waste_bytes, 1266);
    ck_assert_uint_eq(memory_of(4).waste_bytes, 1265);
    ml_overlay_fini(&overlay);
}
END_TEST

START_TEST(two_cells_of_one_stack_are_alone_together) {
    begin(2);
    lay(0, 64, 0);
    lay(64, 64, 1);
    lay(PAGE, 64, 1);
    lay(PAGE + 64, 64, 2);
    finish();
    ck_assert_uint_eq(memory_of(0).alone_bytes + memory_of(1).alone_bytes, PAGE);
    ck_assert_uint_eq(memory_of(2).alone_bytes, 0);
    ml_overlay_fini(&overlay);
}
END_TEST

/* From the middle of page 1 to that of page 5, where another one begins. */
START_TEST(a_large_block_is_alone_on_its_pages_but_for_those_at_its_ends) {
    begin(8);
    lay(PAGE + 2048, 4 * PAGE, 0);
    lay(5 * PAGE + 2048, 1024, 2);
    lay(6 * PAGE, PAGE, 4); /* a page from end to end */
    finish();
    ck_assert_uint_eq(memory_of(0).bytes.private, 4 * PAGE);
    ck_assert_uint_eq(memory_of(0).alone_bytes, 4 * PAGE);   /* 1 to 4 */
    ck_assert_uint_eq(memory_of(0).waste_bytes, 2048 + 683); /* two thirds of 1024, rounded up */
    ck_assert_uint_eq(memory_of(2).waste_bytes, 341);
    ck_assert_uint_eq(memory_of(2).alone_bytes, 0);
    ck_assert_uint_eq(memory_of(4).alone_bytes, PAGE);
    ck_assert_uint_eq(memory_of(4).waste_bytes, 0);
    ml_overlay_fini(&overlay);
}
END_TEST

/* A free that was missed: whatever lies there now, a page is held once. */
START_TEST(blocks_over_blocks_hold_a_page_once) {
    begin(3);
    lay(PAGE, PAGE, 0);
    lay(PAGE + 100, 100, 2);
    lay(64, 4000, 4);
    lay(96, 3000, 6);
    finish();
    ck_assert_uint_eq(memory_of(0).bytes.private, PAGE);
    ck_assert_uint_eq(memory_of(2).bytes.private, 0);
    ck_assert_uint_eq(memory_of(4).bytes.private, 4000);
    ck_assert_uint_eq(memory_of(6).bytes.private, 96);
    ck_assert_uint_eq(memory_of(4).waste_bytes + memory_of(6).waste_bytes, 0);
    ck_assert_uint_eq(overlay.heaps[0].pages.private, 2 * PAGE);
    ml_overlay_fini(&overlay);
}
END_TEST

/* 2 MiB apart, as a process could lay them that wants to fill the service's memory. */
START_TEST(what_laying_takes_is_bounded_by_the_budget) {
    const uint64_t size = UINT64_C(1) << 36;
    uint64_t at = 0;
    budget.max_bytes = 16 << 20;
    regions[0] = (struct memlog_service_memory_region
    ){.start = base, .end = base + size, .size_kb = size / 1024};
    view = (struct memlog_service_process_view){.regions = {regions, 1}};
    ck_assert_int_eq(ml_overlay_init(&overlay, &view, &budget, CELLS), ML_OK);
    while (at < size && ml_overlay_add(&overlay, base + at, 1, 0, 1)) {
        at += 2 << 20;
    }
    ck_assert_uint_lt(at, size);
    ck_assert_uint_le(budget.used_bytes, budget.max_bytes);
    ml_overlay_fini(&overlay);
    ck_assert_uint_eq(budget.used_bytes, 0);
    ck_assert_int_eq(ml_overlay_init(&overlay, &view, &budget, 1 << 20), ML_ENV_MEMORY);
    ck_assert_uint_eq(budget.used_bytes, 0);
    budget.max_bytes = UINT64_MAX;
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_loop_test(tests, agrees_with_a_mark_for_each_byte, 0, 200);
    tcase_add_test(tests, where_pages_are_not_told_a_block_counts_by_its_region_and_that_is_said);
    tcase_add_test(tests, mappings_without_an_address_hold_no_block);
    tcase_add_test(tests, blocks_over_blocks_and_on_too_many_pages_end_the_overlay);
    tcase_add_test(tests, one_block_in_a_hundred_keeps_every_page_that_it_lies_on);
    tcase_add_test(tests, every_second_block_has_its_share_of_the_pages);
    tcase_add_test(tests, what_rounding_leaves_of_a_page_is_for_its_lowest_block);
    tcase_add_test(tests, two_cells_of_one_stack_are_alone_together);
    tcase_add_test(tests, a_large_block_is_alone_on_its_pages_but_for_those_at_its_ends);
    tcase_add_test(tests, blocks_over_blocks_hold_a_page_once);
    tcase_add_test(tests, what_laying_takes_is_bounded_by_the_budget);
    return run_suite("service/overlay", tests);
}

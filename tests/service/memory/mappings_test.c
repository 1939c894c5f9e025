/* Who mapped what, against a model that knows each page. */
#include "service/memory/mappings.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "tests/suite.h"

enum { PAGE = ML_MAPPING_PAGE_BYTES, PAGES = 128, FIRST_PAGE = 1000, STEPS = 200000 };

static struct ml_budget budget;
static struct ml_mappings mappings;

static void begin(void) {
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    ml_mappings_init(&mappings, &budget);
}

static void end(void) {
    ml_mappings_fini(&mappings);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

static uint64_t clock_ticks;

static void apply(enum ml_mapping_kind kind, uint64_t page, uint64_t pages, uint32_t node) {
    const struct ml_mapping_record record = {
        .ticks = ++clock_ticks,
        .mapping = {
            .kind = kind,
            .address = page * PAGE,
            .length_bytes = pages * PAGE,
            .node = kind == ML_MAPPING_NAME ? 0 : node,
            .string_id = kind == ML_MAPPING_NAME ? node : 0,
        }};
    ml_mappings_apply(&mappings, &record);
}

/* ---- the model */

struct page {
    bool there;
    uint32_t node, name;
    uint32_t marks;
};

static struct page model[PAGES];
static struct page taken[PAGES];
static uint32_t taken_count;

static void model_map(uint32_t page, uint32_t pages, uint32_t node, uint32_t marks) {
    for (uint32_t i = page; i < page + pages; i++) {
        model[i] = (struct page){.there = true, .node = node, .marks = marks};
    }
}

static void model_unmap(uint32_t page, uint32_t pages) {
    memcpy(taken, &model[page], pages * sizeof(model[0]));
    taken_count = pages;
    memset(&model[page], 0, pages * sizeof(model[0]));
}

static void model_moved(uint32_t page, uint32_t pages, uint32_t node) {
    uint32_t known = taken_count;
    while (known > 0 && !taken[known - 1].there) {
        known--;
    }
    for (uint32_t i = 0; i < pages; i++) {
        const struct page *from = known > 0 ? &taken[i < known ? i : known - 1] : NULL;
        model[page + i] = from != NULL ? *from : (struct page){.there = true, .node = node};
    }
}

static void model_name(uint32_t page, uint32_t pages, uint32_t name) {
    for (uint32_t i = page; i < page + pages; i++) {
        if (!model[i].there && name != 0) {
            model[i] = (struct page){.there = true, .marks = ML_MAPPED_UNSEEN};
        }
        model[i].name = model[i].there ? name : 0;
    }
}

static void compare(void) {
    struct page seen[PAGES];
    struct ml_mapping *pieces = ml_mappings_list(&mappings);
    uint64_t behind = 0;
    memset(seen, 0, sizeof(seen));
    for (uint32_t i = 0; i < mappings.count; i++) {
        ck_assert_uint_ge(pieces[i].start, behind);
        ck_assert_uint_lt(pieces[i].start, pieces[i].end);
        behind = pieces[i].end;
        for (uint64_t page = pieces[i].start / PAGE; page < pieces[i].end / PAGE; page++) {
            seen[page - FIRST_PAGE] = (struct page
            ){.there = true,
              .node = pieces[i].node,
              .name = pieces[i].name,
              .marks = pieces[i].marks};
        }
    }
    for (uint32_t i = 0; i < PAGES; i++) {
        ck_assert_msg(
            seen[i].there == model[i].there && seen[i].node == model[i].node &&
                seen[i].name == model[i].name && seen[i].marks == model[i].marks,
            "page %u",
            i
        );
    }
    free(pieces);
}

START_TEST(each_page_has_the_owner_that_a_model_says) {
    begin();
    srand(7);
    memset(model, 0, sizeof(model));
    for (uint32_t i = 0; i < STEPS; i++) {
        const uint32_t page = (uint32_t)rand() % PAGES;
        const uint32_t left = PAGES - page;
        const uint32_t pages = 1 + (uint32_t)rand() % (left < 8 ? left : 8);
        const uint32_t node = 1 + i % 1000;
        switch (rand() % 6) {
        case 0:
        case 1:
            apply(ML_MAPPING_MAP, FIRST_PAGE + page, pages, node);
            model_map(page, pages, node, 0);
            break;
        case 2:
            apply(ML_MAPPING_UNMAP, FIRST_PAGE + page, pages, 0);
            model_unmap(page, pages);
            break;
        case 3:
            apply(ML_MAPPING_MOVED, FIRST_PAGE + page, pages, node);
            model_moved(page, pages, node);
            break;
        case 4:
            apply(ML_MAPPING_NAME, FIRST_PAGE + page, pages, i % 3);
            model_name(page, pages, i % 3);
            break;
        default:
            apply(ML_MAPPING_STACK, FIRST_PAGE + page, pages, node);
            model_map(page, pages, node, ML_MAPPED_AS_STACK);
            break;
        }
        if (i % 16 == 0) {
            compare();
        }
    }
    compare();
    ck_assert_uint_eq(mappings.dropped, 0);
    end();
}
END_TEST

START_TEST(a_move_brings_back_what_its_own_lane_took) {
    begin();
    apply(ML_MAPPING_MAP, 10, 4, 5);
    apply(ML_MAPPING_UNMAP, 10, 4, 0);
    const struct ml_mapping_record other = {
        .ticks = ++clock_ticks,
        .lane = &budget,
        .mapping = {
            .kind = ML_MAPPING_MOVED,
            .address = UINT64_C(20) * PAGE,
            .length_bytes = PAGE,
            .node = 9}};
    ml_mappings_apply(&mappings, &other);
    apply(ML_MAPPING_MOVED, 30, 8, 7);
    apply(ML_MAPPING_MOVED, 10, 4, 7); /* told twice: its old place stays mapped */
    struct ml_mapping *pieces = ml_mappings_list(&mappings);
    ck_assert_uint_eq(mappings.count, 3);
    ck_assert_uint_eq(pieces[0].node, 5);
    ck_assert_uint_eq(pieces[1].node, 9);
    ck_assert_uint_eq(pieces[2].node, 5);
    ck_assert_uint_eq(pieces[2].end, UINT64_C(38) * PAGE);
    free(pieces);
    end();
}
END_TEST

START_TEST(a_child_has_what_was_there_at_the_fork_where_it_maps_nothing_itself) {
    struct ml_mappings child;
    begin();
    apply(ML_MAPPING_MAP, 10, 10, 5);
    const uint64_t forked = clock_ticks;
    apply(ML_MAPPING_MAP, 40, 10, 6);
    ml_mappings_init(&child, &budget);
    const struct ml_mapping_record own = {
        .ticks = ++clock_ticks,
        .mapping = {
            .kind = ML_MAPPING_MAP,
            .address = UINT64_C(12) * PAGE,
            .length_bytes = UINT64_C(2) * PAGE,
            .node = 1}};
    ml_mappings_apply(&child, &own);
    ml_mappings_inherit(&child, &mappings, forked);
    struct ml_mapping *pieces = ml_mappings_list(&child);
    ck_assert_uint_eq(child.count, 3);
    ck_assert_uint_eq(pieces[0].end, UINT64_C(12) * PAGE);
    ck_assert_uint_eq(pieces[0].node, 0);
    ck_assert_uint_eq(pieces[0].marks, ML_MAPPED_BEFORE_FORK);
    ck_assert_uint_eq(pieces[1].node, 1);
    ck_assert_uint_eq(pieces[1].marks, 0);
    ck_assert_uint_eq(pieces[2].start, UINT64_C(14) * PAGE);
    ck_assert_uint_eq(pieces[2].end, UINT64_C(20) * PAGE);
    free(pieces);
    ml_mappings_fini(&child);
    end();
}
END_TEST

START_TEST(a_client_that_maps_without_end_finds_no_room) {
    begin();
    budget.max_bytes = 1 << 16;
    for (uint32_t i = 0; i < 10000; i++) {
        apply(ML_MAPPING_MAP, UINT64_C(2) * i, 1, 1);
    }
    ck_assert_uint_gt(mappings.count, 100);
    ck_assert_uint_eq(mappings.count + mappings.dropped, 10000);
    apply(ML_MAPPING_UNMAP, 0, 20000, 0);
    ck_assert_uint_eq(mappings.count, 0);
    end();
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("mappings");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, each_page_has_the_owner_that_a_model_says);
    tcase_add_test(cases, a_move_brings_back_what_its_own_lane_took);
    tcase_add_test(cases, a_child_has_what_was_there_at_the_fork_where_it_maps_nothing_itself);
    tcase_add_test(cases, a_client_that_maps_without_end_finds_no_room);
    return run_suite("mappings", cases);
}

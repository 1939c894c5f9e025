#include "tests/dump/formats_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include <check.h>

#include "tests/dump/synthetic.h"
#include "tools/analyzer/model/trace_reader.h"

struct sample_places places;
static struct ml_arena arena;
struct ml_snapshot *snapshot;
struct ml_profile profile;
struct ml_stacks stacks;
struct ml_symbolizer *symbolizer;

static void setup_once(void) {
    sample_places_find(&places, "known_places");
}

static void setup(void) {
    uint64_t offsets[SAMPLE_PLACES_MAX];
    struct synthetic_options options = {
        .processes_count = 3,
        .nodes_count = 120,
        .cells_count = 200,
        .module_path = places.path,
        .build_id = places.build_id,
        .build_id_bytes = places.build_id_bytes,
        .offsets = offsets,
        .offsets_count = places.places_count,
    };
    FILE *file = NULL;

    for (size_t i = 0; i < places.places_count; i++) {
        offsets[i] = places.places[i].offset;
    }
    arena = (struct ml_arena){0};
    profile = (struct ml_profile){0};
    snapshot = synthetic_snapshot(&arena, &options);
    file = synthetic_dump(snapshot);
    ck_assert_int_eq(ml_trace_read(file, 0, &profile), ML_OK);
    fclose(file);
    symbolizer = ml_symbolizer_new(NULL);
    ck_assert_int_eq(ml_stacks_init(&stacks, &profile), ML_OK);
    ck_assert_int_eq(ml_stacks_symbolize(&stacks, symbolizer), ML_OK);
}

static void teardown(void) {
    ml_stacks_fini(&stacks);
    ml_symbolizer_free(symbolizer);
    ml_profile_fini(&profile);
    ml_arena_fini(&arena);
}

int formats_run(const char *suite, const TTest *const *tests, size_t count) {
    TCase *tcase = tcase_create("all");
    Suite *all = suite_create(suite);
    SRunner *runner = srunner_create(all);
    int failed = 0;

    suite_add_tcase(all, tcase);
    tcase_add_unchecked_fixture(tcase, setup_once, NULL);
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < count; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    sample_places_clean(&places);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

void formats_select(uint32_t pid) {
    ml_stacks_fini(&stacks);
    ck_assert(ml_profile_select(&profile, pid));
    ck_assert_int_eq(ml_stacks_init(&stacks, &profile), ML_OK);
    ck_assert_int_eq(ml_stacks_symbolize(&stacks, symbolizer), ML_OK);
}

struct ml_profile_totals formats_sum(const struct ml_stack_list *list) {
    struct ml_profile_totals sum = {0};

    for (size_t i = 0; i < list->count; i++) {
        ml_profile_totals_add(&sum, &list->stacks[i].own);
    }
    return sum;
}

void formats_check_sums(void) {
    struct ml_profile_totals sum = formats_sum(&stacks.tree);

    ck_assert_mem_eq(&sum, &profile.tree, sizeof sum);
    for (size_t i = 0; i < profile.processes_count; i++) {
        sum = formats_sum(&stacks.processes[i]);
        ck_assert_mem_eq(&sum, &profile.processes[i].totals, sizeof sum);
    }
}

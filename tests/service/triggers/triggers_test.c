#include "service/triggers/internal.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

enum { MIB = 1 << 20, NODES = 4 };
static const uint64_t second = UINT64_C(1000000000);

static struct ml_triggers *triggers;
static struct ml_trigger_decision decisions[ML_TRIGGER_DECISIONS_MAX];
static uint64_t live_nodes[NODES];

static uint64_t *live_by_node(void *context, uint32_t id, uint32_t *out_count) {
    uint64_t *nodes = calloc(NODES, sizeof(*nodes));
    (void)context;
    (void)id;
    memcpy(nodes, live_nodes, sizeof(live_nodes));
    *out_count = NODES;
    return nodes;
}

static void begin(const struct memlog_service_trigger_rules *rules) {
    triggers = ml_triggers_new(rules, 0);
    memset(live_nodes, 0, sizeof(live_nodes));
    ck_assert_ptr_nonnull(triggers);
}

static void tear_down(void) {
    for (uint32_t i = 0; i < triggers->states_count; i++) {
        const struct ml_trigger_state *state = &triggers->states[i];
        free(state->old.nodes);
        free(state->young.nodes);
        free(state->nodes);
    }
    free(triggers->states);
    free(triggers);
    triggers = NULL;
}

static size_t look(uint64_t now_s, const struct ml_trigger_process *processes, size_t count) {
    const struct ml_trigger_look look = {
        .now_ns = now_s * second,
        .whole = true,
        .random = 1,
        .processes = processes,
        .processes_count = count,
        .live_by_node = live_by_node};
    return ml_triggers_look(triggers, &look, decisions);
}

static size_t look_at_memory(uint64_t now_s, const struct ml_trigger_memory *memory) {
    const struct ml_trigger_look look = {
        .now_ns = now_s * second, .memories = memory, .memories_count = 1};
    return ml_triggers_look(triggers, &look, decisions);
}

/* The one decision for a dump among `count`; none: NULL. */
static const struct ml_trigger_decision *dump_of(size_t count) {
    const struct ml_trigger_decision *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (decisions[i].dump) {
            ck_assert_ptr_null(found);
            found = &decisions[i];
        }
    }
    return found;
}

static struct ml_trigger_process process_of(uint64_t footprint_mib, uint64_t live_mib) {
    return (struct ml_trigger_process
    ){.id = 7,
      .pid = 70,
      .name = "eater",
      .is_first = true,
      .running = true,
      .footprint_bytes = footprint_mib * MIB,
      .live_bytes = live_mib * MIB};
}

START_TEST(a_footprint_over_its_threshold_makes_one_dump_and_another_after_the_step) {
    begin(&(struct memlog_service_trigger_rules
    ){.footprint_bytes = {.browser = 400ULL * MIB}, .footprint_again_bytes = 500ULL * MIB});
    struct ml_trigger_process process = process_of(400, 1);
    size_t count = look(1, &process, 1);
    ck_assert_ptr_null(dump_of(count)); /* strictly over */
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_nonnull(strstr(decisions[0].reason, "400.0 MiB"));
    process = process_of(401, 1);
    const struct ml_trigger_decision *dump = dump_of(look(2, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_int_eq(dump->kind, MEMLOG_SERVICE_TRIGGER_KIND_FOOTPRINT);
    ck_assert_uint_eq(dump->id, 7);
    ck_assert_ptr_nonnull(strstr(dump->reason, "main eater (70)"));
    process = process_of(901, 1);
    ck_assert_ptr_null(dump_of(look(3, &process, 1)));
    process = process_of(902, 1);
    ck_assert_ptr_nonnull(dump_of(look(4, &process, 1)));
    ck_assert_ptr_null(dump_of(look(5, &process, 1)));
}
END_TEST

START_TEST(a_browser_that_is_not_the_first_process_is_not_called_main) {
    begin(&(struct memlog_service_trigger_rules){.footprint_bytes = {.browser = 400ULL * MIB}});
    struct ml_trigger_process process = process_of(401, 1);
    process.is_first = false;
    const struct ml_trigger_decision *dump = dump_of(look(1, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_ptr_nonnull(strstr(dump->reason, "browser eater (70)"));
    ck_assert_ptr_null(strstr(dump->reason, "main"));
}
END_TEST

START_TEST(a_role_without_a_threshold_and_an_ended_process_trigger_nothing) {
    begin(&(struct memlog_service_trigger_rules
    ){.footprint_bytes = {.browser = 1}, .live_bytes = {.browser = 1}});
    struct ml_trigger_process process = process_of(1000, 1000);
    process.role = 4;
    ck_assert_uint_eq(look(1, &process, 1), 0);
    process.role = 0;
    process.running = false;
    ck_assert_uint_eq(look(1, &process, 1), 0);
}
END_TEST

START_TEST(the_guilty_stack_is_the_one_that_holds_most) {
    begin(&(struct memlog_service_trigger_rules){.live_bytes = {.browser = 10ULL * MIB}});
    const struct ml_trigger_process process = process_of(0, 11);
    live_nodes[0] = 99; /* no stack is nobody's */
    live_nodes[2] = 50;
    live_nodes[3] = 40;
    const struct ml_trigger_decision *dump = dump_of(look(1, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_int_eq(dump->kind, MEMLOG_SERVICE_TRIGGER_KIND_LIVE);
    ck_assert_uint_eq(dump->node, 2);
    ck_assert_uint_eq(dump->node_bytes, 50);
}
END_TEST

START_TEST(nobody_is_blamed_for_memory_that_the_heap_does_not_explain) {
    begin(&(struct memlog_service_trigger_rules){.footprint_bytes = {.browser = 200ULL * MIB}});
    struct ml_trigger_process process = process_of(201, 1);
    process.heap_bytes = MIB;
    process.peak_bytes = process.heap_most_bytes = 2ULL * MIB;
    live_nodes[2] = 50;
    const struct ml_trigger_decision *dump = dump_of(look(1, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_uint_eq(dump->node, 0);
    ck_assert_uint_eq(dump->node_bytes, 0);
    ck_assert_str_eq(
        dump->reason,
        "main eater (70) has 201.0 MiB of private memory, over 200.0 MiB; its heap, 1.0 MiB "
        "live "
        "and 2.0 MiB at its peak, does not explain that"
    );
}
END_TEST

START_TEST(nobody_is_blamed_for_what_the_allocator_keeps) {
    begin(&(struct memlog_service_trigger_rules){.footprint_bytes = {.browser = 200ULL * MIB}});
    struct ml_trigger_process process = process_of(201, 1);
    process.heap_bytes = MIB;
    process.peak_bytes = process.heap_most_bytes = 190ULL * MIB;
    live_nodes[2] = 50;
    const struct ml_trigger_decision *dump = dump_of(look(1, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_uint_eq(dump->node, 0);
    ck_assert_ptr_nonnull(
        strstr(dump->reason, "1.0 MiB of heap is live, 190.0 MiB was: the allocator may keep")
    );
}
END_TEST

START_TEST(a_heap_that_explains_the_memory_has_its_guilty_stack) {
    begin(&(struct memlog_service_trigger_rules){.footprint_bytes = {.browser = 200ULL * MIB}});
    struct ml_trigger_process process = process_of(201, 150);
    process.heap_bytes = 150ULL * MIB;
    live_nodes[2] = 50;
    const struct ml_trigger_decision *dump = dump_of(look(1, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_uint_eq(dump->node, 2);
}
END_TEST

START_TEST(growth_names_the_stack_that_gained_not_the_one_that_holds_most) {
    begin(&(struct memlog_service_trigger_rules){.growth_bytes = 10ULL * MIB, .growth_seconds = 60}
    );
    struct ml_trigger_process process = process_of(0, 100);
    live_nodes[1] = 90ULL * MIB;
    live_nodes[2] = 10ULL * MIB;
    ck_assert_ptr_null(dump_of(look(1, &process, 1)));
    process = process_of(0, 109);
    live_nodes[2] = 19ULL * MIB;
    ck_assert_ptr_null(dump_of(look(20, &process, 1)));
    process = process_of(0, 110);
    live_nodes[2] = 20ULL * MIB;
    const struct ml_trigger_decision *dump = dump_of(look(40, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_int_eq(dump->kind, MEMLOG_SERVICE_TRIGGER_KIND_GROWTH);
    ck_assert_uint_eq(dump->node, 2);
    ck_assert_uint_eq(dump->node_bytes, 10ULL * MIB);
    ck_assert_ptr_null(dump_of(look(41, &process, 1))); /* counted anew */
}
END_TEST

START_TEST(growth_that_is_slower_than_its_time_is_none) {
    begin(&(struct memlog_service_trigger_rules){.growth_bytes = 10ULL * MIB, .growth_seconds = 10}
    );
    for (uint64_t i = 0; i < 100; i++) {
        const struct ml_trigger_process process = process_of(0, 100 + i / 2);
        ck_assert_ptr_null(dump_of(look(1 + i, &process, 1)));
    }
}
END_TEST

START_TEST(one_stack_over_its_budget_makes_a_dump_and_again_at_twice_that) {
    begin(&(struct memlog_service_trigger_rules){.stack_bytes = 100});
    const struct ml_trigger_process process = process_of(0, 1);
    live_nodes[3] = 100;
    ck_assert_ptr_null(dump_of(look(1, &process, 1)));
    live_nodes[3] = 101;
    const struct ml_trigger_decision *dump = dump_of(look(2, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_uint_eq(dump->node, 3);
    live_nodes[3] = 201;
    ck_assert_ptr_null(dump_of(look(3, &process, 1)));
    live_nodes[3] = 202;
    ck_assert_ptr_nonnull(dump_of(look(4, &process, 1)));
}
END_TEST

START_TEST(a_limit_is_crossed_once_until_its_memory_has_fallen_back) {
    begin(&(struct memlog_service_trigger_rules){.limit_percent = 90});
    struct ml_trigger_memory memory = {.name = "cgroup /x", .used_bytes = 89, .limit_bytes = 100};
    ck_assert_ptr_null(dump_of(look_at_memory(1, &memory)));
    memory.used_bytes = 90;
    const struct ml_trigger_decision *dump = dump_of(look_at_memory(2, &memory));
    ck_assert_ptr_nonnull(dump);
    ck_assert_ptr_nonnull(strstr(dump->reason, "cgroup /x"));
    memory.used_bytes = 86;
    ck_assert_ptr_null(dump_of(look_at_memory(3, &memory)));
    memory.used_bytes = 95;
    ck_assert_ptr_null(dump_of(look_at_memory(4, &memory)));
    memory.used_bytes = 84;
    ck_assert_ptr_null(dump_of(look_at_memory(5, &memory)));
    memory.used_bytes = 90;
    ck_assert_ptr_nonnull(dump_of(look_at_memory(6, &memory)));
    memory.limit_bytes = 0;
    ck_assert_ptr_null(dump_of(look_at_memory(7, &memory)));
}
END_TEST

START_TEST(a_memory_that_fills_steadily_is_seen_before_it_is_full) {
    begin(&(struct memlog_service_trigger_rules){.to_limit_seconds = 30});
    struct ml_trigger_memory memory = {.name = "m", .limit_bytes = 1000};
    for (uint64_t s = 1; s < 70; s++) {
        memory.used_bytes = 10 * s;
        ck_assert_ptr_null(dump_of(look_at_memory(s, &memory)));
    }
    memory.used_bytes = 700;
    const struct ml_trigger_decision *dump = dump_of(look_at_memory(70, &memory));
    ck_assert_ptr_nonnull(dump);
    ck_assert_int_eq(dump->kind, MEMLOG_SERVICE_TRIGGER_KIND_TIME_TO_LIMIT);
    memory.used_bytes = 710;
    ck_assert_ptr_null(dump_of(look_at_memory(71, &memory)));
}
END_TEST

START_TEST(pressure_is_told_once_until_it_has_halved_and_events_as_they_come) {
    begin(&(struct memlog_service_trigger_rules
    ){.pressure_some_percent = 20, .pressure_full_percent = 5, .pressure_events = true});
    struct ml_trigger_memory memory = {.name = "m", .some_percent_100 = 1999, .max_events = 50};
    ck_assert_ptr_null(dump_of(look_at_memory(1, &memory)));
    memory.some_percent_100 = 2000;
    ck_assert_ptr_nonnull(dump_of(look_at_memory(2, &memory)));
    ck_assert_ptr_null(dump_of(look_at_memory(3, &memory)));
    memory.some_percent_100 = 999;
    ck_assert_ptr_null(dump_of(look_at_memory(4, &memory)));
    memory.full_percent_100 = 500;
    ck_assert_ptr_nonnull(dump_of(look_at_memory(5, &memory)));
    memory.full_percent_100 = 0;
    memory.max_events = 51;
    ck_assert_ptr_nonnull(dump_of(look_at_memory(6, &memory)));
    memory.max_events = 60;
    ck_assert_ptr_null(dump_of(look_at_memory(7, &memory)));
    ck_assert_ptr_null(dump_of(look_at_memory(8, &memory)));
    memory.high_events = 1;
    ck_assert_ptr_nonnull(dump_of(look_at_memory(9, &memory)));
}
END_TEST

START_TEST(a_memory_names_who_of_those_in_it_holds_most_and_which_it_is) {
    begin(&(struct memlog_service_trigger_rules){.limit_percent = 80});
    live_nodes[2] = 5 * MIB;
    const struct ml_trigger_memory memories[] = {
        {.name = "a", .used_bytes = 10, .limit_bytes = 100, .largest_id = 8},
        {.name = "b", .used_bytes = 90, .limit_bytes = 100, .largest_id = 7}};
    const struct ml_trigger_look both = {
        .now_ns = second,
        .memories = memories,
        .memories_count = 2,
        .largest_id = 9,
        .live_by_node = live_by_node};
    const struct ml_trigger_decision *dump = dump_of(ml_triggers_look(triggers, &both, decisions));
    ck_assert_ptr_nonnull(dump);
    ck_assert_uint_eq(dump->memory, 2);
    ck_assert_uint_eq(dump->id, 7);
    ck_assert_uint_eq(dump->node, 2);
    ck_assert_uint_eq(dump->node_bytes, 5 * MIB);
}
END_TEST

START_TEST(a_memory_that_nobody_known_is_in_blames_nobody) {
    begin(&(struct memlog_service_trigger_rules){.limit_percent = 80});
    live_nodes[2] = 5 * MIB;
    const struct ml_trigger_memory memory = {.name = "a", .used_bytes = 90, .limit_bytes = 100};
    const struct ml_trigger_look alone = {
        .now_ns = second,
        .memories = &memory,
        .memories_count = 1,
        .largest_id = 9,
        .live_by_node = live_by_node};
    const struct ml_trigger_decision *dump = dump_of(ml_triggers_look(triggers, &alone, decisions));
    ck_assert_ptr_nonnull(dump);
    ck_assert_uint_eq(dump->id, 0);
    ck_assert_uint_eq(dump->node, 0);
}
END_TEST

START_TEST(control_groups_that_are_no_more_make_room_for_others) {
    enum { GROUPS = 1000 };
    begin(&(struct memlog_service_trigger_rules){.limit_percent = 80});
    for (unsigned i = 0; i < GROUPS; i++) {
        struct ml_trigger_memory memory = {.used_bytes = 90, .limit_bytes = 100};
        (void)snprintf(memory.name, sizeof(memory.name), "group %u", i);
        ck_assert_ptr_nonnull(dump_of(look_at_memory(2 * i, &memory)));
        ck_assert_ptr_null(dump_of(look_at_memory(2 * i + 1, &memory)));
    }
}
END_TEST

START_TEST(what_a_former_service_has_dumped_is_not_dumped_again) {
    begin(&(struct memlog_service_trigger_rules
    ){.footprint_bytes = {.browser = 10 * (uint64_t)MIB},
      .footprint_again_bytes = 5 * (uint64_t)MIB,
      .limit_percent = 80,
      .to_limit_seconds = 1000,
      .pressure_some_percent = 20});
    struct ml_trigger_process process = process_of(14, 0);
    process.footprint_high_bytes = 12 * (uint64_t)MIB;
    ck_assert_ptr_null(dump_of(look(1, &process, 1)));
    process.footprint_bytes = 18 * (uint64_t)MIB;
    ck_assert_ptr_nonnull(dump_of(look(2, &process, 1)));
    struct ml_trigger_memory memory = {
        .name = "m",
        .used_bytes = 90,
        .limit_bytes = 100,
        .some_percent_100 = 2500,
        .dumped_kinds = 1U << MEMLOG_SERVICE_TRIGGER_KIND_LIMIT |
                        1U << MEMLOG_SERVICE_TRIGGER_KIND_TIME_TO_LIMIT |
                        1U << MEMLOG_SERVICE_TRIGGER_KIND_PRESSURE};
    for (uint64_t s = 3; s < 8; s++) {
        memory.used_bytes++;
        ck_assert_ptr_null(dump_of(look_at_memory(s, &memory)));
    }
    memory.used_bytes = 10;
    memory.some_percent_100 = 0;
    ck_assert_ptr_null(dump_of(look_at_memory(8, &memory)));
    memory.used_bytes = 90;
    ck_assert_ptr_nonnull(dump_of(look_at_memory(9, &memory)));
}
END_TEST

START_TEST(a_former_services_dumps_count_for_the_rate_limit) {
    begin(&(struct memlog_service_trigger_rules
    ){.control_one_in = 1, .most_dumps = 2, .most_seconds = 100});
    const uint64_t dumped_ns[] = {10 * second, 60 * second};
    struct ml_trigger_look one = {
        .now_ns = 70 * second, .whole = true, .dumped_ns = dumped_ns, .dumped_count = 2};
    ck_assert_ptr_null(dump_of(ml_triggers_look(triggers, &one, decisions)));
    one.now_ns = 111 * second;
    ck_assert_ptr_nonnull(dump_of(ml_triggers_look(triggers, &one, decisions)));
    one.now_ns = 112 * second;
    ck_assert_ptr_null(dump_of(ml_triggers_look(triggers, &one, decisions)));
}
END_TEST

START_TEST(the_interval_keeps_step_with_the_clock_and_the_peak_with_its_step) {
    begin(&(struct memlog_service_trigger_rules){.every_seconds = 60});
    ck_assert_ptr_null(dump_of(look(59, NULL, 0)));
    ck_assert_ptr_nonnull(dump_of(look(61, NULL, 0)));
    ck_assert_ptr_null(dump_of(look(119, NULL, 0)));
    ck_assert_ptr_nonnull(dump_of(look(120, NULL, 0)));
    tear_down();
    begin(&(struct memlog_service_trigger_rules){.peak_step_bytes = 100});
    struct ml_trigger_look look_at = {.now_ns = 1, .whole = true, .tree_peak_bytes = 99};
    ck_assert_ptr_null(dump_of(ml_triggers_look(triggers, &look_at, decisions)));
    look_at.tree_peak_bytes = 150;
    ck_assert_ptr_nonnull(dump_of(ml_triggers_look(triggers, &look_at, decisions)));
    look_at.tree_peak_bytes = 249;
    ck_assert_ptr_null(dump_of(ml_triggers_look(triggers, &look_at, decisions)));
    look_at.tree_peak_bytes = 250;
    ck_assert_ptr_nonnull(dump_of(ml_triggers_look(triggers, &look_at, decisions)));
}
END_TEST

/* One number of a sequence that has every 64-bit number once. */
static uint64_t random_of(uint64_t *state) {
    uint64_t mixed = *state += UINT64_C(0x9e3779b97f4a7c15);
    mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ mixed >> 31;
}

/* Of many looks one in so many draws the sample: within seven standard deviations of that, which of
 * 10^11 seeds some three would miss. Nor do draws come in bunches: after one the next is as likely
 * as ever. */
static void check_rate(uint32_t one_in, uint64_t seed) {
    const double looks = 100000;
    const double expected = looks / one_in;
    const double most_off = 7 * sqrt(expected * (1 - 1. / one_in)) + 1;
    const double after_one = expected / one_in;
    const double most_off_after_one = 7 * sqrt(after_one) + 7;
    struct ml_trigger_look look_at = {.whole = true};
    unsigned dumps = 0;
    unsigned in_a_row = 0;
    bool before = false;
    begin(&(struct memlog_service_trigger_rules){.control_one_in = one_in});
    for (uint32_t i = 0; i < (uint32_t)looks; i++) {
        look_at.random = random_of(&seed);
        const bool drawn = dump_of(ml_triggers_look(triggers, &look_at, decisions)) != NULL;
        dumps += drawn;
        in_a_row += drawn && before;
        before = drawn;
    }
    ck_assert_double_le(fabs(dumps - expected), most_off);
    ck_assert_double_le(fabs(in_a_row - after_one), most_off_after_one);
    tear_down();
}

START_TEST(a_control_sample_comes_at_its_rate) {
    static const uint32_t rates[] = {2, 3, 10, 100, 300};
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        check_rate(rates[i], 20261122 + i);
    }
    begin(&(struct memlog_service_trigger_rules){.control_one_in = 1});
    uint64_t seed = 1;
    for (unsigned i = 0; i < 1000; i++) {
        const struct ml_trigger_look look_at = {.whole = true, .random = random_of(&seed)};
        ck_assert_ptr_nonnull(dump_of(ml_triggers_look(triggers, &look_at, decisions)));
    }
}
END_TEST

START_TEST(who_is_killed_is_told_once_whoever_killed_it_and_a_crash_is_not) {
    begin(&(struct memlog_service_trigger_rules){.killed = true});
    struct ml_trigger_process process = process_of(5, 3);
    process.running = false;
    process.killed_by = 9;
    process.by_oom = true;
    const struct ml_trigger_decision *dump = dump_of(look(1, &process, 1));
    ck_assert_ptr_nonnull(dump);
    ck_assert_int_eq(dump->kind, MEMLOG_SERVICE_TRIGGER_KIND_KILLED);
    ck_assert_uint_eq(dump->id, 7);
    ck_assert_ptr_nonnull(strstr(dump->reason, "out of memory"));
    ck_assert_uint_eq(look(2, &process, 1), 0);
    process.id = 8;
    process.killed_by = 11;
    ck_assert_ptr_null(dump_of(look(3, &process, 1)));
}
END_TEST

START_TEST(what_the_rate_limit_forbids_stays_crossed) {
    begin(&(struct memlog_service_trigger_rules
    ){.live_bytes = {.browser = 10}, .most_dumps = 2, .most_seconds = 100});
    struct ml_trigger_process processes[4];
    for (uint32_t i = 0; i < 4; i++) {
        processes[i] = process_of(0, 1);
        processes[i].id = i + 1;
    }
    ck_assert_ptr_nonnull(dump_of(look(10, processes, 1)));
    ck_assert_ptr_nonnull(dump_of(look(20, processes, 2)));
    const size_t count = look(30, processes, 3);
    ck_assert_ptr_null(dump_of(count));
    ck_assert_ptr_nonnull(strstr(decisions[0].reason, "the next may come in 80 s"));
    ck_assert_ptr_null(dump_of(look(109, processes, 3)));
    ck_assert_ptr_nonnull(dump_of(look(110, processes, 3)));
    /* What is crossed at the same look goes with one dump. */
    for (uint32_t i = 0; i < 4; i++) {
        processes[i].id = i + 10;
    }
    const size_t all = look(300, processes, 4);
    unsigned dumps = 0;
    for (size_t i = 0; i < all; i++) {
        dumps += decisions[i].dump;
    }
    ck_assert_uint_eq(dumps, 4);
    processes[0].id = 20;
    ck_assert_ptr_nonnull(dump_of(look(301, processes, 1)));
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("triggers");
    tcase_add_checked_fixture(cases, NULL, tear_down);
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, a_footprint_over_its_threshold_makes_one_dump_and_another_after_the_step);
    tcase_add_test(cases, a_browser_that_is_not_the_first_process_is_not_called_main);
    tcase_add_test(cases, a_role_without_a_threshold_and_an_ended_process_trigger_nothing);
    tcase_add_test(cases, the_guilty_stack_is_the_one_that_holds_most);
    tcase_add_test(cases, nobody_is_blamed_for_memory_that_the_heap_does_not_explain);
    tcase_add_test(cases, nobody_is_blamed_for_what_the_allocator_keeps);
    tcase_add_test(cases, a_heap_that_explains_the_memory_has_its_guilty_stack);
    tcase_add_test(cases, growth_names_the_stack_that_gained_not_the_one_that_holds_most);
    tcase_add_test(cases, growth_that_is_slower_than_its_time_is_none);
    tcase_add_test(cases, one_stack_over_its_budget_makes_a_dump_and_again_at_twice_that);
    tcase_add_test(cases, a_limit_is_crossed_once_until_its_memory_has_fallen_back);
    tcase_add_test(cases, a_memory_that_fills_steadily_is_seen_before_it_is_full);
    tcase_add_test(cases, pressure_is_told_once_until_it_has_halved_and_events_as_they_come);
    tcase_add_test(cases, a_memory_names_who_of_those_in_it_holds_most_and_which_it_is);
    tcase_add_test(cases, a_memory_that_nobody_known_is_in_blames_nobody);
    tcase_add_test(cases, control_groups_that_are_no_more_make_room_for_others);
    tcase_add_test(cases, what_a_former_service_has_dumped_is_not_dumped_again);
    tcase_add_test(cases, a_former_services_dumps_count_for_the_rate_limit);
    tcase_add_test(cases, the_interval_keeps_step_with_the_clock_and_the_peak_with_its_step);
    tcase_add_test(cases, a_control_sample_comes_at_its_rate);
    tcase_add_test(cases, who_is_killed_is_told_once_whoever_killed_it_and_a_crash_is_not);
    tcase_add_test(cases, what_the_rate_limit_forbids_stays_crossed);
    return run_suite("service/triggers", cases);
}

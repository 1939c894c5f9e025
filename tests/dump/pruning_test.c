/* Every way to reduce the stacks of a dump keeps every sum. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>
#include <jansson.h>
#include <zlib.h>

#include "base/upload.h"
#include "ipc/wire/event.h"
#include "tests/dump/formats_fixture.h"
#include "tools/analyzer/formats/chrome_trace.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/prune.h"
#include "tools/analyzer/upload/body.h"

static bool is_other(const struct ml_stack *stack) {
    return stack->node != ML_STACKS_NONE &&
           stacks.places[stacks.nodes[stack->node].place].kind == ML_PLACE_OTHER;
}

START_TEST(pruning_keeps_sums_and_what_is_large) {
    const uint64_t below_bytes = 600000;
    size_t nodes_before = stacks.nodes_count;
    size_t before = stacks.tree.count;
    size_t others = 0;
    size_t large = 0;

    for (size_t i = 0; i < before; i++) {
        large += stacks.tree.stacks[i].own.live_bytes >= below_bytes;
    }
    ck_assert_uint_gt(large, 0);
    ck_assert_int_eq(ml_stacks_prune(&stacks, below_bytes), ML_OK);
    formats_check_sums();
    ck_assert_uint_lt(stacks.tree.count, before);
    ck_assert_uint_lt(stacks.nodes_count, nodes_before);
    for (size_t i = 0; i < stacks.tree.count; i++) {
        const struct ml_stack *stack = &stacks.tree.stacks[i];
        char buffer[ML_PLACE_NAME_BYTES];
        others += is_other(stack);
        large -= !is_other(stack) && stack->own.live_bytes >= below_bytes;
        if (is_other(stack)) {
            const struct ml_place *place = &stacks.places[stacks.nodes[stack->node].place];
            ck_assert_str_eq(ml_place_name(place, buffer), "<other>");
        }
    }
    ck_assert_uint_gt(others, 0);
    ck_assert_uint_eq(large, 0);
    /* Compact and in order: parents come first. */
    for (size_t i = 0; i < stacks.nodes_count; i++) {
        ck_assert(stacks.nodes[i].parent == ML_STACKS_NONE || stacks.nodes[i].parent < i);
        ck_assert_uint_lt(stacks.nodes[i].place, stacks.places_count);
    }
}
END_TEST

START_TEST(pruning_everything_keeps_only_whoever_has_many_blocks) {
    size_t many = 0;
    size_t own = 0;

    for (size_t i = 0; i < stacks.tree.count; i++) {
        const struct ml_stack *stack = &stacks.tree.stacks[i];
        many += stack->node != ML_STACKS_NONE && (stack->own.live_blocks >= ML_PRUNE_KEPT_BLOCKS ||
                                                  stack->own.peak_blocks >= ML_PRUNE_KEPT_BLOCKS);
    }
    ck_assert_int_eq(ml_stacks_prune(&stacks, UINT64_MAX), ML_OK);
    formats_check_sums();
    for (size_t i = 0; i < stacks.tree.count; i++) {
        const struct ml_stack *stack = &stacks.tree.stacks[i];
        own += stack->own.live_blocks >= ML_PRUNE_KEPT_BLOCKS && !is_other(stack) &&
               stack->node != ML_STACKS_NONE;
    }
    ck_assert_uint_le(own, many);
    if (many == 0) {
        ck_assert_uint_le(stacks.nodes_count, 1); /* `<other>` alone */
    }
}
END_TEST

START_TEST(pruning_nothing_changes_nothing) {
    size_t nodes_before = stacks.nodes_count;
    size_t before = stacks.tree.count;

    ck_assert_int_eq(ml_stacks_prune(&stacks, 0), ML_OK);
    ck_assert_uint_eq(stacks.nodes_count, nodes_before);
    ck_assert_uint_eq(stacks.tree.count, before);
}
END_TEST

/* Live bytes of the tree with a stack of their own. */
static uint64_t attributed(void) {
    uint64_t sum = 0;

    for (size_t i = 0; i < stacks.tree.count; i++) {
        const struct ml_stack *stack = &stacks.tree.stacks[i];
        sum += stack->node == ML_STACKS_NONE || is_other(stack) ? 0 : stack->own.live_bytes;
    }
    return sum;
}

static enum ml_status prune_to_worth(double least_worth) {
    const struct ml_prune_rule rule = {.least_worth = least_worth};

    return ml_stacks_prune_by(&stacks, &rule);
}

START_TEST(pruning_by_worth_keeps_sums_and_tells_less_the_more_is_asked) {
    struct ml_stacks_copy whole;
    uint64_t before = UINT64_MAX;
    size_t count_before = SIZE_MAX;

    ck_assert(ml_stacks_copy_init(&whole, &stacks));
    for (double least = 1; least < 1e12; least *= 100) {
        ck_assert_int_eq(ml_stacks_restore(&stacks, &whole), ML_OK);
        ck_assert_int_eq(prune_to_worth(least), ML_OK);
        formats_check_sums();
        ck_assert_uint_le(attributed(), before);
        ck_assert_uint_le(stacks.tree.count, count_before);
        before = attributed();
        count_before = stacks.tree.count;
    }
    /* Nothing is worth that; the largest stays. */
    ck_assert_uint_gt(before, 0);
    ck_assert_uint_lt(before, profile.tree.live_bytes / 4);
    ml_stacks_copy_fini(&whole);
}
END_TEST

/* A small stack that shares its callers with a large one costs little, one that stands alone much.
 */
START_TEST(of_equal_stacks_the_one_with_callers_that_stay_is_kept) {
    enum { BIG_AT = 0, NEAR_AT = 1, FAR_AT = 2, ADDED = 3 };
    const struct ml_profile_totals small = {.live_bytes = 40000, .live_blocks = 1};
    struct ml_stack *list = stacks.processes[0].stacks;
    const uint32_t root = list[BIG_AT].node;
    uint32_t nodes[ADDED] = {root, ML_STACKS_NONE, ML_STACKS_NONE};
    uint32_t far = ML_STACKS_NONE;
    char names[12][128] = {{0}};

    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        memset(names[i], 'x', 100 + i);
        const struct ml_place place = {
            .kind = ML_FRAME_SCOPE,
            .file = ML_STACKS_NONE,
            .name = {.bytes = names[i], .count_bytes = 100 + i}};
        far = ml_stacks_node(&stacks, far, ml_stacks_place(&stacks, &place));
    }
    nodes[NEAR_AT] = ml_stacks_node(&stacks, root, stacks.nodes[root].place);
    nodes[FAR_AT] = far;
    for (int i = BIG_AT; i < ADDED; i++) {
        list[i] = (struct ml_stack){.node = nodes[i], .own = small};
    }
    list[BIG_AT].own.live_bytes = 1000000000;
    stacks.processes[0].count = ADDED;
    ck_assert_int_eq(prune_to_worth(500), ML_OK);
    ck_assert_uint_eq(stacks.processes[0].count, ADDED);
    for (size_t i = 1; i < ADDED; i++) {
        /* The far one is all `<other>`, outermost; the near one is below what stays. */
        const struct ml_stack *stack = &stacks.processes[0].stacks[i];
        ck_assert(is_other(stack) == (stacks.nodes[stack->node].parent == ML_STACKS_NONE));
    }
}
END_TEST

START_TEST(the_stack_that_a_trigger_blames_survives_everything) {
    const struct ml_stack *last = &stacks.processes[0].stacks[stacks.processes[0].count - 1];
    bool found = false;

    ck_assert(last->node != ML_STACKS_NONE);
    stacks.guilty = last->node;
    ck_assert_int_eq(ml_stacks_merge_functions(&stacks), ML_OK);
    ck_assert_int_eq(ml_stacks_shorten(&stacks, 2), ML_OK);
    ck_assert_int_eq(prune_to_worth(1e18), ML_OK);
    formats_check_sums();
    ck_assert_uint_ne(stacks.guilty, ML_STACKS_NONE);
    for (size_t i = 0; i < stacks.processes[0].count; i++) {
        found = found || stacks.processes[0].stacks[i].node == stacks.guilty;
    }
    ck_assert(found);
}
END_TEST

/* One function asks for everything by as many stacks as there are, none of which is worth its
 * place: its name stays, with all that it holds. */
START_TEST(many_small_stacks_of_one_function_are_told_as_that_function) {
    static const char leak[] = "leak";
    const struct ml_place attribution = {
        .kind = ML_PLACE_FUNCTION,
        .file = ML_STACKS_NONE,
        .name = {.bytes = leak, .count_bytes = sizeof leak - 1}};
    const uint32_t place = ml_stacks_place(&stacks, &attribution);
    struct ml_stack_list *list = &stacks.processes[0];
    const uint64_t live_bytes = formats_sum(list).live_bytes;
    uint64_t none_bytes = 0;
    struct ml_prune_rule rule = {.least_worth = 1e18};
    bool found = false;

    for (size_t i = 0; i < list->count; i++) {
        const uint32_t node = list->stacks[i].node;
        none_bytes += node == ML_STACKS_NONE ? list->stacks[i].own.live_bytes : 0;
        if (node != ML_STACKS_NONE) {
            list->stacks[i].node = ml_stacks_node(&stacks, node, place);
        }
    }
    stacks.tree.count = 0;
    rule.function_worth = ml_stacks_worth(&stacks) / 32;
    ck_assert_int_eq(ml_stacks_prune_by(&stacks, &rule), ML_OK);
    ck_assert_uint_eq(formats_sum(list).live_bytes, live_bytes);
    for (size_t i = 0; i < list->count; i++) {
        const struct ml_stack *stack = &list->stacks[i];
        ck_assert(stack->node == ML_STACKS_NONE || !is_other(stack));
        found = found ||
                (stack->node != ML_STACKS_NONE &&
                 strcmp(stacks.places[stacks.nodes[stack->node].place].name.bytes, leak) == 0 &&
                 stack->own.live_bytes + none_bytes > live_bytes / 2);
    }
    ck_assert(found);
    ck_assert_uint_gt(ml_stacks_function_bytes(&stacks), 0);
    /* Without the rule there is no more than the largest. */
    rule.function_worth = 0;
    ck_assert_int_eq(ml_stacks_prune_by(&stacks, &rule), ML_OK);
    ck_assert_uint_eq(formats_sum(list).live_bytes, live_bytes);
}
END_TEST

START_TEST(a_margin_keeps_so_many_more_and_all_of_it_what_the_lower_worth_keeps) {
    struct ml_stacks_copy whole;
    struct ml_prune_rule rule = {.least_worth = 1e18, .margin_worth = 1};
    uint64_t before = 0;

    ck_assert(ml_stacks_copy_init(&whole, &stacks));
    for (rule.margin_count = 0; rule.margin_count < 20; rule.margin_count++) {
        ck_assert_int_eq(ml_stacks_restore(&stacks, &whole), ML_OK);
        ck_assert_int_eq(ml_stacks_prune_by(&stacks, &rule), ML_OK);
        formats_check_sums();
        ck_assert_uint_ge(ml_stacks_told_bytes(&stacks), before);
        before = ml_stacks_told_bytes(&stacks);
    }
    rule.margin_count = UINT64_MAX;
    ck_assert_int_eq(ml_stacks_restore(&stacks, &whole), ML_OK);
    ck_assert_int_eq(ml_stacks_prune_by(&stacks, &rule), ML_OK);
    before = ml_stacks_told_bytes(&stacks);
    ck_assert_int_eq(ml_stacks_restore(&stacks, &whole), ML_OK);
    ck_assert_int_eq(prune_to_worth(1), ML_OK);
    ck_assert_uint_eq(before, ml_stacks_told_bytes(&stacks));
    ml_stacks_copy_fini(&whole);
}
END_TEST

START_TEST(what_reads_alike_becomes_one) {
    size_t before = stacks.tree.count;
    size_t nodes_before = stacks.nodes_count;

    ck_assert_int_eq(ml_stacks_merge_functions(&stacks), ML_OK);
    formats_check_sums();
    ck_assert_uint_le(stacks.tree.count, before);
    ck_assert_uint_lt(stacks.nodes_count, nodes_before);
    before = stacks.tree.count;
    ck_assert_int_eq(ml_stacks_merge_functions(&stacks), ML_OK);
    ck_assert_uint_eq(stacks.tree.count, before);
    for (size_t i = 0; i < stacks.nodes_count; i++) {
        ck_assert(stacks.nodes[i].parent == ML_STACKS_NONE || stacks.nodes[i].parent < i);
    }
}
END_TEST

/* Sums of all heaps of a Chrome trace: bytes, blocks, events. */
static void trace_sums(FILE *file, uint64_t out_sums[3]) {
    static char text[1 << 22];
    json_t *trace = NULL;
    const json_t *event = NULL;
    size_t i = 0;
    gzFile unzipped = NULL;
    int count = 0;

    memset(out_sums, 0, 3 * sizeof out_sums[0]);
    ck_assert_int_eq(fflush(file), 0);
    rewind(file);
    unzipped = gzdopen(dup(fileno(file)), "r");
    count = gzread(unzipped, text, sizeof text);
    ck_assert_int_gt(count, 0);
    ck_assert_int_eq(gzclose(unzipped), Z_OK);
    fclose(file);
    trace = json_loadb(text, (size_t)count, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_ptr_nonnull(trace);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        const json_t *dump = json_object_get(json_object_get(event, "args"), "dumps");
        const json_t *heap = json_object_get(
            json_object_get(json_object_get(dump, "heaps_v2"), "allocators"), "malloc"
        );
        const json_t *value = NULL;
        size_t at = 0;
        json_array_foreach(json_object_get(heap, "sizes"), at, value) {
            out_sums[0] += (uint64_t)json_integer_value(value);
        }
        json_array_foreach(json_object_get(heap, "counts"), at, value) {
            out_sums[1] += (uint64_t)json_integer_value(value);
        }
        out_sums[2] += dump != NULL;
    }
    json_decref(trace);
}

START_TEST(processes_of_which_sums_are_left_become_one) {
    struct ml_chrome_dump dump = {
        .stacks = &stacks,
        .needed_modules_only = true,
        .others_as_one = true,
    };
    FILE *file = tmpfile();
    uint64_t sums[3];

    ck_assert_uint_eq(ml_chrome_trace_others(&stacks), 0);
    ck_assert_int_eq(prune_to_worth(1e18), ML_OK);
    /* All but that of the largest stack. */
    ck_assert_uint_eq(ml_chrome_trace_others(&stacks), profile.processes_count - 1);
    ck_assert_int_eq(ml_chrome_trace_write(&dump, 1, ML_METRIC_LIVE, file), ML_OK);
    trace_sums(file, sums);
    ck_assert_uint_eq(sums[0], profile.tree.live_bytes);
    ck_assert_uint_eq(sums[1], profile.tree.live_blocks);
    ck_assert_uint_eq(sums[2], 2);
    dump.others_as_one = false;
    file = tmpfile();
    ck_assert_int_eq(ml_chrome_trace_write(&dump, 1, ML_METRIC_LIVE, file), ML_OK);
    trace_sums(file, sums);
    ck_assert_uint_eq(sums[0], profile.tree.live_bytes);
    ck_assert_uint_eq(sums[2], profile.processes_count);
}
END_TEST

/* As ml_upload_write is called: from the whole stacks. */
static void write_body(
    struct ml_upload *upload, const struct ml_stacks_copy *whole, struct ml_upload_cut *out_cut
) {
    FILE *file = tmpfile();
    uint64_t sums[3];

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ml_stacks_restore(&stacks, whole), ML_OK);
    ck_assert_int_eq(ml_upload_write(upload, file, out_cut), ML_OK);
    ck_assert_uint_le(out_cut->body_bytes, upload->max_bytes);
    ck_assert_uint_eq(out_cut->live_bytes, profile.tree.live_bytes);
    ck_assert_uint_le(out_cut->attributed_bytes, out_cut->live_bytes);
    ck_assert_uint_le(out_cut->named_bytes, out_cut->attributed_bytes + out_cut->function_bytes);
    ck_assert_uint_le(out_cut->attributed_bytes + out_cut->function_bytes, out_cut->live_bytes);
    trace_sums(file, sums);
    ck_assert_uint_eq(sums[0], profile.tree.live_bytes);
    ck_assert_uint_eq(sums[1], profile.tree.live_blocks);
}

static uint64_t least_of(uint64_t one, uint64_t other) {
    return one < other ? one : other;
}

/* Every size that is allowed: it fits, its sums are the dump's, and more room never tells less, up
 * to nine tenths; beyond them stacks are never shorter. */
START_TEST(a_body_fits_and_adds_up_at_every_size_and_more_room_never_tells_less) {
    struct ml_upload upload = {
        .stacks = &stacks,
        .form = ML_UPLOAD_TRACE,
        .guid = "0123456789abcdef0123456789abcdef",
        .boundary = "memlog",
    };
    struct ml_stacks_copy whole;
    struct ml_upload_cut before = {0};
    const uint64_t enough = ml_stacks_told_bytes(&stacks) / 10 * 9;

    ck_assert(ml_stacks_copy_init(&whole, &stacks));
    for (upload.max_bytes = ML_UPLOAD_LEAST_BYTES; upload.max_bytes < 60000;
         upload.max_bytes += upload.max_bytes / 12) {
        struct ml_upload_cut cut;

        write_body(&upload, &whole, &cut);
        ck_assert_uint_ge(cut.attributed_bytes, least_of(before.attributed_bytes, enough));
        if (before.attributed_bytes >= enough) {
            ck_assert(cut.frames == 0 || (before.frames != 0 && cut.frames >= before.frames));
        }
        before = cut;
    }
    ck_assert_uint_ge(before.attributed_bytes, enough);
    ck_assert_uint_eq(before.frames, 0);
    ml_stacks_copy_fini(&whole);
}
END_TEST

START_TEST(the_worth_that_tells_so_much_is_the_most_that_does) {
    struct ml_stacks_copy whole;
    const uint64_t told_bytes = ml_stacks_told_bytes(&stacks);

    ck_assert(ml_stacks_copy_init(&whole, &stacks));
    for (uint64_t tenths = 1; tenths < 10; tenths++) {
        const uint64_t wanted = told_bytes / 10 * tenths;
        double least_worth = 0;

        ck_assert_int_eq(ml_stacks_restore(&stacks, &whole), ML_OK);
        ck_assert_int_eq(ml_stacks_worth_to_tell(&stacks, wanted, &least_worth), ML_OK);
        ck_assert_uint_eq(ml_stacks_told_bytes(&stacks), told_bytes);
        ck_assert_int_eq(prune_to_worth(least_worth), ML_OK);
        ck_assert_uint_ge(ml_stacks_told_bytes(&stacks), wanted);
        /* The next step of the scale tells less; and what was folded once stays so. */
        ck_assert_int_eq(ml_stacks_restore(&stacks, &whole), ML_OK);
        ck_assert_int_eq(prune_to_worth(least_worth * 1.07), ML_OK);
        ck_assert_uint_lt(ml_stacks_told_bytes(&stacks), wanted);
        ck_assert_int_eq(prune_to_worth(1), ML_OK);
        ck_assert_uint_lt(ml_stacks_told_bytes(&stacks), wanted);
        formats_check_sums();
    }
    ml_stacks_copy_fini(&whole);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        pruning_keeps_sums_and_what_is_large,
        pruning_everything_keeps_only_whoever_has_many_blocks,
        pruning_nothing_changes_nothing,
        pruning_by_worth_keeps_sums_and_tells_less_the_more_is_asked,
        of_equal_stacks_the_one_with_callers_that_stay_is_kept,
        the_stack_that_a_trigger_blames_survives_everything,
        many_small_stacks_of_one_function_are_told_as_that_function,
        a_margin_keeps_so_many_more_and_all_of_it_what_the_lower_worth_keeps,
        what_reads_alike_becomes_one,
        processes_of_which_sums_are_left_become_one,
        a_body_fits_and_adds_up_at_every_size_and_more_room_never_tells_less,
        the_worth_that_tells_so_much_is_the_most_that_does,
    };

    return formats_run("dump/pruning", tests, sizeof tests / sizeof *tests);
}

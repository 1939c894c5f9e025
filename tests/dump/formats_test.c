#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <check.h>
#include <jansson.h>
#include <pb_decode.h>

#include "ipc/wire/event.h"
#include "service/snapshot/snapshot.h"
#include "tests/dump/formats_fixture.h"
#include "tests/dump/synthetic.h"
#include "tools/analyzer/formats/collapsed.h"
#include "tools/analyzer/formats/pprof.h"
#include "tools/analyzer/formats/pprof.pb.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/model/trace_reader.h"
#include "tools/analyzer/report/diff.h"
#include "tools/analyzer/report/report.h"
#include "tools/analyzer/screen/screen.h"
#include "tools/analyzer/stacks/metric.h"
#include "tools/analyzer/stacks/stacks.h"
#include "tools/analyzer/symbols/symbolizer.h"

static json_t *report_json(size_t limit) {
    const struct ml_report report = {
        .profile = &profile,
        .stacks = &stacks,
        .file_path = "/a/0001.exit.pftrace",
        .limit = limit};
    FILE *file = tmpfile();
    json_error_t error;
    json_t *json = NULL;

    ml_report_json(&report, file);
    rewind(file);
    json = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(json != NULL, "%s", error.text);
    fclose(file);
    return json;
}

static uint64_t number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);

    ck_assert_msg(json_is_integer(value), "%s", name);
    return (uint64_t)json_integer_value(value);
}

static const char *string(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);

    ck_assert_msg(json_is_string(value), "%s", name);
    return json_string_value(value);
}

static const char *const figures[] = {
    "live_bytes", "live_blocks", "peak_bytes", "peak_blocks", "total_bytes", "total_blocks"};
enum { FIGURES = sizeof figures / sizeof figures[0] };

/* Stacks are of the form, sorted, and add up to the figures of what they belong to. */
static void check_stacks(const json_t *owner) {
    const json_t *list = json_object_get(owner, "stacks");
    uint64_t before = UINT64_MAX;

    ck_assert(json_is_array(list));
    for (size_t f = 0; f < FIGURES; f++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < json_array_size(list); i++) {
            sum += number(json_array_get(list, i), figures[f]);
        }
        /* Of the tree: where nothing runs any more the stacks are of what was left. */
        const bool is_left = f < 2 && json_is_true(json_object_get(owner, "ended_shown"));
        ck_assert_uint_eq(
            sum,
            number(owner, figures[f]) +
                (is_left ? number(owner, f == 0 ? "left_bytes" : "left_blocks") : 0)
        );
    }
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *stack = json_array_get(list, i);
        const json_t *frames = json_object_get(stack, "frames");

        ck_assert_uint_le(number(stack, "live_bytes"), before);
        before = number(stack, "live_bytes");
        (void)string(stack, "thread");
        ck_assert(json_is_array(frames));
        for (size_t f = 0; f < json_array_size(frames); f++) {
            const json_t *frame = json_array_get(frames, f);
            (void)string(frame, "function");
            (void)string(frame, "file");
            (void)number(frame, "line");
            (void)string(frame, "module");
            (void)string(frame, "build_id");
            ck_assert_int_eq(strncmp(string(frame, "offset"), "0x", 2), 0);
            ck_assert(json_is_boolean(json_object_get(frame, "inlined")));
        }
    }
}

static void check_accounting(const json_t *accounting, const struct ml_snapshot_process *process) {
    static const char *const reasons[] = {
        "overrun", "no_lane", "nested", "no_pipe", "refused", "unaccounted"};
    const json_t *dropped = json_object_get(accounting, "dropped");
    uint64_t sum = number(accounting, "received") + number(accounting, "in_flight");

    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        sum += number(dropped, reasons[i]);
    }
    ck_assert_uint_eq(sum, number(accounting, "produced"));
    ck_assert(json_is_true(json_object_get(accounting, "balanced")));
    ck_assert_uint_eq(number(accounting, "waits"), process->accounting.waits);
    ck_assert_uint_eq(number(accounting, "waited_ns"), process->accounting.waited_ns);
    ck_assert_uint_eq(number(accounting, "longest_wait_ns"), process->accounting.longest_wait_ns);
    ck_assert_uint_eq(number(accounting, "stream_bytes"), process->accounting.stream_bytes);
}

START_TEST(the_json_report_has_its_form_and_its_sums_are_true) {
    static const char *const strings[] = {"name", "role", "state"};
    static const char *const numbers[] = {
        "id",
        "pid",
        "parent_pid",
        "footprint_bytes",
        "exit_code",
        "signal",
        "inherited_bytes",
        "inherited_blocks",
        "events",
        "lost_events",
        "unknown_frees",
        "truncated_stacks"};
    json_t *json = report_json(0);
    const json_t *dump = json_object_get(json, "dump");
    const json_t *tree = json_object_get(json, "tree");
    const json_t *processes = json_object_get(json, "processes");

    ck_assert_uint_eq(number(json, "memlog"), 1);
    ck_assert_str_eq(string(dump, "file"), "0001.exit.pftrace");
    ck_assert_str_eq(string(dump, "time"), "2026-11-21T10:00:01Z");
    ck_assert_str_eq(string(dump, "reason"), "exit");
    ck_assert_uint_eq(number(dump, "sampling_bytes"), 1);
    ck_assert(json_is_true(json_object_get(dump, "complete")));
    ck_assert_uint_eq(json_array_size(json_object_get(dump, "gaps")), 0);
    ck_assert_uint_eq(number(tree, "live_bytes"), snapshot->tree.live_bytes);
    ck_assert_uint_eq(number(tree, "left_bytes"), snapshot->left_bytes);
    ck_assert_uint_eq(number(tree, "left_blocks"), snapshot->left_blocks);
    ck_assert_str_eq(string(tree, "peak_time"), "2026-11-21T10:00:00.600Z");
    check_stacks(tree);
    ck_assert_uint_eq(json_array_size(processes), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *process = json_array_get(processes, i);
        for (size_t s = 0; s < sizeof strings / sizeof strings[0]; s++) {
            (void)string(process, strings[s]);
        }
        for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++) {
            (void)number(process, numbers[n]);
        }
        check_accounting(json_object_get(process, "accounting"), &snapshot->processes[i]);
        ck_assert(json_is_array(json_object_get(process, "command_line")));
        ck_assert(json_is_boolean(json_object_get(process, "from_startup")));
        ck_assert_uint_eq(number(process, "peak_bytes"), snapshot->processes[i].totals.peak_bytes);
        check_stacks(process);
    }
    ck_assert_int_eq(
        json_integer_value(json_object_get(json_array_get(processes, 1), "exit_code")), -3
    );
    json_decref(json);
}
END_TEST

START_TEST(a_limit_cuts_every_list) {
    json_t *json = report_json(2);
    const json_t *process = json_array_get(json_object_get(json, "processes"), 1);

    ck_assert_uint_eq(json_array_size(json_object_get(json_object_get(json, "tree"), "stacks")), 2);
    ck_assert_uint_eq(json_array_size(json_object_get(process, "stacks")), 2);
    json_decref(json);
}
END_TEST

START_TEST(equal_stacks_of_processes_are_one_in_the_tree) {
    size_t sum = 0;

    for (size_t i = 0; i < stacks.processes_count; i++) {
        sum += stacks.processes[i].count;
    }
    ck_assert_uint_lt(stacks.tree.count, sum);
    ck_assert_uint_eq(stacks.files_count, 2);
}
END_TEST

START_TEST(frames_have_names_inlines_first) {
    bool seen = false;

    for (size_t i = 0; i < stacks.places_count; i++) {
        const struct ml_place *place = &stacks.places[i];
        if (place->kind == ML_FRAME_ADDRESS && place->offset == sample_place(&places, "inlined")) {
            ck_assert_uint_eq(place->symbols_count, 3);
            ck_assert_str_eq(stacks.symbols[place->first_symbol].function, "inner_inlined");
            seen = true;
        }
    }
    ck_assert(seen);
}
END_TEST

/* Sums of a pprof profile's samples. */
struct pprof_sums {
    uint64_t sums[8];
    size_t values_count;
    size_t samples_count, locations_count, functions_count;
    char first_string[64];
    size_t strings_count;
    bool saw_default;
};

static bool sum_values(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct pprof_sums *sums = *arg;
    uint64_t value = 0;

    (void)field;
    sums->values_count = 0;
    while (stream->bytes_left > 0) {
        if (!pb_decode_varint(stream, &value)) {
            return false;
        }
        sums->sums[sums->values_count++] += value;
    }
    return true;
}

static bool take_sample(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct pprof_sums *sums = *arg;
    ml_pprof_Sample sample = ml_pprof_Sample_init_zero;

    (void)field;
    sample.value.funcs.decode = sum_values;
    sample.value.arg = sums;
    sums->samples_count++;
    return pb_decode(stream, ml_pprof_Sample_fields, &sample);
}

static bool take_string(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct pprof_sums *sums = *arg;
    size_t count = stream->bytes_left;

    (void)field;
    if (sums->strings_count++ == 0 && count < sizeof sums->first_string) {
        return pb_read(stream, (pb_byte_t *)sums->first_string, count);
    }
    return pb_read(stream, NULL, count);
}

static void pprof_sum(struct pprof_sums *sums) {
    static uint8_t bytes[1 << 20];
    FILE *file = tmpfile();
    ml_pprof_Profile message = ml_pprof_Profile_init_zero;
    pb_istream_t stream;
    gzFile unzipped = NULL;
    int count = 0;

    memset(sums, 0, sizeof *sums);
    sums->first_string[0] = 'x';
    ck_assert_int_eq(ml_pprof_write(&stacks, ML_METRIC_LIVE, NULL, file), ML_OK);
    fflush(file);
    rewind(file);
    unzipped = gzdopen(dup(fileno(file)), "r");
    count = gzread(unzipped, bytes, sizeof bytes);
    ck_assert_int_gt(count, 0);
    ck_assert_int_lt(count, (int)sizeof bytes);
    ck_assert_int_eq(gzclose(unzipped), Z_OK);
    fclose(file);
    message.sample.funcs.decode = take_sample;
    message.sample.arg = sums;
    message.string_table.funcs.decode = take_string;
    message.string_table.arg = sums;
    stream = pb_istream_from_buffer(bytes, (size_t)count);
    ck_assert(pb_decode(&stream, ml_pprof_Profile_fields, &message));
    ck_assert_int_gt(message.default_sample_type, 0);
    ck_assert_int_eq(message.period, 1);
}

START_TEST(pprof_values_add_up_to_the_report) {
    struct pprof_sums sums;
    uint64_t live_bytes = 0;

    pprof_sum(&sums);
    ck_assert_uint_eq(sums.values_count, 6);
    ck_assert_uint_eq(sums.sums[0], snapshot->tree.total_blocks);
    ck_assert_uint_eq(sums.sums[1], snapshot->tree.total_bytes);
    ck_assert_uint_eq(sums.sums[2], snapshot->left_blocks);
    ck_assert_uint_eq(sums.sums[3], snapshot->left_bytes);
    ck_assert_uint_gt(sums.sums[4], 0);
    ck_assert_uint_eq(sums.sums[4], profile.tree.pages.resident_bytes);
    ck_assert_uint_eq(sums.sums[5], profile.tree.pages.waste_bytes);
    ck_assert_int_eq(sums.first_string[0], 'x'); /* "" wrote nothing into it */
    live_bytes = snapshot->processes[2].totals.live_bytes;
    formats_select(snapshot->processes[2].pid);
    pprof_sum(&sums);
    ck_assert_uint_eq(sums.sums[3], live_bytes);
}
END_TEST

/* As a dump of before has it, or one of sampled processes. */
START_TEST(what_is_not_known_of_pages_is_nothing_in_pprof) {
    struct pprof_sums sums;

    for (size_t i = 0; i < profile.processes_count; i++) {
        profile.processes[i].cells_were_laid = false;
    }
    pprof_sum(&sums);
    ck_assert_uint_eq(sums.values_count, 6); /* as every file's */
    ck_assert_uint_eq(sums.sums[3], snapshot->left_bytes);
    ck_assert_uint_eq(sums.sums[4], 0);
    ck_assert_uint_eq(sums.sums[5], 0);
}
END_TEST

START_TEST(a_dump_does_not_differ_from_itself) {
    struct ml_diff diff;
    uint64_t live_bytes[ML_DIFF_SIDES] = {0};

    ck_assert_int_eq(ml_diff_init(&diff, &stacks, &stacks), ML_OK);
    ck_assert_uint_gt(diff.count, 10);
    for (size_t i = 0; i < diff.count; i++) {
        const struct ml_profile_totals *from = &diff.stacks[i].sides[ML_DIFF_FROM];
        ck_assert_mem_eq(from, &diff.stacks[i].sides[ML_DIFF_TO], sizeof *from);
        live_bytes[0] += from->live_bytes;
    }
    ck_assert_uint_eq(live_bytes[0], snapshot->left_bytes);
    ml_diff_fini(&diff);
}
END_TEST

/* The same program somewhere else in memory, with one cell that grew. */
START_TEST(a_diff_finds_what_grew_wherever_it_lies) {
    struct ml_snapshot_process *process = &snapshot->processes[0];
    struct ml_profile other = {0};
    struct ml_stacks other_stacks;
    struct ml_diff diff;
    FILE *file = NULL;
    uint64_t from_bytes = 0;
    uint64_t to_bytes = 0;
    size_t changed = 0;

    for (uint32_t i = 0; i < process->nodes_count; i++) {
        process->nodes[i].address +=
            process->nodes[i].frame == ML_FRAME_ADDRESS && process->nodes[i].module == 1 ? 0x5000
                                                                                         : 0;
    }
    process->modules[0].bias += 0x5000;
    process->cells[9].own.live_bytes += 777;
    file = synthetic_dump(snapshot);
    ck_assert_int_eq(ml_trace_read(file, 0, &other), ML_OK);
    fclose(file);
    ck_assert_int_eq(ml_stacks_init(&other_stacks, &other), ML_OK);
    ck_assert_int_eq(ml_stacks_symbolize(&other_stacks, symbolizer), ML_OK);
    ck_assert_int_eq(ml_diff_init(&diff, &stacks, &other_stacks), ML_OK);
    ml_report_diff_sort(&diff, ML_METRIC_LIVE);
    for (size_t i = 0; i < diff.count; i++) {
        from_bytes += diff.stacks[i].sides[ML_DIFF_FROM].live_bytes;
        to_bytes += diff.stacks[i].sides[ML_DIFF_TO].live_bytes;
        changed += diff.stacks[i].sides[ML_DIFF_FROM].live_bytes !=
                   diff.stacks[i].sides[ML_DIFF_TO].live_bytes;
    }
    ck_assert_uint_eq(changed, 1);
    ck_assert_uint_eq(to_bytes, from_bytes + 777);
    ck_assert_uint_eq(
        diff.stacks[0].sides[ML_DIFF_TO].live_bytes,
        diff.stacks[0].sides[ML_DIFF_FROM].live_bytes + 777
    );
    ml_diff_fini(&diff);
    ml_stacks_fini(&other_stacks);
    ml_profile_fini(&other);
}
END_TEST

static uint64_t collapsed_sum(enum ml_metric metric) {
    FILE *file = tmpfile();
    char line[16384];
    uint64_t sum = 0;

    ck_assert_int_eq(ml_collapsed_write(&stacks, metric, file), ML_OK);
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        const char *space = strrchr(line, ' ');
        ck_assert_ptr_nonnull(space);
        ck_assert_ptr_null(strstr(line, ";;"));
        sum += strtoull(space + 1, NULL, 10);
    }
    fclose(file);
    return sum;
}

START_TEST(collapsed_lines_add_up_to_the_report) {
    const struct ml_snapshot_process *last = &snapshot->processes[2];

    ck_assert_uint_eq(collapsed_sum(ML_METRIC_LIVE), snapshot->left_bytes);
    ck_assert_uint_eq(collapsed_sum(ML_METRIC_PEAK), snapshot->tree.peak_bytes);
    ck_assert_uint_eq(collapsed_sum(ML_METRIC_TOTAL), snapshot->tree.total_bytes);
    ck_assert_uint_gt(profile.tree.pages.waste_bytes, 0);
    ck_assert_uint_eq(collapsed_sum(ML_METRIC_WASTE), profile.tree.pages.waste_bytes);
    ck_assert_uint_eq(collapsed_sum(ML_METRIC_RESIDENT), profile.tree.pages.resident_bytes);
    ck_assert_uint_eq(collapsed_sum(ML_METRIC_ALONE), profile.tree.pages.alone_bytes);
    formats_select(last->pid);
    ck_assert_uint_eq(collapsed_sum(ML_METRIC_PEAK), last->totals.peak_bytes);
}
END_TEST

START_TEST(the_text_report_fits_its_width_and_passes_no_controls) {
    const struct ml_report report = {
        .profile = &profile, .stacks = &stacks, .file_path = "x", .limit = 50};
    FILE *file = tmpfile();
    char line[4096];
    bool saw_function = false;

    profile.processes[0].name.bytes = "evil\033[2J\nname";
    profile.sandbox_missing.bytes =
        "user namespace (Operation not permitted), empty root (Invalid argument)";
    profile.service_trouble.bytes =
        "its memory of 2 MiB ran short, and from then on it kept no stacks of small blocks";
    for (unsigned width = 60; width <= 200; width += 20) {
        const struct ml_report_style style = {.width = width};
        if (width >= 80) {
            ml_report_text(&report, &style, file);
        }
        ml_screen(&report, &style, width % 40 == 0, file);
        rewind(file);
        while (fgets(line, sizeof line, file)) {
            size_t columns = 0;
            for (const char *at = line; *at && *at != '\n'; at++) {
                ck_assert((unsigned char)*at >= 0x20);
                columns += ((unsigned char)*at & 0xc0) != 0x80;
            }
            /* The list of files without names shows whole paths. */
            ck_assert_msg(columns <= width || line[2] == '/', "%s", line);
            saw_function = saw_function || strstr(line, "inner_inlined");
        }
        rewind(file);
    }
    ck_assert(saw_function);
    fclose(file);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        the_json_report_has_its_form_and_its_sums_are_true,
        a_limit_cuts_every_list,
        equal_stacks_of_processes_are_one_in_the_tree,
        frames_have_names_inlines_first,
        pprof_values_add_up_to_the_report,
        what_is_not_known_of_pages_is_nothing_in_pprof,
        a_dump_does_not_differ_from_itself,
        a_diff_finds_what_grew_wherever_it_lies,
        collapsed_lines_add_up_to_the_report,
        the_text_report_fits_its_width_and_passes_no_controls,
    };

    return formats_run("dump/formats", tests, sizeof tests / sizeof *tests);
}

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "service/dump/writer.h"
#include "service/snapshot/snapshot.h"
#include "tests/dump/snapshot_eq.h"
#include "tests/dump/synthetic.h"
#include "tests/suite.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/model/trace_reader.h"

static struct ml_arena arena;

static void setup(void) {
    arena = (struct ml_arena){0};
}

static void teardown(void) {
    ml_arena_fini(&arena);
}

static void round_trip(const struct ml_snapshot *snapshot) {
    struct ml_profile profile = {0};
    FILE *file = synthetic_dump(snapshot);

    ck_assert_int_eq(ml_trace_read(file, 0, &profile), ML_OK);
    snapshot_eq(snapshot, &profile);
    ml_profile_fini(&profile);
    fclose(file);
}

START_TEST(what_is_written_is_read_back_to_the_byte) {
    const struct synthetic_options options = {
        .processes_count = 5, .nodes_count = 700, .cells_count = 900};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    struct memlog_service_gap gap = {
        .id = 2,
        .from = {.ticks = 1, .monotonic_ns = 2, .realtime_ns = 3, .boottime_ns = 4},
        .to = snapshot->order.now,
        .reason = synthetic_text(&arena, "the service died"),
    };

    snapshot->order.gaps = (struct memlog_service_gap_array){&gap, 1};
    snapshot->complete = false;
    snapshot->sandbox_missing = synthetic_text(&arena, "user namespaces");
    snapshot->uncovered = synthetic_text(&arena, "made-up: an allocator of its own");
    snapshot->processes[0].unseen = synthetic_text(&arena, "an allocator of its own");
    snapshot->service_trouble = synthetic_text(&arena, "ran short of memory");
    round_trip(snapshot);
}
END_TEST

START_TEST(heaps_and_types_are_read_back) {
    const struct synthetic_options options = {
        .processes_count = 3, .nodes_count = 700, .cells_count = 900, .has_heaps = true};
    round_trip(synthetic_snapshot(&arena, &options));
}
END_TEST

START_TEST(an_empty_run_is_a_whole_file) {
    const struct synthetic_options none = {0};
    const struct synthetic_options idle = {.processes_count = 2};

    round_trip(synthetic_snapshot(&arena, &none));
    round_trip(synthetic_snapshot(&arena, &idle));
}
END_TEST

/* Bytes of the file; it is read back as it was written. */
static uint64_t
round_trip_bytes(struct ml_snapshot *snapshot, enum memlog_service_dump_content content) {
    snapshot->order.content = content;
    round_trip(snapshot);
    FILE *file = synthetic_dump(snapshot);
    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    const long bytes = ftell(file);
    fclose(file);
    return (uint64_t)bytes;
}

START_TEST(what_is_for_the_analyzer_alone_is_as_exact_and_smaller) {
    const struct synthetic_options options = {
        .processes_count = 3, .nodes_count = 700, .cells_count = 900};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    const uint64_t everything = round_trip_bytes(snapshot, MEMLOG_SERVICE_DUMP_CONTENT_EVERYTHING);

    /* A third of it and more is packets of Perfetto's. */
    ck_assert_uint_lt(
        round_trip_bytes(snapshot, MEMLOG_SERVICE_DUMP_CONTENT_SERIES), everything / 3 * 2
    );
    ck_assert_uint_lt(
        round_trip_bytes(snapshot, MEMLOG_SERVICE_DUMP_CONTENT_PROFILE), everything / 3 * 2
    );
}
END_TEST

START_TEST(numbers_at_their_limits_come_back) {
    const struct synthetic_options options = {
        .processes_count = 1, .nodes_count = 20, .cells_count = 20};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    struct ml_snapshot_process *process = &snapshot->processes[0];

    memset(&process->totals, 0xff, sizeof process->totals);
    memset(&process->start, 0xff, sizeof process->start);
    process->exit_code = INT32_MIN;
    process->modules[0].bias = INT64_MIN;
    for (uint32_t i = 0; i < process->cells_count; i++) {
        memset(&process->cells[i].own, 0xff, sizeof process->cells[i].own);
        process->cells[i].heap = UINT16_MAX;
        process->cells[i].type = UINT16_MAX;
        process->cells[i].size_class = UINT8_MAX;
        process->cells[i].temporary_blocks = UINT64_MAX;
        process->cells[i].resident_private_bytes = UINT64_MAX;
        process->cells[i].resident_shared_bytes = UINT64_MAX;
        process->cells[i].alone_bytes = UINT64_MAX;
        process->cells[i].waste_bytes = UINT64_MAX;
    }
    for (uint32_t i = 0; i < process->nodes_count; i++) {
        process->nodes[i].address = i % 2 ? UINT64_MAX : 0;
    }
    round_trip(snapshot);
}
END_TEST

START_TEST(large_tables_are_split_into_small_packets) {
    const struct synthetic_options options = {
        .processes_count = 1, .nodes_count = 60000, .cells_count = 30000};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    struct ml_snapshot_process *process = &snapshot->processes[0];
    FILE *file = NULL;

    process->command_line_count = 500;
    process->command_line = ml_arena_take(&arena, 500 * sizeof process->command_line[0]);
    for (uint32_t i = 0; i < 500; i++) {
        char *argument = ml_arena_take(&arena, 4001);
        memset(argument, 'a', 4000);
        process->command_line[i] = (struct ml_string){.data = argument, .count_bytes = 4000};
    }
    round_trip(snapshot);

    file = synthetic_dump(snapshot);
    for (int head = getc(file); head != EOF; head = getc(file)) {
        uint64_t length = 0;
        unsigned shift = 0;
        int byte = 0x80;
        ck_assert_int_eq(head, 0x0a);
        for (; byte & 0x80; shift += 7) {
            byte = getc(file);
            length |= (uint64_t)((unsigned)byte & 0x7f) << shift;
        }
        ck_assert_uint_le(length, ML_DUMP_PACKET_MAX_BYTES + 64);
        ck_assert_int_eq(fseek(file, (long)length, SEEK_CUR), 0);
    }
    fclose(file);
}
END_TEST

START_TEST(a_long_series_comes_back_in_one_piece) {
    const struct synthetic_options options = {
        .processes_count = 2, .nodes_count = 20, .cells_count = 20};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    struct ml_snapshot_series *series = &snapshot->processes[0].series[1];

    series->points_count = 10000;
    series->points = ml_arena_take(&arena, 10000 * sizeof series->points[0]);
    for (uint32_t i = 0; i < 10000; i++) {
        series->points[i] = (struct ml_snapshot_point
        ){.end_ms = 1001 + i, .last_bytes = i % 7 * 1000000, .most_bytes = i % 7 * 1000001};
    }
    series->points[9999].most_bytes = UINT64_MAX;
    round_trip(snapshot);
}
END_TEST

START_TEST(a_series_that_makes_no_sense_is_left_out_and_said) {
    const struct synthetic_options options = {
        .processes_count = 1, .nodes_count = 20, .cells_count = 20};
    for (int what = 0; what < 4; what++) {
        struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
        struct ml_snapshot_series *series = &snapshot->processes[0].series[1];
        struct ml_profile profile = {0};
        FILE *file = NULL;

        series->points[1].end_ms = what == 0 ? 5 : series->points[1].end_ms;
        series->points[1].least_bytes = what == 1 ? UINT64_MAX : 0;
        series->points[1].most_bytes = what == 2 ? 0 : UINT64_MAX;
        series->node = what == 3 ? 7777 : series->node; /* it is kept: whose it is is not known */
        file = synthetic_dump(snapshot);
        ck_assert_int_eq(ml_trace_read(file, 0, &profile), ML_OK);
        ck_assert(profile.damaged);
        ck_assert_uint_eq(profile.processes[0].series_count, what == 3 ? 2 : 1);
        ck_assert_uint_eq(profile.processes[0].cells_count, 20);
        ml_profile_fini(&profile);
        fclose(file);
    }
}
END_TEST

/* What a process has after a day in which everything changed all the time, and more. */
static void fill_day(struct ml_snapshot_series *series, uint32_t count) {
    uint64_t end_ms = series->from_ms;
    series->points_count = count;
    series->points = ml_arena_take(&arena, count * sizeof series->points[0]);
    for (uint32_t i = 0; i < count; i++) {
        end_ms += UINT64_C(250) << (2 * ((count - i) * 6 / count));
        const uint64_t last = 100000000 + i * UINT64_C(7919) % 10000019;
        series->points[i] = (struct ml_snapshot_point
        ){.end_ms = end_ms,
          .least_bytes = last - i * UINT64_C(104729) % 1000003,
          .most_bytes = last + i * UINT64_C(130003) % 1000003,
          .last_bytes = last,
          .total_bytes = series->is_stack ? 0 : i * UINT64_C(1000000007),
          .total_blocks = series->is_stack ? 0 : i * UINT64_C(1000003)};
    }
}

START_TEST(a_day_of_series_adds_less_than_300_kilobytes_a_process) {
    const struct synthetic_options options = {
        .processes_count = 1, .nodes_count = 40, .cells_count = 40};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    struct ml_snapshot_process *process = &snapshot->processes[0];
    uint64_t written[2] = {0};

    for (int turn = 0; turn < 2; turn++) {
        FILE *file = synthetic_dump(snapshot);
        ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
        written[turn] = (uint64_t)ftell(file);
        fclose(file);
        process->series_count = 21;
        process->series = ml_arena_take(&arena, 21 * sizeof process->series[0]);
        for (uint32_t i = 0; i < 21; i++) {
            process->series[i] = (struct ml_snapshot_series
            ){.node = i > 0 ? process->nodes[i].id : 0, .is_stack = i > 0, .from_ms = 1000};
            fill_day(&process->series[i], i == 0 ? 2800 : 750);
        }
    }
    round_trip(snapshot);
    ck_assert_uint_gt(written[1], written[0] + 100000);
    ck_assert_uint_lt(written[1], written[0] + 300000);
}
END_TEST

START_TEST(what_series_need_is_kept_of_the_tables) {
    const struct synthetic_options options = {
        .processes_count = 3, .nodes_count = 400, .cells_count = 20};
    struct ml_profile profile = {0};
    FILE *file = synthetic_dump(synthetic_snapshot(&arena, &options));

    ck_assert_int_eq(ml_trace_read(file, 0, &profile), ML_OK);
    fclose(file);
    ck_assert(ml_profile_keep_series(&profile));
    for (size_t i = 0; i < profile.processes_count; i++) {
        const struct ml_profile_process *process = &profile.processes[i];
        ck_assert_uint_eq(process->cells_count, 0);
        ck_assert_uint_lt(process->nodes_count, 100);
        for (size_t s = 1; s < process->series_count; s++) {
            uint32_t id = profile.series[process->series_first + s].node;
            while (id != 0) {
                const size_t at = ml_profile_node_at(process, id);
                ck_assert_uint_ne(at, SIZE_MAX);
                id = process->nodes[at].parent;
            }
        }
    }
    ck_assert(ml_profile_select(&profile, 4002));
    ck_assert_uint_eq(profile.series_count, 2);
    ck_assert_uint_eq(profile.series[0].process_id, profile.processes[0].id);
    ck_assert_uint_eq(profile.processes[0].series_first, 0);
    ml_profile_fini(&profile);
}
END_TEST

/* The dump's bytes, in the arena. */
static uint8_t *dump_bytes(const struct ml_snapshot *snapshot, size_t *out_count) {
    FILE *file = synthetic_dump(snapshot);
    uint8_t *bytes = NULL;
    long count = 0;

    ck_assert_int_eq(fseek(file, 0, SEEK_END), 0);
    count = ftell(file);
    bytes = ml_arena_take(&arena, (size_t)count + 1);
    rewind(file);
    ck_assert_uint_eq(fread(bytes, 1, (size_t)count, file), (size_t)count);
    fclose(file);
    *out_count = (size_t)count;
    return bytes;
}

/* fmemopen refuses 0 bytes. */
static enum ml_status read_bytes(uint8_t *bytes, size_t count, struct ml_profile *out_profile) {
    FILE *file = count > 0 ? fmemopen(bytes, count, "r") : fopen("/dev/null", "r");
    enum ml_status status = ml_trace_read(file, 0, out_profile);

    fclose(file);
    return status;
}

START_TEST(a_file_cut_anywhere_opens_with_what_it_has) {
    const struct synthetic_options options = {
        .processes_count = 3, .nodes_count = 40, .cells_count = 50};
    size_t count = 0;
    uint8_t *bytes = dump_bytes(synthetic_snapshot(&arena, &options), &count);
    size_t cells_before = 0;

    for (size_t cut = 0; cut < count; cut++) {
        struct ml_profile profile = {0};
        enum ml_status status = read_bytes(bytes, cut, &profile);
        size_t cells = 0;

        ck_assert(status == ML_OK || (status == ML_ENV_MISSING && cut < 4));
        if (status == ML_OK) {
            ck_assert(profile.truncated && !profile.damaged);
            ck_assert(!ml_profile_is_complete(&profile));
        }
        for (size_t i = 0; i < profile.processes_count; i++) {
            cells += profile.processes[i].cells_count;
            ck_assert(profile.processes[i].partial == (profile.processes[i].cells_count != 50));
        }
        ck_assert_uint_ge(cells, cells_before);
        cells_before = cells;
        ml_profile_fini(&profile);
    }
    ck_assert_uint_eq(cells_before, 150);
}
END_TEST

START_TEST(a_flipped_bit_never_becomes_a_figure) {
    const struct synthetic_options options = {
        .processes_count = 1, .nodes_count = 20, .cells_count = 20};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    size_t count = 0;
    uint8_t *bytes = dump_bytes(snapshot, &count);

    for (size_t bit = 0; bit < count * 8; bit++) {
        struct ml_profile profile = {0};
        enum ml_status status = ML_OK;

        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        status = read_bytes(bytes, count, &profile);
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        if (status != ML_OK) {
            ck_assert(!profile.has_run);
        } else if (!profile.damaged && !profile.truncated) {
            snapshot_eq(snapshot, &profile); /* it hit a standard packet */
        } else {
            /* What is there of a process's cells is true. */
            for (size_t i = 0; i < profile.processes_count; i++) {
                const struct ml_profile_process *process = &profile.processes[i];
                if (process->cells_count > 0) {
                    ck_assert_uint_eq(process->cells_count, 20);
                    totals_eq(
                        &snapshot->processes[process->id - 1].cells[7].own, &process->cells[7].own
                    );
                }
            }
        }
        ml_profile_fini(&profile);
    }
}
END_TEST

START_TEST(what_is_no_dump_is_an_error) {
    struct ml_profile profile = {0};
    uint8_t text[] = "hello, world";
    uint8_t other_trace[] = {0x0a, 2, 0x50, 1};
    uint8_t endless[] = {0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};

    ck_assert_int_eq(read_bytes(text, sizeof text - 1, &profile), ML_PEER_FORM);
    ml_profile_fini(&profile);
    ck_assert_int_eq(read_bytes(other_trace, sizeof other_trace, &profile), ML_ENV_MISSING);
    ml_profile_fini(&profile);
    ck_assert_int_eq(read_bytes(endless, sizeof endless, &profile), ML_PEER_FORM);
    ml_profile_fini(&profile);
    ck_assert_int_eq(read_bytes(text, 0, &profile), ML_ENV_MISSING);
    ml_profile_fini(&profile);
}
END_TEST

static enum ml_status refuse_after(void *context, const uint8_t *bytes, size_t count_bytes) {
    size_t *left = context;

    (void)bytes;
    if (count_bytes > *left) {
        return ML_ENV_SYSTEM;
    }
    *left -= count_bytes;
    return ML_OK;
}

START_TEST(a_full_disk_is_reported) {
    const struct synthetic_options options = {
        .processes_count = 2, .nodes_count = 20, .cells_count = 20};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    size_t left = 2000;
    const struct ml_dump_sink sink = {.write = refuse_after, .context = &left};
    uint64_t written = 0;

    ck_assert_int_eq(ml_dump_write(snapshot, &sink, &written), ML_ENV_SYSTEM);
}
END_TEST

START_TEST(nodes_out_of_order_are_refused) {
    const struct synthetic_options options = {
        .processes_count = 1, .nodes_count = 20, .cells_count = 20};
    struct ml_snapshot *snapshot = synthetic_snapshot(&arena, &options);
    size_t left = SIZE_MAX;
    const struct ml_dump_sink sink = {.write = refuse_after, .context = &left};
    uint64_t written = 0;

    snapshot->processes[0].nodes[5].id = 2;
    ck_assert_int_eq(ml_dump_write(snapshot, &sink, &written), ML_BUG_CONTRACT);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, what_is_written_is_read_back_to_the_byte);
    tcase_add_test(tests, heaps_and_types_are_read_back);
    tcase_add_test(tests, an_empty_run_is_a_whole_file);
    tcase_add_test(tests, what_is_for_the_analyzer_alone_is_as_exact_and_smaller);
    tcase_add_test(tests, numbers_at_their_limits_come_back);
    tcase_add_test(tests, a_long_series_comes_back_in_one_piece);
    tcase_add_test(tests, a_series_that_makes_no_sense_is_left_out_and_said);
    tcase_add_test(tests, a_day_of_series_adds_less_than_300_kilobytes_a_process);
    tcase_add_test(tests, what_series_need_is_kept_of_the_tables);
    tcase_add_test(tests, large_tables_are_split_into_small_packets);
    tcase_add_test(tests, a_file_cut_anywhere_opens_with_what_it_has);
    tcase_add_test(tests, a_flipped_bit_never_becomes_a_figure);
    tcase_add_test(tests, what_is_no_dump_is_an_error);
    tcase_add_test(tests, a_full_disk_is_reported);
    tcase_add_test(tests, nodes_out_of_order_are_refused);
    return run_suite("dump/round_trip", tests);
}

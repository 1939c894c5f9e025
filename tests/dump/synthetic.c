#include "tests/dump/synthetic.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "service/dump/writer.h"

enum { MAIN_BASE = 0x400000, OWN_HEAP = 3, OWN_TYPE = 7, WORDS = 5000 };

/* xorshift64: the same numbers everywhere. */
static uint64_t random_next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void *take(struct ml_arena *arena, size_t count_bytes) {
    void *piece = ml_arena_take(arena, count_bytes);

    if (!piece) {
        abort();
    }
    return piece;
}

struct ml_string synthetic_text(struct ml_arena *arena, const char *text) {
    size_t count = strlen(text);
    char *bytes = take(arena, count + 1);

    memcpy(bytes, text, count);
    return (struct ml_string){.data = bytes, .count_bytes = (uint32_t)count};
}

static struct memlog_service_moment moment_at(uint64_t ns) {
    return (struct memlog_service_moment){
        .ticks = 5000 + 3 * ns,
        .monotonic_ns = 1000000000ULL + ns,
        .realtime_ns = 1795255200000000000ULL + ns, /* 2026-11-21T10:00:00Z */
        .boottime_ns = 2000000000ULL + ns,
    };
}

static struct ml_timestamp timestamp_at(uint64_t ns) {
    const struct memlog_service_moment moment = moment_at(ns);
    return ml_timestamp_of(&moment);
}

static void fill_modules(
    struct ml_arena *arena,
    const struct synthetic_options *options,
    struct ml_snapshot_process *process
) {
    static const uint8_t made_up_id[20] = {0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4, 5, 6, 7, 8, 9};

    process->modules_count = 2;
    process->modules = take(arena, 2 * sizeof process->modules[0]);
    process->modules[0] = (struct ml_snapshot_module){
        .id = 1,
        .start = MAIN_BASE * (1 + process->id),
        .end = MAIN_BASE * (1 + process->id) + 0x200000,
        .bias = (int64_t)MAIN_BASE * (1 + process->id),
        .build_id =
            {.data = (const char *)(options->build_id ? options->build_id : made_up_id),
             .count_bytes =
                 (uint32_t)(options->build_id ? options->build_id_bytes : sizeof made_up_id)},
        .path = synthetic_text(arena, ""),
        .code_address = 0x2100,
        .code_offset = 0x1100,
    };
    process->modules[1] = (struct ml_snapshot_module){
        .id = 2,
        .start = 0x7f0000000000,
        .end = 0x7f0000200000,
        .bias = 0x7f0000000000,
        .path = synthetic_text(arena, "/usr/lib/libmade-up.so.1"),
    };
    process->exe_path =
        synthetic_text(arena, options->module_path ? options->module_path : "/nonexistent/made-up");
}

static void fill_nodes(
    struct ml_arena *arena,
    const struct synthetic_options *options,
    struct ml_snapshot_process *process,
    uint64_t *random
) {
    process->nodes_count = options->nodes_count;
    process->nodes = take(arena, (size_t)options->nodes_count * sizeof process->nodes[0] + 1);
    for (uint32_t i = 0; i < options->nodes_count; i++) {
        struct ml_snapshot_node *node = &process->nodes[i];
        uint64_t offset = 0x1000 + random_next(random) % 0x1000 * 16;

        node->id = i + 1 + i / 100; /* with holes */
        node->parent = i == 0 ? 0 : process->nodes[random_next(random) % i].id;
        if (i > 4 && i % 50 == 7) {
            node->parent = 0;
            node->frame = ML_FRAME_THREAD;
            node->string = i % 3;
            continue;
        }
        if (i > 4 && i % 50 == 9) {
            node->frame = ML_FRAME_CUT;
            continue;
        }
        node->frame = ML_FRAME_ADDRESS;
        node->module = 1 + (uint32_t)(random_next(random) % 8 == 0);
        if (options->offsets && node->module == 1) {
            offset = options->offsets[random_next(random) % options->offsets_count];
        }
        node->address = (uint64_t)process->modules[node->module - 1].bias + offset;
    }
}

static void add_totals(struct ml_totals *sum, const struct ml_totals *one) {
    sum->live_bytes += one->live_bytes;
    sum->live_blocks += one->live_blocks;
    sum->peak_bytes += one->peak_bytes;
    sum->peak_blocks += one->peak_blocks;
    sum->total_bytes += one->total_bytes;
    sum->total_blocks += one->total_blocks;
}

/* More than one packet of them takes. */
static void
fill_words(struct ml_arena *arena, struct ml_snapshot_process *process, uint64_t *random) {
    process->words_facts = (struct ml_words_facts
    ){.were_read = true, .are_cut = process->id % 2 == 0, .read_bytes = 77};
    process->words_count = WORDS;
    process->words = take(arena, WORDS * sizeof process->words[0]);
    for (uint32_t i = 0; i < WORDS; i++) {
        process->words[i] = (struct ml_snapshot_word
        ){.node = i % 9 > 0 && process->nodes_count > 0
                      ? process->nodes[i % process->nodes_count].id
                      : 0,
          .word = random_next(random),
          .live_bytes = random_next(random),
          .live_blocks = i,
          .live_bytes_error = random_next(random) >> 20,
          .live_blocks_error = i * 3};
    }
}

static void fill_cells(
    struct ml_arena *arena,
    const struct synthetic_options *options,
    struct ml_snapshot_process *process,
    struct ml_snapshot *snapshot,
    uint64_t *random
) {
    if (options->has_heaps) {
        process->heaps = take(arena, sizeof process->heaps[0]);
        process->heaps[0] =
            (struct ml_snapshot_heap){.id = OWN_HEAP, .string = 1, .unknown_frees = 11};
        process->heaps_count = 1;
        process->types = take(arena, sizeof process->types[0]);
        process->types[0] = (struct ml_snapshot_type){.id = OWN_TYPE, .string = 1};
        process->types_count = 1;
        fill_words(arena, process, random);
    }
    process->cells_count = options->cells_count;
    process->cells_were_laid = true;
    process->cells = take(arena, (size_t)options->cells_count * sizeof process->cells[0] + 1);
    for (uint32_t i = 0; i < options->cells_count; i++) {
        struct ml_snapshot_cell *cell = &process->cells[i];
        uint64_t size = random_next(random) % 2000;
        uint64_t total = 1 + random_next(random) % 1000;
        uint64_t live = random_next(random) % (total + 1);
        uint64_t peak = live + random_next(random) % (total - live + 1);

        if (i % 37 != 5 && process->nodes_count > 0) {
            cell->node = process->nodes[random_next(random) % process->nodes_count].id;
        }
        const bool is_apart = random_next(random) % 16 == 0 && options->has_heaps;
        cell->size_class = (uint8_t)(random_next(random) % 12);
        cell->own = (struct ml_totals){
            .live_bytes = live * size,
            .live_blocks = live,
            .peak_bytes = peak * size,
            .peak_blocks = peak,
            .total_bytes = total * size,
            .total_blocks = total,
        };
        cell->tree_peak_blocks = peak / 2;
        cell->tree_peak_bytes = peak / 2 * size;
        cell->temporary_blocks = random_next(random) % total;
        if (is_apart) {
            cell->heap = OWN_HEAP;
            cell->type = i % 2 == 0 ? OWN_TYPE : 0;
            cell->tree_peak_bytes = cell->tree_peak_blocks = 0;
            add_totals(&process->heaps[0].own, &cell->own);
            continue; /* it is in none of the process's sums */
        }
        cell->resident_private_bytes = cell->own.live_bytes / 2;
        cell->resident_shared_bytes = cell->own.live_bytes / 8;
        cell->waste_bytes = live * 3;
        cell->alone_bytes = live * 2;
        add_totals(&process->totals, &cell->own);
        snapshot->tree.peak_bytes += cell->tree_peak_bytes;
        snapshot->tree.peak_blocks += cell->tree_peak_blocks;
    }
}

/* A second in two slots; what it ends with is `last`'s. Few: tests cut dumps at each byte. */
static void fill_points(
    struct ml_arena *arena,
    struct ml_snapshot_series *series,
    const struct ml_totals *last,
    uint64_t *random
) {
    enum { POINTS = 2 };

    series->from_ms = 1000;
    series->points_count = POINTS;
    series->points = take(arena, POINTS * sizeof series->points[0]);
    for (uint32_t i = 0; i < POINTS; i++) {
        struct ml_snapshot_point *point = &series->points[i];
        const uint64_t parts = i + 1;

        point->end_ms = 1000 + 500 * parts;
        point->last_bytes = last->live_bytes / POINTS * parts;
        point->most_bytes = point->last_bytes + random_next(random) % 1000;
        point->least_bytes = point->last_bytes / 2;
        if (!series->is_stack) {
            point->total_bytes = last->total_bytes / POINTS * parts;
            point->total_blocks = last->total_blocks / POINTS * parts;
        }
    }
}

static void
fill_series(struct ml_arena *arena, struct ml_snapshot_process *process, uint64_t *random) {
    const uint32_t stacks = process->nodes_count < 1 ? 0 : 1;

    process->series_count = 1 + stacks;
    process->series = take(arena, process->series_count * sizeof process->series[0]);
    fill_points(arena, &process->series[0], &process->totals, random);
    for (uint32_t i = 1; i <= stacks; i++) {
        const struct ml_totals share = {.live_bytes = process->totals.live_bytes / (i + 1)};
        process->series[i].is_stack = true;
        process->series[i].node = process->nodes[process->nodes_count - i].id;
        fill_points(arena, &process->series[i], &share, random);
    }
}

/* What it takes part with in the tree's figures. */
static void share_tree(struct ml_snapshot *snapshot, struct ml_snapshot_process *process) {
    process->left_tree = process->state != 0;
    if (process->left_tree) {
        snapshot->left_bytes += process->totals.live_bytes;
        snapshot->left_blocks += process->totals.live_blocks;
    }
    for (uint32_t i = 0; i < process->cells_count; i++) {
        process->held_at_tree_peak_bytes += process->cells[i].tree_peak_bytes;
        process->held_at_tree_peak_blocks += process->cells[i].tree_peak_blocks;
    }
}

static void fill_sampling(struct ml_snapshot_process *process, uint32_t index) {
    process->overhead = (struct memlog_service_overhead
    ){.promised_ppm = 10000,
      .recording_ppm = 2000 + index,
      .passing_ppm = 100,
      .measured = true,
      .shortest_bytes = 4096};
    ml_sampling_log_begin(&process->sampling, timestamp_at(index * 1000000ULL).ticks, 1);
    for (uint32_t i = 0; i < index * 40; i++) {
        /* Of many changes some are left out; the longest interval stays 1. */
        ml_sampling_log_note(
            &process->sampling, timestamp_at(index * 1000000ULL + i + 1).ticks, i % 2 == 0 ? 512 : 1
        );
    }
    process->sampling.longest_bytes = 1;
}

static void fill_process(
    struct ml_arena *arena,
    const struct synthetic_options *options,
    struct ml_snapshot *snapshot,
    uint32_t index,
    uint64_t *random
) {
    static const char *const names[] = {"made-up", "worker", "gpu-process"};
    struct ml_snapshot_process *process = &snapshot->processes[index];

    process->id = index + 1;
    process->parent_id = index > 0 ? 1 : 0;
    process->pid = index == 1 ? 4000 : 4000 + index; /* the second is the first, after an exec */
    process->parent_pid = index > 1 ? 4000 : 1;
    process->role = index % 5;
    process->state = index == 0 && snapshot->processes_count > 1 ? 3 : index % 3;
    process->exit_code = index == 1 ? -3 : 0;
    process->signal = process->state == 2 ? 9 : 0;
    process->from_startup = true;
    process->forked = index > 1;
    process->complete = true;
    process->trouble = synthetic_text(arena, "");
    process->name = synthetic_text(arena, names[index % 3]);
    process->command_line_count = 2;
    process->command_line = take(arena, 2 * sizeof process->command_line[0]);
    process->command_line[0] = synthetic_text(arena, "./made-up");
    process->command_line[1] = synthetic_text(arena, "--n\xc3\xa4me=\xff value");
    process->footprint_bytes = 40000000 + index;
    process->resident_bytes = 30000000 + index;
    process->coverage_was_read = index != 2; /* one is younger than any reading */
    process->coverage_heap_bytes = index != 2 ? 25000000 + index : 0;
    process->coverage_private_bytes = index != 2 ? 39000000 + index : 0;
    process->coverage_mapped_bytes = index != 2 ? 3000000 + index : 0;
    process->coverage_files_bytes = index != 2 ? 700000 + index : 0;
    process->coverage_shared_bytes = index != 2 ? 50000 + index : 0;
    process->hooked_functions = 13 * index;
    process->allocator = synthetic_text(arena, index == 1 ? "jemalloc" : "glibc");
    process->unseen = synthetic_text(arena, "");
    fill_sampling(process, index);
    process->start = timestamp_at(index * 1000000ULL);
    process->end = process->state == 0 ? (struct ml_timestamp){0} : timestamp_at(900000000 + index);
    process->peak_ticks = timestamp_at(500000000 + index).ticks;
    process->inherited_bytes = index > 1 ? 12345 : 0;
    process->inherited_blocks = index > 1 ? 12 : 0;
    process->events = 100000 + index;
    process->accounting = (struct ml_accounting){
        .produced = 100000 + index,
        .received = 100000 + index,
        .balanced = true,
        .waits = 3 + index,
        .waited_ns = 45000000 + index,
        .longest_wait_ns = 12000000 + index,
        .stream_bytes = 7654321 + index,
    };
    process->unknown_frees = index;
    process->late_events = 2 * index;
    process->folded_processes = index % 3 == 2 ? 10 * index : 0;
    process->folded_failed = process->folded_processes / 2;
    process->strings_count = 3;
    process->strings = take(arena, 3 * sizeof process->strings[0]);
    process->strings[0] = synthetic_text(arena, "main");
    process->strings[1] = synthetic_text(arena, "worker;1");
    process->strings[2] = synthetic_text(arena, "");
    fill_modules(arena, options, process);
    fill_nodes(arena, options, process, random);
    fill_cells(arena, options, process, snapshot, random);
    /* Others' figures stay as they were before there were series. */
    uint64_t own_random = 1 + index;
    fill_series(arena, process, &own_random);
    share_tree(snapshot, process);
    add_totals(
        &snapshot->tree,
        &(struct ml_totals){
            .live_bytes = process->left_tree ? 0 : process->totals.live_bytes,
            .live_blocks = process->left_tree ? 0 : process->totals.live_blocks,
            .total_bytes = process->totals.total_bytes,
            .total_blocks = process->totals.total_blocks,
        }
    );
}

struct ml_snapshot *
synthetic_snapshot(struct ml_arena *arena, const struct synthetic_options *options) {
    struct ml_snapshot *snapshot = take(arena, sizeof *snapshot);
    uint64_t random = 0x123456789abcdef;

    snapshot->run_start = timestamp_at(0);
    snapshot->order.now = moment_at(1000000000);
    snapshot->order.reason = 0;
    snapshot->order.program = synthetic_text(arena, "./made-up");
    snapshot->complete = true;
    snapshot->order.lost_forks = 3;
    snapshot->tree_peak_ticks = timestamp_at(600000000).ticks;
    snapshot->sandbox_missing = synthetic_text(arena, "");
    snapshot->uncovered = synthetic_text(arena, "");
    snapshot->service_trouble = synthetic_text(arena, "");
    snapshot->processes_count = options->processes_count;
    snapshot->processes =
        take(arena, (size_t)options->processes_count * sizeof snapshot->processes[0] + 1);
    for (uint32_t i = 0; i < options->processes_count; i++) {
        fill_process(arena, options, snapshot, i, &random);
    }
    uint64_t own_random = 77;
    fill_points(arena, &snapshot->series, &snapshot->tree, &own_random);
    struct memlog_service_not_profiled *other = take(arena, sizeof *other);
    *other = (struct memlog_service_not_profiled){
        .pid = 4711,
        .parent_pid = 4000,
        .reason = synthetic_text(arena, "statically linked"),
        .path = synthetic_text(arena, "/usr/bin/static-thing"),
    };
    snapshot->order.not_profiled = (struct memlog_service_not_profiled_array){other, 1};
    return snapshot;
}

FILE *synthetic_dump(const struct ml_snapshot *snapshot) {
    FILE *file = tmpfile();
    int fd = file ? fileno(file) : -1;
    struct ml_dump_sink sink = ml_dump_sink_over(&fd);
    uint64_t written = 0;

    if (!file || ml_dump_write(snapshot, &sink, &written) != ML_OK || fseek(file, 0, SEEK_SET)) {
        abort();
    }
    return file;
}

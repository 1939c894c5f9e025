/* The same run in two sessions, one of which folds. Every sum must be the same, stack by stack. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/fold.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/service/session/check.h"
#include "tests/service/stream_builder.h"
#include "tests/service/describe.h"
#include "tests/suite.h"

enum {
    PROGRAMS = 4,
    PROCESSES = 120,
    AT_ONCE = 6,
    MODULES = 3,
    NODES = 24,
    BLOCKS = 64,
    ROWS_MAX = 4096,
    KEY_BYTES = 200,
    STEPS = FEWER_IF_SANITIZED(60000)
};

static const char *const names[PROGRAMS] = {"cc1", "as", "sh", "sampled"};
static const char *const paths[PROGRAMS] = {"/bin/cc1", "/bin/as", "/bin/sh", "/bin/sampled"};

/* A running process: where its modules lie, and which node has which frame. */
struct process {
    uint32_t id, program;
    struct builder *builder;
    struct ml_client *clients[2];
    uint64_t bases[MODULES];
    uint32_t first_node;
    uint64_t blocks[BLOCKS]; /* sizes; 0: free */
};

static struct ml_session *sessions[2]; /* whole, folded */
static struct process running[AT_ONCE];
static uint32_t added;
static uint64_t now_ticks;
static uint64_t seed;
static bool code_was_named; /* in the last comparison */

static uint32_t pick(uint32_t count) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(seed >> 33) % count;
}

/* Where it has its generated code. Programs that name theirs have it elsewhere in each process. */
static bool names_code(const struct process *process) {
    return process->program % 2 == 1;
}

static uint64_t generated_code(const struct process *process) {
    return names_code(process) ? 0x7000 + 0x100 * (uint64_t)process->id : 0x7000;
}

static void put_definitions(struct process *process) {
    static const uint8_t build_id[] = {0xab, 0xcd};
    static const char *const module_paths[MODULES] = {"", "/lib/one.so", "/lib/two.so"};
    const struct ml_event name = {
        .kind = ML_EVENT_STRING,
        .name = {.id = 1 + pick(3), .bytes = (const uint8_t *)"worker", .bytes_count = 6}};
    builder_start(process->builder, 1000 + process->id, 0);
    builder_add(process->builder, 0, &name);
    for (uint32_t i = 0; i < MODULES; i++) {
        process->bases[i] = (uint64_t)(1 + pick(1000)) << 20;
        const struct ml_event event = {
            .kind = ML_EVENT_MODULE,
            .module = {
                .id = i + 1,
                .start = process->bases[i],
                .end = process->bases[i] + 0x10000 + i,
                .bias = (int64_t)process->bases[i],
                .build_id = build_id,
                .build_id_bytes = i == 0 ? 0 : sizeof(build_id),
                .path = (const uint8_t *)module_paths[i],
                .path_bytes = (uint32_t)strlen(module_paths[i])}};
        builder_add(process->builder, 0, &event);
    }
    /* A program's stacks are the same in all of its processes, by other ids. */
    process->first_node = 1 + pick(50);
    const uint64_t seed_after = seed;
    seed = process->program;
    for (uint32_t n = 0; n < NODES - 1; n++) { /* the last one is used, and never defined */
        const uint32_t module = pick(MODULES);
        struct ml_event_node node = {
            .id = process->first_node + n,
            .parent = n < 3 ? 0 : process->first_node + pick(n),
            .frame = ML_FRAME_ADDRESS,
            .module = module + 1,
            .address = process->bases[module] + 16 * pick(4)};
        if (n == 1) {
            node = (struct ml_event_node
            ){.id = node.id, .frame = ML_FRAME_THREAD, .string_id = name.name.id};
        } else if (n % 11 == 10) {
            node.module = 0; /* generated code: the address is all there is */
            node.address = generated_code(process) + 16 * pick(2);
        }
        const struct ml_event event = {.kind = ML_EVENT_NODE, .node = node};
        builder_add(process->builder, 0, &event);
    }
    seed = seed_after;
}

static void begin(struct process *process) {
    *process = (struct process){.id = ++added, .program = pick(PROGRAMS)};
    process->builder = builder_new();
    put_definitions(process);
    const uint32_t parent_id = process->id > 1 ? 1 + pick(process->id - 1) : 0;
    for (int i = 0; i < 2; i++) {
        const struct ml_client_setup setup = {
            .id = process->id,
            .parent_id = parent_id,
            .pid = 1000 + process->id,
            .sampling_bytes = process->program == 3 ? 64 : 1,
            .from_startup = true,
            .start = {.ticks = now_ticks}};
        const char *word = paths[process->program];
        ck_assert_int_eq(ml_session_add(sessions[i], &setup, &process->clients[i]), ML_OK);
        describe(process->clients[i], names[process->program], word, word);
    }
}

static void read_both(struct process *process) {
    struct builder *builder = process->builder;
    struct ml_staging_lane lanes[BUILDER_LANES];
    struct ml_client_want wants[BUILDER_LANES];
    size_t count = 0;
    for (uint32_t lane = 0; lane < BUILDER_LANES; lane++) {
        builder_flush(builder, lane);
        lanes[lane] = builder->lanes[lane].header;
    }
    for (int i = 0; i < 2; i++) {
        struct ml_client *client = process->clients[i];
        ck_assert_int_eq(
            ml_client_feed(
                client, builder->pipe + builder->pipe_read, builder->pipe_count - builder->pipe_read
            ),
            ML_OK
        );
        ck_assert_int_eq(
            ml_client_lanes(
                client, &builder->header, lanes, BUILDER_LANES, wants, BUILDER_LANES, &count
            ),
            ML_OK
        );
        ck_assert_uint_eq(count, 0);
    }
    builder->pipe_read = builder->pipe_count;
}

/* Its run-time has told of its code. */
static void hand_code(const struct process *process) {
    const struct ml_timestamp now = {.ticks = now_ticks};
    const unsigned long long at = generated_code(process);
    char text[128];
    const int length = snprintf(text, sizeof(text), "%llx 10 one\n%llx 10 two\n", at, at + 16);
    for (int i = 0; i < 2 && names_code(process); i++) {
        const int fd = memfd_create("code", MFD_CLOEXEC);
        ck_assert_int_eq(write(fd, text, (size_t)length), length);
        ml_client_take_code(process->clients[i], ML_CODE_PERF_MAP, fd, &now);
    }
}

static void end(struct process *process) {
    const struct ml_client_end how = {
        .state = pick(8) == 0 ? 3 : 1, .exit_code = (int32_t)pick(2), .end = {.ticks = now_ticks}};
    read_both(process);
    hand_code(process);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ml_client_ended(process->clients[i], &how), ML_OK);
    }
    builder_free(process->builder);
    *process = (struct process){.id = 0};
}

static void step(struct process *process) {
    const uint32_t block = pick(BLOCKS);
    now_ticks++;
    if (process->blocks[block] != 0) {
        builder_free_block(process->builder, 0, now_ticks, 0x100000 + 64 * block);
        process->blocks[block] = 0;
        return;
    }
    struct ml_event event = {
        .kind = ML_EVENT_ALLOC,
        .time = now_ticks,
        .block = {
            .address = 0x100000 + 64 * block,
            .size_bytes = 1 + pick(60),
            .node = pick(8) == 0 ? 0 : process->first_node + pick(NODES),
            .weight_blocks = 1}};
    event.block.weight_bytes = event.block.size_bytes;
    if (process->program == 3) {
        event.block.marks = ML_BLOCK_SAMPLED;
        event.block.weight_bytes += pick(500);
        event.block.weight_blocks += pick(5);
    }
    process->blocks[block] = event.block.size_bytes;
    builder_add(process->builder, 0, &event);
}

static void advance(void) {
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        if (running[i].id != 0) {
            read_both(&running[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(ml_session_advance(sessions[i], now_ticks), ML_OK);
        ck_assert(ml_session_check(sessions[i]));
    }
}

/* ---- what the sessions say */

struct row {
    char key[KEY_BYTES];
    uint64_t figures[9]; /* live, peak, total, tree: bytes and blocks; temporary */
    double variance;     /* of total bytes */
};

struct rows {
    struct row items[ROWS_MAX];
    uint32_t count;
};

static const struct ml_snapshot_node *
node_of(const struct ml_snapshot_process *process, uint32_t id) {
    for (uint32_t i = 0; i < process->nodes_count; i++) {
        if (process->nodes[i].id == id) {
            return &process->nodes[i];
        }
    }
    return NULL;
}

static void put_frame(
    char *key, const struct ml_snapshot_process *process, const struct ml_snapshot_node *node
) {
    const size_t at = strlen(key);
    const struct ml_snapshot_module *module = NULL;
    for (uint32_t i = 0; node->module != 0 && i < process->modules_count; i++) {
        if (process->modules[i].id == node->module) {
            module = &process->modules[i];
        }
    }
    (void)snprintf(
        key + at,
        KEY_BYTES - at,
        " %u%s%s+%llx",
        (unsigned)node->frame,
        module != NULL ? (module->path.count_bytes > 0 ? module->path.data : process->exe_path.data)
                       : "",
        ml_frame_has_string(node->frame) ? process->strings[node->string].data : "",
        (unsigned long long)(node->address - (module != NULL ? (uint64_t)module->bias : 0))
    );
}

static void add_row(
    struct rows *rows,
    bool named,
    const struct ml_snapshot_process *process,
    const struct ml_snapshot_cell *cell
) {
    char key[KEY_BYTES];
    (void)snprintf(
        key,
        sizeof(key),
        "%s/%u/%u",
        named ? process->name.data : "",
        (unsigned)process->state,
        (unsigned)cell->size_class
    );
    for (uint32_t id = cell->node; id != 0;) {
        const struct ml_snapshot_node *node = node_of(process, id);
        ck_assert_ptr_nonnull(node);
        put_frame(key, process, node);
        id = node->parent;
    }
    uint32_t at = 0;
    while (at < rows->count && strcmp(rows->items[at].key, key) != 0) {
        at++;
    }
    ck_assert_uint_lt(at, ROWS_MAX);
    struct row *row = &rows->items[at];
    if (at == rows->count) {
        *row = (struct row){.variance = 0};
        (void)snprintf(row->key, sizeof(row->key), "%s", key);
        rows->count++;
    }
    const uint64_t figures[9] = {
        cell->own.live_bytes,
        cell->own.live_blocks,
        cell->own.peak_bytes,
        cell->own.peak_blocks,
        cell->own.total_bytes,
        cell->own.total_blocks,
        cell->tree_peak_bytes,
        cell->tree_peak_blocks,
        cell->temporary_blocks};
    for (int i = 0; i < 9; i++) {
        row->figures[i] += figures[i];
    }
    const double error = (double)cell->own_errors.total_bytes / 256;
    row->variance += error * error;
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

static void rows_of(struct rows *rows, bool named, const struct ml_snapshot *snapshot) {
    rows->count = 0;
    for (uint32_t p = 0; p < snapshot->processes_count; p++) {
        const struct ml_snapshot_process *process = &snapshot->processes[p];
        for (uint32_t i = 0; i < process->cells_count; i++) {
            add_row(rows, named, process, &process->cells[i]);
        }
    }
    qsort(rows->items, rows->count, sizeof(rows->items[0]), by_key);
}

static uint64_t processes_in(const struct ml_snapshot *snapshot) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const uint32_t folded = snapshot->processes[i].folded_processes;
        count += folded > 0 ? folded : 1;
    }
    return count;
}

static uint64_t failed_in(const struct ml_snapshot *snapshot) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        count += process->folded_processes > 0 ? process->folded_failed : process->exit_code != 0;
    }
    return count;
}

/* Parents are there, though they have been folded. */
static void check_parents(const struct ml_snapshot *snapshot) {
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        bool found = snapshot->processes[i].parent_id == 0;
        for (uint32_t j = 0; j < snapshot->processes_count; j++) {
            found = found || snapshot->processes[j].id == snapshot->processes[i].parent_id;
        }
        ck_assert(found);
    }
}

/* As before a dump. */
static void name_code(struct ml_session *session) {
    for (uint32_t id = 1; id <= added; id++) {
        struct ml_client *client = ml_session_find(session, id);
        if (client != NULL) {
            ml_client_name_code(client, NULL);
        }
    }
}

static bool has_code_named(const struct rows *rows) {
    for (uint32_t i = 0; i < rows->count; i++) {
        char word[16];
        (void)snprintf(word, sizeof(word), " %utwo+0", (unsigned)ML_FRAME_SCRIPT);
        if (strstr(rows->items[i].key, word) != NULL) {
            return true;
        }
    }
    return false;
}

static void compare(bool named) {
    static struct rows rows[2];
    struct ml_snapshot *snapshots[2];
    for (int i = 0; i < 2; i++) {
        name_code(sessions[i]);
        ck_assert_int_eq(ml_session_snapshot(sessions[i], NULL, 0, &snapshots[i]), ML_OK);
        ck_assert(ml_session_check(sessions[i]));
        rows_of(&rows[i], named, snapshots[i]);
        ck_assert_uint_eq(processes_in(snapshots[i]), added);
        check_parents(snapshots[i]);
    }
    ck_assert_int_eq(memcmp(&snapshots[0]->tree, &snapshots[1]->tree, sizeof(struct ml_totals)), 0);
    ck_assert_uint_eq(snapshots[0]->tree_peak_ticks, snapshots[1]->tree_peak_ticks);
    ck_assert_uint_eq(failed_in(snapshots[0]), failed_in(snapshots[1]));
    ck_assert_int_eq(snapshots[0]->complete, snapshots[1]->complete);
    ck_assert_uint_eq(rows[0].count, rows[1].count);
    for (uint32_t i = 0; i < rows[0].count; i++) {
        const struct row *whole = &rows[0].items[i];
        const struct row *folded = &rows[1].items[i];
        ck_assert_str_eq(whole->key, folded->key);
        ck_assert_int_eq(memcmp(whole->figures, folded->figures, sizeof(whole->figures)), 0);
        /* Both are squares of roots that were rounded down. */
        ck_assert_double_le(whole->variance, folded->variance * 1.001 + 1);
        ck_assert_double_le(folded->variance, whole->variance * 1.001 + 1);
    }
    code_was_named = has_code_named(&rows[1]);
    ml_snapshot_free(snapshots[0]);
    ml_snapshot_free(snapshots[1]);
}

static void set_up(void) {
    const struct ml_timestamp start = {.ticks = 1};
    for (int i = 0; i < 2; i++) {
        sessions[i] = ml_session_new(&start, 0);
        ck_assert_ptr_nonnull(sessions[i]);
    }
    memset(running, 0, sizeof(running));
    added = 0;
    now_ticks = 10;
}

static void tear_down(void) {
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        builder_free(running[i].builder);
    }
    ml_session_free(sessions[0]);
    ml_session_free(sessions[1]);
}

/* A crowd of processes comes and goes, and dumps are taken of it in between. */
static void run(uint32_t keep, bool named) {
    ml_session_keep(sessions[1], keep);
    for (uint32_t i = 0; i < STEPS; i++) {
        struct process *process = &running[pick(AT_ONCE)];
        if (process->id == 0 && added < PROCESSES) {
            begin(process);
        } else if (process->id != 0 && pick(400) == 0) {
            end(process);
        } else if (process->id != 0) {
            step(process);
        }
        if (pick(500) == 0) {
            advance();
        }
        if (pick(10000) == 0) {
            advance();
            compare(named);
        }
    }
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        now_ticks++;
        if (running[i].id != 0) {
            end(&running[i]);
        }
    }
    advance();
    compare(named);
    ck_assert(code_was_named);
}

START_TEST(folds_to_the_same_sums_stack_by_stack) {
    seed = (uint64_t)_i + 1;
    run((uint32_t)_i % 4 * 5, true);
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(sessions[1], NULL, 0, &snapshot), ML_OK);
    /* What is kept, and an entry for each program, as it exited and as it was replaced. */
    ck_assert_uint_le(snapshot->processes_count, (uint32_t)_i % 4 * 5 + 2 * PROGRAMS);
    ml_snapshot_free(snapshot);
}
END_TEST

START_TEST(a_processs_memory_goes_when_it_is_folded) {
    seed = 99;
    ml_session_keep(sessions[1], 0);
    uint64_t used_bytes[3] = {0};
    for (int third = 0; third < 3; third++) {
        for (int i = 0; i < 300; i++) {
            begin(&running[0]);
            running[0].program = 0;
            for (int n = 0; n < 50; n++) {
                step(&running[0]);
            }
            advance();
            end(&running[0]);
            advance();
        }
        used_bytes[third] = ml_session_memory(sessions[1]).used_bytes;
    }
    ck_assert_uint_lt(used_bytes[2], ml_session_memory(sessions[0]).used_bytes / 10);
}
END_TEST

/* A process that has ended, of a program that nobody else is. */
static void add_lone(uint32_t number) {
    char name[32];
    (void)snprintf(name, sizeof(name), "/bin/p%u", number);
    begin(&running[0]);
    for (int i = 0; i < 2; i++) {
        describe(running[0].clients[i], name, name, name);
    }
    for (int n = 0; n < 5; n++) {
        step(&running[0]);
    }
    now_ticks++;
    end(&running[0]);
}

START_TEST(of_too_many_programs_the_last_ones_share_an_entry) {
    seed = 5;
    ml_session_keep(sessions[1], 0);
    for (uint32_t i = 0; i < ML_FOLD_PROGRAMS_MAX + 40; i++) {
        add_lone(i);
    }
    advance();
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(sessions[1], NULL, 0, &snapshot), ML_OK);
    ck_assert_uint_le(snapshot->processes_count, ML_FOLD_PROGRAMS_MAX + 1);
    uint32_t others = 0;
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        if (strcmp(snapshot->processes[i].name.data, ML_FOLD_OTHERS) == 0) {
            others += snapshot->processes[i].folded_processes;
        }
    }
    ck_assert_uint_eq(others, 40);
    ml_snapshot_free(snapshot);
    const struct ml_totals whole = ml_session_totals(sessions[0]);
    const struct ml_totals folded = ml_session_totals(sessions[1]);
    ck_assert_int_eq(memcmp(&whole, &folded, sizeof(whole)), 0);
}
END_TEST

START_TEST(a_dump_of_one_that_was_folded_is_of_its_entry) {
    seed = 7;
    ml_session_keep(sessions[1], 0);
    for (uint32_t i = 0; i < 30; i++) {
        begin(&running[0]);
        step(&running[0]);
        end(&running[0]);
    }
    advance();
    for (uint32_t id = 1; id <= added; id++) {
        struct ml_snapshot *snapshot = NULL;
        ck_assert_int_eq(ml_session_snapshot(sessions[1], &id, 1, &snapshot), ML_OK);
        ck_assert_uint_eq(snapshot->processes_count, 1);
        ml_snapshot_free(snapshot);
    }
}
END_TEST

START_TEST(without_memory_nobody_is_folded_and_no_sum_changes) {
    seed = 11;
    for (uint32_t i = 0; i < 40; i++) {
        begin(&running[0]);
        for (int n = 0; n < 40; n++) {
            step(&running[0]);
        }
        end(&running[0]);
    }
    name_code(sessions[0]); /* without memory it would have no names */
    name_code(sessions[1]);
    ml_session_keep(sessions[1], 0);
    ml_session_limit(sessions[1], ml_session_memory(sessions[1]).used_bytes);
    compare(true);
    ml_session_limit(sessions[1], ml_session_memory(sessions[1]).used_bytes + 20000);
    compare(true);
    ml_session_limit(sessions[1], 0);
    compare(true);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("fold");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_set_timeout(tcase, 300); /* under sanitizers on a busy machine */
    tcase_add_loop_test(tcase, folds_to_the_same_sums_stack_by_stack, 0, 8);
    tcase_add_test(tcase, a_processs_memory_goes_when_it_is_folded);
    tcase_add_test(tcase, of_too_many_programs_the_last_ones_share_an_entry);
    tcase_add_test(tcase, a_dump_of_one_that_was_folded_is_of_its_entry);
    tcase_add_test(tcase, without_memory_nobody_is_folded_and_no_sum_changes);
    return run_suite("service/fold", tcase);
}

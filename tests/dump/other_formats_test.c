/* The formats beside pprof and collapsed stacks: the sums of each are those of the dump. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>
#include <jansson.h>
#include <sqlite3.h>
#include <zlib.h>

#include "ipc/wire/event.h"
#include "tests/dump/formats_fixture.h"
#include "tools/analyzer/formats/chrome_trace.h"
#include "tools/analyzer/formats/flame.h"
#include "tools/analyzer/formats/heap_text.h"
#include "tools/analyzer/sqlite/file.h"
#include "tools/analyzer/stacks/metric.h"

enum { TEXT_BYTES = 8 << 20 };

/* The file from its beginning, unzipped if it is. Owner: a static buffer. */
static char *text_of(FILE *file) {
    static char text[TEXT_BYTES];
    gzFile unzipped = NULL;
    int count = 0;

    ck_assert_int_eq(fflush(file), 0);
    rewind(file);
    unzipped = gzdopen(dup(fileno(file)), "r");
    count = gzread(unzipped, text, sizeof text - 1);
    ck_assert_int_gt(count, 0);
    ck_assert_int_lt(count, (int)sizeof text - 1);
    ck_assert_int_eq(gzclose(unzipped), Z_OK);
    fclose(file);
    text[count] = '\0';
    return text;
}

static json_t *json_of(const char *text) {
    json_error_t error;
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, &error);

    ck_assert_msg(json != NULL, "%s at %d", error.text, error.position);
    return json;
}

START_TEST(a_selected_process_is_the_tree) {
    uint32_t pid = profile.processes[2].pid;
    struct ml_profile_totals own = profile.processes[2].totals;

    ck_assert(!ml_profile_select(&profile, pid + 100000));
    ck_assert_uint_eq(profile.processes_count, 3);
    formats_select(pid);
    ck_assert_uint_eq(profile.processes_count, 1);
    ck_assert_mem_eq(&profile.tree, &own, sizeof own);
    formats_check_sums();
}
END_TEST

/* The first two are images of one pid: they never ran at the same time. */
START_TEST(the_peak_of_a_pid_is_that_of_its_largest_image) {
    const struct ml_profile_totals *one = &profile.processes[0].totals;
    const struct ml_profile_totals *two = &profile.processes[1].totals;
    uint64_t live_bytes = one->live_bytes + two->live_bytes;
    uint64_t peak_bytes = one->peak_bytes > two->peak_bytes ? one->peak_bytes : two->peak_bytes;

    ck_assert_uint_eq(profile.processes[0].pid, profile.processes[1].pid);
    formats_select(profile.processes[0].pid);
    ck_assert_uint_eq(profile.processes_count, 2);
    ck_assert_uint_eq(profile.tree.live_bytes, live_bytes);
    ck_assert_uint_eq(profile.tree.peak_bytes, peak_bytes);
    formats_check_sums();
}
END_TEST

static uint64_t hex(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));

    ck_assert_msg(text != NULL, "%s", name);
    return strtoull(text, NULL, 16);
}

static uint64_t column_sum(const json_t *heap, const char *name) {
    const json_t *column = json_object_get(heap, name);
    uint64_t sum = 0;

    for (size_t i = 0; i < json_array_size(column); i++) {
        sum += (uint64_t)json_integer_value(json_array_get(column, i));
    }
    return sum;
}

/* Each node's parent is one of before, and its name one of the strings. */
/* `seen_nodes`: of that process, in all dumps of the file. */
static void check_maps(const json_t *maps, json_t *seen_nodes) {
    const json_t *nodes = json_object_get(maps, "nodes");
    const json_t *strings = json_object_get(maps, "strings");
    json_t *names = json_object();
    char key[32];

    for (size_t i = 0; i < json_array_size(strings); i++) {
        const json_t *string = json_array_get(strings, i);
        snprintf(
            key, sizeof key, "%" PRId64, (int64_t)json_integer_value(json_object_get(string, "id"))
        );
        ck_assert_int_eq(json_object_set_new(names, key, json_true()), 0);
    }
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const json_t *node = json_array_get(nodes, i);
        int64_t parent = json_integer_value(json_object_get(node, "parent"));

        snprintf(key, sizeof key, "%" PRId64, parent);
        ck_assert(parent == 0 || json_object_get(seen_nodes, key) != NULL);
        snprintf(
            key,
            sizeof key,
            "%" PRId64,
            (int64_t)json_integer_value(json_object_get(node, "name_sid"))
        );
        ck_assert_ptr_nonnull(json_object_get(names, key));
        snprintf(
            key, sizeof key, "%" PRId64, (int64_t)json_integer_value(json_object_get(node, "id"))
        );
        ck_assert_ptr_null(json_object_get(seen_nodes, key));
        ck_assert_int_eq(json_object_set_new(seen_nodes, key, json_true()), 0);
    }
    json_decref(names);
}

START_TEST(a_chrome_trace_holds_every_processes_heap) {
    const struct ml_chrome_dump dumps[] = {{.stacks = &stacks}};
    FILE *file = tmpfile();
    json_t *trace = NULL;
    json_t *seen_nodes = json_object();
    const json_t *events = NULL;
    size_t heaps = 0;

    ck_assert_int_eq(ml_chrome_trace_write(dumps, 1, ML_METRIC_LIVE, file), ML_OK);
    trace = json_of(text_of(file));
    events = json_object_get(trace, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const json_t *dump = json_object_get(json_object_get(event, "args"), "dumps");
        const json_t *heaps_v2 = json_object_get(dump, "heaps_v2");
        const json_t *heap = json_object_get(json_object_get(heaps_v2, "allocators"), "malloc");
        const json_t *attributes = NULL;
        int64_t pid = 0;

        if (!dump) {
            continue;
        }
        ck_assert_uint_eq(column_sum(heap, "sizes"), profile.processes[heaps].totals.live_bytes);
        ck_assert_uint_eq(column_sum(heap, "counts"), profile.processes[heaps].totals.live_blocks);
        ck_assert_uint_eq(
            json_array_size(json_object_get(heap, "nodes")),
            json_array_size(json_object_get(heap, "sizes"))
        );
        /* A pid's former image has a number that no process can have. */
        pid = json_integer_value(json_object_get(event, "pid"));
        ck_assert(heaps == 0 ? pid > 1 << 22 : pid == profile.processes[heaps].pid);
        attributes = json_object_get(
            json_object_get(json_object_get(dump, "allocators"), "malloc"), "attrs"
        );
        ck_assert_uint_eq(
            hex(json_object_get(attributes, "size"), "value"),
            profile.processes[heaps].totals.live_bytes
        );
        /* Each process has numbers of its own, as in Chromium's traces. */
        ck_assert_int_eq(json_object_clear(seen_nodes), 0);
        check_maps(json_object_get(heaps_v2, "maps"), seen_nodes);
        heaps++;
    }
    ck_assert_uint_eq(heaps, profile.processes_count);
    json_decref(seen_nodes);
    json_decref(trace);
}
END_TEST

/* Readers know a node for ever by its process and number. */
START_TEST(several_dumps_in_a_chrome_trace_use_no_number_twice) {
    enum { DUMPS = 3 };
    const struct ml_chrome_dump one = {.stacks = &stacks};
    const struct ml_chrome_dump dumps[DUMPS] = {one, one, one};
    json_t *seen = json_object();
    FILE *file = tmpfile();
    json_t *trace = NULL;
    const json_t *events = NULL;
    size_t heaps = 0;

    ck_assert_int_eq(ml_chrome_trace_write(dumps, DUMPS, ML_METRIC_LIVE, file), ML_OK);
    trace = json_of(text_of(file));
    events = json_object_get(trace, "traceEvents");
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        const json_t *dump = json_object_get(json_object_get(event, "args"), "dumps");
        if (dump) {
            check_maps(json_object_get(json_object_get(dump, "heaps_v2"), "maps"), seen);
            heaps++;
        }
    }
    ck_assert_uint_eq(heaps, DUMPS * profile.processes_count);
    json_decref(seen);
    json_decref(trace);
}
END_TEST

START_TEST(a_heap_text_adds_up_and_its_addresses_are_in_its_files) {
    FILE *file = tmpfile();
    uint64_t head[4] = {0};
    uint64_t sum[4] = {0};
    uint64_t start[8] = {0};
    uint64_t end[8] = {0};
    size_t files = 0;
    size_t inside = 0;
    size_t addresses = 0;
    char *lines[4096];
    size_t lines_count = 0;
    char *rest = NULL;

    ck_assert_int_eq(ml_heap_text_write(&stacks, file), ML_OK);
    for (char *line = strtok_r(text_of(file), "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        lines[lines_count++] = line;
        files += sscanf(line, "%" SCNx64 "-%" SCNx64 " r-xp", &start[files], &end[files]) == 2;
    }
    ck_assert_int_eq(
        sscanf(
            lines[0],
            "heap profile: %" SCNu64 ": %" SCNu64 " [%" SCNu64 ": %" SCNu64 "] @ heapprofile",
            &head[0],
            &head[1],
            &head[2],
            &head[3]
        ),
        4
    );
    ck_assert_uint_eq(head[1], snapshot->left_bytes);
    ck_assert_uint_eq(head[3], snapshot->tree.total_bytes);
    for (size_t i = 1; i < lines_count && strcmp(lines[i], "MAPPED_LIBRARIES:") != 0; i++) {
        uint64_t one[4] = {0};
        ck_assert_int_eq(
            sscanf(
                lines[i],
                "%" SCNu64 ": %" SCNu64 " [%" SCNu64 ": %" SCNu64 "] @",
                &one[0],
                &one[1],
                &one[2],
                &one[3]
            ),
            4
        );
        for (char *at = strstr(lines[i], " 0x"); at; at = strstr(at + 1, " 0x")) {
            uint64_t address = strtoull(at, NULL, 16);
            if (address == 1) {
                continue; /* the word for "no stack" */
            }
            addresses++;
            for (size_t f = 0; f < files; f++) {
                inside += address > start[f] && address <= end[f];
            }
        }
        for (int f = 0; f < 4; f++) {
            sum[f] += one[f];
        }
    }
    ck_assert_mem_eq(sum, head, sizeof sum);
    ck_assert_uint_ge(files, 2);
    ck_assert_uint_eq(inside, addresses); /* each in exactly one file */
    ck_assert_uint_gt(addresses, 200);
}
END_TEST

static int64_t query(sqlite3 *database, const char *sql) {
    sqlite3_stmt *statement = NULL;
    int64_t answer = 0;

    ck_assert_msg(
        sqlite3_prepare_v2(database, sql, -1, &statement, NULL) == SQLITE_OK,
        "%s",
        sqlite3_errmsg(database)
    );
    ck_assert_int_eq(sqlite3_step(statement), SQLITE_ROW);
    answer = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return answer;
}

START_TEST(a_database_answers_perfettos_queries) {
    char path[] = "/tmp/memlog-database-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    sqlite3 *database = NULL;

    ck_assert_int_eq(ml_sqlite_file_write(&stacks, file), ML_OK);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(sqlite3_open_v2(path, &database, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    ck_assert_int_eq(
        query(
            database, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"
        ),
        0
    );
    ck_assert_int_eq(
        query(database, "SELECT sum(size) FROM heap_profile_allocation"),
        (int64_t)profile.tree.live_bytes
    );
    ck_assert_int_eq(
        query(
            database, "SELECT sum(size) FROM heap_profile_allocation WHERE size > 0 AND upid = 2"
        ),
        (int64_t)profile.processes[1].totals.total_bytes
    );
    ck_assert_int_eq(
        query(database, "SELECT sum(tree_peak_bytes) FROM memlog_stack"),
        (int64_t)profile.tree.peak_bytes
    );
    ck_assert_int_eq(
        query(
            database,
            "SELECT sum(a.size) FROM heap_profile_allocation a"
            " JOIN stack_profile_callsite c ON (a.callsite_id = c.id)"
            " JOIN stack_profile_frame f ON (c.frame_id = f.id)"
            " JOIN stack_profile_mapping m ON (f.mapping = m.id)"
        ),
        (int64_t)profile.tree.live_bytes
    );
    ck_assert_int_gt(
        query(
            database,
            "SELECT count(*) FROM stack_profile_symbol WHERE name = 'inner_inlined' AND inlined"
        ),
        0
    );
    ck_assert_int_eq(
        query(
            database,
            "SELECT count(*) FROM stack_profile_callsite c WHERE depth <>"
            " coalesce((SELECT depth + 1 FROM stack_profile_callsite p WHERE p.id = c.parent_id), "
            "0)"
        ),
        0
    );
    ck_assert_int_eq(
        query(database, "SELECT sum(self_live_bytes) FROM memlog_function"),
        (int64_t)profile.tree.live_bytes
    );
    sqlite3_close(database);
    unlink(path);
}
END_TEST

/* The page's data. */
static json_t *page_data(const struct ml_stacks *before) {
    static const char opening[] = "<script type=\"application/json\" id=\"data\">";
    FILE *file = tmpfile();
    char *text = NULL;
    char *end = NULL;

    ck_assert_int_eq(ml_flame_write(&stacks, before, ML_METRIC_PEAK, file), ML_OK);
    text = strstr(text_of(file), opening);
    ck_assert_ptr_nonnull(text);
    text += strlen(opening);
    end = strstr(text, "</script>");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    ck_assert_ptr_null(strchr(text, '<'));
    return json_of(text);
}

/* Sum of one of the figures that stand behind each frame's number. */
static uint64_t rows_sum(const json_t *rows, size_t figures_count, size_t figure) {
    uint64_t sum = 0;

    for (size_t i = 0; i < json_array_size(rows); i += 1 + figures_count) {
        sum += (uint64_t)json_integer_value(json_array_get(rows, i + 1 + figure));
    }
    return sum;
}

static void
check_view(const json_t *view, const char *rows, const struct ml_profile_totals *totals) {
    const uint64_t expected[] = {
        totals->live_bytes,
        totals->live_blocks,
        totals->peak_bytes,
        totals->peak_blocks,
        totals->total_bytes,
        totals->total_blocks,
        totals->pages.resident_bytes,
        totals->pages.waste_bytes,
        totals->pages.alone_bytes};

    const char *pages = strcmp(rows, "values") == 0 ? "pages" : "pages_before";

    for (size_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(rows_sum(json_object_get(view, rows), 6, i), expected[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        ck_assert_uint_eq(rows_sum(json_object_get(view, pages), 3, i), expected[6 + i]);
    }
}

START_TEST(a_flame_graph_holds_the_tree_and_every_process) {
    json_t *data = NULL;
    const json_t *views = NULL;
    const json_t *frames = NULL;
    size_t names = 0;

    profile.processes[0].name.bytes = "</script><b>";
    profile.processes[0].name.count_bytes = strlen("</script><b>");
    data = page_data(NULL);
    views = json_object_get(data, "views");
    frames = json_object_get(data, "frames");
    names = json_array_size(json_object_get(data, "names"));
    ck_assert_int_eq(json_integer_value(json_object_get(data, "metric")), 2);
    ck_assert_uint_gt(profile.tree.pages.waste_bytes, 0);
    ck_assert_uint_eq(json_array_size(views), 4);
    check_view(json_array_get(views, 0), "values", &profile.tree);
    for (size_t i = 0; i < 3; i++) {
        check_view(json_array_get(views, i + 1), "values", &profile.processes[i].totals);
    }
    ck_assert_uint_gt(json_array_size(frames), 100);
    for (size_t i = 0; i < json_array_size(frames); i += 3) {
        ck_assert_int_le(json_integer_value(json_array_get(frames, i)), (int64_t)(i / 3));
        ck_assert_int_lt(json_integer_value(json_array_get(frames, i + 1)), (int64_t)names);
        ck_assert_int_lt(json_integer_value(json_array_get(frames, i + 2)), (int64_t)names);
    }
    json_decref(data);
}
END_TEST

START_TEST(a_flame_graph_of_a_change_holds_both_sides) {
    json_t *data = page_data(&stacks);
    const json_t *views = json_object_get(data, "views");

    ck_assert_uint_eq(json_array_size(views), 4);
    for (size_t i = 0; i < 3; i++) {
        check_view(json_array_get(views, i + 1), "values", &profile.processes[i].totals);
        check_view(json_array_get(views, i + 1), "before", &profile.processes[i].totals);
    }
    json_decref(data);
}
END_TEST

/* One stack that dwarfs all others: what nobody could see is folded, and the sums stay. */
START_TEST(a_flame_graph_folds_what_is_too_thin) {
    size_t rows_before = 0;
    json_t *data = page_data(NULL);

    rows_before = json_array_size(json_object_get(data, "frames"));
    json_decref(data);
    stacks.tree.stacks[3].own = (struct ml_profile_totals
    ){.live_bytes = 1ULL << 52,
      .live_blocks = 1ULL << 50,
      .peak_bytes = 1ULL << 52,
      .peak_blocks = 1ULL << 50,
      .total_bytes = 1ULL << 52,
      .total_blocks = 1ULL << 50,
      .pages = {1ULL << 52, 1ULL << 52, 1ULL << 52}};
    profile.tree = formats_sum(&stacks.tree);
    /* The tree alone: in the processes' own views the others are as wide as before. */
    for (size_t i = 0; i < stacks.processes_count; i++) {
        stacks.processes[i].count = 0;
    }
    data = page_data(NULL);
    check_view(json_array_get(json_object_get(data, "views"), 0), "values", &profile.tree);
    ck_assert_uint_lt(json_array_size(json_object_get(data, "frames")), rows_before / 4);
    json_decref(data);
}
END_TEST

int main(void) {
    const TTest *const tests[] = {
        a_selected_process_is_the_tree,
        the_peak_of_a_pid_is_that_of_its_largest_image,
        a_chrome_trace_holds_every_processes_heap,
        several_dumps_in_a_chrome_trace_use_no_number_twice,
        a_heap_text_adds_up_and_its_addresses_are_in_its_files,
        a_database_answers_perfettos_queries,
        a_flame_graph_holds_the_tree_and_every_process,
        a_flame_graph_of_a_change_holds_both_sides,
        a_flame_graph_folds_what_is_too_thin,
    };

    return formats_run("dump/other_formats", tests, sizeof tests / sizeof *tests);
}

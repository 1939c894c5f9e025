/* runner: no second chance */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "tests/service/session/check.h"
#include "tests/suite.h"
#include "tools/dev/stream/pack.h"

/* Each tests/golden/NAME.stream.txt against NAME.expected. Run in the root of the tree. */

static const char folder[] = "tests/golden";
enum { NAMES_MAX = 200, IDS_MAX = 8, LANES = 4 };
static char *names[NAMES_MAX];
static int names_count;

struct player {
    uint64_t produced[IDS_MAX];
    struct ml_session *session;
    FILE *out;
    struct ml_client *clients[IDS_MAX];
    struct ml_stream_packer *packers[IDS_MAX];
    struct ml_staging_lane lanes[IDS_MAX][LANES];
    bool ended[IDS_MAX];
    uint64_t to; /* id whose stream the lines are */
};

static uint64_t number(const char *line, const char *name) {
    uint64_t value = 0;
    (void)ml_stream_text_number(line, name, &value);
    return value;
}

/* What the lines packed so far goes down the pipe: byte by byte, the hardest cut. */
static void feed(struct player *player, uint64_t id) {
    struct ml_stream_packer *packer = player->packers[id];
    if (packer == NULL || player->ended[id]) {
        return;
    }
    ck_assert_int_eq(ml_stream_packer_flush(packer), ML_OK);
    enum ml_status status = ml_client_status(player->clients[id]);
    const bool lost = status != ML_OK;
    for (size_t i = 0; i < packer->out_count; i++) {
        status = ml_client_feed(player->clients[id], packer->out + i, 1);
    }
    packer->out_count = 0;
    if (!lost && status != ML_OK) {
        fprintf(player->out, "process %u is lost: %s\n", (unsigned)id, ml_status_name(status));
    }
}

static void feed_all(struct player *player) {
    for (uint64_t id = 0; id < IDS_MAX; id++) {
        feed(player, id);
    }
}

static void look(struct player *player, uint64_t id) {
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 1, .lanes_used = LANES};
    struct ml_client_want want;
    size_t wanted = 0;
    player->lanes[id][0].produced = player->produced[id];
    const enum ml_status status =
        ml_client_lanes(player->clients[id], &header, player->lanes[id], LANES, &want, 1, &wanted);
    ck_assert_int_eq(status, ml_client_status(player->clients[id]));
    ck_assert_uint_eq(wanted, 0);
}

static void advance(struct player *player, uint64_t ticks) {
    feed_all(player);
    for (uint64_t id = 0; id < IDS_MAX; id++) {
        if (player->clients[id] != NULL && !player->ended[id]) {
            look(player, id);
            ck_assert(ml_client_settled(player->clients[id]));
        }
    }
    enum ml_status before[IDS_MAX] = {ML_OK};
    for (uint64_t id = 0; id < IDS_MAX; id++) {
        before[id] = player->clients[id] != NULL ? ml_client_status(player->clients[id]) : ML_OK;
    }
    ck_assert_int_eq(ml_session_advance(player->session, ticks), ML_OK);
    ck_assert(ml_session_check(player->session));
    for (uint64_t id = 0; id < IDS_MAX; id++) {
        if (player->clients[id] != NULL && ml_client_status(player->clients[id]) != before[id]) {
            fprintf(
                player->out,
                "process %u is lost: %s\n",
                (unsigned)id,
                ml_status_name(ml_client_status(player->clients[id]))
            );
        }
    }
}

static void add_client(struct player *player, const char *line) {
    const uint64_t id = number(line, "id");
    ck_assert_uint_lt(id, IDS_MAX);
    const struct ml_client_setup setup = {
        .id = (uint32_t)id,
        .parent_id = (uint32_t)number(line, "parent"),
        .pid = (uint32_t)number(line, "pid"),
        .from_startup = true,
        .forked = number(line, "forked") != 0,
        .fork_serial = number(line, "serial"),
        .start = {.ticks = number(line, "start")},
    };
    ck_assert_int_eq(ml_session_add(player->session, &setup, &player->clients[id]), ML_OK);
    player->packers[id] = ml_stream_packer_new();
    ck_assert_ptr_nonnull(player->packers[id]);
    player->to = id;
}

static void direct(struct player *player, const char *line) {
    const uint64_t id = number(line, "id");
    if (strncmp(line, "@client ", 8) == 0) {
        add_client(player, line);
    } else if (strncmp(line, "@to ", 4) == 0) {
        player->to = id;
    } else if (strncmp(line, "@advance ", 9) == 0) {
        advance(player, number(line, "to"));
    } else if (strncmp(line, "@staged ", 8) == 0) {
        struct ml_staging_lane *lane = &player->lanes[player->to][number(line, "lane")];
        lane->sent = number(line, "sent");
        lane->published = lane->sent << ML_PUBLISHED_SHIFT;
        lane->lost_chunks = number(line, "lost_chunks");
        lane->lost_events = number(line, "lost_events");
        player->produced[player->to] += lane->lost_events;
    } else if (strncmp(line, "@end ", 5) == 0) {
        const struct ml_client_end end = {.state = 1, .end = {.ticks = number(line, "at")}};
        feed_all(player);
        ck_assert_int_eq(ml_client_ended(player->clients[id], &end), ML_OK);
        player->ended[id] = true;
    } else {
        ck_abort_msg("no directive: %s", line);
    }
}

/* ---- what came out */

static void print_totals(FILE *out, const struct ml_totals *totals) {
    fprintf(
        out,
        "live %llu/%llu peak %llu/%llu total %llu/%llu",
        (unsigned long long)totals->live_bytes,
        (unsigned long long)totals->live_blocks,
        (unsigned long long)totals->peak_bytes,
        (unsigned long long)totals->peak_blocks,
        (unsigned long long)totals->total_bytes,
        (unsigned long long)totals->total_blocks
    );
}

static void print_count(FILE *out, const char *name, uint64_t count) {
    if (count != 0) {
        fprintf(out, " %s %llu", name, (unsigned long long)count);
    }
}

static void print_stacks(FILE *out, const struct ml_snapshot_process *process) {
    for (uint32_t i = 0; i < process->modules_count; i++) {
        fprintf(out, "  module %u \"%s\"\n", process->modules[i].id, process->modules[i].path.data);
    }
    for (uint32_t i = 0; i < process->nodes_count; i++) {
        const struct ml_snapshot_node *node = &process->nodes[i];
        static const char *const frames[] = {
            "address", "thread", "scope", "cut", "broken", "script"};
        fprintf(out, "  node %u below %u %s", node->id, node->parent, frames[node->frame]);
        if (node->frame == ML_FRAME_ADDRESS) {
            fprintf(out, " 0x%llx in %u", (unsigned long long)node->address, node->module);
        }
        if (ml_frame_has_string(node->frame)) {
            fprintf(out, " \"%s\"", process->strings[node->string].data);
        }
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < process->heaps_count; i++) {
        const struct ml_snapshot_heap *heap = &process->heaps[i];
        fprintf(out, "  heap %u \"%s\" ", heap->id, process->strings[heap->string].data);
        print_totals(out, &heap->own);
        print_count(out, "unknown_frees", heap->unknown_frees);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < process->types_count; i++) {
        const struct ml_snapshot_type *type = &process->types[i];
        fprintf(out, "  type %u \"%s\"\n", type->id, process->strings[type->string].data);
    }
    for (uint32_t i = 0; i < process->cells_count; i++) {
        const struct ml_snapshot_cell *cell = &process->cells[i];
        fprintf(out, "  cell node %u", cell->node);
        print_count(out, "heap", cell->heap);
        print_count(out, "type", cell->type);
        fprintf(out, " class %u: ", cell->size_class);
        print_totals(out, &cell->own);
        fprintf(
            out,
            " tree %llu/%llu",
            (unsigned long long)cell->tree_peak_bytes,
            (unsigned long long)cell->tree_peak_blocks
        );
        print_count(out, "temporary", cell->temporary_blocks);
        fputc('\n', out);
    }
}

static void print_snapshot(struct player *player) {
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_snapshot(player->session, NULL, 0, &snapshot), ML_OK);
    ck_assert(ml_session_check(player->session));
    FILE *out = player->out;
    fprintf(out, "tree ");
    print_totals(out, &snapshot->tree);
    fprintf(out, " at %llu", (unsigned long long)snapshot->tree_peak_ticks);
    if (snapshot->left_blocks > 0) {
        fprintf(
            out,
            " left %llu/%llu",
            (unsigned long long)snapshot->left_bytes,
            (unsigned long long)snapshot->left_blocks
        );
    }
    fputc('\n', out);
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        const struct ml_client *client = ml_session_find(player->session, process->id);
        fprintf(out, "process %u ", process->id);
        print_totals(out, &process->totals);
        fprintf(out, " at %llu", (unsigned long long)process->peak_ticks);
        print_count(out, "events", process->events);
        print_count(out, "lost", process->lost_events);
        print_count(out, "lost_chunks", ml_client_figures(client).lost_chunks);
        print_count(out, "late", process->late_events);
        print_count(out, "unknown_frees", process->unknown_frees);
        print_count(out, "missed_frees", ml_client_figures(client).missed_frees);
        print_count(out, "broken_stacks", process->broken_stacks);
        print_count(out, "inherited_bytes", process->inherited_bytes);
        print_count(out, "inherited_blocks", process->inherited_blocks);
        fprintf(out, "%s\n", process->complete ? "" : " incomplete");
        if (process->trouble.count_bytes > 0) {
            fprintf(out, "  trouble: %s\n", process->trouble.data);
        }
        if (process->unseen.count_bytes > 0) {
            fprintf(out, "  unseen: %s\n", process->unseen.data);
        }
        print_stacks(out, process);
    }
    ml_snapshot_free(snapshot);
}

/* The process's own count of its events. */
static void count_event(struct player *player, const char *line) {
    static const char *const counted[] = {"ALLOC ", "FREE ", "RESIZE ", "CANCEL "};
    for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
        player->produced[player->to] += strncmp(line, counted[i], strlen(counted[i])) == 0 ? 1 : 0;
    }
}

static void play(FILE *in, struct player *player, const char *name) {
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, in) >= 0) {
        line[strcspn(line, "\n")] = 0;
        if (line[0] == '@') {
            direct(player, line);
            continue;
        }
        struct ml_stream_packer *packer = player->packers[player->to];
        if (packer == NULL) {
            ck_assert_msg(line[0] == '#' || line[0] == 0, "%s: a record before any @client", name);
            continue;
        }
        count_event(player, line);
        const enum ml_status status = ml_stream_packer_line(packer, line);
        ck_assert_msg(status == ML_OK, "%s: %s: %s", name, line, packer->scratch.error);
    }
    free(line);
    print_snapshot(player);
}

static char *read_file(const char *path) {
    FILE *in = fopen(path, "r");
    if (in == NULL) {
        return NULL;
    }
    char *text = calloc(1, 1 << 16);
    ck_assert_ptr_nonnull(text);
    const size_t count = fread(text, 1, (1 << 16) - 1, in);
    text[count] = 0;
    fclose(in);
    return text;
}

START_TEST(the_stream_gives_what_is_expected) {
    char path[512];
    char *is = NULL;
    size_t is_size = 0;
    const struct ml_timestamp start = {.ticks = 1};
    struct player *player = calloc(1, sizeof(*player));
    ck_assert_ptr_nonnull(player);
    snprintf(path, sizeof(path), "%s/%s.stream.txt", folder, names[_i]);
    FILE *in = fopen(path, "r");
    ck_assert_ptr_nonnull(in);
    player->session = ml_session_new(&start, 0);
    player->out = open_memstream(&is, &is_size);
    play(in, player, names[_i]);
    fclose(in);
    fclose(player->out);
    snprintf(path, sizeof(path), "%s/%s.expected", folder, names[_i]);
    if (getenv("MEMLOG_GOLDEN_WRITE") != NULL) {
        FILE *out = fopen(path, "w");
        ck_assert_ptr_nonnull(out);
        fputs(is, out);
        fclose(out);
    }
    char *should = read_file(path);
    ck_assert_msg(should != NULL, "no %s", path);
    ck_assert_msg(strcmp(is, should) == 0, "%s:\n%s", path, is);
    free(should);
    free(is);
    for (int id = 0; id < IDS_MAX; id++) {
        ml_stream_packer_free(player->packers[id]);
    }
    ml_session_free(player->session);
    free(player);
}
END_TEST

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void find_names(void) {
    DIR *dir = opendir(folder);
    for (struct dirent *entry = dir != NULL ? readdir(dir) : NULL; entry != NULL;
         entry = readdir(dir)) {
        const char *end = strstr(entry->d_name, ".stream.txt");
        if (end != NULL && names_count < NAMES_MAX) {
            names[names_count++] = strndup(entry->d_name, (size_t)(end - entry->d_name));
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    qsort(names, (size_t)names_count, sizeof(*names), by_name);
}

int main(void) {
    find_names();
    if (names_count == 0) {
        fprintf(stderr, "no streams in %s: run in the root of the tree\n", folder);
        return EXIT_FAILURE;
    }
    TCase *tcase = tcase_create("golden");
    tcase_add_loop_test(tcase, the_stream_gives_what_is_expected, 0, names_count);
    const int exit_code = run_suite("service/golden", tcase);
    for (int i = 0; i < names_count; i++) {
        free(names[i]);
    }
    return exit_code;
}

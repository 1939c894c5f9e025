#include <stdlib.h>
#include <string.h>

#include "host/collect/clickhouse/internal.h"
#include "host/collect/ids.h"

static const struct ml_click_column frames_columns[] = {
    {"team", ML_CLICK_STRING},
    {"id", ML_CLICK_INT64},
    {"function", ML_CLICK_STRING},
    {"module", ML_CLICK_STRING},
    {"build_id", ML_CLICK_STRING},
    {"place", ML_CLICK_UINT64},
    {NULL, ML_CLICK_UINT8}};

static const struct ml_click_column stacks_columns[] = {
    {"team", ML_CLICK_STRING},
    {"id", ML_CLICK_INT64},
    {"names", ML_CLICK_INT64},
    {"stacks", ML_CLICK_INT64S},
    {"frames", ML_CLICK_INT64S},
    {NULL, ML_CLICK_UINT8}};

static const struct ml_click_column samples_columns[] = {
    {"kept", ML_CLICK_DATE},        {"week", ML_CLICK_INT32},     {"team", ML_CLICK_STRING},
    {"program", ML_CLICK_STRING},   {"build", ML_CLICK_STRING},   {"host", ML_CLICK_STRING},
    {"guid", ML_CLICK_STRING},      {"time_ms", ML_CLICK_UINT64}, {"control", ML_CLICK_UINT8},
    {"batch", ML_CLICK_UINT64},     {"stack", ML_CLICK_INT64},    {"names", ML_CLICK_INT64},
    {"role", ML_CLICK_STRING},      {"process", ML_CLICK_STRING}, {"heap", ML_CLICK_STRING},
    {"type", ML_CLICK_STRING},      {"first", ML_CLICK_UINT8},    {"stack_live", ML_CLICK_UINT64},
    {"dump_live", ML_CLICK_UINT64}, {"live", ML_CLICK_UINT64},    {"live_n", ML_CLICK_UINT64},
    {"peak", ML_CLICK_UINT64},      {"peak_n", ML_CLICK_UINT64},  {"total", ML_CLICK_UINT64},
    {"total_n", ML_CLICK_UINT64},   {NULL, ML_CLICK_UINT8}};

static const struct ml_click_column dumps_columns[] = {
    {"kept", ML_CLICK_DATE},         {"week", ML_CLICK_INT32},
    {"team", ML_CLICK_STRING},       {"program", ML_CLICK_STRING},
    {"build", ML_CLICK_STRING},      {"version", ML_CLICK_STRING},
    {"host", ML_CLICK_STRING},       {"guid", ML_CLICK_STRING},
    {"time_ms", ML_CLICK_UINT64},    {"reason", ML_CLICK_STRING},
    {"cause", ML_CLICK_STRING},      {"control", ML_CLICK_UINT8},
    {"weight", ML_CLICK_UINT32},     {"complete", ML_CLICK_UINT8},
    {"covered", ML_CLICK_UINT8},     {"sampling", ML_CLICK_UINT64},
    {"processes", ML_CLICK_UINT64},  {"private_bytes", ML_CLICK_UINT64},
    {"left_bytes", ML_CLICK_UINT64}, {"live", ML_CLICK_UINT64},
    {"peak", ML_CLICK_UINT64},       {"total", ML_CLICK_UINT64},
    {"batch", ML_CLICK_UINT64},      {"told", ML_CLICK_UINT8},
    {"promised", ML_CLICK_UINT32},   {"cost", ML_CLICK_UINT32},
    {NULL, ML_CLICK_UINT8}};

void ml_click_rows_init(struct ml_click_rows *rows) {
    *rows = (struct ml_click_rows){.stacks_put = {.slots = NULL}};
    ml_click_block_init(&rows->frames, frames_columns);
    ml_click_block_init(&rows->stacks, stacks_columns);
    ml_click_block_init(&rows->samples, samples_columns);
    ml_click_block_init(&rows->dumps, dumps_columns);
}

void ml_click_rows_fini(struct ml_click_rows *rows) {
    ml_click_block_fini(&rows->frames);
    ml_click_block_fini(&rows->stacks);
    ml_click_block_fini(&rows->samples);
    ml_click_block_fini(&rows->dumps);
    ml_id_map_fini(&rows->stacks_put);
    ml_id_map_fini(&rows->frames_put);
}

int64_t ml_click_kept(const struct ml_store_item *item) {
    return ml_week_of(item->entry->received_ms);
}

/* ---- ids */

void ml_click_ids_fini(struct ml_click_ids *ids) {
    free(ids->frames);
    free(ids->stacks);
    free(ids->names);
    *ids = (struct ml_click_ids){.frames = NULL};
}

bool ml_click_ids_of(const struct ml_store_item *item, struct ml_click_ids *out_ids) {
    const struct ml_collect_report *report = item->report;
    const uint8_t *key = item->team_key;
    struct ml_click_ids ids = {
        .frames = calloc(report->frames_count + 1, sizeof(*ids.frames)),
        .stacks = calloc(report->stacks_count + 1, sizeof(*ids.stacks)),
        .names = calloc(report->stacks_count + 1, sizeof(*ids.names)),
    };
    if (ids.frames == NULL || ids.stacks == NULL || ids.names == NULL) {
        ml_click_ids_fini(&ids);
        return false;
    }
    for (size_t i = 0; i < report->frames_count; i++) {
        ids.frames[i + 1] = ml_id_of_frame(key, &report->frames[i]);
    }
    for (size_t i = 0; i < report->stacks_count; i++) {
        const struct memlog_fleet_stack *stack = &report->stacks[i];
        const struct memlog_fleet_frame *frame = &report->frames[stack->frame - 1];
        ids.stacks[i + 1] =
            ml_id_of_stack(key, ids.stacks[stack->parent], ids.frames[stack->frame]);
        ids.names[i + 1] = ml_id_of_names(key, ids.names[stack->parent], frame);
    }
    *out_ids = ids;
    return true;
}

/* ---- texts */

static void put_word(struct ml_click_block *block, const char *word) {
    ml_click_put_text(block, word, strlen(word));
}

/* As the embedded store has it: up to a byte of 0. */
static void put_string(struct ml_click_block *block, struct ml_string string) {
    const bool is_empty = string.count_bytes == 0;
    ml_click_put_text(
        block, is_empty ? "" : string.data, is_empty ? 0 : strnlen(string.data, string.count_bytes)
    );
}

/* The embedded store's numbers are signed; both have the same. */
static void put_whole(struct ml_click_block *block, uint64_t number) {
    ml_click_put_number(block, number <= INT64_MAX ? number : INT64_MAX);
}

/* ---- stacks */

static bool put_frame(
    struct ml_click_rows *rows,
    const struct ml_store_item *item,
    const struct ml_click_ids *ids,
    uint32_t number
) {
    const struct memlog_fleet_frame *frame = &item->report->frames[number - 1];
    const int64_t id = ids->frames[number];
    if (ml_id_map_find(&rows->frames_put, id) != NULL) {
        return true;
    }
    put_word(&rows->frames, item->entry->team);
    ml_click_put_number(&rows->frames, (uint64_t)id);
    put_string(&rows->frames, frame->function);
    put_string(&rows->frames, frame->module);
    put_string(&rows->frames, frame->build_id);
    put_whole(&rows->frames, frame->offset);
    return ml_id_map_put(&rows->frames_put, (struct ml_id_map_entry){.id = id});
}

/* A stack with its callers; a report's parents come first, and a contract bounds their number. */
static bool put_stack(
    struct ml_click_rows *rows,
    const struct ml_store_item *item,
    const struct ml_click_ids *ids,
    uint32_t number
) {
    int64_t stacks[MEMLOG_FLEET_MAX_FRAMES_IN_STACK];
    int64_t frames[MEMLOG_FLEET_MAX_FRAMES_IN_STACK];
    size_t first = MEMLOG_FLEET_MAX_FRAMES_IN_STACK;
    for (uint32_t at = number; at != 0 && first > 0;) {
        const struct memlog_fleet_stack *stack = &item->report->stacks[at - 1];
        first--;
        stacks[first] = ids->stacks[at];
        frames[first] = ids->frames[stack->frame];
        if (!put_frame(rows, item, ids, stack->frame)) {
            return false;
        }
        at = stack->parent;
    }
    const size_t count = MEMLOG_FLEET_MAX_FRAMES_IN_STACK - first;
    put_word(&rows->stacks, item->entry->team);
    ml_click_put_number(&rows->stacks, (uint64_t)ids->stacks[number]);
    ml_click_put_number(&rows->stacks, (uint64_t)ids->names[number]);
    ml_click_put_ids(&rows->stacks, stacks + first, count);
    ml_click_put_ids(&rows->stacks, frames + first, count);
    return ml_id_map_put(&rows->stacks_put, (struct ml_id_map_entry){.id = ids->stacks[number]});
}

bool ml_click_rows_of_stacks(
    struct ml_click_rows *rows,
    const struct ml_store_item *item,
    const struct ml_click_ids *ids,
    const struct ml_id_map *sent
) {
    for (size_t i = 0; i < item->report->rows_count; i++) {
        const uint32_t number = item->report->rows[i].stack;
        const int64_t id = ids->stacks[number];
        const bool is_there = number == 0 || ml_id_map_find(sent, id) != NULL ||
                              ml_id_map_find(&rows->stacks_put, id) != NULL;
        if (!is_there && !put_stack(rows, item, ids, number)) {
            return false;
        }
    }
    return !rows->stacks.is_failed && !rows->frames.is_failed;
}

/* ---- samples and dump */

static void put_sample(
    struct ml_click_block *block,
    const struct ml_store_item *item,
    const struct ml_click_ids *ids,
    const struct memlog_fleet_row *row,
    uint64_t batch,
    bool is_first,
    uint64_t stack_live
) {
    const struct memlog_fleet_begin_request *head = &item->report->head;
    ml_click_put_number(block, (uint64_t)ml_click_kept(item));
    ml_click_put_number(block, (uint64_t)ml_week_of(ml_store_time_ms(item)));
    put_word(block, item->entry->team);
    put_string(block, head->program);
    put_string(block, head->build_id);
    put_string(block, ml_store_host(item));
    put_word(block, item->entry->guid);
    ml_click_put_number(block, ml_store_time_ms(item));
    ml_click_put_number(block, ml_store_is_control(item));
    ml_click_put_number(block, batch);
    ml_click_put_number(block, (uint64_t)ids->stacks[row->stack]);
    ml_click_put_number(block, (uint64_t)ids->names[row->stack]);
    put_string(block, row->role);
    put_string(block, row->process);
    put_string(block, row->heap);
    put_string(block, row->type);
    ml_click_put_number(block, is_first);
    put_whole(block, is_first ? stack_live : 0);
    put_whole(block, item->report->sums.live_bytes);
    put_whole(block, row->figures.live_bytes);
    put_whole(block, row->figures.live_blocks);
    put_whole(block, row->figures.peak_bytes);
    put_whole(block, row->figures.peak_blocks);
    put_whole(block, row->figures.total_bytes);
    put_whole(block, row->figures.total_blocks);
}

static void
put_dump(struct ml_click_block *block, const struct ml_store_item *item, uint64_t batch) {
    const struct memlog_fleet_begin_request *head = &item->report->head;
    ml_click_put_number(block, (uint64_t)ml_click_kept(item));
    ml_click_put_number(block, (uint64_t)ml_week_of(ml_store_time_ms(item)));
    put_word(block, item->entry->team);
    put_string(block, head->program);
    put_string(block, head->build_id);
    put_string(block, head->program_version);
    put_string(block, ml_store_host(item));
    put_word(block, item->entry->guid);
    ml_click_put_number(block, ml_store_time_ms(item));
    put_string(block, head->reason);
    put_string(block, head->trigger);
    ml_click_put_number(block, ml_store_is_control(item));
    ml_click_put_number(block, head->weight > 0 ? head->weight : 1);
    ml_click_put_number(block, head->complete);
    ml_click_put_number(block, head->covered);
    put_whole(block, head->sampling_bytes);
    put_whole(block, head->processes);
    put_whole(block, head->private_bytes);
    put_whole(block, head->left_bytes);
    put_whole(block, item->report->sums.live_bytes);
    put_whole(block, item->report->sums.peak_bytes);
    put_whole(block, item->report->sums.total_bytes);
    ml_click_put_number(block, batch);
    ml_click_put_number(block, ml_store_told(item));
    ml_click_put_number(block, head->promised_ppm);
    ml_click_put_number(block, head->cost_ppm);
}

bool ml_click_rows_of_report(
    struct ml_click_rows *rows,
    const struct ml_store_item *item,
    const struct ml_click_ids *ids,
    uint64_t batch
) {
    const struct ml_collect_report *report = item->report;
    uint64_t *lives = calloc(report->stacks_count + 1, sizeof(*lives));
    bool *was_put = calloc(report->stacks_count + 1, sizeof(*was_put));
    const bool is_room = lives != NULL && was_put != NULL;
    for (size_t i = 0; is_room && i < report->rows_count; i++) {
        lives[report->rows[i].stack] += report->rows[i].figures.live_bytes;
    }
    for (size_t i = 0; is_room && i < report->rows_count; i++) {
        const struct memlog_fleet_row *row = &report->rows[i];
        put_sample(&rows->samples, item, ids, row, batch, !was_put[row->stack], lives[row->stack]);
        was_put[row->stack] = true;
    }
    if (is_room) {
        put_dump(&rows->dumps, item, batch);
    }
    free(lives);
    free(was_put);
    return is_room && !rows->samples.is_failed && !rows->dumps.is_failed;
}

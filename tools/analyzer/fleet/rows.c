#include "tools/analyzer/fleet/rows.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/model/memory.h"

void ml_fleet_rows_fini(struct ml_fleet_rows *rows) {
    ml_string_table_fini(&rows->strings);
    ml_index_fini(&rows->frames_index);
    ml_index_fini(&rows->stacks_index);
    ml_index_fini(&rows->rows_index);
    free(rows->frames);
    free(rows->stacks);
    free(rows->rows);
    *rows = (struct ml_fleet_rows){.is_failed = false};
}

/* Room for one more of a list. False: there is none. */
static bool reserve(
    struct ml_fleet_rows *rows,
    void **list,
    size_t *capacity,
    size_t count,
    size_t size,
    size_t most
) {
    enum { FIRST = 256 };
    if (count >= most) {
        rows->is_full = true;
        return false;
    }
    if (count < *capacity) {
        return true;
    }
    const size_t wanted = *capacity > 0 ? *capacity * 2 : FIRST;
    void *grown = reallocarray(*list, wanted, size);
    if (!grown) {
        rows->is_failed = true;
        return false;
    }
    *list = grown;
    *capacity = wanted;
    return true;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

/* ---- strings */

/* So many bytes of the text are whole characters within `most`. */
static size_t cut_at(const char *text, size_t most) {
    size_t count = strnlen(text, most + 1);

    if (count <= most) {
        return count;
    }
    count = most;
    while (count > 0 && ((unsigned char)text[count] & 0xc0) == 0x80) {
        count--;
    }
    return count;
}

uint32_t ml_fleet_string(struct ml_fleet_rows *rows, const char *text, size_t most_bytes) {
    enum { ROOM = MEMLOG_FLEET_MAX_NAME_BYTES + 1 };
    char plain[ROOM];
    const size_t most = most_bytes < ROOM - 1 ? most_bytes : ROOM - 1;
    const size_t count = cut_at(text, most);
    uint32_t number = 0;

    for (size_t i = 0; i < count; i++) {
        plain[i] = (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i];
    }
    if (rows->strings.count == 0) {
        (void)ml_string_table_copy(&rows->strings, "", 0);
    }
    number = ml_string_table_copy(&rows->strings, plain, count);
    rows->is_failed = rows->is_failed || number == ML_STRING_NONE;
    return number == ML_STRING_NONE ? 0 : number;
}

struct ml_string ml_fleet_string_of(const struct ml_fleet_rows *rows, uint32_t string) {
    if (string >= rows->strings.count) {
        return ml_string_of("");
    }
    return (struct ml_string
    ){.data = rows->strings.strings[string].bytes,
      .count_bytes = (uint32_t)rows->strings.strings[string].count_bytes};
}

/* ---- frames and stacks */

static bool is_same_frame(const struct ml_fleet_frame *a, const struct ml_fleet_frame *b) {
    return a->function == b->function && a->module == b->module && a->build_id == b->build_id &&
           a->offset == b->offset;
}

/* ML_INDEX_NONE: no room. */
static uint32_t frame_number(struct ml_fleet_rows *rows, const struct ml_fleet_frame *frame) {
    const uint64_t hash =
        mix(mix(mix(mix(1, frame->function), frame->module), frame->build_id), frame->offset);
    size_t at = 0;
    uint32_t item = ml_index_first(&rows->frames_index, hash, &at);

    while (item != ML_INDEX_NONE && !is_same_frame(&rows->frames[item], frame)) {
        item = ml_index_next(&rows->frames_index, hash, &at);
    }
    if (item != ML_INDEX_NONE || !reserve(
                                     rows,
                                     (void **)&rows->frames,
                                     &rows->frames_capacity,
                                     rows->frames_count,
                                     sizeof *rows->frames,
                                     MEMLOG_FLEET_MAX_FRAMES
                                 )) {
        return item;
    }
    if (!ml_index_add(&rows->frames_index, hash, (uint32_t)rows->frames_count)) {
        rows->is_failed = true;
        return ML_INDEX_NONE;
    }
    rows->frames[rows->frames_count] = *frame;
    return (uint32_t)rows->frames_count++;
}

uint32_t
ml_fleet_stack(struct ml_fleet_rows *rows, uint32_t parent, const struct ml_fleet_frame *frame) {
    const uint32_t depth = parent == ML_FLEET_NO_STACK ? 0 : rows->stacks[parent - 1].depth;
    const uint32_t number =
        depth < MEMLOG_FLEET_MAX_FRAMES_IN_STACK ? frame_number(rows, frame) : ML_INDEX_NONE;
    const uint64_t hash = mix(mix(2, parent), number);
    size_t at = 0;
    uint32_t item = ML_INDEX_NONE;

    if (number == ML_INDEX_NONE) {
        return parent;
    }
    item = ml_index_first(&rows->stacks_index, hash, &at);
    while (item != ML_INDEX_NONE &&
           (rows->stacks[item].parent != parent || rows->stacks[item].frame != number)) {
        item = ml_index_next(&rows->stacks_index, hash, &at);
    }
    if (item != ML_INDEX_NONE) {
        return item + 1;
    }
    if (!reserve(
            rows,
            (void **)&rows->stacks,
            &rows->stacks_capacity,
            rows->stacks_count,
            sizeof *rows->stacks,
            MEMLOG_FLEET_MAX_STACKS
        )) {
        return parent;
    }
    if (!ml_index_add(&rows->stacks_index, hash, (uint32_t)rows->stacks_count)) {
        rows->is_failed = true;
        return parent;
    }
    rows->stacks[rows->stacks_count] =
        (struct ml_fleet_stack){.parent = parent, .frame = number, .depth = depth + 1};
    return (uint32_t)++rows->stacks_count;
}

/* ---- rows */

static bool is_same_row(const struct ml_fleet_row *a, const struct ml_fleet_row *b) {
    return a->role == b->role && a->process == b->process && a->heap == b->heap &&
           a->type == b->type && a->stack == b->stack;
}

static void add(uint64_t *sum, uint64_t more) {
    if (__builtin_add_overflow(*sum, more, sum)) {
        *sum = UINT64_MAX;
    }
}

static void figures_add(struct memlog_fleet_figures *sum, const struct memlog_fleet_figures *more) {
    add(&sum->live_bytes, more->live_bytes);
    add(&sum->live_blocks, more->live_blocks);
    add(&sum->peak_bytes, more->peak_bytes);
    add(&sum->peak_blocks, more->peak_blocks);
    add(&sum->total_bytes, more->total_bytes);
    add(&sum->total_blocks, more->total_blocks);
}

void ml_fleet_row(struct ml_fleet_rows *rows, const struct ml_fleet_row *row) {
    const uint64_t hash =
        mix(mix(mix(mix(mix(3, row->role), row->process), row->heap), row->type), row->stack);
    size_t at = 0;
    uint32_t item = ml_index_first(&rows->rows_index, hash, &at);

    while (item != ML_INDEX_NONE && !is_same_row(&rows->rows[item], row)) {
        item = ml_index_next(&rows->rows_index, hash, &at);
    }
    if (item != ML_INDEX_NONE) {
        figures_add(&rows->rows[item].figures, &row->figures);
        return;
    }
    if (!reserve(
            rows,
            (void **)&rows->rows,
            &rows->rows_capacity,
            rows->rows_count,
            sizeof *rows->rows,
            MEMLOG_FLEET_MAX_ROWS
        )) {
        return;
    }
    if (!ml_index_add(&rows->rows_index, hash, (uint32_t)rows->rows_count)) {
        rows->is_failed = true;
        return;
    }
    rows->rows[rows->rows_count++] = *row;
}

static bool are_strings(const struct ml_fleet_rows *rows, const uint32_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] != 0 && numbers[i] >= rows->strings.count) {
            return false;
        }
    }
    return true;
}

bool ml_fleet_rows_check(const struct ml_fleet_rows *rows) {
    bool holds = true;

    for (size_t i = 0; i < rows->frames_count; i++) {
        const struct ml_fleet_frame *frame = &rows->frames[i];
        const uint32_t numbers[] = {frame->function, frame->module, frame->build_id};
        holds = holds && are_strings(rows, numbers, sizeof numbers / sizeof numbers[0]);
    }
    for (size_t i = 0; i < rows->stacks_count; i++) {
        const struct ml_fleet_stack *stack = &rows->stacks[i];
        const uint32_t above =
            stack->parent == ML_FLEET_NO_STACK ? 0 : rows->stacks[stack->parent - 1].depth;
        holds = holds && stack->parent <= i && stack->frame < rows->frames_count &&
                stack->depth == above + 1 && stack->depth <= MEMLOG_FLEET_MAX_FRAMES_IN_STACK;
    }
    for (size_t i = 0; i < rows->rows_count; i++) {
        const struct ml_fleet_row *row = &rows->rows[i];
        const uint32_t numbers[] = {row->role, row->process, row->heap, row->type};
        holds = holds && row->stack <= rows->stacks_count &&
                are_strings(rows, numbers, sizeof numbers / sizeof numbers[0]);
    }
    return holds;
}

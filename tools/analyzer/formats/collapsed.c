#include "tools/analyzer/formats/collapsed.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "ipc/wire/event.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/progress/progress.h"

struct line {
    const char *text;
    uint64_t bytes;
};

/* One process's lines. */
struct lines {
    struct ml_arena arena;
    struct line *lines;
    size_t count, capacity;
    char *text; /* the line at hand */
    size_t text_count, text_capacity;
    uint32_t *path; /* the stack at hand, innermost first */
    size_t path_count, path_capacity;
};

static bool put_bytes(struct lines *lines, const char *bytes, size_t count_bytes) {
    if (!ML_GROW(lines->text, lines->text_capacity, lines->text_count + count_bytes + 2)) {
        return false;
    }
    for (size_t i = 0; i < count_bytes; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        if (byte < 0x20 || byte == 0x7f) {
            byte = '?';
        }
        lines->text[lines->text_count++] = byte == ';' ? ':' : (char)byte;
    }
    return true;
}

/* A frame behind those that are there. */
static bool put_frame(struct lines *lines, const char *text, size_t count_bytes) {
    if (!put_bytes(lines, text, count_bytes)) {
        return false;
    }
    lines->text[lines->text_count++] = ';';
    return true;
}

static bool put_place(struct lines *lines, const struct ml_stacks *stacks, uint32_t number) {
    const struct ml_place *place = &stacks->places[number];
    char buffer[ML_PLACE_NAME_BYTES];
    char unnamed[ML_PLACE_NAME_BYTES + 256];
    const char *name = ml_place_name(place, buffer);

    for (size_t i = place->symbols_count; i > 0; i--) {
        const char *function = stacks->symbols[place->first_symbol + i - 1].function;
        if (!function[0]) {
            function = name;
        }
        if (!put_frame(lines, function, strlen(function))) {
            return false;
        }
    }
    if (place->symbols_count > 0) {
        return true;
    }
    if (place->file != ML_STACKS_NONE) {
        const char *file = basename(stacks->files[place->file].path.bytes);
        snprintf(unnamed, sizeof unnamed, "%.200s+%s", file, buffer);
        name = unnamed;
    }
    return put_frame(lines, name, strlen(name));
}

/* The stack's text; the line is closed. */
static bool put_stack(
    struct lines *lines,
    const struct ml_profile_process *process,
    const struct ml_stacks *stacks,
    uint32_t node
) {
    char pid[sizeof " (4294967295)"];

    lines->text_count = 0;
    lines->path_count = 0;
    for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
        if (!ML_GROW(lines->path, lines->path_capacity, lines->path_count + 1)) {
            return false;
        }
        lines->path[lines->path_count++] = stacks->nodes[node].place;
    }
    snprintf(pid, sizeof pid, " (%" PRIu32 ")", process->pid);
    if (!put_bytes(lines, process->name.bytes, process->name.count_bytes) ||
        !put_frame(lines, pid, strlen(pid))) {
        return false;
    }
    for (size_t i = lines->path_count; i > 0; i--) {
        if (!put_place(lines, stacks, lines->path[i - 1])) {
            return false;
        }
    }
    if (lines->path_count == 0 && !put_frame(lines, "[no stack]", sizeof "[no stack]" - 1)) {
        return false;
    }
    lines->text_count--; /* the last ';' */
    return true;
}

static bool add_line(struct lines *lines, uint64_t bytes) {
    struct line line = {
        .text = ml_arena_text(&lines->arena, lines->text, lines->text_count), .bytes = bytes};

    if (!line.text || !ML_GROW(lines->lines, lines->capacity, lines->count + 1)) {
        return false;
    }
    lines->lines[lines->count++] = line;
    return true;
}

static int order_lines(const void *left, const void *right) {
    return strcmp(((const struct line *)left)->text, ((const struct line *)right)->text);
}

static void print_lines(struct lines *lines, FILE *out) {
    ML_SORT(lines->lines, lines->count, order_lines);
    for (size_t i = 0; i < lines->count;) {
        uint64_t bytes = 0;
        size_t same = i;

        for (; same < lines->count && strcmp(lines->lines[i].text, lines->lines[same].text) == 0;
             same++) {
            bytes += lines->lines[same].bytes;
        }
        ml_printable_put_text(out, lines->lines[i].text);
        fprintf(out, " %" PRIu64 "\n", bytes);
        i = same;
    }
}

static uint64_t bytes_of(const struct ml_stack *stack, enum ml_metric metric) {
    return metric == ML_METRIC_PEAK ? stack->tree_peak_bytes : ml_metric_bytes(&stack->own, metric);
}

enum ml_status
ml_collapsed_write(const struct ml_stacks *stacks, enum ml_metric metric, FILE *out) {
    const struct ml_profile *profile = stacks->profile;
    bool done = true;

    for (size_t p = 0; done && p < profile->processes_count; p++) {
        const struct ml_profile_process *process = &profile->processes[p];
        const struct ml_stack_list *list = &stacks->processes[p];
        struct lines lines = {0};

        for (size_t i = 0; done && i < list->count; i++) {
            uint64_t bytes = bytes_of(&list->stacks[i], metric);
            ml_progress_pieces("Writing stacks", i, list->count, process->name.bytes);
            done = bytes == 0 || (put_stack(&lines, process, stacks, list->stacks[i].node) &&
                                  add_line(&lines, bytes));
        }
        if (done) {
            print_lines(&lines, out);
        }
        free(lines.lines);
        free(lines.text);
        free(lines.path);
        ml_arena_fini(&lines.arena);
    }
    return done ? ML_OK : ML_ENV_MEMORY;
}

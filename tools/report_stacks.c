#include "tools/report_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/event.h"
#include "tools/function_name.h"
#include "tools/words.h"

enum {
    STACKS_SHOWN = 5,       /* of each list, when the user says nothing */
    FRAMES_SHOWN = 8,       /* of each stack: the innermost, and main's side */
    OUTER_FRAMES_SHOWN = 2, /* of those, outermost */
    FILES_SHOWN = 5,        /* without names */
};

/* Which of a stack's figures a list is about. */
enum metric { METRIC_LIVE, METRIC_PEAK };

/* One line of a stack. */
struct line {
    char name[ML_REPORT_NAME_BYTES];
    char where[ML_REPORT_NAME_BYTES];
    bool is_main;
};

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void line_of(
    const struct ml_stacks *stacks,
    const struct ml_place *place,
    const struct ml_symbol *symbol,
    struct line *line
) {
    char buffer[ML_PLACE_NAME_BYTES];
    const char *module =
        place->file == ML_STACKS_NONE ? "" : base_name(stacks->files[place->file].path.bytes);
    bool has_name = symbol && symbol->function[0];

    line->is_main = has_name && strcmp(symbol->function, "main") == 0;
    snprintf(
        line->name,
        sizeof line->name,
        "%s",
        has_name ? symbol->function : ml_place_name(place, buffer)
    );
    if (symbol && symbol->file[0]) {
        snprintf(
            line->where, sizeof line->where, "%s:%" PRIu32, base_name(symbol->file), symbol->line
        );
    } else {
        snprintf(line->where, sizeof line->where, "%s", module);
    }
}

/* All lines of a stack, innermost first, down to main. NULL: no memory. Owner: the caller's. */
static struct line *lines_of(const struct ml_stacks *stacks, uint32_t node, size_t *out_count) {
    struct line *lines = NULL;
    size_t capacity = 0;
    size_t count = 0;

    for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
        const struct ml_place *place = &stacks->places[stacks->nodes[node].place];
        size_t here = place->symbols_count > 0 ? place->symbols_count : 1;

        if (place->kind == ML_FRAME_THREAD) {
            continue;
        }
        if (!ml_grow((void **)&lines, &capacity, count + here, sizeof *lines)) {
            break;
        }
        for (size_t i = 0; i < here; i++) {
            const struct ml_symbol *symbol =
                place->symbols_count > 0 ? &stacks->symbols[place->first_symbol + i] : NULL;
            line_of(stacks, place, symbol, &lines[count++]);
        }
        if (lines[count - 1].is_main) {
            break; /* what the C library does before main says nothing */
        }
    }
    *out_count = count;
    return lines;
}

static void put_line(const struct ml_report_page *page, const struct line *line) {
    enum { INDENT = 6, GAP = 2 };
    char name[ML_REPORT_NAME_BYTES];
    char where[ML_REPORT_NAME_BYTES];
    size_t width = page->style->width - INDENT;
    size_t where_columns = 0;

    ml_function_name_fit(line->where, width / 2, where, sizeof where);
    where_columns = ml_text_columns(where);
    ml_function_name_fit(line->name, width - where_columns - GAP, name, sizeof name);
    fprintf(page->out, "%*s", INDENT, "");
    ml_report_put(page, name);
    fprintf(
        page->out,
        "%*s%s",
        (int)(width - ml_text_columns(name) - where_columns),
        "",
        ml_report_dim(page)
    );
    ml_report_put(page, where);
    fprintf(page->out, "%s\n", ml_report_plain(page));
}

static void put_frames(const struct ml_report_page *page, uint32_t node) {
    size_t count = 0;
    struct line *lines = lines_of(page->report->stacks, node, &count);

    if (count == 0) {
        fputs("      (no stack was recorded)\n", page->out);
    }
    for (size_t i = 0; i < count; i++) {
        if (count > FRAMES_SHOWN + 1 && i == FRAMES_SHOWN - OUTER_FRAMES_SHOWN) {
            size_t left_out = count - FRAMES_SHOWN;
            fprintf(
                page->out,
                "      %s... %zu frames ...%s\n",
                ml_report_dim(page),
                left_out,
                ml_report_plain(page)
            );
            i += left_out;
        }
        put_line(page, &lines[i]);
    }
    free(lines);
}

static uint64_t bytes_of(const struct ml_stack *stack, enum metric metric) {
    return metric == METRIC_LIVE ? stack->own.live_bytes : stack->own.peak_bytes;
}

static uint64_t blocks_of(const struct ml_stack *stack, enum metric metric) {
    return metric == METRIC_LIVE ? stack->own.live_blocks : stack->own.peak_blocks;
}

static void put_stack(
    const struct ml_report_page *page,
    size_t number,
    const struct ml_stack *stack,
    enum metric metric,
    uint64_t whole_bytes
) {
    struct ml_profile_text thread = ml_stacks_thread(page->report->stacks, stack->node);
    uint64_t bytes = bytes_of(stack, metric);
    uint64_t blocks = blocks_of(stack, metric);
    char size[ML_WORDS_BYTES];
    char count[ML_WORDS_BYTES];
    double share = whole_bytes > 0 ? 100.0 * (double)bytes / (double)whole_bytes : 0;

    fprintf(
        page->out,
        "%s%3zu. %s%s  %.1f %%  %sin %s block%s",
        number > 1 ? "\n" : "",
        number,
        ml_report_bold(page),
        ml_words_size(bytes, size),
        share,
        ml_report_plain(page),
        ml_words_count(blocks, count),
        ml_report_plural(blocks)
    );
    if (thread.count_bytes > 0) {
        fputs(", thread ", page->out);
        ml_report_put(page, thread.bytes);
    }
    putc('\n', page->out);
    put_frames(page, stack->node);
}

static int order_stacks(const void *left, const void *right, void *context) {
    const enum metric *metric = context;
    uint64_t a = bytes_of(left, *metric);
    uint64_t b = bytes_of(right, *metric);

    return (a < b) - (a > b);
}

/* The tree's stacks by one figure. */
static void put_list(
    const struct ml_report_page *page, const char *title, const char *what, enum metric metric
) {
    const struct ml_stack_list *list = &page->report->stacks->tree;
    const struct ml_profile_totals *tree = &page->report->profile->tree;
    uint64_t whole_bytes = metric == METRIC_LIVE ? tree->live_bytes : tree->peak_bytes;
    size_t wanted = page->report->limit > 0 ? page->report->limit : STACKS_SHOWN;
    struct ml_stack *stacks = calloc(list->count + 1, sizeof *stacks);
    char rest[128];
    size_t count = 0;

    if (!stacks) {
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        if (bytes_of(&list->stacks[i], metric) > 0) {
            stacks[count++] = list->stacks[i];
        }
    }
    if (count > 0) {
        qsort_r(stacks, count, sizeof *stacks, order_stacks, &metric);
        snprintf(
            rest,
            sizeof rest,
            "%s%zu of %zu stack%s",
            what,
            wanted < count ? wanted : count,
            count,
            ml_report_plural(count)
        );
        ml_report_heading(page, title, rest);
        for (size_t i = 0; i < count && i < wanted; i++) {
            put_stack(page, i + 1, &stacks[i], metric, whole_bytes);
        }
    }
    free(stacks);
}

void ml_report_stacks(const struct ml_report_page *page) {
    put_list(page, "Who holds what is live", "", METRIC_LIVE);
    put_list(page, "Who held the peak", "", METRIC_PEAK);
}

void ml_report_nameless(const struct ml_report_page *page) {
    const struct ml_stacks *stacks = page->report->stacks;
    size_t shown = 0;

    for (size_t i = 0; i < stacks->files_count; i++) {
        const struct ml_code_file *file = &stacks->files[i];
        if (!file->trouble || file->path.bytes[0] == '[') {
            continue;
        }
        if (shown == 0) {
            ml_report_heading(page, "Names missing", "install the debug symbols of these");
        }
        if (shown++ == FILES_SHOWN) {
            fputs("  ...\n", page->out);
            return;
        }
        fputs("  ", page->out);
        ml_report_put(page, file->path.bytes);
        fprintf(page->out, ": %s\n", file->trouble);
    }
}

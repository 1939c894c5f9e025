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

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static struct ml_report_line line_of(
    const struct ml_stacks *stacks, const struct ml_place *place, const struct ml_symbol *symbol
) {
    struct ml_report_line line = {.module = "", .file = "", .offset = place->offset};

    if (place->file != ML_STACKS_NONE) {
        line.module = base_name(stacks->files[place->file].path.bytes);
    }
    if (symbol) {
        line.name = symbol->function[0] ? symbol->function : NULL;
        line.file = base_name(symbol->file);
        line.source_line = symbol->line;
    }
    if (place->kind != ML_FRAME_ADDRESS) {
        line.name = ml_place_name(place, NULL); /* needs no buffer: it is no address */
    }
    return line;
}

/* What the C library does before main or a thread's function says nothing. */
static bool is_startup(const char *name) {
    static const char *const names[] = {
        "_start",
        "__libc_start_main",
        "__libc_start_main_impl",
        "__libc_start_call_main",
        "start_thread",
        "clone",
        "__clone",
        "clone3",
        "__clone3",
        "__GI___clone3"};

    for (size_t i = 0; name && i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

struct ml_report_line *
ml_report_lines(const struct ml_stacks *stacks, uint32_t node, size_t *out_count) {
    struct ml_report_line *lines = NULL;
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
            lines[count++] = line_of(stacks, place, symbol);
        }
        if (count > here && is_startup(lines[count - 1].name)) {
            count -= here;
            break;
        }
    }
    *out_count = count;
    return lines;
}

static void put_line(const struct ml_report_page *page, const struct ml_report_line *line) {
    enum { INDENT = 6, GAP = 2 };
    char name[ML_REPORT_NAME_BYTES];
    char fitted[ML_REPORT_NAME_BYTES];
    char where[ML_REPORT_NAME_BYTES];
    size_t width = page->style->width - INDENT;
    size_t name_columns = width * 2 / 3;

    if (line->name) {
        ml_function_name_fit(line->name, name_columns - GAP, fitted, sizeof fitted);
    } else {
        snprintf(
            name,
            sizeof name,
            "%s%s0x%" PRIx64,
            line->module,
            line->module[0] ? "+" : "",
            line->offset
        );
        ml_function_name_fit(name, name_columns - GAP, fitted, sizeof fitted);
    }
    where[0] = '\0';
    if (line->file[0]) {
        snprintf(where, sizeof where, "%s:%" PRIu32, line->file, line->source_line);
    } else if (line->name) {
        snprintf(where, sizeof where, "%s", line->module);
    }
    fprintf(page->out, "%*s", INDENT, "");
    ml_report_put(page, fitted);
    if (where[0]) {
        fprintf(
            page->out,
            "%*s%s",
            (int)(name_columns - ml_text_columns(fitted)),
            "",
            ml_report_dim(page)
        );
        ml_function_name_fit(where, width - name_columns, name, sizeof name);
        ml_report_put(page, name);
        fputs(ml_report_plain(page), page->out);
    }
    putc('\n', page->out);
}

void ml_report_frames(const struct ml_report_page *page, uint32_t node) {
    size_t count = 0;
    struct ml_report_line *lines = ml_report_lines(page->report->stacks, node, &count);

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

uint64_t ml_report_bytes(const struct ml_stack *stack, enum ml_report_metric metric) {
    return metric == ML_REPORT_LIVE ? stack->own.live_bytes : stack->own.peak_bytes;
}

static uint64_t blocks_of(const struct ml_stack *stack, enum ml_report_metric metric) {
    return metric == ML_REPORT_LIVE ? stack->own.live_blocks : stack->own.peak_blocks;
}

static void put_stack(
    const struct ml_report_page *page,
    size_t number,
    const struct ml_stack *stack,
    enum ml_report_metric metric,
    uint64_t whole_bytes
) {
    struct ml_profile_text thread = ml_stacks_thread(page->report->stacks, stack->node);
    uint64_t bytes = ml_report_bytes(stack, metric);
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
    ml_report_frames(page, stack->node);
}

static int order_stacks(const void *left, const void *right, void *context) {
    const enum ml_report_metric *metric = context;
    uint64_t a = ml_report_bytes(left, *metric);
    uint64_t b = ml_report_bytes(right, *metric);

    return (a < b) - (a > b);
}

struct ml_stack *ml_report_sorted(
    const struct ml_report_page *page, enum ml_report_metric metric, size_t *out_count
) {
    const struct ml_stack_list *list = &page->report->stacks->tree;
    struct ml_stack *stacks = calloc(list->count + 1, sizeof *stacks);
    size_t count = 0;

    for (size_t i = 0; stacks && i < list->count; i++) {
        if (ml_report_bytes(&list->stacks[i], metric) > 0) {
            stacks[count++] = list->stacks[i];
        }
    }
    if (count > 1) {
        qsort_r(stacks, count, sizeof *stacks, order_stacks, &metric);
    }
    *out_count = count;
    return stacks;
}

static void
put_list(const struct ml_report_page *page, const char *title, enum ml_report_metric metric) {
    const struct ml_profile_totals *tree = &page->report->profile->tree;
    uint64_t whole_bytes = metric == ML_REPORT_LIVE ? tree->live_bytes : tree->peak_bytes;
    size_t wanted = page->report->limit > 0 ? page->report->limit : STACKS_SHOWN;
    size_t count = 0;
    struct ml_stack *stacks = ml_report_sorted(page, metric, &count);
    char rest[64];

    if (count > 0) {
        snprintf(
            rest,
            sizeof rest,
            "%zu of %zu stack%s",
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
    put_list(page, "Who holds what is live", ML_REPORT_LIVE);
    put_list(page, "Who held the peak", ML_REPORT_PEAK);
}

/* How many of a file's places are known, and how many have names. */
struct naming {
    size_t places, named;
    uint32_t file;
};

static int order_nameless(const void *left, const void *right) {
    const struct naming *a = left;
    const struct naming *b = right;
    size_t a_missing = a->places - a->named;
    size_t b_missing = b->places - b->named;

    return (a_missing < b_missing) - (a_missing > b_missing);
}

static bool has_name(const struct ml_stacks *stacks, const struct ml_place *place) {
    return place->symbols_count > 0 && stacks->symbols[place->first_symbol].function[0];
}

void ml_report_nameless(const struct ml_report_page *page) {
    const struct ml_stacks *stacks = page->report->stacks;
    struct naming *namings = calloc(stacks->files_count + 1, sizeof *namings);

    if (!namings) {
        return;
    }
    for (uint32_t i = 0; i < stacks->files_count; i++) {
        namings[i].file = i;
    }
    for (size_t i = 0; i < stacks->places_count; i++) {
        const struct ml_place *place = &stacks->places[i];
        if (place->file != ML_STACKS_NONE) {
            namings[place->file].places++;
            namings[place->file].named += has_name(stacks, place);
        }
    }
    qsort(namings, stacks->files_count, sizeof *namings, order_nameless);
    for (size_t i = 0; i < stacks->files_count && i < FILES_SHOWN; i++) {
        const struct ml_code_file *file = &stacks->files[namings[i].file];
        size_t missing = namings[i].places - namings[i].named;

        if (missing < namings[i].places / 10 + 1) {
            break;
        }
        if (i == 0) {
            ml_report_heading(
                page, "Names missing", "debug symbols of these files would give them"
            );
        }
        fputs("  ", page->out);
        ml_report_put(page, file->path.bytes);
        fprintf(page->out, ": %zu of %zu places", missing, namings[i].places);
        if (file->trouble) {
            fprintf(page->out, ", %s", file->trouble);
        }
        putc('\n', page->out);
    }
    free(namings);
}

#include "tools/analyzer/report/internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "ipc/wire/event.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/names/allocator_frames.h"
#include "tools/analyzer/names/function_name.h"
#include "tools/analyzer/names/plumbing.h"

enum {
    STACKS_SHOWN = 5,        /* of each list by default */
    FRAMES_SHOWN = 8,        /* of each stack: the innermost and the outermost */
    OUTER_FRAMES_SHOWN = 2,  /* how many of them are outermost */
    SCRIPT_FRAMES_SHOWN = 3, /* how many of them are a script's, if they lie further out */
    FILES_SHOWN = 5,         /* files without names */
};

static struct ml_report_line line_of(
    const struct ml_stacks *stacks, const struct ml_place *place, const struct ml_symbol *symbol
) {
    struct ml_report_line line = {
        .module = "",
        .file = place->kind == ML_FRAME_SCOPE ? "scope" : "",
        .offset = place->offset,
        .is_script = ml_place_is_script(place)};

    if (place->file != ML_STACKS_NONE) {
        line.module = basename(stacks->files[place->file].path.bytes);
    }
    if (symbol) {
        line.name = symbol->function[0] ? symbol->function : NULL;
        line.file = basename(symbol->file);
        line.is_runtime = strncmp(symbol->file, "node:", sizeof "node:" - 1) == 0;
        line.source_line = symbol->line;
    }
    if (place->kind != ML_FRAME_ADDRESS && !line.name) {
        line.name = ml_place_name(place, NULL); /* only the name of an address needs a buffer */
    }
    return line;
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
        if (!ML_GROW(lines, capacity, count + here)) {
            break;
        }
        for (size_t i = 0; i < here; i++) {
            const struct ml_symbol *symbol =
                place->symbols_count > 0 ? &stacks->symbols[place->first_symbol + i] : NULL;
            lines[count++] = line_of(stacks, place, symbol);
        }
        if (count > here && lines[count - 1].name && ml_is_startup(lines[count - 1].name)) {
            count -= here;
            break;
        }
    }
    *out_count = count;
    return lines;
}

const char *
ml_report_line_name(const struct ml_report_line *line, char buffer[ML_REPORT_NAME_BYTES]) {
    if (line->name) {
        return line->name;
    }
    snprintf(buffer, ML_REPORT_NAME_BYTES, "%s+0x%" PRIx64, line->module, line->offset);
    return buffer;
}

static void put_line(const struct ml_report_page *page, const struct ml_report_line *line) {
    enum { INDENT = 6, GAP = 2 };
    char name[ML_REPORT_NAME_BYTES];
    char fitted[ML_REPORT_NAME_BYTES];
    char where[ML_REPORT_NAME_BYTES];
    size_t width = page->style->width - INDENT;
    size_t name_columns = width * 2 / 3;
    const char *shown = NULL;

    shown = ml_report_line_name(line, name);
    shown += !line->name && !line->module[0]; /* without a module the "+" is left out */
    ml_function_name_fit(shown, name_columns - GAP, fitted, sizeof fitted);
    where[0] = '\0';
    if (line->file[0] && line->source_line == 0) {
        snprintf(where, sizeof where, "%s", line->file);
    } else if (line->file[0]) {
        snprintf(where, sizeof where, "%s:%" PRIu32, line->file, line->source_line);
    } else if (line->name) {
        snprintf(where, sizeof where, "%s", line->module);
    }
    fprintf(page->out, "%*s", INDENT, "");
    ml_report_put(page, fitted);
    if (where[0]) {
        ml_report_print(page, "%*s" ML_DIM, (int)(name_columns - ml_printable_columns(fitted)), "");
        ml_function_name_fit(where, width - name_columns, name, sizeof name);
        ml_report_put(page, name);
        ml_report_print(page, ML_PLAIN);
    }
    putc('\n', page->out);
}

/* How many of the innermost lines are allocator frames. 0 if all are, so that some lines are
 * left. */
static size_t count_allocator_frames(const struct ml_report_line *lines, size_t count) {
    size_t at = 0;

    while (at < count && lines[at].name && ml_is_allocator_frame(lines[at].name)) {
        at++;
    }
    return at < count ? at : 0;
}

static void put_lines(
    const struct ml_report_page *page, const struct ml_report_line *lines, size_t from, size_t end
) {
    for (size_t i = from; i < end; i++) {
        put_line(page, &lines[i]);
    }
}

static void put_gap(const struct ml_report_page *page, size_t left_out) {
    if (left_out > 0) {
        ml_report_print(
            page,
            "      " ML_DIM "... %zu frame%s ..." ML_PLAIN "\n",
            left_out,
            ml_report_plural(left_out)
        );
    }
}

/* The innermost and the outermost lines. A script's own functions lie between those of its
 * interpreter, and the first of them are shown, too: it is them that a reader looks for. */
static void
put_some(const struct ml_report_page *page, const struct ml_report_line *lines, size_t count) {
    const size_t outer = count - OUTER_FRAMES_SHOWN;
    size_t inner = FRAMES_SHOWN - OUTER_FRAMES_SHOWN;
    size_t script = 0;

    while (script < outer && !lines[script].is_script) {
        script++;
    }
    if (script + SCRIPT_FRAMES_SHOWN <= inner || script == outer) {
        put_lines(page, lines, 0, inner);
        put_gap(page, outer - inner);
    } else {
        size_t end = script + SCRIPT_FRAMES_SHOWN;
        end = end < outer ? end : outer;
        inner -= SCRIPT_FRAMES_SHOWN;
        put_lines(page, lines, 0, inner);
        put_gap(page, script - inner);
        put_lines(page, lines, script, end);
        put_gap(page, outer - end);
    }
    put_lines(page, lines, outer, count);
}

void ml_report_frames(const struct ml_report_page *page, uint32_t node) {
    size_t count = 0;
    struct ml_report_line *all = ml_report_lines(page->report->stacks, node, &count);
    const struct ml_report_line *lines = all;

    if (!page->report->is_every_frame_shown) {
        size_t allocator_frames = count_allocator_frames(all, count);
        lines = all != NULL ? all + allocator_frames : NULL;
        count -= allocator_frames;
    }

    if (count == 0) {
        fputs("      (no stack was recorded)\n", page->out);
    }
    if (count > FRAMES_SHOWN + 1) {
        put_some(page, lines, count);
    } else {
        put_lines(page, lines, 0, count);
    }
    free(all);
}

static void put_stack(
    const struct ml_report_page *page,
    size_t number,
    const struct ml_stack *stack,
    enum ml_metric metric,
    uint64_t whole_bytes
) {
    struct ml_profile_text thread = ml_stacks_thread(page->report->stacks, stack->node);
    uint64_t bytes = ml_metric_bytes(&stack->own, metric);
    uint64_t blocks = ml_metric_blocks(&stack->own, metric);
    double share = whole_bytes > 0 ? 100.0 * (double)bytes / (double)whole_bytes : 0;

    ml_report_print(
        page,
        "%s%3zu. " ML_BOLD "%s  %.1f %%  " ML_PLAIN "%s%sin %s block%s",
        number > 1 ? "\n" : "",
        number,
        ml_units_size(bytes).text,
        share,
        ml_metric_is_of_pages(metric) ? ml_units_size(stack->own.live_bytes).text : "",
        ml_metric_is_of_pages(metric) ? " live " : "",
        ml_units_count(blocks).text,
        ml_report_plural(blocks)
    );
    if (page->report->order == ML_ORDER_TEMPORARY) {
        fprintf(page->out, ", %s freed at once", ml_units_count(stack->temporary_blocks).text);
    }
    if (thread.count_bytes > 0) {
        fputs(", thread ", page->out);
        ml_report_put(page, thread.bytes);
    }
    putc('\n', page->out);
    ml_report_frames(page, stack->node);
}

struct stack_order {
    enum ml_metric metric;
    enum ml_breakdown_order order;
};

static uint64_t weight_of(const struct ml_stack *stack, const struct stack_order *order) {
    switch (order->order) {
    case ML_ORDER_BLOCKS:
        return ml_metric_blocks(&stack->own, order->metric);
    case ML_ORDER_TEMPORARY:
        return stack->temporary_blocks;
    default:
        return ml_metric_bytes(&stack->own, order->metric);
    }
}

static int order_stacks(const void *left, const void *right, void *context) {
    uint64_t a = weight_of(left, context);
    uint64_t b = weight_of(right, context);

    return (a < b) - (a > b);
}

struct ml_stack *ml_report_sorted(
    const struct ml_report_page *page,
    enum ml_metric metric,
    enum ml_breakdown_order order,
    size_t *out_count
) {
    const struct ml_stack_list *list = &page->report->stacks->tree;
    struct stack_order by = {.metric = metric, .order = order};
    struct ml_stack *stacks = calloc(list->count + 1, sizeof *stacks);
    size_t count = 0;

    for (size_t i = 0; stacks && i < list->count; i++) {
        if (weight_of(&list->stacks[i], &by) > 0) {
            stacks[count++] = list->stacks[i];
        }
    }
    if (count > 1) {
        qsort_r(stacks, count, sizeof *stacks, order_stacks, &by);
    }
    *out_count = count;
    return stacks;
}

const char *ml_report_rest(
    const struct ml_report *report, size_t shown, size_t count, char out_rest[ML_REPORT_REST_BYTES]
) {
    snprintf(
        out_rest,
        ML_REPORT_REST_BYTES,
        "%zu of %zu%s%s",
        shown,
        count,
        report->list == ML_LIST_ROWS ? ""
        : count == 1                 ? " stack"
                                     : " stacks",
        report->stacks->is_filtered ? ", of those that were asked for" : ""
    );
    return out_rest;
}

static void put_list(
    const struct ml_report_page *page,
    const char *title,
    enum ml_metric metric,
    enum ml_breakdown_order order
) {
    uint64_t whole_bytes = ml_metric_bytes(&page->report->profile->tree, metric);
    size_t wanted = page->report->limit > 0 ? page->report->limit : STACKS_SHOWN;
    size_t count = 0;
    struct ml_stack *stacks = ml_report_sorted(page, metric, order, &count);
    char rest[ML_REPORT_REST_BYTES];

    if (count > 0) {
        ml_report_heading(
            page, title, ml_report_rest(page->report, wanted < count ? wanted : count, count, rest)
        );
        for (size_t i = 0; i < count && i < wanted; i++) {
            put_stack(page, i + 1, &stacks[i], metric, whole_bytes);
        }
    }
    free(stacks);
}

const char *ml_report_live_title(const struct ml_profile *profile) {
    if (!profile->is_ended_shown) {
        return "Who holds what is live";
    }
    return ml_profile_anyone_runs(profile) ? "Who holds what is live, or held it at its end"
                                           : "Who held what was left at exit";
}

/* The list that the user asked for. */
static void put_wished(const struct ml_report_page *page) {
    static const char *const titles[] = {
        "Who holds what is live",
        "Who held the peak",
        "Who allocated",
        "Whose live blocks are resident",
        "Whose live blocks waste pages",
        "Whose live blocks hold pages alone"}; /* in the metric's order */
    const struct ml_report *report = page->report;
    const char *title = report->metric == ML_METRIC_LIVE ? ml_report_live_title(report->profile)
                                                         : titles[report->metric];

    if (report->order == ML_ORDER_BLOCKS) {
        static const char *const of_blocks[] = {
            "Who holds most live blocks",
            "Who held most blocks of the peak",
            "Who allocated most often"};
        title = of_blocks[ml_metric_is_of_pages(report->metric) ? ML_METRIC_LIVE : report->metric];
    } else if (report->order == ML_ORDER_TEMPORARY) {
        title = "Who frees at once what it allocates";
    }
    put_list(page, title, report->metric, report->order);
}

void ml_report_stacks(const struct ml_report_page *page) {
    switch (page->report->list) {
    case ML_LIST_STACKS:
        put_wished(page);
        break;
    case ML_LIST_ROWS:
        ml_report_breakdown(page);
        break;
    default:
        put_list(page, ml_report_live_title(page->report->profile), ML_METRIC_LIVE, ML_ORDER_SELF);
        put_list(page, "Who held the peak", ML_METRIC_PEAK, ML_ORDER_SELF);
        break;
    }
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
        char hex[ML_PROFILE_HEX_BYTES];

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
        /* Debug files are found by build id. */
        fprintf(
            page->out,
            " (%sbuild id%s%s): %zu of %zu places",
            file->build_id.count_bytes > 0 ? "" : "no ",
            file->build_id.count_bytes > 0 ? " " : "",
            ml_profile_hex(file->build_id, hex),
            missing,
            namings[i].places
        );
        if (file->trouble) {
            fputs(", ", page->out);
            ml_report_put(page, file->trouble);
        }
        putc('\n', page->out);
    }
    free(namings);
}

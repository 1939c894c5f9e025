#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/names/allocator_frames.h"
#include "tools/analyzer/stacks/attribution.h"
#include "tools/analyzer/names/function_name.h"

enum {
    HOLDERS_SHOWN = 5,
    HOLDERS_MAX = 20000,  /* only so many stacks are read, the largest */
    CALLERS_SHOWN = 4,    /* of each, innermost first */
    FIGURES_COLUMNS = 24, /* in front of the callers */
};

/* With less than this share of the peak live, the summary shows who held the peak instead. */
enum { LIVE_PERCENT_MIN = 10 };

/* Stacks with the same callers. */
struct holder {
    char callers[ML_REPORT_CALLERS_BYTES];
    uint64_t bytes;
};

/* Text that grows while there is room. */
struct callers {
    char *text;
    size_t at, columns;
    size_t shown;
    const char *nameless_in; /* the module of the last frame if it has no name; else NULL */
};

/* False: there is no room. */
static bool add_caller(struct callers *callers, const char *name) {
    const size_t needed = strlen(name) + (callers->shown > 0 ? 3 : 0);

    if (callers->at + needed > callers->columns) {
        return false;
    }
    callers->at += (size_t)snprintf(
        callers->text + callers->at,
        ML_REPORT_CALLERS_BYTES - callers->at,
        "%s%s",
        callers->shown > 0 ? " < " : "",
        name
    );
    callers->shown++;
    return true;
}

/* Show frames without a name, too. Otherwise their callers would get the blame. Several such frames
 * of one module in a row are shown as one. */
static bool add_nameless(struct callers *callers, const char *module) {
    char words[ML_REPORT_CALLERS_BYTES];

    if (callers->nameless_in && strcmp(callers->nameless_in, module) == 0) {
        return true;
    }
    snprintf(words, sizeof words, "(no names%s%.60s)", module[0] ? " in " : "", module);
    callers->nameless_in = module;
    return add_caller(callers, words);
}

/* The innermost function of a script, best one that is not node's own; 0: there is none. */
static size_t first_script(const struct ml_report_line *lines, size_t count) {
    static const char own[] = "node:";
    size_t first = 0;

    for (size_t i = 0; i < count; i++) {
        if (lines[i].is_script && strncmp(lines[i].file, own, sizeof own - 1) != 0) {
            return i;
        }
        first = lines[i].is_script && first == 0 ? i : first;
    }
    return first;
}

void ml_report_callers_in(
    const struct ml_report_page *page,
    uint32_t node,
    size_t columns,
    char out_callers[ML_REPORT_CALLERS_BYTES]
) {
    struct callers callers = {
        .text = out_callers,
        .columns = columns < ML_REPORT_CALLERS_BYTES - 1 ? columns : ML_REPORT_CALLERS_BYTES - 1};
    size_t count = 0;
    struct ml_report_line *lines = ml_report_lines(page->report->stacks, node, &count);

    const size_t script = first_script(lines, count);

    out_callers[0] = '\0';
    for (size_t i = 0; i < count && callers.shown < CALLERS_SHOWN; i++) {
        char name[ML_REPORT_NAME_BYTES];
        bool has_room = true;

        if (i < script && callers.shown > 0) {
            continue; /* what an interpreter does is less than who has it done */
        }
        if (!lines[i].name && ml_attribution_is_common_name(lines[i].module) && i + 1 < count) {
            continue; /* functions of common libraries only pass memory on */
        }
        if (!lines[i].name) {
            has_room = add_nameless(&callers, lines[i].module);
        } else if (lines[i].name[0] != '[' && (!ml_is_allocator_frame(lines[i].name) || i + 1 == count)) {
            /* "[frames left out]" is not a caller. */
            ml_function_name_brief(lines[i].name, name, sizeof name);
            callers.nameless_in = NULL;
            has_room = add_caller(&callers, name);
        }
        if (!has_room) {
            break;
        }
    }
    if (callers.shown == 0) {
        snprintf(out_callers, ML_REPORT_CALLERS_BYTES, "(no names)");
    }
    free(lines);
}

void ml_report_callers(
    const struct ml_report_page *page, uint32_t node, char out_callers[ML_REPORT_CALLERS_BYTES]
) {
    ml_report_callers_in(page, node, page->style->width - FIGURES_COLUMNS, out_callers);
}

static int order_callers(const void *left, const void *right) {
    const struct holder *a = left;
    const struct holder *b = right;

    return strcmp(a->callers, b->callers);
}

static int order_bytes(const void *left, const void *right) {
    const struct holder *a = left;
    const struct holder *b = right;

    return (a->bytes < b->bytes) - (a->bytes > b->bytes);
}

/* Merge the stacks that have the same callers, largest first. NULL: no memory, or no stacks. Owner:
 * the caller. */
static struct holder *
holders_of(const struct ml_report_page *page, enum ml_metric metric, size_t *out_count) {
    size_t count = 0;
    size_t merged = 0;
    struct ml_stack *stacks = ml_report_sorted(page, metric, ML_ORDER_SELF, &count);
    struct holder *holders = NULL;

    count = count < HOLDERS_MAX ? count : HOLDERS_MAX;
    holders = calloc(count + 1, sizeof *holders);
    *out_count = 0;
    if (!stacks || !holders || count == 0) {
        free(stacks);
        free(holders);
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        ml_report_callers(page, stacks[i].node, holders[i].callers);
        holders[i].bytes = ml_metric_bytes(&stacks[i].own, metric);
    }
    free(stacks);
    qsort(holders, count, sizeof *holders, order_callers);
    for (size_t i = 1; i < count; i++) {
        if (order_callers(&holders[merged], &holders[i]) == 0) {
            holders[merged].bytes += holders[i].bytes;
        } else {
            holders[++merged] = holders[i];
        }
    }
    *out_count = merged + 1;
    qsort(holders, *out_count, sizeof *holders, order_bytes);
    return holders;
}

static void put_holders(const struct ml_report_page *page) {
    const struct ml_profile_totals *tree = &page->report->profile->tree;
    bool live = tree->live_bytes / LIVE_PERCENT_MIN >= tree->peak_bytes / 100;
    enum ml_metric metric = live ? ML_METRIC_LIVE : ML_METRIC_PEAK;
    uint64_t whole_bytes = live ? tree->live_bytes : tree->peak_bytes;
    size_t count = 0;
    struct holder *holders = holders_of(page, metric, &count);

    if (count > 0) {
        ml_report_heading(
            page, live ? ml_report_live_title(page->report->profile) : "Who held the peak", ""
        );
    }
    for (size_t i = 0; i < count && i < HOLDERS_SHOWN; i++) {
        ml_report_print(
            page,
            "  %5.1f %%  " ML_BOLD "%10s" ML_PLAIN "   ",
            whole_bytes > 0 ? 100.0 * (double)holders[i].bytes / (double)whole_bytes : 0.0,
            ml_units_size(holders[i].bytes).text
        );
        ml_report_put(page, holders[i].callers);
        putc('\n', page->out);
    }
    free(holders);
}

void ml_report_summary(
    const struct ml_report *report, const struct ml_report_style *style, FILE *out
) {
    const struct ml_report_page page = {
        .report = report, .style = style, .out = out, .is_summary = true};

    ml_report_answer(&page);
    put_holders(&page);
}

/* What a short text tells of a stack: who needs the memory, and for whom. Room: tools.
 *
 * One rule: plumbing (tools/analyzer/names/plumbing.h) is left out, unless nothing else is left or
 * it was asked for. A frame without a name is shown, as its callers would get the blame. */
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "tools/analyzer/names/function_name.h"
#include "tools/analyzer/names/plumbing.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/stacks/attribution.h"

enum { FIGURES_COLUMNS = 24 /* in front of the callers */ };

/* The innermost function of a script, best one that is not node's own; 0: there is none. */
static size_t first_script(const struct ml_report_line *lines, size_t count) {
    size_t first = 0;

    for (size_t i = 0; i < count; i++) {
        if (lines[i].is_script && !lines[i].is_runtime) {
            return i;
        }
        first = lines[i].is_script && first == 0 ? i : first;
    }
    return first;
}

static void put_where(const struct ml_report_line *line, struct ml_told_frame *frame) {
    if (line->file[0] && line->source_line > 0) {
        snprintf(frame->file, sizeof frame->file, "%s", line->file);
        frame->line = line->source_line;
    }
}

/* Frames without names, one behind another. */
struct nameless {
    const char *module; /* NULL: the frame before has a name */
    unsigned count;
};

/* Several frames without names of one module in a row are one. False: nothing was added. */
static bool add_nameless(struct ml_told *told, const char *module, struct nameless *nameless) {
    struct ml_told_frame *frame = &told->frames[told->count];

    if (nameless->module && strcmp(nameless->module, module) == 0) {
        nameless->count++;
        return false;
    }
    snprintf(frame->name, sizeof frame->name, "(no names%s%.60s)", module[0] ? " in " : "", module);
    *nameless = (struct nameless){.module = module, .count = 1};
    return true;
}

/* Whether a function with a name stands for the few without one that it called in its own file.
 * They can be static functions of a file that names its exported ones alone. */
static bool stands_for(
    const struct ml_report_line *line, const struct ml_told *told, const struct nameless *nameless
) {
    enum { NAMELESS_PASSED = 3 };

    return told->count == 1 && nameless->module && nameless->count <= NAMELESS_PASSED &&
           strcmp(nameless->module, line->module) == 0;
}

static void add_named(struct ml_told *told, const struct ml_report_line *line) {
    struct ml_told_frame *frame = &told->frames[told->count];

    ml_function_name_brief(line->name, frame->name, sizeof frame->name);
    if (!frame->name[0]) { /* "(anonymous)" */
        snprintf(frame->name, sizeof frame->name, "%s", line->name);
    }
    if (told->count > 0 && strcmp(frame[-1].name, frame->name) == 0) {
        return; /* recursion, or what the compiler made of one function */
    }
    put_where(line, frame);
    frame->is_script = line->is_script;
    told->count++;
}

static bool is_left_out(
    const struct ml_report_page *page, const struct ml_report_line *line, bool is_the_only_one
) {
    if (!line->name) {
        /* Functions of common libraries only pass memory on. */
        return ml_attribution_is_common_name(line->module) && !is_the_only_one;
    }
    return line->name[0] == '[' || /* "[frames left out]" is not a caller */
           (!page->report->is_every_frame_shown && ml_is_plumbing(line->name) && !is_the_only_one);
}

void ml_report_tell(const struct ml_report_page *page, uint32_t node, struct ml_told *out) {
    size_t count = 0;
    struct ml_report_line *lines = ml_report_lines(page->report->stacks, node, &count);
    const size_t script = first_script(lines, count);
    struct nameless nameless = {.module = NULL};

    out->count = 0;
    out->asker = 0;
    for (size_t i = 0; i < count && out->count < ML_TOLD_MAX; i++) {
        if ((i < script && out->count > 0) || /* an interpreter does less than who has it done */
            is_left_out(page, &lines[i], i + 1 == count && out->count == 0)) {
            continue;
        }
        out->frames[out->count] = (struct ml_told_frame){.name = ""};
        if (!lines[i].name) {
            out->count += add_nameless(out, lines[i].module, &nameless);
            continue;
        }
        out->count -= stands_for(&lines[i], out, &nameless);
        out->asker = i == script && script > 0 ? out->count : out->asker;
        add_named(out, &lines[i]);
        nameless.module = NULL;
    }
    if (out->count == 0) {
        out->frames[out->count++] = (struct ml_told_frame){.name = "(no names)"};
    }
    out->asker = out->asker < out->count ? out->asker : 0;
    free(lines);
}

void ml_report_callers_in(
    const struct ml_report_page *page,
    uint32_t node,
    size_t columns,
    char out_callers[ML_REPORT_CALLERS_BYTES]
) {
    enum { CALLERS_SHOWN = 4 };
    struct ml_told told;
    size_t at = 0;

    columns = columns < ML_REPORT_CALLERS_BYTES - 1 ? columns : ML_REPORT_CALLERS_BYTES - 1;
    ml_report_tell(page, node, &told);
    ml_function_name_fit(told.frames[0].name, columns, out_callers, ML_REPORT_CALLERS_BYTES);
    at = strlen(out_callers);
    for (size_t i = 1; i < told.count && i < CALLERS_SHOWN; i++) {
        const char *name = told.frames[i].name;
        if (ml_printable_columns(out_callers) + 3 + ml_printable_columns(name) > columns ||
            at + 4 + strlen(name) > ML_REPORT_CALLERS_BYTES) {
            break;
        }
        at += (size_t)snprintf(out_callers + at, ML_REPORT_CALLERS_BYTES - at, " < %s", name);
    }
}

void ml_report_callers_of(
    const struct ml_report *report,
    uint32_t node,
    size_t columns,
    char out_callers[ML_REPORT_CALLERS_BYTES]
) {
    const struct ml_report_page page = {.report = report};

    ml_report_callers_in(&page, node, columns, out_callers);
}

void ml_report_callers(
    const struct ml_report_page *page, uint32_t node, char out_callers[ML_REPORT_CALLERS_BYTES]
) {
    ml_report_callers_in(page, node, page->style->width - FIGURES_COLUMNS, out_callers);
}

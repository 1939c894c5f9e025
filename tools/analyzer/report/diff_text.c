#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/names/function_name.h"
#include "tools/analyzer/stacks/attribution.h"
#include "tools/analyzer/stacks/process_pairs.h"

enum { STACKS_SHOWN = 5 };

/* The larger minus the smaller. */
static uint64_t distance(uint64_t from, uint64_t to) {
    return from < to ? to - from : from - to;
}

static uint64_t change_of(const struct ml_diff_stack *stack, enum ml_metric metric) {
    return distance(
        ml_metric_bytes(&stack->sides[ML_DIFF_FROM], metric),
        ml_metric_bytes(&stack->sides[ML_DIFF_TO], metric)
    );
}

/* Largest change first, then the largest change in allocated bytes, then by node. */
static int order_by_change(const void *left, const void *right, void *context) {
    const struct ml_diff_stack *a = left;
    const struct ml_diff_stack *b = right;
    const enum ml_metric *metric = context;
    uint64_t a_change = change_of(a, *metric);
    uint64_t b_change = change_of(b, *metric);

    if (a_change == b_change) {
        a_change = change_of(a, ML_METRIC_TOTAL);
        b_change = change_of(b, ML_METRIC_TOTAL);
    }
    if (a_change != b_change) {
        return a_change < b_change ? 1 : -1;
    }
    return (a->node > b->node) - (a->node < b->node);
}

void ml_report_diff_sort(struct ml_diff *diff, enum ml_metric metric) {
    if (diff->count > 1) {
        qsort_r(diff->stacks, diff->count, sizeof diff->stacks[0], order_by_change, &metric);
    }
}

/* ---- JSON */

static void put_side(struct ml_json *json, const char *name, const struct ml_report *side) {
    ml_json_open_member(json, name, '{');
    ml_report_json_dump(json, side);
    ml_json_open_member(json, "tree", '{');
    ml_report_json_tree(json, side->profile);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

static void
put_totals(struct ml_json *json, const char *name, const struct ml_profile_totals *totals) {
    ml_json_open_member(json, name, '{');
    ml_report_json_totals(json, totals);
    ml_json_close(json, '}');
}

static void put_groups(
    struct ml_json *json,
    const char *name,
    const struct ml_diff_groups *groups,
    const char *member,
    bool tells_known
) {
    if (groups->count == 0) {
        return;
    }
    ml_json_open_member(json, name, '[');
    for (size_t i = 0; i < groups->count; i++) {
        const struct ml_diff_group *group = &groups->rows[i];

        ml_json_line(json);
        ml_json_open(json, '{');
        ml_json_string_member(json, member, group->name);
        if (tells_known) {
            ml_json_string_member(json, "known", group->known);
        }
        put_totals(json, "from", &group->sides[ML_DIFF_FROM]);
        put_totals(json, "to", &group->sides[ML_DIFF_TO]);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
    ml_json_line(json);
}

void ml_report_diff_json(
    const struct ml_report sides[ML_DIFF_SIDES], const struct ml_diff *diff, FILE *out
) {
    struct ml_json json = ml_json_over(out);
    size_t limit = sides[ML_DIFF_TO].limit;
    size_t count = limit > 0 && limit < diff->count ? limit : diff->count;

    ml_json_open(&json, '{');
    ml_json_number_member(&json, "memlog", 1);
    put_side(&json, "from", &sides[ML_DIFF_FROM]);
    ml_json_line(&json);
    put_side(&json, "to", &sides[ML_DIFF_TO]);
    ml_json_line(&json);
    put_groups(&json, "types", &diff->types, "type", true);
    put_groups(&json, "heaps", &diff->heaps, "heap", false);
    ml_json_open_member(&json, "stacks", '[');
    for (size_t i = 0; i < count; i++) {
        const struct ml_diff_stack *stack = &diff->stacks[i];
        const struct ml_stacks *stacks = sides[stack->side].stacks;
        struct ml_profile_text thread = ml_stacks_thread(stacks, stack->node);

        ml_json_line(&json);
        ml_json_open(&json, '{');
        put_totals(&json, "from", &stack->sides[ML_DIFF_FROM]);
        put_totals(&json, "to", &stack->sides[ML_DIFF_TO]);
        ml_json_text_member(&json, "thread", thread.bytes, thread.count_bytes);
        ml_report_json_frames(&json, stacks, stack->node);
        ml_json_close(&json, '}');
    }
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    putc('\n', out);
}

/* The frames' names, innermost first. */
static void put_stackframes(struct ml_json *json, const struct ml_stacks *stacks, uint32_t node) {
    size_t count = 0;
    struct ml_report_line *lines = ml_report_lines(stacks, node, &count);

    ml_json_open_member(json, "stackframes", '[');
    for (size_t i = 0; i < count; i++) {
        char buffer[ML_REPORT_NAME_BYTES];

        ml_json_string(json, ml_report_line_name(&lines[i], buffer));
    }
    ml_json_close(json, ']');
    free(lines);
}

void ml_report_diff_leaks(
    const struct ml_report sides[ML_DIFF_SIDES],
    const struct ml_diff *diff,
    enum ml_metric metric,
    FILE *out
) {
    struct ml_json json = ml_json_over(out);
    size_t limit = sides[ML_DIFF_TO].limit;
    size_t shown = 0;

    ml_json_open(&json, '[');
    for (size_t i = 0; i < diff->count && (limit == 0 || shown < limit); i++) {
        const struct ml_diff_stack *stack = &diff->stacks[i];
        const struct ml_profile_totals *from = &stack->sides[ML_DIFF_FROM];
        const struct ml_profile_totals *to = &stack->sides[ML_DIFF_TO];
        int64_t blocks = (int64_t)(ml_metric_blocks(to, metric) - ml_metric_blocks(from, metric));

        if (ml_metric_bytes(to, metric) <= ml_metric_bytes(from, metric)) {
            continue;
        }
        shown++;
        ml_json_line(&json);
        ml_json_open(&json, '{');
        ml_json_key(&json, "count");
        ml_json_integer(&json, blocks);
        ml_json_number_member(
            &json, "size", ml_metric_bytes(to, metric) - ml_metric_bytes(from, metric)
        );
        ml_json_open_member(&json, "count_by_type", '{');
        ml_json_key(&json, "[unknown]"); /* a diff does not tell types apart */
        ml_json_integer(&json, blocks);
        ml_json_close(&json, '}');
        put_stackframes(&json, sides[stack->side].stacks, stack->node);
        ml_json_close(&json, '}');
    }
    ml_json_close(&json, ']');
    putc('\n', out);
}

/* ---- text */

/* "+1.5 MiB", "-3.0 KiB", "0 B" */
static struct ml_units signed_size(uint64_t from, uint64_t to) {
    struct ml_units size = ml_units_size(distance(from, to));
    struct ml_units change;

    if (from == to) {
        return size;
    }
    snprintf(change.text, sizeof change.text, "%c%.30s", from < to ? '+' : '-', size.text);
    return change;
}

static void
put_row(const struct ml_report_page *page, const char *title, uint64_t from, uint64_t to) {
    ml_report_print(
        page,
        "  %-9s  %11s  %11s  " ML_BOLD "%12s" ML_PLAIN,
        title,
        ml_units_size(from).text,
        ml_units_size(to).text,
        signed_size(from, to).text
    );
    if (from > 0 && from != to) {
        fprintf(page->out, "  %+.1f %%", 100.0 * ((double)to - (double)from) / (double)from);
    }
    putc('\n', page->out);
}

static void put_change(
    const struct ml_report_page pages[ML_DIFF_SIDES],
    const struct ml_diff_stack *stack,
    enum ml_metric metric,
    bool is_first
) {
    const struct ml_report_page *page = &pages[ML_DIFF_TO];
    uint64_t from = ml_metric_bytes(&stack->sides[ML_DIFF_FROM], metric);
    uint64_t to = ml_metric_bytes(&stack->sides[ML_DIFF_TO], metric);

    ml_report_print(
        page,
        "%s  " ML_BOLD "%s" ML_PLAIN "  " ML_DIM,
        is_first ? "" : "\n",
        signed_size(from, to).text
    );
    if (from == 0) {
        fputs("new", page->out);
    } else if (to == 0) {
        fputs("gone", page->out);
    } else {
        fprintf(page->out, "%s -> %s", ml_units_size(from).text, ml_units_size(to).text);
    }
    ml_report_print(page, ML_PLAIN "\n");
    ml_report_frames(&pages[stack->side], stack->node);
}

/* What the changes are of. */
static const char *
rest_of(const struct ml_report_page *page, enum ml_metric metric, char out[ML_REPORT_REST_BYTES]) {
    snprintf(
        out,
        ML_REPORT_REST_BYTES,
        "%s%s",
        metric == ML_METRIC_PEAK ? "at the peak" : "",
        page->report->stacks->is_filtered ? "of what was asked for" : ""
    );
    return out;
}

/* Print the stacks that grew, or those that shrank. They are sorted by change. */
static void put_changes(
    const struct ml_report_page pages[ML_DIFF_SIDES],
    const struct ml_diff *diff,
    enum ml_metric metric,
    bool grew
) {
    const struct ml_report_page *page = &pages[ML_DIFF_TO];
    size_t wanted = page->report->limit > 0 ? page->report->limit : STACKS_SHOWN;
    char rest[ML_REPORT_REST_BYTES];
    size_t shown = 0;

    for (size_t i = 0; i < diff->count && shown < wanted; i++) {
        const struct ml_diff_stack *stack = &diff->stacks[i];
        uint64_t from = ml_metric_bytes(&stack->sides[ML_DIFF_FROM], metric);
        uint64_t to = ml_metric_bytes(&stack->sides[ML_DIFF_TO], metric);

        if (from == to || (to > from) != grew) {
            continue;
        }
        if (shown == 0) {
            ml_report_heading(page, grew ? "Grew" : "Shrank", rest_of(page, metric, rest));
        }
        put_change(pages, stack, metric, shown == 0);
        shown++;
    }
}

/* Print the types or heaps that changed, the largest change first. */
static void put_group_rows(
    const struct ml_report_page *page,
    const char *title,
    const struct ml_diff_groups *groups,
    enum ml_metric metric
) {
    enum { FIGURES_COLUMNS = 53 };
    const size_t wanted = page->report->limit > 0 ? page->report->limit : STACKS_SHOWN;
    char name[ML_REPORT_NAME_BYTES];

    for (size_t i = 0, shown = 0; i < groups->count && shown < wanted; i++) {
        const struct ml_diff_group *group = &groups->rows[i];
        const uint64_t from = ml_metric_bytes(&group->sides[ML_DIFF_FROM], metric);
        const uint64_t to = ml_metric_bytes(&group->sides[ML_DIFF_TO], metric);

        if (from == to) {
            continue;
        }
        if (shown++ == 0) {
            ml_report_heading(page, title, "by change");
        }
        ml_report_print(
            page,
            "  %-9s  %11s  %11s  " ML_BOLD "%12s" ML_PLAIN "  ",
            from == 0 ? "new"
            : to == 0 ? "gone"
                      : "",
            ml_units_size(from).text,
            ml_units_size(to).text,
            signed_size(from, to).text
        );
        ml_function_name_fit(group->name, page->style->width - FIGURES_COLUMNS, name, sizeof name);
        ml_report_put(page, name);
        putc('\n', page->out);
    }
}

/* A process that is in both dumps, or in one. */
struct process_change {
    const struct ml_profile_process *process; /* the later one, if there are two */
    uint32_t from_pid;                        /* 0: it is new */
    bool is_gone;
    uint64_t from, to;
};

static int order_processes(const void *left, const void *right) {
    const struct process_change *a = left;
    const struct process_change *b = right;
    uint64_t a_change = distance(a->from, a->to);
    uint64_t b_change = distance(b->from, b->to);

    return (a_change < b_change) - (a_change > b_change);
}

static void put_process(const struct ml_report_page *page, const struct process_change *change) {
    enum { NAME_COLUMNS = 24 };
    char name[ML_REPORT_NAME_BYTES];

    ml_report_print(
        page,
        "  %-9s  %11s  %11s  " ML_BOLD "%12s" ML_PLAIN "  %7" PRIu32 "  ",
        change->from_pid == 0 ? "new"
        : change->is_gone     ? "gone"
                              : "",
        change->from_pid != 0 ? ml_units_size(change->from).text : "",
        change->is_gone ? "" : ml_units_size(change->to).text,
        signed_size(change->from, change->to).text,
        change->process->pid
    );
    ml_function_name_fit(change->process->name.bytes, NAME_COLUMNS, name, sizeof name);
    ml_report_put(page, name);
    if (change->from_pid != 0 && change->from_pid != change->process->pid) {
        fprintf(page->out, " (was %" PRIu32 ")", change->from_pid);
    }
    putc('\n', page->out);
}

static struct process_change change_of_pair(
    const struct ml_profile *before,
    const struct ml_profile *after,
    const struct ml_process_pair *pair,
    enum ml_metric metric
) {
    struct process_change change = {.is_gone = pair->after == SIZE_MAX};

    if (pair->before != SIZE_MAX) {
        change.process = &before->processes[pair->before];
        change.from_pid = change.process->pid;
        change.from = ml_metric_bytes(&change.process->totals, metric);
    }
    if (!change.is_gone) {
        change.process = &after->processes[pair->after];
        change.to = ml_metric_bytes(&change.process->totals, metric);
    }
    return change;
}

/* What changed in each process, if either dump has several. */
static void put_processes(const struct ml_report_page pages[ML_DIFF_SIDES], enum ml_metric metric) {
    enum { PROCESSES_SHOWN = 10 };
    const struct ml_report_page *page = &pages[ML_DIFF_TO];
    const struct ml_profile *before = pages[ML_DIFF_FROM].report->profile;
    const struct ml_profile *after = page->report->profile;
    struct ml_process_pair *pairs = NULL;
    struct process_change *changes = NULL;
    size_t count = 0;

    if ((before->processes_count > 1 || after->processes_count > 1) &&
        ml_process_pairs(before, after, &pairs, &count)) {
        changes = calloc(count + 1, sizeof *changes);
    }
    for (size_t i = 0; changes && i < count; i++) {
        changes[i] = change_of_pair(before, after, &pairs[i], metric);
    }
    if (changes) {
        static const char *const meanings[] = {
            "live", "peak of each", "allocated", "resident", "waste", "alone on pages"};
        qsort(changes, count, sizeof *changes, order_processes);
        ml_report_heading(page, "Processes", meanings[metric]);
        for (size_t i = 0; i < count && i < PROCESSES_SHOWN; i++) {
            put_process(page, &changes[i]);
        }
        if (count > PROCESSES_SHOWN) {
            fprintf(page->out, "  ... and %zu that changed less\n", count - PROCESSES_SHOWN);
        }
    }
    free(pairs);
    free(changes);
}

/* A file without names has its stacks as "new" on one side and as "gone" on the other. */
static void put_nameless(const struct ml_report_page *page, const char *title) {
    const struct ml_stacks *stacks = page->report->stacks;

    for (size_t i = 0; i < stacks->files_count; i++) {
        const struct ml_code_file *file = &stacks->files[i];
        char text[ML_REPORT_NAME_BYTES];
        if (file->is_symbolized || !file->trouble || ml_attribution_is_common(file)) {
            continue;
        }
        snprintf(
            text,
            sizeof text,
            "%s: %s: %s; memlog symbolize puts names into a dump while its files are there",
            title,
            file->path.bytes,
            file->trouble
        );
        ml_report_print(page, "  " ML_WARN "NO NAMES" ML_PLAIN "  ");
        ml_report_put_wrapped(page, sizeof "  NO NAMES  " - 1, text);
        putc('\n', page->out);
        return; /* one is enough to know why */
    }
}

/* Say what limits a side's figures: losses, unseen memory, sampling. Prints nothing if nothing
 * does. */
static void put_certainty(const struct ml_report_page *page, const char *title) {
    const struct ml_profile *profile = page->report->profile;
    const uint64_t sampling_bytes = ml_profile_sampling_bytes(profile);

    if (!ml_profile_is_complete(profile)) {
        ml_report_print(
            page,
            "  " ML_WARN "NOT COMPLETE" ML_PLAIN "  %s: memlog report says what is missing\n",
            title
        );
    }
    if (!ml_profile_is_covered(profile)) {
        ml_report_print(
            page,
            "  " ML_WARN "NOT COVERED" ML_PLAIN
            "   %s: memlog report says whose memory went unseen\n",
            title
        );
    }
    if (sampling_bytes > 1) {
        fprintf(
            page->out,
            "  estimated  %s: from samples, one every %s on average\n",
            title,
            ml_units_size(sampling_bytes).text
        );
    }
    put_nameless(page, title);
}

/* The word for what the sides show as live. */
static const char *live_word(const struct ml_report sides[ML_DIFF_SIDES]) {
    const struct ml_profile *from = sides[ML_DIFF_FROM].profile;
    const struct ml_profile *to = sides[ML_DIFF_TO].profile;

    if (!from->is_ended_shown && !to->is_ended_shown) {
        return "live";
    }
    return ml_profile_anyone_runs(from) || ml_profile_anyone_runs(to) ? "live+left" : "left";
}

void ml_report_diff_text(
    const struct ml_report sides[ML_DIFF_SIDES],
    const struct ml_diff *diff,
    enum ml_metric metric,
    const struct ml_report_style *style,
    FILE *out
) {
    const struct ml_report_page pages[ML_DIFF_SIDES] = {
        {.report = &sides[ML_DIFF_FROM], .style = style, .out = out},
        {.report = &sides[ML_DIFF_TO], .style = style, .out = out},
    };
    const struct ml_report_page *page = &pages[ML_DIFF_TO];
    const struct ml_profile_totals *from = &sides[ML_DIFF_FROM].profile->tree;
    const struct ml_profile_totals *to = &sides[ML_DIFF_TO].profile->tree;

    fprintf(out, "from  ");
    ml_report_put(page, sides[ML_DIFF_FROM].file_path);
    fprintf(out, "\nto    ");
    ml_report_put(page, sides[ML_DIFF_TO].file_path);
    ml_report_print(
        page, "\n" ML_DIM "  %-9s  %11s  %11s  %12s" ML_PLAIN "\n", "", "from", "to", "change"
    );
    put_row(page, live_word(sides), from->live_bytes, to->live_bytes);
    put_row(page, "peak", from->peak_bytes, to->peak_bytes);
    put_row(page, "allocated", from->total_bytes, to->total_bytes);
    put_certainty(&pages[ML_DIFF_FROM], "from");
    put_certainty(page, "to");
    put_processes(pages, metric);
    put_changes(pages, diff, metric, true);
    put_changes(pages, diff, metric, false);
    put_group_rows(page, "Types", &diff->types, metric);
    put_group_rows(page, "Heaps", &diff->heaps, metric);
}

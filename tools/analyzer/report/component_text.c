/* Components as text. Room: tools. */
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/report/component_table.h"
#include "tools/analyzer/report/internal.h"

/* Columns of a size: "1023.9 MiB". */
enum { SIZE_COLUMNS = 12 };

static const enum ml_figure figures[] = {
    ML_FIGURE_PROPORTIONAL, ML_FIGURE_PRIVATE, ML_FIGURE_RESIDENT, ML_FIGURE_SWAPPED};
enum { FIGURES = sizeof figures / sizeof figures[0] };

static void put_size(const struct ml_report_page *page, uint64_t bytes) {
    ml_report_print(page, "%*s", SIZE_COLUMNS, bytes ? ml_units_size(bytes).text : "-");
}

/* With its sign. */
static void put_signed(const struct ml_report_page *page, int64_t bytes) {
    char text[ML_UNITS_BYTES + 1];
    const uint64_t size = bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;

    snprintf(text, sizeof text, "%s%s", bytes < 0 ? "-" : "", ml_units_size(size).text);
    ml_report_print(page, "%*s", SIZE_COLUMNS, text);
}

/* Whose memory it is, at the tree's peak. */
static void put_peak(
    const struct ml_report_page *page, const struct ml_component_dump *dump, const char *number
) {
    const uint64_t there = dump->end_lines - dump->first_line - 1 + dump->unread;

    ml_report_print(
        page,
        "%sas of %s, when all together had most private memory; %s of %s processes are in it\n",
        number,
        ml_report_time_of_day(dump->time_ns).text,
        ml_units_count(there).text,
        ml_units_count(there + dump->absent).text
    );
    if (dump->dropped > 0) {
        ml_report_print(
            page,
            "%s%s more ran then, for which memlog-service had no room\n",
            number,
            ml_units_count(dump->dropped).text
        );
    }
}

/* What must be known to read the figures. */
static void put_notes(const struct ml_report_page *page, const struct ml_component_table *table) {
    for (size_t i = 0; i < table->dumps_count; i++) {
        const struct ml_component_dump *dump = &table->dumps[i];
        const struct ml_component_line *all = &table->lines[dump->first_line];
        const uint64_t moved = all->moved < 0 ? 0 - (uint64_t)all->moved : (uint64_t)all->moved;
        char number[ML_UNITS_BYTES + 8] = "";

        if (table->dumps_count > 1) {
            snprintf(number, sizeof number, "dump %zu: ", i + 1);
        }
        if (dump->is_tree_peak) {
            put_peak(page, dump, number);
        }
        if (dump->is_ended && dump->end_lines > dump->first_line + 1) {
            ml_report_print(
                page, "%snobody runs any more: each process as it was at its largest\n", number
            );
        }
        if (all->page_tables + all->kernel_stacks > 0) {
            ml_report_print(
                page,
                "%sbeside it the kernel has %s of page tables and %s of stacks for it\n",
                number,
                ml_units_size(all->page_tables).text,
                ml_units_size(all->kernel_stacks).text
            );
        }
        if (moved > 0) {
            ml_report_print(
                page, "%s\u00b1 %s moved while it was read\n", number, ml_units_size(moved).text
            );
        }
        if (dump->held_by_others > 0) {
            ml_report_print(
                page,
                "%s%s of the same files and shared memory is held by others\n",
                number,
                ml_units_size(dump->held_by_others).text
            );
        }
        if (dump->heapless > 0) {
            ml_report_print(
                page,
                "%s%s: which part is heap is not known of %zu process%s\n",
                number,
                dump->sampled > 0 ? "sampled" : "read at the end",
                dump->heapless,
                dump->heapless == 1 ? "" : "es"
            );
        }
        if (dump->unread > 0 && !dump->is_ended) {
            ml_report_print(
                page,
                "%s%zu process%s not in it, with %s resident: the mappings were not read\n",
                number,
                dump->unread,
                dump->unread == 1 ? " is" : "es are",
                ml_units_size(dump->unread_bytes).text
            );
        }
    }
}

static void put_component(
    const struct ml_report_page *page, const struct ml_component_table *table, size_t component
) {
    ml_report_print(page, "  ");
    ml_report_put(page, table->policy->components.strings[component].bytes);
    ml_report_print(page, "\n");
}

static void put_rule(const struct ml_report_page *page, size_t columns) {
    for (size_t i = 0; i < columns; i++) {
        ml_report_print(page, "%*s", SIZE_COLUMNS, "----------");
    }
    ml_report_print(page, "\n");
}

/* The bytes of the components that are shown as one line. */
static uint64_t value_of_others(
    const struct ml_component_line *line,
    const size_t *order,
    size_t shown,
    size_t count,
    enum ml_figure figure
) {
    uint64_t bytes = 0;

    for (size_t i = shown; i < count; i++) {
        bytes += ml_component_value(line, order[i], figure);
    }
    return bytes;
}

/* How many components have a line of their own. */
static size_t shown_of(const struct ml_component_view *view, size_t count) {
    return view->limit == 0 || count <= view->limit + 1 ? count : view->limit;
}

/* All figures of one dump. */
static void put_one(
    const struct ml_report_page *page,
    const struct ml_component_view *view,
    const size_t *order,
    size_t count
) {
    const struct ml_component_table *table = view->table;
    const struct ml_component_line *all = &table->lines[0];
    const size_t processes = table->lines_count - 1;
    const size_t shown = shown_of(view, count);

    ml_report_print(page, ML_BOLD);
    ml_report_put(page, processes == 1 ? table->lines[1].name : all->name);
    ml_report_print(
        page,
        ML_PLAIN "  %zu process%s, components of policy ",
        processes,
        processes == 1 ? "" : "es"
    );
    ml_report_put(page, view->policy);
    ml_report_print(
        page,
        "\n" ML_DIM "%*s%*s%*s%*s  component" ML_PLAIN "\n",
        SIZE_COLUMNS,
        "shared out",
        SIZE_COLUMNS,
        "private",
        SIZE_COLUMNS,
        "resident",
        SIZE_COLUMNS,
        "swapped"
    );
    for (size_t i = 0; i < shown; i++) {
        for (size_t f = 0; f < FIGURES; f++) {
            put_size(page, ml_component_value(all, order[i], figures[f]));
        }
        put_component(page, table, order[i]);
    }
    if (shown < count) {
        for (size_t f = 0; f < FIGURES; f++) {
            put_size(page, value_of_others(all, order, shown, count, figures[f]));
        }
        ml_report_print(page, "  %zu others\n", count - shown);
    }
    put_rule(page, FIGURES);
    for (size_t f = 0; f < FIGURES; f++) {
        put_size(page, ml_figure_of(&all->all, figures[f]));
    }
    ml_report_print(page, "  the kernel's figure\n");
    for (size_t f = 0; f < FIGURES; f++) {
        put_signed(page, ml_component_remainder(all, figures[f]));
    }
    ml_report_print(page, "  remainder\n");
}

/* One figure of several dumps, a column each. */
static void put_several(
    const struct ml_report_page *page,
    const struct ml_component_view *view,
    const size_t *order,
    size_t count
) {
    const struct ml_component_table *table = view->table;
    const size_t shown = shown_of(view, count);

    for (size_t i = 0; i < table->dumps_count; i++) {
        ml_report_print(
            page, "dump %zu  %s  ", i + 1, ml_report_time_of_day(table->dumps[i].time_ns).text
        );
        ml_report_put(page, table->dumps[i].path);
        ml_report_print(page, "\n");
    }
    ml_report_print(page, ML_DIM);
    for (size_t i = 0; i < table->dumps_count; i++) {
        char title[ML_UNITS_BYTES];
        snprintf(title, sizeof title, "dump %zu", i + 1);
        ml_report_print(page, "%*s", SIZE_COLUMNS, title);
    }
    ml_report_print(page, "  component" ML_PLAIN "\n");
    for (size_t i = 0; i < shown; i++) {
        for (size_t d = 0; d < table->dumps_count; d++) {
            const struct ml_component_line *all = &table->lines[table->dumps[d].first_line];
            put_size(page, ml_component_value(all, order[i], view->figure));
        }
        put_component(page, table, order[i]);
    }
    for (size_t d = 0; shown < count && d < table->dumps_count; d++) {
        const struct ml_component_line *all = &table->lines[table->dumps[d].first_line];
        put_size(page, value_of_others(all, order, shown, count, view->figure));
    }
    if (shown < count) {
        ml_report_print(page, "  %zu others\n", count - shown);
    }
    put_rule(page, table->dumps_count);
    for (size_t d = 0; d < table->dumps_count; d++) {
        put_size(page, ml_figure_of(&table->lines[table->dumps[d].first_line].all, view->figure));
    }
    ml_report_print(page, "  the kernel's figure\n");
    for (size_t d = 0; d < table->dumps_count; d++) {
        put_signed(
            page, ml_component_remainder(&table->lines[table->dumps[d].first_line], view->figure)
        );
    }
    ml_report_print(page, "  remainder\n");
}

enum ml_status ml_components_text(
    const struct ml_component_view *view, const struct ml_report_style *style, FILE *out
) {
    const struct ml_report_page page = {.style = style, .out = out};
    size_t count = 0;
    size_t *order = ml_component_order(view->table, view->figure, &count);

    if (!order) {
        return ML_ENV_MEMORY;
    }
    if (view->table->dumps_count == 1) {
        put_one(&page, view, order, count);
    } else {
        put_several(&page, view, order, count);
    }
    put_notes(&page, view->table);
    free(order);
    return ML_OK;
}

/* Components for programs: JSON and comma-separated values. Room: tools. */
#include <inttypes.h>

#include "base/csv.h"
#include "base/json_writer.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/component_table.h"

/* "ended": each process as it was when it was largest itself. */
static const char *moment_of(const struct ml_component_dump *dump) {
    return dump->is_tree_peak ? "peak" : dump->is_ended ? "ended" : "dump";
}

static void json_line(
    struct ml_json *json, const struct ml_component_view *view, const struct ml_component_line *line
) {
    const struct ml_component_table *table = view->table;
    const struct ml_component_dump *dump = &table->dumps[line->dump];

    ml_json_line(json);
    ml_json_open(json, '{');
    ml_json_string_member(json, "dump", dump->path);
    ml_json_string_member(json, "time", ml_units_time_ms(dump->time_ns).text);
    ml_json_number_member(json, "pid", line->pid);
    ml_json_string_member(json, "name", line->name);
    ml_json_open_member(json, "values", '[');
    for (size_t i = 0; i < table->policy->components.count; i++) {
        ml_json_number(json, ml_component_value(line, i, view->figure));
    }
    ml_json_close(json, ']');
    ml_json_number_member(json, "total_bytes", ml_figure_of(&line->all, view->figure));
    ml_json_key(json, "remainder_bytes");
    ml_json_integer(json, ml_component_remainder(line, view->figure));
    ml_json_key(json, "moved_bytes");
    ml_json_integer(json, line->moved);
    ml_json_number_member(json, "page_tables_bytes", line->page_tables);
    ml_json_number_member(json, "kernel_stacks_bytes", line->kernel_stacks);
    if (line->pid == 0) {
        ml_json_string_member(json, "moment", moment_of(dump));
        ml_json_number_member(json, "held_by_others_bytes", dump->held_by_others);
        ml_json_number_member(json, "unread_processes", dump->unread);
        ml_json_number_member(json, "heap_unknown_processes", dump->heapless);
        ml_json_number_member(json, "unread_resident_bytes", dump->unread_bytes);
    }
    ml_json_close(json, '}');
}

void ml_components_json(const struct ml_component_view *view, FILE *out) {
    static const char *const figures[] = {
        [ML_FIGURE_PROPORTIONAL] = "pss",
        [ML_FIGURE_RESIDENT] = "rss",
        [ML_FIGURE_PRIVATE] = "private",
        [ML_FIGURE_SWAPPED] = "swap"};
    const struct ml_component_table *table = view->table;
    struct ml_json json = ml_json_over(out);

    ml_json_open(&json, '{');
    ml_json_number_member(&json, "memlog", 1);
    ml_json_string_member(&json, "policy", view->policy);
    ml_json_string_member(&json, "figure", figures[view->figure]);
    ml_json_open_member(&json, "components", '[');
    for (size_t i = 0; i < table->policy->components.count; i++) {
        const struct ml_profile_text *name = &table->policy->components.strings[i];
        ml_json_text(&json, name->bytes, name->count_bytes);
    }
    ml_json_close(&json, ']');
    ml_json_open_member(&json, "rows", '[');
    for (size_t i = 0; i < table->lines_count; i++) {
        json_line(&json, view, &table->lines[i]);
    }
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    (void)putc('\n', out);
}

void ml_components_csv(const struct ml_component_view *view, FILE *out) {
    const struct ml_component_table *table = view->table;

    fputs("time,pid,name", out);
    for (size_t i = 0; i < table->policy->components.count; i++) {
        (void)putc(',', out);
        ml_csv_text(out, table->policy->components.strings[i].bytes);
    }
    fputs(",total,remainder\n", out);
    for (size_t i = 0; i < table->lines_count; i++) {
        const struct ml_component_line *line = &table->lines[i];
        fprintf(
            out,
            "%s,%" PRIu32 ",",
            ml_units_time_ms(table->dumps[line->dump].time_ns).text,
            line->pid
        );
        ml_csv_text(out, line->name);
        for (size_t c = 0; c < table->policy->components.count; c++) {
            fprintf(out, ",%" PRIu64, ml_component_value(line, c, view->figure));
        }
        fprintf(
            out,
            ",%" PRIu64 ",%" PRId64 "\n",
            ml_figure_of(&line->all, view->figure),
            ml_component_remainder(line, view->figure)
        );
    }
}

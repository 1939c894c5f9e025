/* Components as one page of HTML: stacked bars, and the table. It loads nothing and runs no script.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/html.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/report/component_table.h"
#include "tools/analyzer/report/internal.h"

/* The chart's own units; more bars are left out, more components are one. */
enum { WIDTH = 1000, HEIGHT = 320, BARS = 200, COMPONENTS = 40 };

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<style>\n"
    ":root{color-scheme:light dark;--faint:#666}\n"
    "@media(prefers-color-scheme:dark){:root{--faint:#aaa}}\n"
    "body{font:15px/1.45 system-ui,sans-serif;max-width:80rem;margin:1.5rem auto;padding:0 1rem}\n"
    "h1{font-size:1.25rem}p{color:var(--faint);margin:.3rem 0}\n"
    "svg{width:100%;height:20rem;display:block;border-bottom:1px solid var(--faint)}\n"
    "div{overflow-x:auto}table{border-collapse:collapse;margin-top:1rem}\n"
    "td,th{text-align:right;padding:.15rem .8rem .15rem 0;white-space:nowrap}\n"
    "td:first-child,th:first-child{text-align:left}tfoot td{border-top:1px solid var(--faint)}\n"
    "i{display:inline-block;width:.9em;height:.9em;margin-right:.5em;border-radius:2px}\n"
    "</style>\n";

struct chart {
    const struct ml_component_view *view;
    const size_t *order; /* of components */
    size_t count, shown; /* the others are one */
    size_t *lines;       /* a bar each */
    size_t bars;
};

/* Neighbours differ in hue by the golden angle. */
static void put_colour(size_t number, FILE *out) {
    fprintf(out, "hsl(%zu 55%% %zu%%)", number * 137 % 360, 48 + number % 3 * 7);
}

static void put_name(const struct chart *chart, size_t number, FILE *out) {
    if (number == chart->shown) {
        fputs("others", out);
        return;
    }
    ml_html_text(out, chart->view->table->policy->components.strings[chart->order[number]].bytes);
}

/* A line's bytes of the shown component; of all others behind them. */
static uint64_t
value_of(const struct chart *chart, const struct ml_component_line *line, size_t number) {
    uint64_t bytes = 0;
    const size_t end = number == chart->shown ? chart->count : number + 1;

    for (size_t i = number; i < end; i++) {
        bytes += ml_component_value(line, chart->order[i], chart->view->figure);
    }
    return bytes;
}

static size_t values_count(const struct chart *chart) {
    return chart->shown + (chart->shown < chart->count);
}

/* What a bar is of: a dump's time, or a process. */
static void put_title(const struct chart *chart, const struct ml_component_line *line, FILE *out) {
    const struct ml_component_table *table = chart->view->table;

    if (table->dumps_count > 1) {
        fputs(ml_report_time_of_day(table->dumps[line->dump].time_ns).text, out);
    } else if (line->pid == 0) {
        fputs("all", out);
    } else {
        ml_html_text(out, line->name);
        fprintf(out, " %" PRIu32, line->pid);
    }
}

static void put_bar(const struct chart *chart, size_t bar, uint64_t most_bytes, FILE *out) {
    const struct ml_component_line *line = &chart->view->table->lines[chart->lines[bar]];
    const double width = (double)WIDTH / (double)chart->bars;
    double y = HEIGHT;

    for (size_t i = 0; i < values_count(chart); i++) {
        const uint64_t bytes = value_of(chart, line, i);
        const double height = (double)bytes / (double)most_bytes * HEIGHT;
        if (bytes == 0) {
            continue;
        }
        y -= height;
        fprintf(
            out,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"",
            (double)bar * width + width * 0.04,
            y,
            width * 0.92,
            height
        );
        put_colour(i, out);
        fputs("\"><title>", out);
        put_title(chart, line, out);
        fputs(": ", out);
        put_name(chart, i, out);
        fprintf(out, " %s</title></rect>\n", ml_units_size(bytes).text);
    }
}

static void put_chart(const struct chart *chart, FILE *out) {
    uint64_t most_bytes = 1;

    for (size_t i = 0; i < chart->bars; i++) {
        const struct ml_component_line *line = &chart->view->table->lines[chart->lines[i]];
        const uint64_t bytes = ml_figure_of(&line->all, chart->view->figure);
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    fprintf(
        out,
        "<p>%s at most; a bar for each %s</p>\n<svg viewBox=\"0 0 %d %d\" "
        "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"components\">\n",
        ml_units_size(most_bytes).text,
        chart->view->table->dumps_count > 1 ? "dump" : "process, behind that of all of them",
        WIDTH,
        HEIGHT
    );
    for (size_t i = 0; i < chart->bars; i++) {
        put_bar(chart, i, most_bytes, out);
    }
    fputs("</svg>\n", out);
}

static void put_foot(const struct chart *chart, const char *name, bool is_remainder, FILE *out) {
    fprintf(out, "<tr><td>%s</td>", name);
    for (size_t i = 0; i < chart->bars; i++) {
        const struct ml_component_line *line = &chart->view->table->lines[chart->lines[i]];
        const int64_t rest = ml_component_remainder(line, chart->view->figure);
        const uint64_t bytes = !is_remainder ? ml_figure_of(&line->all, chart->view->figure)
                                             : (rest < 0 ? 0 - (uint64_t)rest : (uint64_t)rest);
        fprintf(
            out, "<td>%s%s</td>", is_remainder && rest < 0 ? "-" : "", ml_units_size(bytes).text
        );
    }
    fputs("</tr>\n", out);
}

static void put_table(const struct chart *chart, FILE *out) {
    fputs("<div><table><thead><tr><th>component</th>", out);
    for (size_t i = 0; i < chart->bars; i++) {
        fputs("<th>", out);
        put_title(chart, &chart->view->table->lines[chart->lines[i]], out);
        fputs("</th>", out);
    }
    fputs("</tr></thead><tbody>\n", out);
    for (size_t i = 0; i < values_count(chart); i++) {
        fputs("<tr><td><i style=\"background:", out);
        put_colour(i, out);
        fputs("\"></i>", out);
        put_name(chart, i, out);
        fputs("</td>", out);
        for (size_t b = 0; b < chart->bars; b++) {
            const uint64_t bytes = value_of(chart, &chart->view->table->lines[chart->lines[b]], i);
            fprintf(out, "<td>%s</td>", bytes ? ml_units_size(bytes).text : "");
        }
        fputs("</tr>\n", out);
    }
    fputs("</tbody><tfoot>\n", out);
    put_foot(chart, "the kernel's figure", false, out);
    put_foot(chart, "remainder", true, out);
    fputs("</tfoot></table></div>\n", out);
}

/* Of one dump a bar for each line, of several the line of all of each. One process is all. */
static void choose_bars(struct chart *chart) {
    const struct ml_component_table *table = chart->view->table;

    for (size_t i = 0; i < table->lines_count && chart->bars < BARS; i++) {
        if (table->lines[i].pid == 0 || (table->dumps_count == 1 && table->lines_count > 2)) {
            chart->lines[chart->bars++] = i;
        }
    }
}

enum ml_status ml_components_html(const struct ml_component_view *view, FILE *out) {
    static const char *const figures[] = {
        [ML_FIGURE_PROPORTIONAL] = "proportional bytes (each page shared out among its processes)",
        [ML_FIGURE_RESIDENT] = "resident bytes",
        [ML_FIGURE_PRIVATE] = "private bytes",
        [ML_FIGURE_SWAPPED] = "swapped bytes"};
    struct chart chart = {.view = view};
    size_t *lines = calloc(BARS, sizeof *lines);
    size_t *order = ml_component_order(view->table, view->figure, &chart.count);

    if (!lines || !order) {
        free(lines);
        free(order);
        return ML_ENV_MEMORY;
    }
    chart.order = order;
    chart.lines = lines;
    chart.shown = chart.count > COMPONENTS ? COMPONENTS : chart.count;
    choose_bars(&chart);
    fputs(head, out);
    fputs("<title>components: ", out);
    ml_html_text(out, view->table->lines[0].name);
    fputs("</title></head><body>\n<h1>", out);
    ml_html_text(out, view->table->lines[0].name);
    fputs("</h1>\n<p>components of policy ", out);
    ml_html_text(out, view->policy);
    fprintf(out, ", %s</p>\n", figures[view->figure]);
    put_chart(&chart, out);
    put_table(&chart, out);
    fputs("</body></html>\n", out);
    free(lines);
    free(order);
    return ML_OK;
}

/* The timeline as one page of HTML. It loads nothing and runs no script. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/html.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/report/timeline.h"

/* Width and height of a curve in its own units; how many processes have one; rows of changes;
 * points of a curve. */
enum { WIDTH = 1000, HEIGHT = 120, PROCESSES = 50, CHANGES = 40, POINTS = 1500 };

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<style>\n"
    ":root{color-scheme:light dark;--line:#2a6fdb;--fill:#2a6fdb33;--faint:#666}\n"
    "@media(prefers-color-scheme:dark){:root{--line:#7fb0ff;--fill:#7fb0ff33;--faint:#aaa}}\n"
    "body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:1.5rem auto;padding:0 1rem}\n"
    "h1{font-size:1.25rem}h2{font-size:1rem;margin:1.2rem 0 .2rem}p{color:var(--faint);margin:0}\n"
    "svg{width:100%;height:7.5rem;display:block;border-bottom:1px solid var(--faint)}\n"
    "svg path{vector-effect:non-scaling-stroke}.line{fill:none;stroke:var(--line);stroke-width:2}\n"
    ".area{fill:var(--fill)}table{border-collapse:collapse;width:100%}\n"
    "td,th{text-align:left;padding:.2rem .6rem .2rem 0;vertical-align:top;overflow-wrap:anywhere}\n"
    "td:first-child,th:first-child{white-space:nowrap;text-align:right}\n"
    "</style>\n";

/* What maps times and sizes to places in the picture. */
struct scale {
    const struct ml_timeline *timeline;
    uint64_t most_bytes;
};

static void
put_place(const struct scale *scale, char command, uint64_t ms, uint64_t bytes, FILE *out) {
    const struct ml_timeline *timeline = scale->timeline;
    const uint64_t span_ms = timeline->to_ms - timeline->from_ms;
    const uint64_t clipped_ms = ms < timeline->from_ms ? timeline->from_ms
                                : ms > timeline->to_ms ? timeline->to_ms
                                                       : ms;
    const double x = (double)(clipped_ms - timeline->from_ms) / (double)span_ms * WIDTH;
    const double y = HEIGHT - (double)bytes / (double)scale->most_bytes * (HEIGHT - 4);

    fprintf(out, "%c%.1f %.1f", command, x, y);
}

/* The curve goes through the maximum of every slot, so that no peak is lost. Returns where it
 * ends. */
static uint64_t
put_path(const struct scale *scale, const struct ml_profile_series *series, FILE *out) {
    const struct ml_timeline *timeline = scale->timeline;
    struct ml_profile_point point;
    size_t at = 0;
    uint64_t end_ms = series->from_ms;
    uint64_t bytes = ml_series_at(series, timeline->from_ms);

    put_place(scale, 'M', series->from_ms, bytes, out);
    while (end_ms < timeline->to_ms && ml_series_next(series, POINTS, &at, &point)) {
        if (point.end_ms > timeline->from_ms) {
            bytes = point.most_bytes;
            put_place(scale, 'L', point.end_ms, bytes, out);
        }
        end_ms = point.end_ms;
    }
    return end_ms;
}

static void put_curve(
    const struct ml_timeline *timeline,
    const struct ml_profile_series *series,
    const char *name,
    uint32_t pid,
    FILE *out
) {
    struct scale scale = {.timeline = timeline};

    if (!ml_series_most(series, timeline->from_ms, timeline->to_ms, &scale.most_bytes)) {
        return;
    }
    fputs("<h2>", out);
    ml_html_text(out, name);
    if (pid != 0) {
        fprintf(out, " %" PRIu32, pid);
    }
    fprintf(
        out,
        "</h2><p>%s at most, %s at the end</p>\n",
        ml_units_size(scale.most_bytes).text,
        ml_units_size(ml_series_at(series, timeline->to_ms)).text
    );
    scale.most_bytes = scale.most_bytes > 0 ? scale.most_bytes : 1;
    fprintf(
        out,
        "<svg viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"live bytes\"><path class=\"area\" d=\"",
        WIDTH,
        HEIGHT
    );
    const uint64_t end_ms = put_path(&scale, series, out);
    put_place(&scale, 'L', end_ms, 0, out);
    put_place(&scale, 'L', series->from_ms, 0, out);
    fputs("Z\"/><path class=\"line\" d=\"", out);
    (void)put_path(&scale, series, out);
    fputs("\"/></svg>\n", out);
}

static void put_changes(const struct ml_timeline *timeline, FILE *out) {
    fputs(
        "<h2>What grew</h2><p>of the stacks that hold most, in that time</p>\n<table><thead><tr>"
        "<th>grew by</th><th>from, to</th><th>function</th><th>process</th></tr></thead><tbody>\n",
        out
    );
    for (size_t i = 0; i < timeline->changes_count && i < CHANGES; i++) {
        const struct ml_timeline_change *change = &timeline->changes[i];
        char name[ML_TIMELINE_NAME_BYTES];

        if (change->to_bytes <= change->from_bytes) {
            break;
        }
        fprintf(
            out,
            "<tr><td>%s</td><td>%s, %s</td><td>",
            ml_units_size(change->to_bytes - change->from_bytes).text,
            ml_units_size(change->from_bytes).text,
            ml_units_size(change->to_bytes).text
        );
        ml_timeline_name(timeline->report->stacks, change->node, name);
        ml_html_text(out, name);
        fputs(change->is_partial ? " (at least)</td><td>" : "</td><td>", out);
        ml_html_text(out, change->process->name.bytes);
        fprintf(out, " %" PRIu32 "</td></tr>\n", change->process->pid);
    }
    fputs("</tbody></table>\n", out);
}

void ml_timeline_html(const struct ml_timeline *timeline, FILE *out) {
    const struct ml_profile *profile = timeline->report->profile;
    const struct ml_profile_series *tree = ml_timeline_tree(timeline);
    size_t shown = 0;

    fputs(head, out);
    fputs("<title>timeline: ", out);
    ml_html_text(out, profile->program.bytes);
    fputs("</title></head><body>\n<h1>", out);
    ml_html_text(out, profile->program.bytes);
    fprintf(
        out,
        "</h1>\n<p>live bytes, %s to %s</p>\n",
        ml_units_time(ml_profile_realtime_ms(profile, timeline->from_ms) * 1000000).text,
        ml_units_time(ml_profile_realtime_ms(profile, timeline->to_ms) * 1000000).text
    );
    if (tree && profile->processes_count > 1) {
        put_curve(timeline, tree, "all together", 0, out);
    }
    put_changes(timeline, out);
    for (size_t i = 0; i < profile->processes_count && shown < PROCESSES; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        const struct ml_profile_series *sums = ml_timeline_sums(timeline, process);
        if (sums) {
            put_curve(timeline, sums, process->name.bytes, process->pid, out);
            shown++;
        }
    }
    fputs("</body></html>\n", out);
}

/* The timeline for programs: JSON and comma-separated values. */
#include <inttypes.h>

#include "base/csv.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/report/timeline.h"

static uint64_t time_of(const struct ml_timeline *timeline, uint64_t ms) {
    return ml_profile_realtime_ms(timeline->report->profile, ms);
}

static void time_member(
    struct ml_json *json, const char *name, const struct ml_timeline *timeline, uint64_t ms
) {
    ml_json_number_member(json, name, time_of(timeline, ms));
}

/* "from_ms", and "points": [end_ms, least, most, last, allocated bytes, allocated blocks]. */
static void put_points(
    struct ml_json *json,
    const struct ml_timeline *timeline,
    const struct ml_profile_series *series,
    size_t points_max
) {
    struct ml_profile_point point;
    size_t at = 0;

    time_member(json, "from_ms", timeline, series->from_ms);
    ml_json_open_member(json, "points", '[');
    while (ml_series_next(series, points_max, &at, &point)) {
        ml_json_open(json, '[');
        ml_json_number(json, time_of(timeline, point.end_ms));
        ml_json_number(json, point.least_bytes);
        ml_json_number(json, point.most_bytes);
        ml_json_number(json, point.last_bytes);
        if (!series->is_stack) {
            ml_json_number(json, point.total_bytes);
            ml_json_number(json, point.total_blocks);
        }
        ml_json_close(json, ']');
    }
    ml_json_close(json, ']');
}

static void put_function(struct ml_json *json, const struct ml_stacks *stacks, uint32_t node) {
    char name[ML_TIMELINE_NAME_BYTES];

    ml_timeline_name(stacks, node, name);
    ml_json_string_member(json, "function", name);
    ml_report_json_frames(json, stacks, node);
}

static void put_stacks(
    struct ml_json *json,
    const struct ml_timeline *timeline,
    const struct ml_profile_process *process,
    size_t points_max
) {
    const struct ml_report *report = timeline->report;

    ml_json_open_member(json, "stacks", '[');
    for (size_t i = 0; i < process->series_count; i++) {
        const size_t number = process->series_first + i;
        const struct ml_profile_series *series = &report->profile->series[number];
        if (series->is_stack) {
            ml_json_line(json);
            ml_json_open(json, '{');
            put_points(json, timeline, series, points_max);
            put_function(json, report->stacks, report->stacks->series[number]);
            ml_json_close(json, '}');
        }
    }
    ml_json_close(json, ']');
}

static void put_process(
    struct ml_json *json,
    const struct ml_timeline *timeline,
    const struct ml_profile_process *process,
    size_t points_max,
    bool has_stacks
) {
    const struct ml_profile_series *sums = ml_timeline_sums(timeline, process);

    if (!sums) {
        return;
    }
    ml_json_line(json);
    ml_json_open(json, '{');
    ml_json_number_member(json, "id", process->id);
    ml_json_number_member(json, "pid", process->pid);
    ml_json_text_member(json, "name", process->name.bytes, process->name.count_bytes);
    ml_json_string_member(json, "role", ml_profile_role_name(process->role));
    ml_json_string_member(json, "state", ml_profile_state_name(process->state));
    put_points(json, timeline, sums, points_max);
    if (has_stacks) {
        put_stacks(json, timeline, process, points_max);
    }
    ml_json_close(json, '}');
}

static void put_change(
    struct ml_json *json, const struct ml_report *report, const struct ml_timeline_change *change
) {
    ml_json_line(json);
    ml_json_open(json, '{');
    ml_json_number_member(json, "process_id", change->process->id);
    ml_json_number_member(json, "pid", change->process->pid);
    ml_json_text_member(
        json, "name", change->process->name.bytes, change->process->name.count_bytes
    );
    ml_json_number_member(json, "from_bytes", change->from_bytes);
    ml_json_number_member(json, "to_bytes", change->to_bytes);
    ml_json_number_member(json, "most_bytes", change->most_bytes);
    ml_json_key(json, "grown_bytes");
    ml_json_integer(json, (int64_t)(change->to_bytes - change->from_bytes));
    ml_json_bool_member(json, "at_least", change->is_partial);
    put_function(json, report->stacks, change->node);
    ml_json_close(json, '}');
}

/* Each of many processes has fewer points. That bounds the size of the answer. */
static size_t points_each(size_t points_max, size_t processes) {
    enum { WHOLE_PROCESSES = 20, LEAST_POINTS = 2 };
    const size_t share = processes > 0 ? points_max * WHOLE_PROCESSES / processes : points_max;

    if (points_max == 0 || processes <= WHOLE_PROCESSES) {
        return points_max;
    }
    return share < LEAST_POINTS ? LEAST_POINTS : share;
}

void ml_timeline_json(
    const struct ml_timeline *timeline, size_t points_max, bool has_stacks, FILE *out
) {
    const size_t points = points_each(points_max, timeline->report->profile->processes_count);
    const struct ml_report *report = timeline->report;
    const struct ml_profile_series *tree = ml_timeline_tree(timeline);
    struct ml_json json = ml_json_over(out);

    ml_json_open(&json, '{');
    ml_json_number_member(&json, "memlog", 1);
    ml_report_json_dump(&json, report);
    time_member(&json, "first_ms", timeline, timeline->first_ms);
    time_member(&json, "last_ms", timeline, timeline->last_ms);
    time_member(&json, "from_ms", timeline, timeline->from_ms);
    time_member(&json, "to_ms", timeline, timeline->to_ms);
    ml_json_line(&json);
    if (tree) {
        ml_json_open_member(&json, "tree", '{');
        put_points(&json, timeline, tree, points_max);
        ml_json_close(&json, '}');
    }
    ml_json_open_member(&json, "processes", '[');
    for (size_t i = 0; i < report->profile->processes_count; i++) {
        put_process(&json, timeline, &report->profile->processes[i], points, has_stacks);
    }
    ml_json_close(&json, ']');
    ml_json_line(&json);
    ml_json_open_member(&json, "changed", '[');
    for (size_t i = 0; i < timeline->changes_count; i++) {
        /* Take both ends of the list: what grew most, and what shrank most. */
        if (report->limit == 0 || i < report->limit ||
            i + report->limit >= timeline->changes_count) {
            put_change(&json, report, &timeline->changes[i]);
        }
    }
    ml_json_close(&json, ']');
    ml_json_line(&json);
    ml_json_open_member(&json, "passed", '[');
    for (size_t i = 0; i < timeline->passed_count && (report->limit == 0 || i < report->limit);
         i++) {
        put_change(&json, report, &timeline->passed[i]);
    }
    ml_json_close(&json, ']');
    ml_json_close(&json, '}');
    putc('\n', out);
}

/* ---- comma-separated values */

static void csv_series(
    const struct ml_timeline *timeline,
    const struct ml_profile_series *series,
    const struct ml_profile_process *process,
    const char *function,
    size_t points_max,
    FILE *out
) {
    struct ml_profile_point point;
    size_t at = 0;

    while (ml_series_next(series, points_max, &at, &point)) {
        if (point.end_ms <= timeline->from_ms) {
            continue;
        }
        fputs(ml_units_time_ms(time_of(timeline, point.end_ms) * 1000000).text, out);
        fprintf(out, ",%s,", series->is_stack ? "stack" : process ? "process" : "tree");
        if (process) {
            fprintf(out, "%" PRIu32, process->pid);
        }
        putc(',', out);
        ml_csv_text(out, process ? process->name.bytes : "");
        putc(',', out);
        ml_csv_text(out, function);
        fprintf(
            out,
            ",%" PRIu64 ",%" PRIu64 ",%" PRIu64,
            point.least_bytes,
            point.most_bytes,
            point.last_bytes
        );
        if (series->is_stack) {
            fputs(",,\r\n", out);
        } else {
            fprintf(out, ",%" PRIu64 ",%" PRIu64 "\r\n", point.total_bytes, point.total_blocks);
        }
        if (point.end_ms >= timeline->to_ms) {
            break;
        }
    }
}

void ml_timeline_csv(const struct ml_timeline *timeline, size_t points_max, FILE *out) {
    const struct ml_profile *profile = timeline->report->profile;
    const struct ml_stacks *stacks = timeline->report->stacks;
    const struct ml_profile_series *tree = ml_timeline_tree(timeline);

    fputs(
        "time,series,pid,name,function,least_live_bytes,most_live_bytes,live_bytes,"
        "total_bytes,total_blocks\r\n",
        out
    );
    if (tree) {
        csv_series(timeline, tree, NULL, "", points_max, out);
    }
    for (size_t p = 0; p < profile->processes_count; p++) {
        const struct ml_profile_process *process = &profile->processes[p];
        for (size_t i = 0; i < process->series_count; i++) {
            const size_t number = process->series_first + i;
            const struct ml_profile_series *series = &profile->series[number];
            char name[ML_TIMELINE_NAME_BYTES] = "";
            if (series->is_stack) {
                ml_timeline_name(stacks, stacks->series[number], name);
            }
            csv_series(timeline, series, process, name, points_max, out);
        }
    }
}

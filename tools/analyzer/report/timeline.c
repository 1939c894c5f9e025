#include "tools/analyzer/report/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/analyzer/model/search.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/names/allocator_frames.h"

enum { MS_PER_S = 1000, S_PER_DAY = 24 * 3600 };

/* ---- a series */

/* The point whose slot holds that time. Later times get the last point. */
static size_t slot_of(const struct ml_profile_series *series, uint64_t ms) {
    return ml_keys_until(ML_KEYS(series->points, series->points_count - 1, end_ms), ms);
}

/* A series of a process or the tree begins with 0. A stack's series may begin later, with what the
 * stack held then. */
static uint64_t first_bytes(const struct ml_profile_series *series) {
    return series->is_stack ? series->points[0].least_bytes : 0;
}

uint64_t ml_series_at(const struct ml_profile_series *series, uint64_t ms) {
    const size_t at = slot_of(series, ms);
    const uint64_t start_ms = at > 0 ? series->points[at - 1].end_ms : series->from_ms;
    const uint64_t end_ms = series->points[at].end_ms;

    if (ms >= end_ms || (ms > start_ms && ms - start_ms >= end_ms - ms)) {
        return series->points[at].last_bytes;
    }
    return at > 0 ? series->points[at - 1].last_bytes : first_bytes(series);
}

bool ml_series_most(
    const struct ml_profile_series *series, uint64_t from_ms, uint64_t to_ms, uint64_t *out_bytes
) {
    const uint64_t end_ms = series->points[series->points_count - 1].end_ms;
    uint64_t most_bytes = 0;

    if (to_ms <= series->from_ms || from_ms >= end_ms) {
        return false;
    }
    for (size_t i = slot_of(series, from_ms); i < series->points_count; i++) {
        const uint64_t bytes = series->points[i].most_bytes;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
        if (series->points[i].end_ms >= to_ms) {
            break;
        }
    }
    *out_bytes = most_bytes;
    return true;
}

bool ml_series_next(
    const struct ml_profile_series *series,
    size_t points_max,
    size_t *at,
    struct ml_profile_point *out_point
) {
    const size_t count = series->points_count;
    const size_t step =
        points_max == 0 || count <= points_max ? 1 : (count + points_max - 1) / points_max;

    if (*at >= count) {
        return false;
    }
    *out_point = series->points[*at];
    for (size_t i = *at + 1; i < count && i < *at + step; i++) {
        const struct ml_profile_point *point = &series->points[i];
        const struct ml_profile_point before = *out_point;
        *out_point = *point;
        if (before.least_bytes < point->least_bytes) {
            out_point->least_bytes = before.least_bytes;
        }
        if (before.most_bytes > point->most_bytes) {
            out_point->most_bytes = before.most_bytes;
        }
    }
    *at += step;
    return true;
}

/* ---- times */

/* The time by CLOCK_MONOTONIC. A time of day is the latest one that is not after the dump. */
static uint64_t timestamp_of(const struct ml_timeline *timeline, struct ml_time time) {
    const uint64_t day_ms = (uint64_t)S_PER_DAY * MS_PER_S;
    const uint64_t dump_ms = timeline->report->profile->now.realtime_ns / 1000000;
    const uint64_t now_ms = timeline->report->profile->now.monotonic_ns / 1000000;
    const uint64_t now_realtime_ms = ml_profile_realtime_ms(timeline->report->profile, now_ms);
    uint64_t value = time.ms;

    if (time.from == ML_TIME_AFTER_START) {
        return timeline->first_ms + value;
    }
    if (time.from == ML_TIME_BEFORE_END) {
        return value < timeline->last_ms ? timeline->last_ms - value : 0;
    }
    if (time.from == ML_TIME_OF_DAY) {
        value += dump_ms / day_ms * day_ms;
        value -= value > dump_ms && value >= day_ms ? day_ms : 0;
    }
    const uint64_t before_ms = now_realtime_ms > value ? now_realtime_ms - value : 0;
    return value > now_realtime_ms ? timeline->last_ms
           : before_ms < now_ms    ? now_ms - before_ms
                                   : 0;
}

/* ---- what grew */

static int order_changes(const void *left, const void *right) {
    const struct ml_timeline_change *a = left;
    const struct ml_timeline_change *b = right;
    const int64_t a_grew = (int64_t)(a->to_bytes - a->from_bytes);
    const int64_t b_grew = (int64_t)(b->to_bytes - b->from_bytes);

    if (a_grew != b_grew) {
        return a_grew < b_grew ? 1 : -1;
    }
    return (a->node > b->node) - (a->node < b->node);
}

uint64_t ml_timeline_passed_bytes(const struct ml_timeline_change *change) {
    return change->most_bytes -
           (change->from_bytes > change->to_bytes ? change->from_bytes : change->to_bytes);
}

static int order_passed(const void *left, const void *right) {
    const struct ml_timeline_change *a = left;
    const struct ml_timeline_change *b = right;
    const uint64_t a_bytes = ml_timeline_passed_bytes(a);
    const uint64_t b_bytes = ml_timeline_passed_bytes(b);

    if (a_bytes != b_bytes) {
        return a_bytes < b_bytes ? 1 : -1;
    }
    return (a->node > b->node) - (a->node < b->node);
}

static void find_changes(struct ml_timeline *timeline) {
    const struct ml_profile *profile = timeline->report->profile;

    for (size_t p = 0; p < profile->processes_count; p++) {
        const struct ml_profile_process *process = &profile->processes[p];
        for (size_t i = 0; i < process->series_count; i++) {
            const size_t number = process->series_first + i;
            const struct ml_profile_series *series = &profile->series[number];
            struct ml_timeline_change change = {
                .process = process, .node = timeline->report->stacks->series[number]};
            if (!series->is_stack || series->from_ms >= timeline->to_ms) {
                continue;
            }
            change.from_bytes = ml_series_at(series, timeline->from_ms);
            change.to_bytes = ml_series_at(series, timeline->to_ms);
            change.is_partial =
                series->from_ms > timeline->from_ms && series->points[0].least_bytes > 0;
            (void)ml_series_most(series, timeline->from_ms, timeline->to_ms, &change.most_bytes);
            const uint64_t at_ends =
                change.from_bytes > change.to_bytes ? change.from_bytes : change.to_bytes;
            change.most_bytes = change.most_bytes > at_ends ? change.most_bytes : at_ends;
            if (change.most_bytes > at_ends) {
                timeline->passed[timeline->passed_count++] = change;
            }
            if (change.from_bytes != change.to_bytes) {
                timeline->changes[timeline->changes_count++] = change;
            }
        }
    }
    ML_SORT(timeline->passed, timeline->passed_count, order_passed);
    ML_SORT(timeline->changes, timeline->changes_count, order_changes);
}

static enum ml_status read_span(
    struct ml_timeline *timeline, const struct ml_timeline_span *span, const char **out_error
) {
    timeline->from_ms =
        span->from.from == ML_TIME_NONE ? timeline->first_ms : timestamp_of(timeline, span->from);
    timeline->to_ms =
        span->to.from == ML_TIME_NONE ? timeline->last_ms : timestamp_of(timeline, span->to);
    if (timeline->from_ms >= timeline->last_ms || timeline->to_ms <= timeline->first_ms) {
        *out_error = "nothing is known of that time; without --from and --to you see from when "
                     "to when";
        return ML_ENV_MISSING;
    }
    if (timeline->from_ms >= timeline->to_ms) {
        *out_error = "--from lies behind --to: nothing is between them";
        return ML_PEER_FORM;
    }
    return ML_OK;
}

enum ml_status ml_timeline_init(
    struct ml_timeline *timeline,
    const struct ml_report *report,
    const struct ml_timeline_span *span,
    const char **out_error
) {
    const struct ml_profile *profile = report->profile;
    enum ml_status status = ML_OK;

    *timeline = (struct ml_timeline){.report = report, .first_ms = UINT64_MAX};
    *out_error = "";
    for (size_t i = 0; i < profile->series_count; i++) {
        const struct ml_profile_series *series = &profile->series[i];
        const uint64_t end_ms = series->points[series->points_count - 1].end_ms;
        timeline->first_ms =
            series->from_ms < timeline->first_ms ? series->from_ms : timeline->first_ms;
        timeline->last_ms = end_ms > timeline->last_ms ? end_ms : timeline->last_ms;
    }
    if (profile->series_count == 0) {
        *out_error = ML_TIMELINE_NONE;
        return ML_ENV_MISSING;
    }
    status = read_span(timeline, span, out_error);
    if (status != ML_OK) {
        return status;
    }
    timeline->changes = calloc(profile->series_count, sizeof *timeline->changes);
    timeline->passed = calloc(profile->series_count, sizeof *timeline->passed);
    if (!timeline->changes || !timeline->passed) {
        return ML_ENV_MEMORY;
    }
    find_changes(timeline);
    return ML_OK;
}

void ml_timeline_fini(struct ml_timeline *timeline) {
    free(timeline->changes);
    free(timeline->passed);
    *timeline = (struct ml_timeline){0};
}

const struct ml_profile_series *ml_timeline_tree(const struct ml_timeline *timeline) {
    const struct ml_profile *profile = timeline->report->profile;

    return profile->series_count > 0 && profile->series[0].process_id == 0 ? &profile->series[0]
                                                                           : NULL;
}

const struct ml_profile_series *
ml_timeline_sums(const struct ml_timeline *timeline, const struct ml_profile_process *process) {
    const struct ml_profile_series *first =
        &timeline->report->profile->series[process->series_first];

    return process->series_count > 0 && !first->is_stack ? first : NULL;
}

void ml_timeline_name(
    const struct ml_stacks *stacks, uint32_t node, char out_name[ML_TIMELINE_NAME_BYTES]
) {
    size_t count = 0;
    struct ml_report_line *lines = ml_report_lines(stacks, node, &count);
    char buffer[ML_REPORT_NAME_BYTES];
    size_t at = 0;

    while (at + 1 < count && lines[at].name && ml_is_allocator_frame(lines[at].name)) {
        at++;
    }
    snprintf(
        out_name,
        ML_TIMELINE_NAME_BYTES,
        "%s",
        count == 0 ? "(no stack)" : ml_report_line_name(&lines[at], buffer)
    );
    free(lines);
}

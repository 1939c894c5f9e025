#include "tools/analyzer/model/trace_series.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/trace/tables.h"

/* Bounds a hostile dump. A process has two dozen series. */
enum { SERIES_MAX = 1 << 22 };

static const struct ml_column point_columns[] = {ML_TRACE_POINT_COLUMNS(struct ml_profile_point)};

/* The points of a packet. */
struct piece {
    struct ml_profile_point *points;
    size_t count;
    enum ml_status status;
};

static bool decode_points(pb_istream_t *stream, const pb_field_t *field, void **arg) {
    struct piece *piece = *arg;

    (void)field;
    if (piece->points || !ml_columns_peek_count(stream, &piece->count)) {
        piece->status = ML_PEER_FORM;
        return false;
    }
    piece->points = calloc(piece->count, sizeof *piece->points);
    if (!piece->points) {
        piece->status = ML_ENV_MEMORY;
        return false;
    }
    return ml_columns_decode(
        stream,
        point_columns,
        sizeof point_columns / sizeof point_columns[0],
        piece->points,
        sizeof *piece->points,
        piece->count
    );
}

static bool points_rise(const struct piece *piece, uint64_t from_ms) {
    for (size_t i = 0; i < piece->count; i++) {
        const struct ml_profile_point *point = &piece->points[i];
        /* The time in nanoseconds has to fit 64 bits. */
        if (point->end_ms <= from_ms || point->end_ms > UINT64_MAX / 1000000 ||
            point->least_bytes > point->last_bytes || point->last_bytes > point->most_bytes) {
            return false;
        }
        from_ms = point->end_ms;
    }
    return piece->count > 0;
}

/* The series that this message belongs to; NULL: no memory. */
static struct ml_profile_series *
series_of(struct ml_profile *profile, const ml_trace_MemlogSeries *message) {
    struct ml_profile_series *last =
        profile->series_count > 0 ? &profile->series[profile->series_count - 1] : NULL;

    if (last && last->process_id == message->process_id && last->node == message->node &&
        last->is_stack == message->is_stack &&
        last->points[last->points_count - 1].end_ms == message->from_ms) {
        return last;
    }
    if (!ML_GROW(profile->series, profile->series_capacity, profile->series_count + 1)) {
        return NULL;
    }
    last = &profile->series[profile->series_count];
    *last = (struct ml_profile_series
    ){.process_id = message->process_id,
      .node = message->node,
      .is_stack = message->is_stack,
      .from_ms = message->from_ms};
    return last;
}

static enum ml_status take(
    struct ml_profile *profile,
    struct ml_profile_process *process,
    const ml_trace_MemlogSeries *message,
    const struct piece *piece
) {
    struct ml_profile_series *series = series_of(profile, message);

    if (!series ||
        !ML_GROW(series->points, series->points_capacity, series->points_count + piece->count)) {
        return ML_ENV_MEMORY;
    }
    memcpy(
        series->points + series->points_count, piece->points, piece->count * sizeof *piece->points
    );
    series->points_count += piece->count;
    const size_t at = (size_t)(series - profile->series);
    if (at == profile->series_count) {
        profile->series_count++;
        if (process) {
            process->series_first = process->series_count == 0 ? at : process->series_first;
            process->series_count++;
        }
    }
    return ML_OK;
}

static enum ml_status check(
    struct ml_profile *profile,
    const struct ml_profile_process *process,
    ml_trace_MemlogSeries *message,
    const struct piece *piece
) {
    if (message->process_id != 0 && !process) {
        return ML_PEER_REFERENCE;
    }
    /* The series of one process have to be next to each other. */
    if (process && process->series_count > 0 &&
        process->series_first + process->series_count != profile->series_count) {
        return ML_PEER_STATE;
    }
    if (profile->series_count >= SERIES_MAX) {
        return ML_PEER_LIMIT;
    }
    if (!points_rise(piece, message->from_ms)) {
        return ML_PEER_RANGE;
    }
    if (!message->is_stack || !process) {
        message->is_stack = false;
        message->node = 0;
    } else if (message->node != 0 && ml_profile_node_at(process, message->node) == SIZE_MAX) {
        message->node = 0;
        profile->damaged = true;
    }
    return ML_OK;
}

enum ml_status ml_trace_decode_series(struct ml_profile *profile, pb_istream_t *stream) {
    struct piece piece = {.status = ML_PEER_FORM};
    ml_trace_MemlogSeries message = ml_trace_MemlogSeries_init_zero;
    enum ml_status status = ML_OK;

    message.points = (pb_callback_t){.funcs.decode = decode_points, .arg = &piece};
    if (!pb_decode(stream, ml_trace_MemlogSeries_fields, &message)) {
        status = piece.status;
    }
    struct ml_profile_process *process =
        message.process_id != 0 ? ml_profile_find(profile, message.process_id) : NULL;
    if (status == ML_OK) {
        status = check(profile, process, &message, &piece);
    }
    if (status == ML_OK) {
        status = take(profile, process, &message, &piece);
    }
    free(piece.points);
    return status;
}

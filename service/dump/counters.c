#include "service/dump/counters.h"

#include <inttypes.h>
#include <stdio.h>

#include "service/dump/frames.h"

/* TrackEvent.type; CounterDescriptor.unit */
enum { TYPE_COUNTER = 4, UNIT_SIZE_BYTES = 3 };

enum { NAME_BYTES = 160, NS_PER_MS = 1000000 };

/* A change of a smaller part of the largest value cannot be seen. */
enum { UNSEEN_PART = 1024 };

/* The tracks of one process while they are written. */
struct counters {
    struct ml_dump_packet *packet;
    struct ml_dump_standard *standard;
    const struct ml_snapshot *snapshot;
    const struct ml_snapshot_process *process;
    uint64_t process_track;
};

/* One track: its values, and where they go. */
struct track {
    struct counters *counters; /* NULL: values are only counted */
    uint64_t uuid;
    bool is_total;
    uint64_t step_bytes; /* smaller changes are left out */
    uint64_t shown_bytes;
    uint32_t count;
};

static uint64_t boottime_ns(const struct ml_snapshot *snapshot, uint64_t ms) {
    const struct memlog_service_moment *now = &snapshot->order.now;
    return now->boottime_ns - now->monotonic_ns + ms * NS_PER_MS;
}

static void
send_descriptor(struct counters *counters, const struct ml_string *name, uint64_t uuid) {
    ml_trace_TracePacket head =
        ml_dump_standard_event_head(counters->standard, counters->snapshot->order.now.boottime_ns);
    const ml_trace_TrackDescriptor message = {
        .uuid = uuid,
        .name = ml_dump_text(name),
        .parent_uuid = counters->process_track,
        .counter = {.unit = UNIT_SIZE_BYTES},
    };
    ml_dump_packet_append(counters->packet, ml_trace_TrackDescriptor_fields, &message);
    ml_dump_packet_send(counters->packet, &head, &head.track_descriptor);
}

static void show(struct track *track, uint64_t ms, uint64_t bytes) {
    track->count++;
    track->shown_bytes = bytes;
    if (track->counters != NULL) {
        struct counters *counters = track->counters;
        ml_trace_TracePacket head =
            ml_dump_standard_event_head(counters->standard, boottime_ns(counters->snapshot, ms));
        const ml_trace_TrackEvent message = {
            .type = TYPE_COUNTER,
            .track_uuid = track->uuid,
            .has_counter_value = true,
            .counter_value = bytes <= INT64_MAX ? (int64_t)bytes : INT64_MAX,
        };
        ml_dump_packet_append(counters->packet, ml_trace_TrackEvent_fields, &message);
        ml_dump_packet_send(counters->packet, &head, &head.track_event);
    }
}

static bool is_seen(const struct track *track, uint64_t bytes) {
    const uint64_t change =
        bytes > track->shown_bytes ? bytes - track->shown_bytes : track->shown_bytes - bytes;
    return change > track->step_bytes;
}

/* Show its values, always the first and the last. A peak within a slot is shown at the slot's
 * start. */
static void walk(struct track *track, const struct ml_snapshot_series *series) {
    uint64_t from_ms = series->from_ms;

    track->count = 0;
    for (uint32_t i = 0; i < series->points_count; i++) {
        const struct ml_snapshot_point *point = &series->points[i];
        const uint64_t bytes = track->is_total ? point->total_bytes : point->last_bytes;
        const bool is_end = i == 0 || i + 1 == series->points_count;
        if (!track->is_total && point->most_bytes > bytes &&
            point->most_bytes > track->shown_bytes && is_seen(track, point->most_bytes)) {
            show(track, from_ms, point->most_bytes);
        }
        if (is_end || is_seen(track, bytes)) {
            show(track, point->end_ms, bytes);
        }
        from_ms = point->end_ms;
    }
}

static uint64_t most_of(const struct ml_snapshot_series *series) {
    uint64_t most_bytes = 0;

    for (uint32_t i = 0; i < series->points_count; i++) {
        const uint64_t bytes = series->points[i].most_bytes;
        most_bytes = bytes > most_bytes ? bytes : most_bytes;
    }
    return most_bytes;
}

static void send_track(
    struct counters *counters,
    const struct ml_snapshot_series *series,
    bool is_total,
    uint64_t number,
    const struct ml_string *name
) {
    const uint32_t points_max = series->is_stack ? ML_DUMP_STACK_POINTS : ML_DUMP_COUNTER_POINTS;
    const uint64_t highest_bytes =
        is_total ? series->points[series->points_count - 1].total_bytes : most_of(series);
    struct track track = {
        /* Far from the numbers of processes, which follow their pids. */
        .uuid = (counters->process_track ^ (number << 40)) * UINT64_C(0x9e3779b97f4a7c15),
        .is_total = is_total,
        .step_bytes = highest_bytes / UNSEEN_PART,
    };

    walk(&track, series);
    while (track.count > points_max) {
        track.step_bytes = track.step_bytes * 2 + 1;
        track.shown_bytes = 0;
        walk(&track, series);
    }
    track.counters = counters;
    track.shown_bytes = 0;
    send_descriptor(counters, name, track.uuid);
    walk(&track, series);
}

/* Behind the path's last slash. */
static uint32_t file_name_at(const struct ml_string *path) {
    uint32_t at = path->count_bytes;

    while (at > 0 && path->data[at - 1] != '/') {
        at--;
    }
    return at;
}

/* The place of its innermost frame: the analyzer finds the names. */
static struct ml_string
stack_name(const struct ml_snapshot_process *process, uint32_t id, char buffer[NAME_BYTES]) {
    const uint32_t node_index = ml_dump_node_find(process, id);
    const struct ml_snapshot_node *node =
        node_index == ML_DUMP_NO_INDEX ? NULL : &process->nodes[node_index];
    const uint32_t module_index =
        node == NULL ? ML_DUMP_NO_INDEX : ml_dump_module_find(process, node->module);
    int count = 0;

    if (module_index == ML_DUMP_NO_INDEX) {
        count = snprintf(buffer, NAME_BYTES, "live bytes of stack %" PRIu32, id);
    } else {
        const struct ml_snapshot_module *module = &process->modules[module_index];
        const struct ml_string *path = ml_dump_module_path(process, module);
        const uint32_t file = file_name_at(path);
        const int file_bytes = (int)(path->count_bytes - file);
        count = snprintf(
            buffer,
            NAME_BYTES,
            "live bytes of stack %" PRIu32 ": %.*s+0x%" PRIx64,
            id,
            file_bytes < NAME_BYTES / 2 ? file_bytes : NAME_BYTES / 2,
            path->count_bytes > 0 ? path->data + file : "",
            node->address - (uint64_t)module->bias
        );
    }
    return (struct ml_string){.data = buffer, .count_bytes = (uint32_t)count};
}

/* The stacks that held most, the largest first. Returns their number. */
static uint32_t choose_stacks(
    const struct ml_snapshot_process *process,
    const struct ml_snapshot_series *chosen[static ML_DUMP_COUNTER_STACKS]
) {
    uint64_t held_bytes[ML_DUMP_COUNTER_STACKS + 1] = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < process->series_count; i++) {
        const struct ml_snapshot_series *series = &process->series[i];
        const uint64_t most_bytes = most_of(series);
        if (!series->is_stack || series->points_count < ML_DUMP_COUNTER_LEAST ||
            (count == ML_DUMP_COUNTER_STACKS && most_bytes <= held_bytes[count - 1])) {
            continue;
        }
        count += count < ML_DUMP_COUNTER_STACKS;
        uint32_t at = count - 1;
        for (; at > 0 && held_bytes[at - 1] < most_bytes; at--) {
            held_bytes[at] = held_bytes[at - 1];
            chosen[at] = chosen[at - 1];
        }
        held_bytes[at] = most_bytes;
        chosen[at] = series;
    }
    return count;
}

void ml_dump_counters(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    const struct ml_snapshot *snapshot,
    uint32_t index
) {
    const struct ml_string live = ml_string_of("live bytes");
    const struct ml_string allocated = ml_string_of("allocated bytes");
    const struct ml_snapshot_process *process = &snapshot->processes[index];
    const struct ml_snapshot_series *stacks[ML_DUMP_COUNTER_STACKS] = {NULL};
    struct counters counters = {
        .packet = packet,
        .standard = standard,
        .snapshot = snapshot,
        .process = process,
        .process_track =
            ml_dump_standard_track(standard->trace_pids[index], process->start.monotonic_ns),
    };

    if (process->series_count == 0 || process->series[0].points_count < ML_DUMP_COUNTER_LEAST) {
        return;
    }
    send_track(&counters, &process->series[0], false, 1, &live);
    send_track(&counters, &process->series[0], true, 2, &allocated);
    const uint32_t count = choose_stacks(process, stacks);
    for (uint32_t i = 0; i < count; i++) {
        char buffer[NAME_BYTES];
        const struct ml_string name = stack_name(process, stacks[i]->node, buffer);
        send_track(&counters, stacks[i], false, 3 + (uint64_t)stacks[i]->node, &name);
    }
}

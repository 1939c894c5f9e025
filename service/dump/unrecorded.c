#include "service/dump/unrecorded.h"

#include <inttypes.h>
#include <stdio.h>

/* TrackEvent.type */
enum { TYPE_SLICE_BEGIN = 1, TYPE_SLICE_END = 2 };

/* Of a reason and a size; of a name and a pid. */
enum { LABEL_BYTES = 512, NAME_BYTES = 320, TEXT_MAX = 256 };

static int shown_bytes(const struct ml_string *text) {
    return text->count_bytes < TEXT_MAX ? (int)text->count_bytes : TEXT_MAX;
}

/* A command line; a name in place of its first word, unless that is empty. */
struct words {
    struct ml_bytes line;
    struct ml_string name;
};

static bool encode_line(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct words *words = *arg;
    struct ml_bytes line = words->line;
    struct ml_string argument;

    if (words->name.count_bytes > 0) {
        (void)ml_dump_next_argument(&line, &argument);
        if (!ml_dump_standard_name(stream, field, &words->name, line.count_bytes == 0)) {
            return false;
        }
    }
    while (ml_dump_next_argument(&line, &argument)) {
        if (!pb_encode_tag_for_field(stream, field) ||
            !pb_encode_string(stream, (const pb_byte_t *)argument.data, argument.count_bytes)) {
            return false;
        }
    }
    return true;
}

static pb_callback_t arguments_of(struct words *words) {
    return (pb_callback_t){.funcs.encode = encode_line, .arg = words};
}

/* An entry may stand for several processes, and a later process may have its pid. */
static struct ml_string
name_of(const struct memlog_service_unrecorded *one, bool is_former, char buffer[NAME_BYTES]) {
    const int count = shown_bytes(&one->name);
    int written = 0;

    if (one->folded_processes > 1) {
        written = snprintf(
            buffer,
            NAME_BYTES,
            "%.*s (%" PRIu32 " processes)",
            count,
            one->name.data,
            one->folded_processes
        );
    } else if (is_former) {
        written = snprintf(
            buffer, NAME_BYTES, "%.*s (pid %" PRIu32 " before)", count, one->name.data, one->pid
        );
    } else {
        return one->name;
    }
    return (struct ml_string){.data = buffer, .count_bytes = (uint32_t)written};
}

static struct ml_string
label_of(const struct memlog_service_unrecorded *one, char buffer[LABEL_BYTES]) {
    int count = snprintf(
        buffer,
        LABEL_BYTES,
        "not recorded: %.*s; private memory ",
        shown_bytes(&one->reason),
        one->reason.data
    );

    if (one->resident_bytes == 0) { /* every process has some */
        count += snprintf(buffer + count, (size_t)(LABEL_BYTES - count), "not read");
    } else {
        count += snprintf(
            buffer + count,
            (size_t)(LABEL_BYTES - count),
            "%" PRIu64 " KiB",
            one->footprint_bytes / 1024
        );
    }
    return (struct ml_string){.data = buffer, .count_bytes = (uint32_t)count};
}

static void send_tree(
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot,
    uint32_t trace_pid,
    const struct memlog_service_unrecorded *one,
    const struct ml_string *name
) {
    struct words words = {.line = one->command_line, .name = *name};
    const ml_trace_ProcessTree_Process message = {
        .pid = (int32_t)trace_pid,
        .ppid = (int32_t)one->parent_pid,
        .cmdline = arguments_of(&words),
    };
    ml_trace_TracePacket head = ml_dump_standard_head(snapshot->order.now.boottime_ns);

    /* The host cuts command lines, so one fits. */
    ml_dump_packet_add(
        packet, ml_trace_ProcessTree_processes_tag, ml_trace_ProcessTree_Process_fields, &message
    );
    ml_dump_packet_send(packet, &head, &head.process_tree);
}

static void send_size(
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot,
    uint32_t trace_pid,
    const struct memlog_service_unrecorded *one
) {
    const ml_trace_ProcessStats_Process message = {
        .pid = (int32_t)trace_pid,
        .vm_rss_kb = one->resident_bytes / 1024,
    };
    ml_trace_TracePacket head = ml_dump_standard_head(snapshot->order.now.boottime_ns);

    if (message.vm_rss_kb == 0) {
        return;
    }
    ml_dump_packet_add(
        packet, ml_trace_ProcessStats_processes_tag, ml_trace_ProcessStats_Process_fields, &message
    );
    ml_dump_packet_send(packet, &head, &head.process_stats);
}

static void send_event(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    uint64_t at_ns,
    const ml_trace_TrackEvent *message
) {
    ml_trace_TracePacket head = ml_dump_standard_event_head(standard, at_ns);

    ml_dump_packet_append(packet, ml_trace_TrackEvent_fields, message);
    ml_dump_packet_send(packet, &head, &head.track_event);
}

static void send_one(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    const struct ml_snapshot *snapshot,
    uint32_t index
) {
    const struct memlog_service_unrecorded *one = &snapshot->order.unrecorded.items[index];
    const uint32_t trace_pid = standard->trace_pids[snapshot->processes_count + index];
    const bool is_running = one->state == MEMLOG_SERVICE_PROCESS_STATE_RUNNING;
    char name_buffer[NAME_BYTES];
    char label_buffer[LABEL_BYTES];
    const struct ml_string name = name_of(one, trace_pid != one->pid, name_buffer);
    const struct ml_string label = label_of(one, label_buffer);
    const uint64_t track = ml_dump_standard_track(trace_pid, one->start.monotonic_ns);
    struct words words = {.line = one->command_line};
    const ml_trace_TrackDescriptor descriptor = {
        .uuid = track,
        .process =
            {
                .pid = (int32_t)trace_pid,
                .cmdline = arguments_of(&words),
                .process_name = ml_dump_text(&name),
                .process_labels = ml_dump_text(&label),
            },
    };
    const ml_trace_TrackEvent begin = {
        .type = TYPE_SLICE_BEGIN, .track_uuid = track, .name = ml_dump_text(&label)};
    const ml_trace_TrackEvent end = {.type = TYPE_SLICE_END, .track_uuid = track};
    ml_trace_TracePacket head = ml_dump_standard_head(snapshot->order.now.boottime_ns);

    send_tree(packet, snapshot, trace_pid, one, &name);
    ml_dump_packet_append(packet, ml_trace_TrackDescriptor_fields, &descriptor);
    ml_dump_packet_send(packet, &head, &head.track_descriptor);
    send_size(packet, snapshot, trace_pid, one);
    send_event(packet, standard, one->start.boottime_ns, &begin);
    send_event(
        packet, standard, is_running ? snapshot->order.now.boottime_ns : one->end.boottime_ns, &end
    );
}

void ml_dump_unrecorded(
    struct ml_dump_packet *packet,
    struct ml_dump_standard *standard,
    const struct ml_snapshot *snapshot
) {
    for (uint32_t i = 0; packet->status == ML_OK && i < snapshot->order.unrecorded.count; i++) {
        send_one(packet, standard, snapshot, i);
    }
}

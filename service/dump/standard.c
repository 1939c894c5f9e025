#include "service/dump/standard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/trace/pid.h"

/* Perfetto's clock ids. */
enum {
    CLOCK_ID_REALTIME = 1,
    CLOCK_ID_MONOTONIC = 3,
    CLOCK_ID_MONOTONIC_COARSE = 4,
    CLOCK_ID_BOOTTIME = 6
};

/* The sequence of all packets but those of profiles. */
enum { SEQUENCE_COMMON = 1 };

/* The standard packets leave out longer arguments; the exact ones have all. */
enum { SHOWN_ARGUMENTS_MAX_BYTES = 16 * 1024 };

enum { SHOWN_NAME_BYTES = 320 };

/* TracePacket.sequence_flags */
enum { SEQUENCE_CLEARED = 1 };

struct pid_at {
    uint32_t pid;
    uint32_t index;
    uint64_t start_ns;
};

static int order_pid_at(const void *left, const void *right) {
    const struct pid_at *a = left;
    const struct pid_at *b = right;

    if (a->pid != b->pid) {
        return (a->pid > b->pid) - (a->pid < b->pid);
    }
    if (a->start_ns != b->start_ns) {
        return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
    }
    return (a->index > b->index) - (a->index < b->index);
}

enum ml_status
ml_dump_standard_init(struct ml_dump_standard *standard, const struct ml_snapshot *snapshot) {
    const uint32_t recorded = snapshot->processes_count;
    const uint32_t count = recorded + snapshot->order.unrecorded.count;
    struct pid_at *sorted = calloc((size_t)count + 1, sizeof *sorted);

    *standard = (struct ml_dump_standard){.next_sequence = SEQUENCE_COMMON + 1};
    standard->trace_pids = calloc((size_t)count + 1, sizeof *standard->trace_pids);
    if (!sorted || !standard->trace_pids) {
        free(sorted);
        return ML_ENV_MEMORY;
    }
    for (uint32_t i = 0; i < recorded; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        sorted[i] = (struct pid_at
        ){.pid = process->pid, .index = i, .start_ns = process->start.monotonic_ns};
    }
    for (uint32_t i = recorded; i < count; i++) {
        const struct memlog_service_unrecorded *one =
            &snapshot->order.unrecorded.items[i - recorded];
        sorted[i] =
            (struct pid_at){.pid = one->pid, .index = i, .start_ns = one->start.monotonic_ns};
    }
    qsort(sorted, count, sizeof *sorted, order_pid_at);
    for (uint32_t i = 0; i < count; i++) {
        bool is_last = i + 1 == count || sorted[i + 1].pid != sorted[i].pid;
        standard->trace_pids[sorted[i].index] =
            is_last ? sorted[i].pid : ML_TRACE_PID_FORMER + sorted[i].index;
    }
    free(sorted);
    return ML_OK;
}

void ml_dump_standard_fini(struct ml_dump_standard *standard) {
    free(standard->trace_pids);
    *standard = (struct ml_dump_standard){0};
}

ml_trace_TracePacket ml_dump_standard_head(uint64_t boottime_ns) {
    return (ml_trace_TracePacket){
        .timestamp = boottime_ns,
        .trusted_packet_sequence_id = SEQUENCE_COMMON,
    };
}

ml_trace_TracePacket
ml_dump_standard_event_head(struct ml_dump_standard *standard, uint64_t boottime_ns) {
    ml_trace_TracePacket head = {.timestamp = boottime_ns};

    if (standard->events_sequence == 0) {
        standard->events_sequence = standard->next_sequence++;
        head.sequence_flags = SEQUENCE_CLEARED;
    }
    head.trusted_packet_sequence_id = standard->events_sequence;
    return head;
}

static ml_trace_TracePacket common_head(const struct ml_snapshot *snapshot) {
    return ml_dump_standard_head(snapshot->order.now.boottime_ns);
}

static bool encode_clocks(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct memlog_service_moment *now = *arg;
    const ml_trace_ClockSnapshot_Clock clocks[] = {
        {.clock_id = CLOCK_ID_BOOTTIME, .timestamp = now->boottime_ns},
        {.clock_id = CLOCK_ID_MONOTONIC_COARSE, .timestamp = now->monotonic_ns},
        {.clock_id = CLOCK_ID_REALTIME, .timestamp = now->realtime_ns},
        {.clock_id = CLOCK_ID_MONOTONIC, .timestamp = now->monotonic_ns},
    };

    for (size_t i = 0; i < sizeof clocks / sizeof clocks[0]; i++) {
        if (!pb_encode_tag_for_field(stream, field) ||
            !pb_encode_submessage(stream, ml_trace_ClockSnapshot_Clock_fields, &clocks[i])) {
            return false;
        }
    }
    return true;
}

static bool encode_clock_snapshot(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const ml_trace_ClockSnapshot message = {
        .clocks = {.funcs.encode = encode_clocks, .arg = *arg},
        .primary_trace_clock = CLOCK_ID_BOOTTIME,
    };

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_ClockSnapshot_fields, &message);
}

void ml_dump_standard_clocks(const struct ml_snapshot *snapshot, ml_trace_TracePacket *out_head) {
    *out_head = common_head(snapshot);
    out_head->clock_snapshot.funcs.encode = encode_clock_snapshot;
    /* Only read; nanopb's argument is not const. */
    out_head->clock_snapshot.arg = (void *)(uintptr_t)&snapshot->order.now;
}

bool ml_dump_standard_name(
    pb_ostream_t *stream, const pb_field_t *field, const struct ml_string *name, bool is_alone
) {
    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_string(stream, (const pb_byte_t *)name->data, name->count_bytes) &&
           (!is_alone ||
            (pb_encode_tag_for_field(stream, field) && pb_encode_string(stream, NULL, 0)));
}

/* A command line; a name in place of its first word, unless that is empty. */
struct words {
    const struct ml_snapshot_process *process;
    struct ml_string name;
};

static bool encode_arguments(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct words *words = *arg;
    const struct ml_snapshot_process *process = words->process;
    const bool has_name = words->name.count_bytes > 0;
    size_t shown_bytes = 0;

    if (has_name &&
        !ml_dump_standard_name(stream, field, &words->name, process->command_line_count < 2)) {
        return false;
    }
    for (uint32_t i = has_name ? 1 : 0; i < process->command_line_count; i++) {
        const struct ml_string *argument = &process->command_line[i];
        shown_bytes += argument->count_bytes;
        if (shown_bytes > SHOWN_ARGUMENTS_MAX_BYTES) {
            break;
        }
        if (!pb_encode_tag_for_field(stream, field) ||
            !pb_encode_string(stream, (const pb_byte_t *)argument->data, argument->count_bytes)) {
            return false;
        }
    }
    return true;
}

static pb_callback_t arguments_of(struct words *words) {
    return (pb_callback_t){.funcs.encode = encode_arguments, .arg = words};
}

/* Put a repeated element; if it does not fit, send what is there first. `payload` is the offset of
 * the packet's payload in ml_trace_TracePacket. */
static void put_or_send(
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot,
    size_t payload,
    uint32_t tag,
    const pb_msgdesc_t *fields,
    const void *message
) {
    ml_trace_TracePacket head = common_head(snapshot);

    if (!ml_dump_packet_put(packet, tag, fields, message)) {
        ml_dump_packet_send(packet, &head, (pb_callback_t *)(void *)((char *)&head + payload));
        ml_dump_packet_add(packet, tag, fields, message);
    }
}

static struct ml_string shown_name(
    const struct ml_snapshot_process *process, bool is_former, char buffer[SHOWN_NAME_BYTES]
) {
    int name_bytes = process->name.count_bytes < SHOWN_NAME_BYTES / 2
                         ? (int)process->name.count_bytes
                         : SHOWN_NAME_BYTES / 2;
    int count = 0;

    if (!is_former) {
        return process->name;
    }
    count = snprintf(
        buffer,
        SHOWN_NAME_BYTES,
        "%.*s (pid %u before)",
        name_bytes,
        process->name.data,
        process->pid
    );
    return (struct ml_string){.data = buffer, .count_bytes = (uint32_t)count};
}

static void send_tree(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
) {
    ml_trace_TracePacket head = common_head(snapshot);

    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        char buffer[SHOWN_NAME_BYTES];
        struct words words = {
            .process = process,
            .name = shown_name(process, standard->trace_pids[i] != process->pid, buffer),
        };
        ml_trace_ProcessTree_Process message = {
            .pid = (int32_t)standard->trace_pids[i],
            .ppid = (int32_t)process->parent_pid,
            .cmdline = arguments_of(&words),
        };
        put_or_send(
            packet,
            snapshot,
            offsetof(ml_trace_TracePacket, process_tree),
            ml_trace_ProcessTree_processes_tag,
            ml_trace_ProcessTree_Process_fields,
            &message
        );
    }
    ml_dump_packet_send(packet, &head, &head.process_tree);
}

uint64_t ml_dump_standard_track(uint32_t trace_pid, uint64_t start_monotonic_ns) {
    return ((uint64_t)trace_pid << 32 | (uint32_t)(start_monotonic_ns >> 10)) + 1;
}

static void send_descriptors(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
) {
    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        const struct ml_snapshot_process *process = &snapshot->processes[i];
        ml_trace_TracePacket head = common_head(snapshot);
        char buffer[SHOWN_NAME_BYTES];
        const struct ml_string name =
            shown_name(process, standard->trace_pids[i] != process->pid, buffer);
        struct words words = {.process = process};
        ml_trace_TrackDescriptor message = {
            .uuid = ml_dump_standard_track(standard->trace_pids[i], process->start.monotonic_ns),
            .process =
                {
                    .pid = (int32_t)standard->trace_pids[i],
                    .cmdline = arguments_of(&words),
                    .process_name = ml_dump_text(&name),
                },
        };
        ml_dump_packet_append(packet, ml_trace_TrackDescriptor_fields, &message);
        ml_dump_packet_send(packet, &head, &head.track_descriptor);
    }
}

static void send_sizes(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
) {
    ml_trace_TracePacket head = common_head(snapshot);

    for (uint32_t i = 0; i < snapshot->processes_count; i++) {
        ml_trace_ProcessStats_Process message = {
            .pid = (int32_t)standard->trace_pids[i],
            .vm_rss_kb = snapshot->processes[i].resident_bytes / 1024,
        };
        if (message.vm_rss_kb > 0) {
            put_or_send(
                packet,
                snapshot,
                offsetof(ml_trace_TracePacket, process_stats),
                ml_trace_ProcessStats_processes_tag,
                ml_trace_ProcessStats_Process_fields,
                &message
            );
        }
    }
    if (!ml_dump_packet_is_empty(packet)) {
        ml_dump_packet_send(packet, &head, &head.process_stats);
    }
}

void ml_dump_standard_heads(
    const struct ml_dump_standard *standard,
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot
) {
    if (snapshot->processes_count > 0) {
        send_tree(standard, packet, snapshot);
        send_descriptors(standard, packet, snapshot);
        send_sizes(standard, packet, snapshot);
    }
}

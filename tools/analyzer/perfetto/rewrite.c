#include "tools/analyzer/perfetto/rewrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ipc/trace/trace.pb.h"
#include "ipc/trace/pid.h"

enum { SEQUENCE_CLEARED = 1, FORMER_BYTES = 40 };

void ml_join_rewriting_begin(
    struct ml_join_rewriting *rewriting, const struct ml_join_members *members, size_t dump
) {
    ml_index_fini(&rewriting->tracks_index);
    rewriting->tracks_index = (struct ml_index){0};
    rewriting->tracks_count = 0;
    rewriting->members = members;
    rewriting->dump = dump;
}

void ml_join_rewriting_fini(struct ml_join_rewriting *rewriting) {
    ml_index_fini(&rewriting->tracks_index);
    free(rewriting->tracks);
    *rewriting = (struct ml_join_rewriting){0};
}

static uint32_t process_of(const struct ml_join_rewriting *rewriting, uint64_t theirs) {
    return ml_join_process_of(rewriting->processes, rewriting->members, theirs);
}

uint64_t ml_join_pid(const struct ml_join_rewriting *rewriting, uint64_t theirs) {
    const uint32_t process = process_of(rewriting, theirs);

    return process == ML_JOIN_NONE ? theirs : rewriting->processes->items[process].trace_pid;
}

/* A message as it is, but for the process in that field. */
static void put_with_pid(
    const struct ml_join_rewriting *rewriting,
    struct ml_pb_span message,
    uint32_t pid_tag,
    struct ml_pb_buffer *out
) {
    struct ml_pb_field field;

    while (ml_pb_next(&message, &field)) {
        if (field.tag == pid_tag && field.is_number) {
            ml_pb_put_number(out, pid_tag, ml_join_pid(rewriting, field.number));
        } else {
            ml_pb_put_fields(out, field.whole);
        }
    }
}

/* Its number is its pid there, and not in the trace: a later dump's process has that. */
static bool becomes_former(const struct ml_join_rewriting *rewriting, uint64_t theirs) {
    return theirs < ML_TRACE_PID_FORMER && ml_join_pid(rewriting, theirs) >= ML_TRACE_PID_FORMER;
}

/* Put its name with the pid that it had behind it, as the writer of dumps does. */
static void
put_former_name(struct ml_pb_buffer *out, uint32_t tag, struct ml_pb_span name, uint64_t pid) {
    struct ml_pb_buffer whole = {0};
    char former[FORMER_BYTES];
    const int count = snprintf(former, sizeof former, " (pid %" PRIu64 " before)", pid);

    ml_pb_put_fields(&whole, name);
    ml_pb_put_fields(
        &whole, (struct ml_pb_span){.bytes = (const uint8_t *)former, .count = (size_t)count}
    );
    ml_pb_put_bytes(out, tag, ml_pb_span_of(&whole));
    out->has_failed = out->has_failed || whole.has_failed;
    ml_pb_buffer_fini(&whole);
}

/* A process of the tree: the first word of its command line is its name. */
static void put_named(
    const struct ml_join_rewriting *rewriting, struct ml_pb_span process, struct ml_pb_buffer *out
) {
    const uint64_t theirs = ml_pb_number(process, ml_trace_ProcessTree_Process_pid_tag);
    const bool is_renamed = becomes_former(rewriting, theirs);
    struct ml_pb_buffer inner = {0};
    struct ml_pb_field field;
    size_t words = 0;

    while (ml_pb_next(&process, &field)) {
        const bool is_word = field.tag == ml_trace_ProcessTree_Process_cmdline_tag;
        if (field.tag == ml_trace_ProcessTree_Process_pid_tag) {
            ml_pb_put_number(&inner, field.tag, ml_join_pid(rewriting, theirs));
        } else if (is_word && words++ == 0 && is_renamed) {
            put_former_name(&inner, field.tag, field.inside, theirs);
        } else {
            ml_pb_put_fields(&inner, field.whole);
        }
    }
    if (is_renamed && words == 1) {
        ml_pb_put_bytes(
            &inner, ml_trace_ProcessTree_Process_cmdline_tag, (struct ml_pb_span){.count = 0}
        ); /* a word that is alone would be the name up to its blank */
    }
    ml_pb_put_bytes(out, ml_trace_ProcessTree_processes_tag, ml_pb_span_of(&inner));
    out->has_failed = out->has_failed || inner.has_failed;
    ml_pb_buffer_fini(&inner);
}

/* The same of each message in that field; what has a `former` number is left out if it may be. */
static void put_each(
    const struct ml_join_rewriting *rewriting,
    const struct ml_pb_field *one,
    uint32_t pid_tag,
    bool without_former,
    struct ml_pb_buffer *out
) {
    struct ml_pb_buffer inner = {0};

    put_with_pid(rewriting, one->inside, pid_tag, &inner);
    if (!without_former || ml_pb_number(ml_pb_span_of(&inner), pid_tag) < ML_TRACE_PID_FORMER) {
        ml_pb_put_bytes(out, one->tag, ml_pb_span_of(&inner));
    }
    out->has_failed = out->has_failed || inner.has_failed;
    ml_pb_buffer_fini(&inner);
}

/* Threads of a process whose number a later one has are left out: so have they. */
static void put_tree(
    const struct ml_join_rewriting *rewriting, struct ml_pb_span tree, struct ml_pb_buffer *out
) {
    struct ml_pb_field field;

    while (ml_pb_next(&tree, &field)) {
        if (field.tag == ml_trace_ProcessTree_processes_tag) {
            put_named(rewriting, field.inside, out);
        } else {
            put_each(rewriting, &field, ml_trace_ProcessTree_Thread_tgid_tag, true, out);
        }
    }
}

static void put_sizes(
    const struct ml_join_rewriting *rewriting, struct ml_pb_span stats, struct ml_pb_buffer *out
) {
    struct ml_pb_field field;

    while (ml_pb_next(&stats, &field)) {
        put_each(rewriting, &field, ml_trace_ProcessStats_Process_pid_tag, false, out);
    }
}

/* Its mappings. False: an earlier dump has told them, since it had ended by then. */
static bool put_smaps(
    const struct ml_join_rewriting *rewriting,
    struct ml_pb_span smaps,
    uint64_t boottime_ns,
    struct ml_pb_buffer *out
) {
    const uint32_t at = process_of(rewriting, ml_pb_number(smaps, ml_trace_SmapsPacket_pid_tag));

    if (at != ML_JOIN_NONE) {
        struct ml_join_process *process = &rewriting->processes->items[at];
        if (process->smaps_ns == boottime_ns && process->smaps_dump != rewriting->dump) {
            return false;
        }
        process->smaps_ns = boottime_ns;
        process->smaps_dump = rewriting->dump;
    }
    put_with_pid(rewriting, smaps, ml_trace_SmapsPacket_pid_tag, out);
    return true;
}

static const struct ml_join_track *
find_track(const struct ml_join_rewriting *rewriting, uint64_t theirs) {
    const uint64_t hash = ml_hash(0, &theirs, sizeof theirs);
    size_t at = 0;

    for (uint32_t i = ml_index_first(&rewriting->tracks_index, hash, &at); i != ML_INDEX_NONE;
         i = ml_index_next(&rewriting->tracks_index, hash, &at)) {
        if (rewriting->tracks[i].theirs == theirs) {
            return &rewriting->tracks[i];
        }
    }
    return NULL;
}

static void note_track(struct ml_join_rewriting *rewriting, const struct ml_join_track *track) {
    const uint64_t hash = ml_hash(0, &track->theirs, sizeof track->theirs);

    if (!ML_GROW(rewriting->tracks, rewriting->tracks_capacity, rewriting->tracks_count + 1) ||
        !ml_index_add(&rewriting->tracks_index, hash, (uint32_t)rewriting->tracks_count)) {
        rewriting->has_failed = true;
        return;
    }
    rewriting->tracks[rewriting->tracks_count++] = *track;
}

/* A track of a process's own has its number in the upper half (service/dump/standard.h). */
static uint64_t process_track(uint64_t theirs, uint64_t trace_pid) {
    return ((trace_pid << 32) | ((theirs - 1) & UINT32_MAX)) + 1;
}

/* The process, under its number and, if that is of another kind only here, with its pid behind its
 * name. */
static void put_process(
    const struct ml_join_rewriting *rewriting, struct ml_pb_span process, struct ml_pb_buffer *out
) {
    const uint64_t theirs = ml_pb_number(process, ml_trace_ProcessDescriptor_pid_tag);
    struct ml_pb_buffer inner = {0};

    put_with_pid(rewriting, process, ml_trace_ProcessDescriptor_pid_tag, &inner);
    if (becomes_former(rewriting, theirs)) {
        /* Of two the last one counts. */
        put_former_name(
            &inner,
            ml_trace_ProcessDescriptor_process_name_tag,
            ml_pb_bytes(process, ml_trace_ProcessDescriptor_process_name_tag),
            theirs
        );
    }
    ml_pb_put_bytes(out, ml_trace_TrackDescriptor_process_tag, ml_pb_span_of(&inner));
    out->has_failed = out->has_failed || inner.has_failed;
    ml_pb_buffer_fini(&inner);
}

static bool is_last_dump(const struct ml_join_rewriting *rewriting, uint32_t process) {
    return process == ML_JOIN_NONE ||
           rewriting->processes->items[process].last_dump == rewriting->dump;
}

/* False: it is a counter of a process that a later dump has, too. */
static bool put_descriptor(
    struct ml_join_rewriting *rewriting, struct ml_pb_span descriptor, struct ml_pb_buffer *out
) {
    const struct ml_pb_span process = ml_pb_bytes(descriptor, ml_trace_TrackDescriptor_process_tag);
    const struct ml_join_track *parent =
        find_track(rewriting, ml_pb_number(descriptor, ml_trace_TrackDescriptor_parent_uuid_tag));
    struct ml_join_track track = {
        .theirs = ml_pb_number(descriptor, ml_trace_TrackDescriptor_uuid_tag),
        .process = parent ? parent->process : ML_JOIN_NONE,
    };
    struct ml_pb_field field;

    track.ours = parent ? track.theirs ^ parent->theirs ^ parent->ours : track.theirs;
    if (process.count > 0) {
        const uint64_t theirs = ml_pb_number(process, ml_trace_ProcessDescriptor_pid_tag);
        track.process = process_of(rewriting, theirs);
        track.ours = process_track(track.theirs, ml_join_pid(rewriting, theirs));
    }
    note_track(rewriting, &track);
    while (ml_pb_next(&descriptor, &field)) {
        if (field.tag == ml_trace_TrackDescriptor_uuid_tag) {
            ml_pb_put_number(out, field.tag, track.ours);
        } else if (field.tag == ml_trace_TrackDescriptor_parent_uuid_tag && parent) {
            ml_pb_put_number(out, field.tag, parent->ours);
        } else if (field.tag == ml_trace_TrackDescriptor_process_tag) {
            put_process(rewriting, field.inside, out);
        } else {
            ml_pb_put_fields(out, field.whole);
        }
    }
    return process.count > 0 || is_last_dump(rewriting, track.process);
}

static bool put_event(
    const struct ml_join_rewriting *rewriting, struct ml_pb_span event, struct ml_pb_buffer *out
) {
    const struct ml_join_track *track =
        find_track(rewriting, ml_pb_number(event, ml_trace_TrackEvent_track_uuid_tag));
    struct ml_pb_field field;

    if (track && !is_last_dump(rewriting, track->process)) {
        return false;
    }
    while (ml_pb_next(&event, &field)) {
        if (track && field.tag == ml_trace_TrackEvent_track_uuid_tag) {
            ml_pb_put_number(out, field.tag, track->ours);
        } else {
            ml_pb_put_fields(out, field.whole);
        }
    }
    return true;
}

/* The payload as it is in the trace. False: it is left out. */
static bool put_payload(
    struct ml_join_rewriting *rewriting,
    const struct ml_pb_field *payload,
    uint64_t boottime_ns,
    struct ml_pb_buffer *out
) {
    switch (payload->tag) {
    case ml_trace_TracePacket_process_tree_tag:
        put_tree(rewriting, payload->inside, out);
        return true;
    case ml_trace_TracePacket_process_stats_tag:
        put_sizes(rewriting, payload->inside, out);
        return true;
    case ml_trace_TracePacket_smaps_packet_tag:
        return put_smaps(rewriting, payload->inside, boottime_ns, out);
    case ml_trace_TracePacket_track_descriptor_tag:
        return put_descriptor(rewriting, payload->inside, out);
    case ml_trace_TracePacket_track_event_tag:
        return put_event(rewriting, payload->inside, out);
    case ml_trace_TracePacket_module_symbols_tag:
    case ml_trace_TracePacket_memlog_symbols_tag:
        return false; /* all names are written behind all frames */
    default:
        ml_pb_put_fields(out, payload->inside);
        return true;
    }
}

/* Counters and slices of all dumps have one sequence. */
static void put_sequence(
    struct ml_join_rewriting *rewriting, struct ml_pb_span packet, struct ml_pb_buffer *out
) {
    const uint64_t theirs =
        ml_pb_number(packet, ml_trace_TracePacket_trusted_packet_sequence_id_tag);
    const bool is_event = theirs > ML_JOIN_SEQUENCE_COMMON;

    if (theirs != 0) {
        ml_pb_put_number(
            out,
            ml_trace_TracePacket_trusted_packet_sequence_id_tag,
            is_event ? ML_JOIN_SEQUENCE_EVENTS : ML_JOIN_SEQUENCE_COMMON
        );
    }
    if (is_event && !rewriting->events_begun) {
        ml_pb_put_number(out, ml_trace_TracePacket_sequence_flags_tag, SEQUENCE_CLEARED);
        rewriting->events_begun = true;
    }
}

bool ml_join_rewrite(
    struct ml_join_rewriting *rewriting, struct ml_pb_span packet, struct ml_pb_buffer *out
) {
    const uint64_t boottime_ns = ml_pb_number(packet, ml_trace_TracePacket_timestamp_tag);
    struct ml_pb_buffer fields = {0};
    struct ml_pb_span rest = packet;
    struct ml_pb_field field;
    bool is_kept = true;

    while (is_kept && ml_pb_next(&rest, &field)) {
        if (field.tag == ml_trace_TracePacket_trusted_packet_sequence_id_tag ||
            field.tag == ml_trace_TracePacket_sequence_flags_tag) {
            continue;
        }
        if (field.is_bytes) {
            struct ml_pb_buffer payload = {0};
            is_kept = put_payload(rewriting, &field, boottime_ns, &payload);
            ml_pb_put_bytes(&fields, field.tag, ml_pb_span_of(&payload));
            fields.has_failed = fields.has_failed || payload.has_failed;
            ml_pb_buffer_fini(&payload);
        } else {
            ml_pb_put_fields(&fields, field.whole);
        }
    }
    if (is_kept) {
        put_sequence(rewriting, packet, &fields);
        ml_pb_put_fields(out, ml_pb_span_of(&fields));
    }
    rewriting->has_failed = rewriting->has_failed || fields.has_failed || out->has_failed;
    ml_pb_buffer_fini(&fields);
    return is_kept;
}

#include "service/dump/profile.h"

#include <inttypes.h>
#include <stdio.h>

#include "ipc/wire/event.h"
#include "ipc/wire/writer.h"
#include "service/dump/frames.h"

/* TracePacket.sequence_flags */
enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };

/* Where heapprofd splits its ProfilePackets. */
enum { PROFILE_BODY_MAX_BYTES = 400 * 1000 };

enum { FRAME_NAME_BYTES = 1100, NS_PER_US = 1000 };

/* The profile of one heap while it is written. */
struct profile {
    struct ml_dump_packet *packet;
    const struct ml_snapshot *snapshot;
    const struct ml_snapshot_process *process;
    const struct ml_dump_frames *frames;
    uint32_t trace_pid;
    uint16_t heap;
    uint32_t sequence;
    bool cleared;
    uint64_t index; /* of the next ProfilePacket */
};

static ml_trace_TracePacket sequence_head(struct profile *profile) {
    ml_trace_TracePacket head = {
        .timestamp = profile->snapshot->order.now.boottime_ns,
        .trusted_packet_sequence_id = profile->sequence,
        .sequence_flags = profile->cleared ? SEQUENCE_NEEDS_STATE : SEQUENCE_CLEARED,
    };

    profile->cleared = true;
    return head;
}

static void send_interned(struct profile *profile) {
    ml_trace_TracePacket head = sequence_head(profile);

    ml_dump_packet_send(profile->packet, &head, &head.interned_data);
}

static void
intern(struct profile *profile, uint32_t tag, const pb_msgdesc_t *fields, const void *message) {
    if (!ml_dump_packet_put(profile->packet, tag, fields, message)) {
        send_interned(profile);
        ml_dump_packet_add(profile->packet, tag, fields, message);
    }
}

static void
intern_text(struct profile *profile, uint32_t tag, uint64_t id, const struct ml_string *text) {
    ml_trace_InternedString message = {.iid = id, .str = ml_dump_text(text)};

    intern(profile, tag, ml_trace_InternedString_fields, &message);
}

static bool encode_number(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const uint64_t *number = *arg;

    return pb_encode_tag_for_field(stream, field) && pb_encode_varint(stream, *number);
}

/* Path, build id and mapping share a number: one more than the module's index. */
static void intern_module(struct profile *profile, uint32_t index) {
    const struct ml_snapshot_module *module = &profile->process->modules[index];
    const uint32_t position = index + 1;
    uint64_t path_id = position;
    ml_trace_Mapping mapping = {
        .iid = position,
        .build_id = module->build_id.count_bytes > 0 ? position : 0,
        .start = module->start,
        .end = module->end,
        .path_string_ids = {.funcs.encode = encode_number, .arg = &path_id},
    };

    if (module->build_id.count_bytes > 0) {
        intern_text(profile, ml_trace_InternedData_build_ids_tag, position, &module->build_id);
    }
    intern_text(
        profile,
        ml_trace_InternedData_mapping_paths_tag,
        position,
        ml_dump_module_path(profile->process, module)
    );
    intern(profile, ml_trace_InternedData_mappings_tag, ml_trace_Mapping_fields, &mapping);
}

static int text_shown(const struct ml_string *text) {
    return text->count_bytes < ML_STRING_MAX_BYTES ? (int)text->count_bytes : ML_STRING_MAX_BYTES;
}

/* The name of a frame without a module. */
static struct ml_string frame_name(
    const struct ml_snapshot_process *process,
    const struct ml_snapshot_node *node,
    char buffer[FRAME_NAME_BYTES]
) {
    struct ml_string text = {.data = ""};
    int count = 0;

    if (ml_frame_has_string(node->frame) && node->string < process->strings_count) {
        text = process->strings[node->string];
    }
    switch (node->frame) {
    case ML_FRAME_ADDRESS:
        count = snprintf(buffer, FRAME_NAME_BYTES, "0x%" PRIx64, node->address);
        break;
    case ML_FRAME_THREAD:
        count = snprintf(buffer, FRAME_NAME_BYTES, "[thread %.*s]", text_shown(&text), text.data);
        break;
    case ML_FRAME_CUT:
        count = snprintf(buffer, FRAME_NAME_BYTES, "[frames left out]");
        break;
    case ML_FRAME_BROKEN:
        count = snprintf(buffer, FRAME_NAME_BYTES, "[stack not walked further]");
        break;
    default:
        return text;
    }
    return (struct ml_string){.data = buffer, .count_bytes = (uint32_t)count};
}

static void intern_frames(struct profile *profile) {
    const struct ml_snapshot_process *process = profile->process;
    uint32_t module_before = 0;
    uint32_t module = ML_DUMP_NO_INDEX;

    for (uint32_t frame = 1; frame <= profile->frames->frames_count; frame++) {
        const struct ml_snapshot_node *node =
            &process->nodes[profile->frames->frames[frame - 1].node_index];
        ml_trace_Frame message = {.iid = frame};

        /* Frames are in the order of modules, so each module is interned once. */
        if (node->module != module_before) {
            module_before = node->module;
            module = ml_dump_module_find(process, node->module);
            if (module != ML_DUMP_NO_INDEX) {
                intern_module(profile, module);
            }
        }
        if (node->frame == ML_FRAME_ADDRESS && node->module != 0 && module != ML_DUMP_NO_INDEX) {
            message.mapping_id = (uint64_t)module + 1;
            message.has_rel_pc = true;
            message.rel_pc = node->address - (uint64_t)process->modules[module].bias;
        } else {
            char buffer[FRAME_NAME_BYTES];
            const struct ml_string name = frame_name(process, node, buffer);
            intern_text(profile, ml_trace_InternedData_function_names_tag, frame, &name);
            message.function_name_id = frame;
        }
        intern(profile, ml_trace_InternedData_frames_tag, ml_trace_Frame_fields, &message);
    }
}

/* With the frames of the thread and of the cut. */
enum { CALLSTACK_MAX = ML_STACK_DEPTH_MAX + 2 };

/* A stack's frame numbers as the field's bytes. Through nanopb's stream, a number at a time, they
 * would take half the time of a dump. */
struct callstack {
    uint32_t path[CALLSTACK_MAX]; /* innermost first */
    uint32_t depth;
    uint8_t fields[CALLSTACK_MAX * (1 + ML_VARINT_MAX_BYTES)]; /* each with its tag */
    size_t fields_bytes;
};

static void callstack_close(struct callstack *stack) {
    static const uint8_t tag = ml_trace_Callstack_frame_ids_tag << 3 | PB_WT_VARINT;
    uint8_t *pos = stack->fields;

    for (uint32_t i = stack->depth; i > 0; i--) {
        *pos++ = tag;
        pos = ml_put_varint(pos, stack->path[i - 1]);
    }
    stack->fields_bytes = (size_t)(pos - stack->fields);
}

static bool encode_callstack(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct callstack *stack = *arg;

    (void)field;
    return pb_write(stream, stack->fields, stack->fields_bytes);
}

/* Callstacks have the numbers of the stacks, from 1. */
static void intern_callstacks(struct profile *profile) {
    const struct ml_dump_frames *frames = profile->frames;
    uint32_t no_stack_frame = frames->frames_count + 1;
    struct callstack stack;

    if (frames->has_no_stack) {
        const struct ml_string text = ml_string_of("[no stack]");
        ml_trace_Frame message = {.iid = no_stack_frame, .function_name_id = no_stack_frame};
        intern_text(profile, ml_trace_InternedData_function_names_tag, no_stack_frame, &text);
        intern(profile, ml_trace_InternedData_frames_tag, ml_trace_Frame_fields, &message);
    }
    for (uint32_t i = 0; i < frames->stacks_count; i++) {
        uint32_t at = frames->stacks[i].node_index;
        ml_trace_Callstack message = {
            .iid = (uint64_t)i + 1,
            .frame_ids = {.funcs.encode = encode_callstack, .arg = &stack},
        };

        stack.depth = 0;
        if (at == ML_DUMP_NO_INDEX) {
            stack.path[stack.depth++] = no_stack_frame;
        }
        while (at != ML_DUMP_NO_INDEX && stack.depth < sizeof stack.path / sizeof stack.path[0]) {
            stack.path[stack.depth++] = frames->frame[at];
            at = frames->parent_index[at];
        }
        callstack_close(&stack);
        intern(profile, ml_trace_InternedData_callstacks_tag, ml_trace_Callstack_fields, &message);
    }
}

/* The message around the samples of one ProfilePacket. */
struct process_dump {
    struct profile *profile;
    bool continued;
};

static bool encode_profile(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct process_dump *dump = *arg;
    ml_trace_ProfilePacket message = {
        .continued = dump->continued,
        .index = dump->profile->index,
        .process_dumps = {.funcs.encode = ml_dump_encode_body, .arg = dump->profile->packet},
    };

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_ProfilePacket_fields, &message);
}

static const struct ml_string libc_heap = {
    .data = "libc.malloc", .count_bytes = sizeof "libc.malloc" - 1};

/* The fields beside the samples, which each ProfilePacket has. */
static void put_dump_head(struct profile *profile) {
    const struct ml_snapshot_process *process = profile->process;
    const struct memlog_service_moment *now = &profile->snapshot->order.now;
    bool ended = process->end.monotonic_ns != 0 && process->end.monotonic_ns < now->monotonic_ns;
    char heap_name[sizeof "heap 65535"] = "";
    struct ml_string name = libc_heap;
    ml_trace_ProfilePacket_ProcessHeapSamples message = {
        .pid = profile->trace_pid,
        .from_startup = process->from_startup,
        .buffer_overran = process->lost_events > 0,
        /* The UI adds up heaps of one process at the same moment, so their moments differ. */
        .timestamp = (ended ? process->end.monotonic_ns : now->monotonic_ns) + profile->heap,
        .sampling_interval_bytes = process->sampling.longest_bytes,
        /* Each block is weighted by the interval of its moment. The two fields differ if the
         * interval has changed. */
        .orig_sampling_interval_bytes = process->sampling.count > 0
                                            ? process->sampling.changes[0].interval_bytes
                                            : process->sampling.longest_bytes,
        .disconnected = process->stream_ended,
        .start_timestamp = process->start.monotonic_ns,
        .stats =
            {
                .unwinding_errors = process->broken_stacks,
                .heap_samples = process->events,
                .client_spinlock_blocked_us = process->accounting.waited_ns / NS_PER_US,
            },
    };

    if (profile->heap != 0) {
        int count = snprintf(heap_name, sizeof heap_name, "heap %u", (unsigned)profile->heap);
        name = (struct ml_string){.data = heap_name, .count_bytes = (uint32_t)count};
        for (uint32_t i = 0; i < process->heaps_count; i++) {
            if (process->heaps[i].id == profile->heap && process->heaps[i].string != 0) {
                name = process->strings[process->heaps[i].string];
            }
        }
    }
    message.heap_name = ml_dump_text(&name);
    ml_dump_packet_append(
        profile->packet, ml_trace_ProfilePacket_ProcessHeapSamples_fields, &message
    );
}

static void send_samples(struct profile *profile, bool continued) {
    struct process_dump dump = {.profile = profile, .continued = continued};
    ml_trace_TracePacket head = sequence_head(profile);

    head.profile_packet.funcs.encode = encode_profile;
    head.profile_packet.arg = &dump;
    put_dump_head(profile);
    ml_dump_packet_send(profile->packet, &head, &head.profile_packet);
    profile->index++;
}

/* Never negative: trace_processor drops or mixes rows of the wrong sign. */
static uint64_t difference(uint64_t more, uint64_t less) {
    return more > less ? more - less : 0;
}

static void put_samples(struct profile *profile) {
    for (uint32_t i = 0; i < profile->frames->stacks_count; i++) {
        const struct ml_dump_stack *stack = &profile->frames->stacks[i];
        ml_trace_ProfilePacket_HeapSample sample = {
            .callstack_id = (uint64_t)i + 1,
            .self_allocated = stack->total_bytes,
            .self_freed = difference(stack->total_bytes, stack->live_bytes),
            .alloc_count = stack->total_blocks,
            .free_count = difference(stack->total_blocks, stack->live_blocks),
        };

        /* A row of 0 bytes with a count makes Perfetto's sums wrong. Only the exact packets have
         * blocks of size 0. */
        if (sample.self_allocated == 0) {
            continue;
        }
        if (sample.self_freed == 0) {
            sample.alloc_count = stack->live_blocks;
            sample.free_count = 0;
        }
        if (profile->packet->body_count > PROFILE_BODY_MAX_BYTES) {
            send_samples(profile, true);
        }
        ml_dump_packet_add(
            profile->packet,
            ml_trace_ProfilePacket_ProcessHeapSamples_samples_tag,
            ml_trace_ProfilePacket_HeapSample_fields,
            &sample
        );
    }
    send_samples(profile, false);
}

void ml_dump_profile(
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot,
    const struct ml_snapshot_process *process,
    uint32_t trace_pid,
    uint32_t *sequence
) {
    struct ml_dump_frames frames;
    uint16_t heap = 0;
    uint32_t from = 0;
    enum ml_status status = ml_dump_frames_init(&frames, process, packet->sink);

    ml_dump_packet_fail(packet, status);
    while (packet->status == ML_OK && ml_dump_frames_next_heap(&frames, from, &heap)) {
        struct profile profile = {
            .packet = packet,
            .snapshot = snapshot,
            .process = process,
            .frames = &frames,
            .trace_pid = trace_pid,
            .heap = heap,
            .sequence = (*sequence)++,
        };

        status = ml_dump_frames_take(&frames, heap);
        if (status != ML_OK) {
            ml_dump_packet_fail(packet, status);
            break;
        }
        intern_frames(&profile);
        intern_callstacks(&profile);
        if (!ml_dump_packet_is_empty(packet)) {
            send_interned(&profile);
        }
        put_samples(&profile);
        from = (uint32_t)heap + 1;
    }
    ml_dump_frames_fini(&frames);
}

void ml_dump_profile_rejected(
    struct ml_dump_packet *packet,
    const struct ml_snapshot *snapshot,
    uint32_t pid,
    uint32_t sequence
) {
    struct profile profile = {.packet = packet, .snapshot = snapshot, .sequence = sequence};
    struct process_dump dump = {.profile = &profile};
    ml_trace_TracePacket head = sequence_head(&profile);
    const ml_trace_ProfilePacket_ProcessHeapSamples message = {
        .pid = pid,
        .rejected_concurrent = true,
        .timestamp = snapshot->order.now.monotonic_ns,
        .heap_name = ml_dump_text(&libc_heap),
    };

    head.profile_packet.funcs.encode = encode_profile;
    head.profile_packet.arg = &dump;
    ml_dump_packet_append(packet, ml_trace_ProfilePacket_ProcessHeapSamples_fields, &message);
    ml_dump_packet_send(packet, &head, &head.profile_packet);
}

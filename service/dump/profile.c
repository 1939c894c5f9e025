#include "service/dump/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ipc/trace/heap_name.h"
#include "ipc/trace/mapping.h"
#include "ipc/wire/event.h"
#include "ipc/wire/writer.h"
#include "service/dump/frames.h"

/* TracePacket.sequence_flags */
enum { SEQUENCE_CLEARED = 1, SEQUENCE_NEEDS_STATE = 2 };

/* Stacks go out in batches of about so many bytes, each with what it needs and its figures. A file
 * that is cut lacks the batch where it ends and those behind it, and shows the rest. */
enum { BATCH_BYTES = 8 * 1024 };

enum { FRAME_NAME_BYTES = 1100, NS_PER_US = 1000 };

/* Frames that no node has. Their numbers are behind those of the others. */
enum made { MADE_NO_STACK, MADE_ALLOCATOR, MADE_COUNT };

/* The profile of one heap while it is written. */
struct profile {
    struct ml_dump_packet *packet;
    const struct ml_snapshot *snapshot;
    const struct ml_snapshot_process *process;
    const struct ml_dump_frames *frames;
    uint32_t trace_pid;
    uint16_t heap;
    bool is_first; /* of the process's heaps */
    uint32_t sequence;
    bool cleared;
    uint64_t index;          /* of the next ProfilePacket */
    uint32_t *frame_modules; /* [number of the frame - 1]: index; ML_DUMP_NO_INDEX: none */
    bool *frames_interned;   /* [number of the frame] */
    bool made_interned[MADE_COUNT];
    bool *modules_interned;
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
    const struct ml_trace_module known = {
        .start = module->start,
        .end = module->end,
        .bias = module->bias,
        .code_address = module->code_address,
        .code_offset = module->code_offset,
    };
    const struct ml_trace_mapping code = ml_trace_mapping_of(&known);
    uint64_t path_id = position;
    ml_trace_Mapping mapping = {
        .iid = position,
        .build_id = module->build_id.count_bytes > 0 ? position : 0,
        .exact_offset = code.exact_offset,
        .start_offset = code.start_offset,
        .start = code.start,
        .end = code.end,
        .load_bias = code.load_bias,
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

/* The frame, and its module before it, unless they are there. */
static void intern_frame(struct profile *profile, uint32_t frame) {
    const struct ml_snapshot_process *process = profile->process;
    const struct ml_snapshot_node *node =
        &process->nodes[profile->frames->frames[frame - 1].node_index];
    const uint32_t module = profile->frame_modules[frame - 1];
    ml_trace_Frame message = {.iid = frame};

    if (profile->frames_interned[frame]) {
        return;
    }
    profile->frames_interned[frame] = true;
    if (node->frame == ML_FRAME_ADDRESS && module != ML_DUMP_NO_INDEX) {
        if (!profile->modules_interned[module]) {
            profile->modules_interned[module] = true;
            intern_module(profile, module);
        }
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

static uint32_t intern_made(struct profile *profile, enum made made, const char *name) {
    const uint32_t number = profile->frames->frames_count + 1 + made;
    const struct ml_string text = ml_string_of(name);
    const ml_trace_Frame message = {.iid = number, .function_name_id = number};

    if (!profile->made_interned[made]) {
        profile->made_interned[made] = true;
        intern_text(profile, ml_trace_InternedData_function_names_tag, number, &text);
        intern(profile, ml_trace_InternedData_frames_tag, ml_trace_Frame_fields, &message);
    }
    return number;
}

/* With the frames of the thread, of the cut and of the allocator. */
enum { CALLSTACK_MAX = ML_STACK_DEPTH_MAX + 3 };

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

/* A callstack has the number of its stack, from 1. The innermost frame is the allocator's function,
 * as in heapprofd's: Perfetto counts what a stack holds once for each function that is inlined into
 * its innermost frame. */
static void intern_callstack(struct profile *profile, uint32_t number) {
    const struct ml_dump_frames *frames = profile->frames;
    uint32_t at = frames->stacks[number - 1].node_index;
    struct callstack stack;
    ml_trace_Callstack message = {
        .iid = number,
        .frame_ids = {.funcs.encode = encode_callstack, .arg = &stack},
    };

    stack.path[0] =
        intern_made(profile, MADE_ALLOCATOR, profile->heap == 0 ? "malloc" : "memlog_alloc");
    stack.depth = 1;
    if (at == ML_DUMP_NO_INDEX) {
        stack.path[stack.depth++] = intern_made(profile, MADE_NO_STACK, "[no stack]");
    }
    while (at != ML_DUMP_NO_INDEX && stack.depth < sizeof stack.path / sizeof stack.path[0]) {
        intern_frame(profile, frames->frame[at]);
        stack.path[stack.depth++] = frames->frame[at];
        at = frames->parent_index[at];
    }
    callstack_close(&stack);
    intern(profile, ml_trace_InternedData_callstacks_tag, ml_trace_Callstack_fields, &message);
}

/* Every one of a dump's packets stands alone: Perfetto's `continued` would let all wait for the
 * last one, which a cut file lacks. */
static bool encode_profile(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct profile *profile = *arg;
    ml_trace_ProfilePacket message = {
        .index = profile->index,
        .process_dumps = {.funcs.encode = ml_dump_encode_body, .arg = profile->packet},
    };

    return pb_encode_tag_for_field(stream, field) &&
           pb_encode_submessage(stream, ml_trace_ProfilePacket_fields, &message);
}

/* Whether some of its events are missing: lost, or of a time of which nothing is known. */
static bool lacks_events(const struct profile *profile) {
    const struct memlog_service_dump_order *order = &profile->snapshot->order;

    for (uint32_t i = 0; i < order->gaps.count; i++) {
        const struct memlog_service_gap *gap = &order->gaps.items[i];
        if (gap->id == profile->process->id ||
            (gap->id == 0 && profile->process->start.monotonic_ns < gap->to.monotonic_ns)) {
            return true;
        }
    }
    return profile->process->lost_events > 0;
}

static void name_heap(const struct profile *profile, struct ml_trace_heap_name *out_name) {
    const struct ml_snapshot_process *process = profile->process;
    struct ml_string name = {.data = ""};

    for (uint32_t i = 0; i < process->heaps_count; i++) {
        if (process->heaps[i].id == profile->heap && process->heaps[i].string != 0) {
            name = process->strings[process->heaps[i].string];
        }
    }
    ml_trace_heap_name(profile->heap, name.data, name.count_bytes, out_name);
}

/* The fields beside the samples, which each ProfilePacket has; but what trace_processor adds up by
 * process has the last one of the first heap alone. */
static void put_dump_head(struct profile *profile, bool is_last_packet) {
    const struct ml_snapshot_process *process = profile->process;
    const struct memlog_service_moment *now = &profile->snapshot->order.now;
    bool ended = process->end.monotonic_ns != 0 && process->end.monotonic_ns < now->monotonic_ns;
    const bool is_last = is_last_packet && profile->is_first;
    struct ml_trace_heap_name name;
    ml_trace_ProfilePacket_ProcessHeapSamples message = {
        .pid = profile->trace_pid,
        .from_startup = process->from_startup,
        .buffer_overran = is_last && lacks_events(profile),
        /* The UI adds up heaps of one process at the same moment, so their moments differ. */
        .timestamp = (ended ? process->end.monotonic_ns : now->monotonic_ns) + profile->heap,
        .sampling_interval_bytes = process->sampling.longest_bytes,
        /* Each block is weighted by the interval of its moment. The two fields differ if the
         * interval has changed. */
        .orig_sampling_interval_bytes = process->sampling.count > 0
                                            ? process->sampling.changes[0].interval_bytes
                                            : process->sampling.longest_bytes,
        .disconnected = is_last && process->stream_ended,
        .start_timestamp = process->start.monotonic_ns,
    };

    if (is_last) {
        message.stats = (ml_trace_ProfilePacket_ProcessStats
        ){.unwinding_errors = process->broken_stacks,
          .heap_samples = process->events,
          .client_spinlock_blocked_us = process->accounting.waited_ns / NS_PER_US};
    }
    name_heap(profile, &name);
    const struct ml_string shown = {.data = name.bytes, .count_bytes = (uint32_t)name.count_bytes};
    message.heap_name = ml_dump_text(&shown);
    ml_dump_packet_append(
        profile->packet, ml_trace_ProfilePacket_ProcessHeapSamples_fields, &message
    );
}

static void send_samples(struct profile *profile, bool is_last_packet) {
    ml_trace_TracePacket head = sequence_head(profile);

    head.profile_packet.funcs.encode = encode_profile;
    head.profile_packet.arg = profile;
    put_dump_head(profile, is_last_packet);
    ml_dump_packet_send(profile->packet, &head, &head.profile_packet);
    profile->index++;
}

/* Never negative: trace_processor drops or mixes rows of the wrong sign. */
static uint64_t difference(uint64_t more, uint64_t less) {
    return more > less ? more - less : 0;
}

static void put_sample(struct profile *profile, uint32_t number) {
    const struct ml_dump_stack *stack = &profile->frames->stacks[number - 1];
    ml_trace_ProfilePacket_HeapSample sample = {
        .callstack_id = number,
        .self_allocated = stack->total_bytes,
        .self_freed = difference(stack->total_bytes, stack->live_bytes),
        .alloc_count = stack->total_blocks,
        .free_count = difference(stack->total_blocks, stack->live_blocks),
    };

    /* A row of 0 bytes with a count makes Perfetto's sums wrong. Only the exact packets have
     * blocks of size 0. */
    if (sample.self_allocated == 0) {
        return;
    }
    if (sample.self_freed == 0) {
        sample.alloc_count = stack->live_blocks;
        sample.free_count = 0;
    }
    ml_dump_packet_add(
        profile->packet,
        ml_trace_ProfilePacket_ProcessHeapSamples_samples_tag,
        ml_trace_ProfilePacket_HeapSample_fields,
        &sample
    );
}

/* Of all stacks what they are made of, and their figures; batch by batch. */
static void send_stacks(struct profile *profile) {
    const uint32_t count = profile->frames->stacks_count;
    uint32_t sent = 0;

    do {
        const uint32_t first = sent;
        while (sent < count && profile->packet->body_count < BATCH_BYTES) {
            intern_callstack(profile, ++sent);
        }
        if (!ml_dump_packet_is_empty(profile->packet)) {
            send_interned(profile);
        }
        for (uint32_t number = first + 1; number <= sent; number++) {
            put_sample(profile, number);
        }
        send_samples(profile, sent == count);
    } while (sent < count && profile->packet->status == ML_OK);
}

/* Frames are in the order of modules, so each module is looked for once. */
static void find_modules(struct profile *profile) {
    const struct ml_snapshot_process *process = profile->process;
    uint32_t id_before = 0;
    uint32_t module = ML_DUMP_NO_INDEX;

    for (uint32_t i = 0; i < profile->frames->frames_count; i++) {
        const uint32_t id = process->nodes[profile->frames->frames[i].node_index].module;
        if (id != id_before) {
            id_before = id;
            module = ml_dump_module_find(process, id);
        }
        profile->frame_modules[i] = module;
    }
}

/* The stacks of a heap that were taken. */
static void send_heap(struct profile *profile) {
    profile->frame_modules =
        calloc((size_t)profile->frames->frames_count + 1, sizeof *profile->frame_modules);
    profile->frames_interned =
        calloc((size_t)profile->frames->frames_count + 1, sizeof *profile->frames_interned);
    profile->modules_interned =
        calloc((size_t)profile->process->modules_count + 1, sizeof *profile->modules_interned);
    if (profile->frame_modules && profile->frames_interned && profile->modules_interned) {
        find_modules(profile);
        send_stacks(profile);
    } else {
        ml_dump_packet_fail(profile->packet, ML_ENV_MEMORY);
    }
    free(profile->frame_modules);
    free(profile->frames_interned);
    free(profile->modules_interned);
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
            .is_first = from == 0,
            .sequence = (*sequence)++,
        };

        status = ml_dump_frames_take(&frames, heap);
        if (status != ML_OK) {
            ml_dump_packet_fail(packet, status);
            break;
        }
        send_heap(&profile);
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
    const struct ml_string malloc_heap = ml_string_of(ML_TRACE_MALLOC_HEAP);
    struct profile profile = {.packet = packet, .snapshot = snapshot, .sequence = sequence};
    ml_trace_TracePacket head = sequence_head(&profile);
    const ml_trace_ProfilePacket_ProcessHeapSamples message = {
        .pid = pid,
        .rejected_concurrent = true,
        .timestamp = snapshot->order.now.monotonic_ns,
        .heap_name = ml_dump_text(&malloc_heap),
    };

    head.profile_packet.funcs.encode = encode_profile;
    head.profile_packet.arg = &profile;
    ml_dump_packet_append(packet, ml_trace_ProfilePacket_ProcessHeapSamples_fields, &message);
    ml_dump_packet_send(packet, &head, &head.profile_packet);
}

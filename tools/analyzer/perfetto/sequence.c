#include "tools/analyzer/perfetto/sequence.h"

#include <stdlib.h>

#include "ipc/trace/trace.pb.h"
#include "tools/analyzer/perfetto/sequence_internal.h"

/* As in the dumps: a packet that a cut file lacks takes no more with it. */
enum { BODY_BYTES = 4096, INTERNED_BYTES = 16 * 1024 };

/* What one dump says of the heap. */
struct heap_dump {
    struct ml_sequence_numbers numbers;
    struct ml_pb_buffer added;   /* InternedData */
    struct ml_pb_span last_head; /* ProcessHeapSamples, with its samples */
};

/* Of a ProfilePacket at hand: where it belongs, and what all of a dump have. */
struct profile_head {
    struct ml_pb_span fields; /* ProcessHeapSamples; its samples are not taken */
    uint64_t start_ns, end_ns;
    uint64_t boottime_ns;
};

void ml_sequence_fini(struct ml_sequence *sequence) {
    free(sequence->entries);
    free(sequence->stacks);
    ml_index_fini(&sequence->entries_index);
    ml_arena_fini(&sequence->arena);
    *sequence = (struct ml_sequence){0};
}

void ml_sequence_write_packet(struct ml_pb_span packet, FILE *out) {
    struct ml_pb_buffer head = {0};

    ml_pb_put_bytes(&head, ml_trace_Trace_packet_tag, packet);
    fwrite(head.bytes, 1, head.count, out);
    ml_pb_buffer_fini(&head);
}

/* Send a payload as the sequence's next packet. */
static bool send(
    struct ml_sequence *sequence,
    uint64_t boottime_ns,
    uint32_t tag,
    const struct ml_pb_buffer *payload,
    FILE *out
) {
    struct ml_pb_buffer packet = {0};

    ml_pb_put_number(&packet, ml_trace_TracePacket_timestamp_tag, boottime_ns);
    ml_pb_put_number(&packet, ml_trace_TracePacket_trusted_packet_sequence_id_tag, sequence->id);
    ml_pb_put_number(
        &packet,
        ml_trace_TracePacket_sequence_flags_tag,
        sequence->is_begun ? ML_SEQUENCE_NEEDS_STATE : ML_SEQUENCE_CLEARED
    );
    ml_pb_put_bytes(&packet, tag, ml_pb_span_of(payload));
    const bool done = !packet.has_failed && !payload->has_failed;
    if (done) {
        ml_sequence_write_packet(ml_pb_span_of(&packet), out);
        sequence->is_begun = true;
    }
    ml_pb_buffer_fini(&packet);
    return done;
}

static bool
send_added(struct ml_sequence *sequence, struct ml_pb_span added, uint64_t boottime_ns, FILE *out) {
    struct ml_pb_buffer piece = {0};
    struct ml_pb_field field;
    bool done = true;

    while (done && added.count > 0) {
        piece.count = 0;
        while (piece.count < INTERNED_BYTES && ml_pb_next(&added, &field)) {
            ml_pb_put_fields(&piece, field.whole);
        }
        done = send(sequence, boottime_ns, ml_trace_TracePacket_interned_data_tag, &piece, out);
    }
    ml_pb_buffer_fini(&piece);
    return done;
}

static void add_sample(
    struct ml_sequence *sequence,
    const struct ml_sequence_numbers *numbers,
    struct ml_pb_span sample
) {
    const uint64_t number = ml_sequence_number(
        numbers,
        ml_trace_InternedData_callstacks_tag,
        ml_pb_number(sample, ml_trace_ProfilePacket_HeapSample_callstack_id_tag)
    );

    if (number == 0 || number > sequence->stacks_count) {
        return;
    }
    struct ml_sequence_figures *now = &sequence->stacks[number - 1].now;
    now->allocated += ml_pb_number(sample, ml_trace_ProfilePacket_HeapSample_self_allocated_tag);
    now->freed += ml_pb_number(sample, ml_trace_ProfilePacket_HeapSample_self_freed_tag);
    now->alloc_count += ml_pb_number(sample, ml_trace_ProfilePacket_HeapSample_alloc_count_tag);
    now->free_count += ml_pb_number(sample, ml_trace_ProfilePacket_HeapSample_free_count_tag);
}

static void
take_profile(struct ml_sequence *sequence, struct heap_dump *heap, struct ml_pb_span profile) {
    struct ml_pb_field field;
    struct ml_pb_field inner;

    while (ml_pb_next(&profile, &field)) {
        if (field.tag != ml_trace_ProfilePacket_process_dumps_tag || !field.is_bytes) {
            continue;
        }
        heap->last_head = field.inside;
        while (ml_pb_next(&field.inside, &inner)) {
            if (inner.tag == ml_trace_ProfilePacket_ProcessHeapSamples_samples_tag &&
                inner.is_bytes) {
                add_sample(sequence, &heap->numbers, inner.inside);
            }
        }
    }
}

static bool
take_packet(struct ml_sequence *sequence, struct heap_dump *heap, struct ml_pb_span packet) {
    struct ml_pb_field field;
    bool done = true;

    while (done && ml_pb_next(&packet, &field)) {
        if (field.tag == ml_trace_TracePacket_interned_data_tag) {
            done = ml_sequence_intern(sequence, &heap->numbers, field.inside, &heap->added);
        } else if (field.tag == ml_trace_TracePacket_profile_packet_tag) {
            take_profile(sequence, heap, field.inside);
        }
    }
    return done;
}

static uint64_t above(uint64_t more, uint64_t less) {
    return more > less ? more - less : 0;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* What is told of the stack next. What is live is the dump's, and nothing falls. Blocks of size 0
 * alone are no change: a row of 0 bytes with a count makes Perfetto's sums wrong. */
static struct ml_sequence_figures next_of(const struct ml_sequence_stack *stack) {
    const struct ml_sequence_figures *told = &stack->told, *now = &stack->now;
    const uint64_t live = above(now->allocated, now->freed);
    const uint64_t live_count = above(now->alloc_count, now->free_count);
    struct ml_sequence_figures next = *told;

    next.allocated = larger(larger(now->allocated, told->allocated), told->freed + live);
    next.freed = next.allocated - live;
    if (next.allocated != told->allocated) {
        next.alloc_count =
            larger(larger(now->alloc_count, told->alloc_count), told->free_count + live_count);
    }
    if (next.freed != told->freed) {
        next.free_count = larger(told->free_count, above(next.alloc_count, live_count));
    }
    return next;
}

/* Tell all stacks what is next. Whether any figure has changed. */
static bool tell_figures(struct ml_sequence *sequence) {
    bool is_changed = false;

    for (size_t i = 0; i < sequence->stacks_count; i++) {
        struct ml_sequence_stack *stack = &sequence->stacks[i];
        const struct ml_sequence_figures next = next_of(stack);
        is_changed = is_changed || next.allocated != stack->told.allocated ||
                     next.freed != stack->told.freed;
        stack->told = next;
    }
    return is_changed;
}

static void
put_stats(struct ml_sequence *sequence, struct ml_pb_span stats, struct ml_pb_buffer *dump) {
    struct ml_pb_buffer grown = {0};
    struct ml_pb_field field;

    while (ml_pb_next(&stats, &field)) {
        if (field.is_number && field.tag < ML_SEQUENCE_STATS) {
            uint64_t *told = &sequence->told_stats[field.tag];
            ml_pb_put_number(&grown, field.tag, above(field.number, *told));
            *told = larger(field.number, *told);
        }
    }
    ml_pb_put_bytes(
        dump, ml_trace_ProfilePacket_ProcessHeapSamples_stats_tag, ml_pb_span_of(&grown)
    );
    dump->has_failed = dump->has_failed || grown.has_failed;
    ml_pb_buffer_fini(&grown);
}

static void
put_flag(struct ml_sequence *sequence, const struct ml_pb_field *flag, struct ml_pb_buffer *dump) {
    const uint32_t bit = UINT32_C(1) << flag->tag;

    if ((sequence->told_flags & bit) == 0) {
        ml_pb_put_fields(dump, flag->whole);
        sequence->told_flags |= bit;
    }
}

static void put_head(
    struct ml_sequence *sequence,
    const struct profile_head *head,
    bool is_last_packet,
    struct ml_pb_buffer *dump
) {
    struct ml_pb_span fields = head->fields;
    struct ml_pb_field field;

    ml_pb_put_number(dump, ml_trace_ProfilePacket_ProcessHeapSamples_pid_tag, sequence->pid);
    ml_pb_put_number(
        dump, ml_trace_ProfilePacket_ProcessHeapSamples_start_timestamp_tag, head->start_ns
    );
    ml_pb_put_number(dump, ml_trace_ProfilePacket_ProcessHeapSamples_timestamp_tag, head->end_ns);
    while (ml_pb_next(&fields, &field)) {
        switch (field.tag) {
        case ml_trace_ProfilePacket_ProcessHeapSamples_pid_tag:
        case ml_trace_ProfilePacket_ProcessHeapSamples_samples_tag:
        case ml_trace_ProfilePacket_ProcessHeapSamples_start_timestamp_tag:
        case ml_trace_ProfilePacket_ProcessHeapSamples_timestamp_tag:
            break;
        case ml_trace_ProfilePacket_ProcessHeapSamples_stats_tag:
            if (is_last_packet) {
                put_stats(sequence, field.inside, dump);
            }
            break;
        case ml_trace_ProfilePacket_ProcessHeapSamples_disconnected_tag:
        case ml_trace_ProfilePacket_ProcessHeapSamples_buffer_overran_tag:
        case ml_trace_ProfilePacket_ProcessHeapSamples_rejected_concurrent_tag:
            if (is_last_packet) {
                put_flag(sequence, &field, dump);
            }
            break;
        default:
            ml_pb_put_fields(dump, field.whole);
        }
    }
}

static bool send_profile(
    struct ml_sequence *sequence,
    const struct profile_head *head,
    const struct ml_pb_buffer *samples,
    bool is_last_packet,
    FILE *out
) {
    struct ml_pb_buffer dump = {0};
    struct ml_pb_buffer profile = {0};

    put_head(sequence, head, is_last_packet, &dump);
    ml_pb_put_fields(&dump, ml_pb_span_of(samples));
    ml_pb_put_bytes(&profile, ml_trace_ProfilePacket_process_dumps_tag, ml_pb_span_of(&dump));
    ml_pb_put_number(&profile, ml_trace_ProfilePacket_index_tag, sequence->next_index++);
    const bool done =
        !dump.has_failed && !samples->has_failed &&
        send(sequence, head->boottime_ns, ml_trace_TracePacket_profile_packet_tag, &profile, out);
    ml_pb_buffer_fini(&dump);
    ml_pb_buffer_fini(&profile);
    return done;
}

static void
put_sample(struct ml_pb_buffer *samples, uint64_t number, const struct ml_sequence_figures *one) {
    struct ml_pb_buffer sample = {0};

    ml_pb_put_number(&sample, ml_trace_ProfilePacket_HeapSample_callstack_id_tag, number);
    ml_pb_put_number(&sample, ml_trace_ProfilePacket_HeapSample_self_allocated_tag, one->allocated);
    ml_pb_put_number(&sample, ml_trace_ProfilePacket_HeapSample_self_freed_tag, one->freed);
    ml_pb_put_number(&sample, ml_trace_ProfilePacket_HeapSample_alloc_count_tag, one->alloc_count);
    ml_pb_put_number(&sample, ml_trace_ProfilePacket_HeapSample_free_count_tag, one->free_count);
    ml_pb_put_bytes(
        samples, ml_trace_ProfilePacket_ProcessHeapSamples_samples_tag, ml_pb_span_of(&sample)
    );
    samples->has_failed = samples->has_failed || sample.has_failed;
    ml_pb_buffer_fini(&sample);
}

/* All that the stacks are told. */
static bool send_figures(struct ml_sequence *sequence, const struct profile_head *head, FILE *out) {
    struct ml_pb_buffer samples = {0};
    bool done = true;

    for (size_t i = 0; done && i < sequence->stacks_count; i++) {
        if (sequence->stacks[i].told.allocated == 0) {
            continue;
        }
        if (samples.count > BODY_BYTES) {
            done = send_profile(sequence, head, &samples, false, out);
            samples.count = 0;
        }
        put_sample(&samples, i + 1, &sequence->stacks[i].told);
    }
    done = done && send_profile(sequence, head, &samples, true, out);
    ml_pb_buffer_fini(&samples);
    sequence->was_told = true;
    sequence->last_monotonic_ns = head->end_ns;
    return done;
}

static void forget_now(struct ml_sequence *sequence) {
    for (size_t i = 0; i < sequence->stacks_count; i++) {
        sequence->stacks[i].now = (struct ml_sequence_figures){0};
    }
}

enum ml_status
ml_sequence_add(struct ml_sequence *sequence, const struct ml_sequence_dump *dump, FILE *out) {
    struct heap_dump heap = {0};
    bool done = true;

    forget_now(sequence);
    for (size_t i = 0; done && i < dump->packets_count; i++) {
        done = take_packet(sequence, &heap, dump->packets[i]);
    }
    done = done && send_added(sequence, ml_pb_span_of(&heap.added), dump->boottime_ns, out);
    struct profile_head head = {
        .fields = heap.last_head,
        .start_ns = ml_pb_number(
            heap.last_head, ml_trace_ProfilePacket_ProcessHeapSamples_start_timestamp_tag
        ),
        .end_ns =
            ml_pb_number(heap.last_head, ml_trace_ProfilePacket_ProcessHeapSamples_timestamp_tag),
        .boottime_ns = dump->boottime_ns,
    };
    if (done && heap.last_head.count > 0) {
        const bool is_changed = tell_figures(sequence);
        const bool is_later = !sequence->was_told || head.end_ns > sequence->last_monotonic_ns;
        if (sequence->was_told) {
            /* Perfetto's UI adds up all from the start on: not the dump before. */
            head.start_ns = sequence->last_monotonic_ns + 1;
            head.end_ns = is_later ? head.end_ns : head.start_ns;
        }
        done = (!is_later && !is_changed) || send_figures(sequence, &head, out);
    }
    ml_sequence_numbers_fini(&heap.numbers);
    ml_pb_buffer_fini(&heap.added);
    return done ? ML_OK : ML_ENV_MEMORY;
}

enum ml_status ml_sequence_close(
    struct ml_sequence *sequence, uint64_t monotonic_ns, uint64_t boottime_ns, FILE *out
) {
    struct ml_pb_buffer fields = {0};
    struct profile_head head = {
        .start_ns = sequence->last_monotonic_ns + 1,
        .end_ns = larger(monotonic_ns, sequence->last_monotonic_ns + 1),
        .boottime_ns = boottime_ns,
    };
    bool done = true;

    forget_now(sequence);
    if (sequence->was_told && tell_figures(sequence)) {
        ml_pb_put_bytes(
            &fields, ml_trace_ProfilePacket_ProcessHeapSamples_heap_name_tag, sequence->heap
        );
        head.fields = ml_pb_span_of(&fields);
        done = !fields.has_failed && send_figures(sequence, &head, out);
    }
    ml_pb_buffer_fini(&fields);
    return done ? ML_OK : ML_ENV_MEMORY;
}

#include "tools/analyzer/perfetto/join.h"

#include <stdlib.h>

#include "ipc/trace/trace.pb.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/perfetto/rewrite.h"
#include "tools/analyzer/perfetto/sequence.h"

/* A dump, and its processes. */
struct member {
    struct ml_join_dump dump;
    uint64_t boottime_ns;
    struct ml_join_members processes;
};

struct ml_join {
    uint64_t run_start_ns;
    struct member *members;
    struct ml_join_dump *dumps; /* the same in short, when settled */
    size_t count, capacity;
    size_t written;
    struct ml_join_processes processes;
    struct ml_join_rewriting rewriting;
    struct ml_sequence *sequences; /* in the order of their first dumps */
    size_t sequences_count, sequences_capacity;
    struct ml_index sequences_index;
    /* The packets of a heap, until another one's or the dump's end follows. */
    struct ml_pb_span *packets;
    size_t packets_count, packets_capacity;
    uint64_t packets_sequence;
};

struct ml_join *ml_join_new(void) {
    return calloc(1, sizeof(struct ml_join));
}

void ml_join_free(struct ml_join *join) {
    if (!join) {
        return;
    }
    for (size_t i = 0; i < join->count; i++) {
        ml_join_members_fini(&join->members[i].processes);
    }
    for (size_t i = 0; i < join->sequences_count; i++) {
        ml_sequence_fini(&join->sequences[i]);
    }
    ml_join_processes_fini(&join->processes);
    ml_join_rewriting_fini(&join->rewriting);
    ml_index_fini(&join->sequences_index);
    free(join->members);
    free(join->dumps);
    free(join->sequences);
    free(join->packets);
    free(join);
}

enum ml_status ml_join_learn(
    struct ml_join *join, const struct ml_profile *profile, const char *path, uint32_t number
) {
    if (join->count > 0 && join->run_start_ns != profile->run_start.monotonic_ns) {
        return ML_PEER_STATE;
    }
    if (!ML_GROW(join->members, join->capacity, join->count + 1)) {
        return ML_ENV_MEMORY;
    }
    join->run_start_ns = profile->run_start.monotonic_ns;
    struct member *member = &join->members[join->count++];
    *member = (struct member
    ){.dump = {.path = path, .number = number, .monotonic_ns = profile->now.monotonic_ns},
      .boottime_ns = profile->now.boottime_ns};
    return ml_join_processes_learn(&join->processes, profile, 0, &member->processes)
               ? ML_OK
               : ML_ENV_MEMORY;
}

static int order(const void *left, const void *right) {
    const struct ml_join_dump *a = &((const struct member *)left)->dump;
    const struct ml_join_dump *b = &((const struct member *)right)->dump;

    return (a->monotonic_ns > b->monotonic_ns) - (a->monotonic_ns < b->monotonic_ns);
}

const struct ml_join_dump *ml_join_settle(struct ml_join *join, size_t *out_count) {
    join->dumps = calloc(join->count + 1, sizeof *join->dumps);
    if (!join->dumps || !ml_join_processes_settle(&join->processes)) {
        return NULL;
    }
    ML_SORT(join->members, join->count, order);
    for (size_t i = 0; i < join->count; i++) {
        const struct ml_join_members *members = &join->members[i].processes;
        join->dumps[i] = join->members[i].dump;
        for (size_t at = 0; at < members->count; at++) {
            join->processes.items[members->processes[at]].last_dump = i;
        }
    }
    join->rewriting.processes = &join->processes;
    *out_count = join->count;
    return join->dumps;
}

static bool is_text(struct ml_pb_span a, struct ml_pb_span b) {
    return ml_profile_text_eq(
        (struct ml_profile_text){.bytes = (const char *)a.bytes, .count_bytes = a.count},
        (struct ml_profile_text){.bytes = (const char *)b.bytes, .count_bytes = b.count}
    );
}

/* The sequence of a process's heap, which is added if it is new; NULL: no memory. */
static struct ml_sequence *
sequence_of(struct ml_join *join, uint64_t pid, uint32_t process, struct ml_pb_span heap) {
    const uint64_t hash = ml_hash(ml_hash(0, &pid, sizeof pid), heap.bytes, heap.count);
    size_t at = 0;

    for (uint32_t i = ml_index_first(&join->sequences_index, hash, &at); i != ML_INDEX_NONE;
         i = ml_index_next(&join->sequences_index, hash, &at)) {
        if (join->sequences[i].pid == pid && is_text(join->sequences[i].heap, heap)) {
            return &join->sequences[i];
        }
    }
    if (!ML_GROW(join->sequences, join->sequences_capacity, join->sequences_count + 1) ||
        !ml_index_add(&join->sequences_index, hash, (uint32_t)join->sequences_count)) {
        return NULL;
    }
    struct ml_sequence *sequence = &join->sequences[join->sequences_count];
    *sequence = (struct ml_sequence
    ){.id = ML_JOIN_SEQUENCE_EVENTS + 1 + (uint32_t)join->sequences_count,
      .pid = pid,
      .process = process};
    join->sequences_count++;
    const char *name =
        ml_arena_text(&sequence->arena, heap.count ? (const char *)heap.bytes : "", heap.count);
    sequence->heap =
        (struct ml_pb_span){.bytes = (const uint8_t *)name, .count = name ? heap.count : 0};
    return name ? sequence : NULL;
}

/* Of whom the packets at hand are: the first ProcessHeapSamples that is there. */
static struct ml_pb_span profiled(const struct ml_join *join) {
    struct ml_pb_span found = {0};

    for (size_t i = 0; found.count == 0 && i < join->packets_count; i++) {
        const struct ml_pb_span profile =
            ml_pb_bytes(join->packets[i], ml_trace_TracePacket_profile_packet_tag);
        found = ml_pb_bytes(profile, ml_trace_ProfilePacket_process_dumps_tag);
    }
    return found;
}

/* Write the packets of a heap that were kept back. */
static bool flush(struct ml_join *join, FILE *out) {
    const struct ml_pb_span head = profiled(join);
    const uint64_t theirs = ml_pb_number(head, ml_trace_ProfilePacket_ProcessHeapSamples_pid_tag);
    const struct member *member = &join->members[join->written];
    const struct ml_sequence_dump dump = {
        .packets = join->packets,
        .packets_count = join->packets_count,
        .boottime_ns = member->boottime_ns,
    };

    join->packets_count = 0;
    if (head.count == 0) {
        return true; /* a cut file has interned data alone */
    }
    struct ml_sequence *sequence = sequence_of(
        join,
        ml_join_pid(&join->rewriting, theirs),
        ml_join_process_of(&join->processes, &member->processes, theirs),
        ml_pb_bytes(head, ml_trace_ProfilePacket_ProcessHeapSamples_heap_name_tag)
    );
    return sequence && ml_sequence_add(sequence, &dump, out) == ML_OK;
}

static bool keep_back(struct ml_join *join, struct ml_pb_span packet, FILE *out) {
    const uint64_t id = ml_pb_number(packet, ml_trace_TracePacket_trusted_packet_sequence_id_tag);

    if (id != join->packets_sequence && !flush(join, out)) {
        return false;
    }
    join->packets_sequence = id;
    if (!ML_GROW(join->packets, join->packets_capacity, join->packets_count + 1)) {
        return false;
    }
    join->packets[join->packets_count++] = packet;
    return true;
}

static bool is_of_profile(struct ml_pb_span packet) {
    struct ml_pb_field field;

    while (ml_pb_next(&packet, &field)) {
        if (field.tag == ml_trace_TracePacket_interned_data_tag ||
            field.tag == ml_trace_TracePacket_profile_packet_tag) {
            return true;
        }
    }
    return false;
}

/* Whether a dump begins with the packet. */
static bool is_begin(struct ml_pb_span packet) {
    const struct ml_pb_span memlog = ml_pb_bytes(packet, ml_trace_TracePacket_memlog_tag);

    return ml_pb_number(memlog, ml_trace_Memlog_kind_tag) == ml_trace_MemlogKind_MEMLOG_RUN;
}

static bool write_one(struct ml_join *join, struct ml_pb_span packet, FILE *out) {
    struct ml_pb_buffer fields = {0};

    if (is_of_profile(packet)) {
        return keep_back(join, packet, out);
    }
    if (!flush(join, out)) {
        return false;
    }
    if (ml_join_rewrite(&join->rewriting, packet, &fields)) {
        ml_sequence_write_packet(ml_pb_span_of(&fields), out);
    }
    ml_pb_buffer_fini(&fields);
    return !join->rewriting.has_failed;
}

/* Processes that this dump lists no more: they are counted in others' rows. */
static bool close_missing(struct ml_join *join, FILE *out) {
    const struct member *member = &join->members[join->written];
    bool *is_there = calloc(join->processes.count + 1, sizeof *is_there);
    bool done = is_there != NULL;

    for (size_t i = 0; done && i < member->processes.count; i++) {
        is_there[member->processes.processes[i]] = true;
    }
    for (size_t i = 0; done && i < join->sequences_count; i++) {
        struct ml_sequence *sequence = &join->sequences[i];
        if (sequence->process != ML_JOIN_NONE && !is_there[sequence->process]) {
            done =
                ml_sequence_close(sequence, member->dump.monotonic_ns, member->boottime_ns, out) ==
                ML_OK;
        }
    }
    free(is_there);
    return done;
}

enum ml_status
ml_join_write(struct ml_join *join, const uint8_t *bytes, size_t count_bytes, FILE *out) {
    const struct member *member = &join->members[join->written];
    struct ml_pb_span rest = {.bytes = bytes, .count = count_bytes};
    struct ml_pb_field packet;
    uint32_t number = 0;
    bool done = true;

    ml_join_rewriting_begin(&join->rewriting, &member->processes, join->written);
    join->packets_count = 0;
    while (done && number <= member->dump.number && ml_pb_next(&rest, &packet)) {
        number += is_begin(packet.inside);
        if (number == member->dump.number) {
            done = write_one(join, packet.inside, out);
        }
    }
    done = done && flush(join, out) && close_missing(join, out);
    join->written++;
    return done ? ML_OK : ML_ENV_MEMORY;
}

/* Contents and their numbers; tools/analyzer/perfetto/sequence.h. */
#include <string.h>

#include "ipc/trace/trace.pb.h"
#include "tools/analyzer/perfetto/sequence_internal.h"

/* The first field of each kind: InternedString, Mapping, Frame, Callstack. */
enum { NUMBER_TAG = ml_trace_InternedString_iid_tag };

void ml_sequence_numbers_fini(struct ml_sequence_numbers *numbers) {
    free(numbers->items);
    ml_index_fini(&numbers->index);
    *numbers = (struct ml_sequence_numbers){0};
}

static uint64_t hash_of(uint32_t kind, const void *bytes, size_t count) {
    return ml_hash(ml_hash(0, &kind, sizeof kind), bytes, count);
}

uint64_t
ml_sequence_number(const struct ml_sequence_numbers *numbers, uint32_t kind, uint64_t theirs) {
    const uint64_t hash = hash_of(kind, &theirs, sizeof theirs);
    size_t at = 0;

    for (uint32_t i = ml_index_first(&numbers->index, hash, &at); i != ML_INDEX_NONE;
         i = ml_index_next(&numbers->index, hash, &at)) {
        if (numbers->items[i].kind == kind && numbers->items[i].theirs == theirs) {
            return numbers->items[i].ours;
        }
    }
    return 0;
}

/* Remember their number; the first meaning stays. */
static bool
note_number(struct ml_sequence_numbers *numbers, uint32_t kind, uint64_t theirs, uint64_t ours) {
    if (ml_sequence_number(numbers, kind, theirs) != 0) {
        return true;
    }
    if (!ML_GROW(numbers->items, numbers->capacity, numbers->count + 1) ||
        !ml_index_add(
            &numbers->index, hash_of(kind, &theirs, sizeof theirs), (uint32_t)numbers->count
        )) {
        return false;
    }
    numbers->items[numbers->count].kind = kind;
    numbers->items[numbers->count].theirs = theirs;
    numbers->items[numbers->count++].ours = ours;
    return true;
}

/* The kind of what a field of an entry refers to; 0: it refers to nothing. */
static uint32_t reference_of(uint32_t kind, uint32_t tag) {
    static const struct {
        uint32_t kind, tag, to;
    } references[] = {
        {ml_trace_InternedData_mappings_tag,
         ml_trace_Mapping_build_id_tag,
         ml_trace_InternedData_build_ids_tag},
        {ml_trace_InternedData_mappings_tag,
         ml_trace_Mapping_path_string_ids_tag,
         ml_trace_InternedData_mapping_paths_tag},
        {ml_trace_InternedData_frames_tag,
         ml_trace_Frame_function_name_id_tag,
         ml_trace_InternedData_function_names_tag},
        {ml_trace_InternedData_frames_tag,
         ml_trace_Frame_mapping_id_tag,
         ml_trace_InternedData_mappings_tag},
        {ml_trace_InternedData_callstacks_tag,
         ml_trace_Callstack_frame_ids_tag,
         ml_trace_InternedData_frames_tag},
    };

    for (size_t i = 0; i < sizeof references / sizeof references[0]; i++) {
        if (references[i].kind == kind && references[i].tag == tag) {
            return references[i].to;
        }
    }
    return 0;
}

/* The entry's content, with our numbers. False: it refers to what is not there. */
static bool content_of(
    const struct ml_sequence_numbers *numbers,
    uint32_t kind,
    struct ml_pb_span entry,
    struct ml_pb_buffer *content
) {
    struct ml_pb_field field;

    while (ml_pb_next(&entry, &field)) {
        const uint32_t to = field.is_number ? reference_of(kind, field.tag) : 0;
        if (field.tag == NUMBER_TAG) {
            continue;
        }
        if (to == 0 || field.number == 0) {
            ml_pb_put_fields(content, field.whole);
            continue;
        }
        const uint64_t ours = ml_sequence_number(numbers, to, field.number);
        if (ours == 0) {
            return false;
        }
        ml_pb_put_number(content, field.tag, ours);
    }
    return true;
}

static const struct ml_sequence_entry *
find_content(const struct ml_sequence *sequence, uint32_t kind, struct ml_pb_span content) {
    const uint64_t hash = hash_of(kind, content.bytes, content.count);
    size_t at = 0;

    for (uint32_t i = ml_index_first(&sequence->entries_index, hash, &at); i != ML_INDEX_NONE;
         i = ml_index_next(&sequence->entries_index, hash, &at)) {
        const struct ml_sequence_entry *entry = &sequence->entries[i];
        if (entry->kind == kind && entry->content.count == content.count &&
            (content.count == 0 || memcmp(entry->content.bytes, content.bytes, content.count) == 0
            )) {
            return entry;
        }
    }
    return NULL;
}

/* The next number: a callstack's is its place among the stacks, any other's that of the entry. */
static uint64_t take_number(struct ml_sequence *sequence, uint32_t kind) {
    if (kind != ml_trace_InternedData_callstacks_tag) {
        return sequence->entries_count + 1;
    }
    if (!ML_GROW(sequence->stacks, sequence->stacks_capacity, sequence->stacks_count + 1)) {
        return 0;
    }
    sequence->stacks[sequence->stacks_count++] = (struct ml_sequence_stack){.now = {0}};
    return sequence->stacks_count;
}

/* The number of a content that is new; 0: no memory. */
static uint64_t add_content(
    struct ml_sequence *sequence,
    uint32_t kind,
    struct ml_pb_span content,
    struct ml_pb_buffer *added
) {
    const char *bytes = (const char *)content.bytes;
    const char *kept = ml_arena_text(&sequence->arena, bytes ? bytes : "", content.count);
    const uint64_t hash = hash_of(kind, content.bytes, content.count);
    struct ml_pb_buffer whole = {0};

    if (!kept ||
        !ML_GROW(sequence->entries, sequence->entries_capacity, sequence->entries_count + 1)) {
        return 0;
    }
    const uint64_t number = take_number(sequence, kind);
    if (number == 0 ||
        !ml_index_add(&sequence->entries_index, hash, (uint32_t)sequence->entries_count)) {
        return 0;
    }
    sequence->entries[sequence->entries_count++] = (struct ml_sequence_entry
    ){.kind = kind,
      .number = number,
      .content = {.bytes = (const uint8_t *)kept, .count = content.count}};
    ml_pb_put_number(&whole, NUMBER_TAG, number);
    ml_pb_put_fields(&whole, content);
    ml_pb_put_bytes(added, kind, ml_pb_span_of(&whole));
    added->has_failed = added->has_failed || whole.has_failed;
    ml_pb_buffer_fini(&whole);
    return number;
}

static bool intern_one(
    struct ml_sequence *sequence,
    struct ml_sequence_numbers *numbers,
    uint32_t kind,
    struct ml_pb_span entry,
    struct ml_pb_buffer *added
) {
    struct ml_pb_buffer content = {0};
    const bool is_whole = content_of(numbers, kind, entry, &content);
    bool done = !content.has_failed;

    if (done && is_whole) {
        const struct ml_pb_span bytes = ml_pb_span_of(&content);
        const struct ml_sequence_entry *known = find_content(sequence, kind, bytes);
        const uint64_t ours = known ? known->number : add_content(sequence, kind, bytes, added);
        done = ours != 0 && note_number(numbers, kind, ml_pb_number(entry, NUMBER_TAG), ours);
    }
    ml_pb_buffer_fini(&content);
    return done;
}

bool ml_sequence_intern(
    struct ml_sequence *sequence,
    struct ml_sequence_numbers *numbers,
    struct ml_pb_span interned,
    struct ml_pb_buffer *added
) {
    struct ml_pb_field field;
    bool done = true;

    while (done && ml_pb_next(&interned, &field)) {
        done = !field.is_bytes || intern_one(sequence, numbers, field.tag, field.inside, added);
    }
    return done && !added->has_failed;
}

#include "tools/analyzer/formats/pprof.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/formats/gzip_stream.h"
#include "tools/analyzer/formats/pprof.pb.h"
#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/string_table.h"
#include "tools/analyzer/progress/progress.h"

enum { RESIDENT_VALUE = 4, WASTE_VALUE = 5, VALUES = 6 };

/* Places are numbered as locations; "no stack" stands behind them. */
struct writer {
    const struct ml_profile *profile; /* of the side at hand */
    const struct ml_stacks *stacks;
    uint64_t first_location, first_mapping; /* ids of the side's first ones */
    bool is_base;                           /* subtracted, or compared with */
    bool is_labelled;                       /* its samples say so */
    bool knows_pages;                       /* else resident and waste bytes are 0 */
    pb_ostream_t stream;
    struct ml_string_table strings;
    struct ml_symbol *functions; /* of each function's id - 1: its names */
    size_t functions_count, functions_capacity;
    struct ml_index functions_index;
    uint64_t *path; /* of the stack at hand: locations, innermost first */
    size_t path_count, path_capacity;
    char build[sizeof(ML_PPROF_BUILD_NOTE) + ML_PROFILE_HEX_BYTES]; /* the note of it */
    enum ml_status status;                                          /* the first trouble */
};

static bool fail(struct writer *writer, enum ml_status status) {
    if (writer->status == ML_OK) {
        writer->status = status;
    }
    return false;
}

/* The text's place in the string table. The bytes must live as long as the writer. */
static int64_t string_at(struct writer *writer, const char *bytes, size_t count_bytes) {
    uint32_t item = ml_string_table_add(&writer->strings, bytes, count_bytes);

    if (item == ML_STRING_NONE) {
        fail(writer, ML_ENV_MEMORY);
        return 0;
    }
    return item;
}

static int64_t text_at(struct writer *writer, const char *text) {
    return string_at(writer, text, strlen(text));
}

static void
put(struct writer *writer, uint32_t tag, const pb_msgdesc_t *fields, const void *message) {
    if (writer->status == ML_OK && (!pb_encode_tag(&writer->stream, PB_WT_STRING, tag) ||
                                    !pb_encode_submessage(&writer->stream, fields, message))) {
        fail(writer, ML_ENV_SYSTEM);
    }
}

static void put_number(struct writer *writer, uint32_t tag, uint64_t value) {
    if (writer->status == ML_OK && (!pb_encode_tag(&writer->stream, PB_WT_VARINT, tag) ||
                                    !pb_encode_varint(&writer->stream, value))) {
        fail(writer, ML_ENV_SYSTEM);
    }
}

static ml_pprof_ValueType value_type(struct writer *writer, const char *type, const char *unit) {
    return (ml_pprof_ValueType){.type = text_at(writer, type), .unit = text_at(writer, unit)};
}

/* The function's id: one for each pair of name and file. Names are the symbolizer's own strings, so
 * equal ones are the same pointer. */
static uint64_t function_id(struct writer *writer, const struct ml_symbol *symbol) {
    const char *const key[] = {symbol->function, symbol->linkage, symbol->file};
    uint64_t hash = ml_hash(0, key, sizeof key);
    size_t at = 0;

    for (uint32_t item = ml_index_first(&writer->functions_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&writer->functions_index, hash, &at)) {
        const struct ml_symbol *known = &writer->functions[item];
        if (known->function == symbol->function && known->linkage == symbol->linkage &&
            known->file == symbol->file) {
            return (uint64_t)item + 1;
        }
    }
    if (!ML_GROW(writer->functions, writer->functions_capacity, writer->functions_count + 1) ||
        !ml_index_add(&writer->functions_index, hash, (uint32_t)writer->functions_count)) {
        fail(writer, ML_ENV_MEMORY);
        return 0;
    }
    writer->functions[writer->functions_count++] = *symbol;
    return writer->functions_count;
}

static void put_function(struct writer *writer, uint64_t id, const struct ml_symbol *symbol) {
    const ml_pprof_Function function = {
        .id = id,
        .name = text_at(writer, symbol->function),
        .system_name = text_at(writer, symbol->linkage),
        .filename = text_at(writer, symbol->file),
    };
    put(writer, ml_pprof_Profile_function_tag, ml_pprof_Function_fields, &function);
}

/* The lines of a location. */
struct lines {
    struct writer *writer;
    const struct ml_symbol *symbols;
    size_t count;
};

static bool encode_lines(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct lines *lines = *arg;

    for (size_t i = 0; i < lines->count; i++) {
        const ml_pprof_Line line = {
            .function_id = function_id(lines->writer, &lines->symbols[i]),
            .line = lines->symbols[i].line,
        };
        if (!pb_encode_tag_for_field(stream, field) ||
            !pb_encode_submessage(stream, ml_pprof_Line_fields, &line)) {
            return false;
        }
    }
    return true;
}

/* A function that is no code: a scope, or a note about the stack. */
static struct ml_symbol word_symbol(const char *word) {
    return (struct ml_symbol){.function = word, .linkage = word, .file = ""};
}

static void put_location(struct writer *writer, uint32_t number) {
    const struct ml_place *place = &writer->stacks->places[number];
    char buffer[ML_PLACE_NAME_BYTES];
    struct ml_symbol word = word_symbol("");
    struct lines lines = {.writer = writer};
    ml_pprof_Location location = {.id = writer->first_location + number, .address = place->offset};

    if (place->file != ML_STACKS_NONE) {
        location.mapping_id = writer->first_mapping + place->file;
        location.address += (uint64_t)writer->stacks->files[place->file].bias;
    }
    if (place->symbols_count > 0) {
        lines.symbols = &writer->stacks->symbols[place->first_symbol];
        lines.count = place->symbols_count;
        /* For a line without a name pprof shows the address. */
        if (lines.count == 1 && !lines.symbols[0].function[0]) {
            lines.count = 0;
        }
    } else if (place->kind != ML_FRAME_ADDRESS) {
        word = word_symbol(ml_place_name(place, buffer));
        lines.symbols = &word;
        lines.count = 1;
    }
    location.line = (pb_callback_t){.funcs.encode = encode_lines, .arg = &lines};
    put(writer, ml_pprof_Profile_location_tag, ml_pprof_Location_fields, &location);
}

static void put_no_stack_location(struct writer *writer) {
    struct ml_symbol word = word_symbol("[no stack]");
    struct lines lines = {.writer = writer, .symbols = &word, .count = 1};
    const ml_pprof_Location location = {
        .id = writer->first_location + writer->stacks->places_count,
        .line = {.funcs.encode = encode_lines, .arg = &lines},
    };
    put(writer, ml_pprof_Profile_location_tag, ml_pprof_Location_fields, &location);
}

static void put_mapping(struct writer *writer, uint32_t number, struct ml_arena *arena) {
    const struct ml_code_file *file = &writer->stacks->files[number];
    char *hex = ml_arena_take(arena, ML_PROFILE_HEX_BYTES);
    ml_pprof_Mapping mapping = {
        .id = writer->first_mapping + number,
        .memory_start = file->start,
        .memory_limit = file->end,
        .filename = string_at(writer, file->path.bytes, file->path.count_bytes),
        .has_functions = file->is_symbolized,
        .has_filenames = file->is_symbolized,
        .has_line_numbers = file->is_symbolized,
        .has_inline_frames = file->is_symbolized,
    };

    if (!hex) {
        fail(writer, ML_ENV_MEMORY);
        return;
    }
    mapping.build_id = text_at(writer, ml_profile_hex(file->build_id, hex));
    put(writer, ml_pprof_Profile_mapping_tag, ml_pprof_Mapping_fields, &mapping);
}

/* The main program's file: pprof takes the first mapping for it. */
static uint32_t main_file(const struct writer *writer) {
    const struct ml_profile *profile = writer->profile;

    for (size_t i = 0; profile->processes_count > 0 && i < profile->processes[0].modules_count;
         i++) {
        const struct ml_profile_module *module = &profile->processes[0].modules[i];
        struct ml_profile_text path = ml_profile_module_path(&profile->processes[0], module);
        for (uint32_t f = 0; module->path.count_bytes == 0 && f < writer->stacks->files_count;
             f++) {
            if (strcmp(writer->stacks->files[f].path.bytes, path.bytes) == 0) {
                return f;
            }
        }
    }
    return 0;
}

static void put_mappings(struct writer *writer, struct ml_arena *arena) {
    uint32_t first = main_file(writer);

    if (writer->stacks->files_count > 0) {
        put_mapping(writer, first, arena);
    }
    for (uint32_t i = 0; i < writer->stacks->files_count; i++) {
        if (i != first) {
            put_mapping(writer, i, arena);
        }
    }
}

static bool encode_locations(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct writer *writer = *arg;
    pb_ostream_t sizing = PB_OSTREAM_SIZING;

    for (size_t i = 0; i < writer->path_count; i++) {
        pb_encode_varint(&sizing, writer->path[i]);
    }
    if (!pb_encode_tag(stream, PB_WT_STRING, field->tag) ||
        !pb_encode_varint(stream, sizing.bytes_written)) {
        return false;
    }
    for (size_t i = 0; i < writer->path_count; i++) {
        if (!pb_encode_varint(stream, writer->path[i])) {
            return false;
        }
    }
    return true;
}

struct values {
    uint64_t of[VALUES];
    size_t count;
};

static bool encode_values(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct values *values = *arg;
    pb_ostream_t sizing = PB_OSTREAM_SIZING;

    for (size_t i = 0; i < values->count; i++) {
        pb_encode_varint(&sizing, values->of[i]);
    }
    if (!pb_encode_tag(stream, PB_WT_STRING, field->tag) ||
        !pb_encode_varint(stream, sizing.bytes_written)) {
        return false;
    }
    for (size_t i = 0; i < values->count; i++) {
        if (!pb_encode_varint(stream, values->of[i])) {
            return false;
        }
    }
    return true;
}

enum { LABELS_MAX = 9 };

struct labels {
    ml_pprof_Label labels[LABELS_MAX];
    size_t count;
};

static bool encode_labels(pb_ostream_t *stream, const pb_field_t *field, void *const *arg) {
    const struct labels *labels = *arg;

    for (size_t i = 0; i < labels->count; i++) {
        if (!pb_encode_tag_for_field(stream, field) ||
            !pb_encode_submessage(stream, ml_pprof_Label_fields, &labels->labels[i])) {
            return false;
        }
    }
    return true;
}

/* Fill in path; a stack without frames gets one of the notes. */
static bool path_take(struct writer *writer, uint32_t node) {
    const struct ml_stacks *stacks = writer->stacks;

    writer->path_count = 0;
    for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
        uint32_t place = stacks->nodes[node].place;

        if (stacks->places[place].kind == ML_FRAME_THREAD) {
            continue; /* it is a label */
        }
        if (!ML_GROW(writer->path, writer->path_capacity, writer->path_count + 1)) {
            return fail(writer, ML_ENV_MEMORY);
        }
        writer->path[writer->path_count++] = writer->first_location + place;
    }
    if (writer->path_count == 0) {
        if (!ML_GROW(writer->path, writer->path_capacity, 1)) {
            return fail(writer, ML_ENV_MEMORY);
        }
        writer->path[writer->path_count++] = writer->first_location + stacks->places_count;
    }
    return true;
}

static void add_label(
    struct writer *writer, struct labels *labels, const char *key, struct ml_profile_text text
) {
    if (text.count_bytes > 0) {
        labels->labels[labels->count++] = (ml_pprof_Label
        ){.key = text_at(writer, key), .str = string_at(writer, text.bytes, text.count_bytes)};
    }
}

/* The innermost scope that was open; empty: none was. */
static struct ml_profile_text scope_of(const struct ml_stacks *stacks, uint32_t node) {
    for (; node != ML_STACKS_NONE; node = stacks->nodes[node].parent) {
        const struct ml_place *place = &stacks->places[stacks->nodes[node].place];
        if (place->kind == ML_FRAME_SCOPE) {
            return place->name;
        }
    }
    return (struct ml_profile_text){.bytes = "", .count_bytes = 0};
}

static void put_sample(
    struct writer *writer, const struct ml_profile_process *process, const struct ml_stack *stack
) {
    const uint64_t sign = writer->is_base ? UINT64_MAX : 1; /* -1 of two's complement */
    const struct values values = {
        .of =
            {sign * stack->own.total_blocks,
             sign * stack->own.total_bytes,
             sign * stack->own.live_blocks,
             sign * stack->own.live_bytes,
             writer->knows_pages ? sign * stack->own.pages.resident_bytes : 0,
             writer->knows_pages ? sign * stack->own.pages.waste_bytes : 0},
        .count = VALUES,
    };
    struct labels labels = {
        .labels =
            {
                {.key = text_at(writer, "pid"), .num = process->pid},
                {.key = text_at(writer, "process"),
                 .str = string_at(writer, process->name.bytes, process->name.count_bytes)},
                {.key = text_at(writer, "process_type"),
                 .str = text_at(writer, ml_profile_role_name(process->role))},
            },
        .count = 3,
    };
    const ml_pprof_Sample sample = {
        .location_id = {.funcs.encode = encode_locations, .arg = writer},
        .value = {.funcs.encode = encode_values, .arg = (void *)(uintptr_t)&values},
        .label = {.funcs.encode = encode_labels, .arg = &labels},
    };

    if (stack->own.total_blocks > 0) {
        labels.labels[labels.count++] = (ml_pprof_Label){
            .key = text_at(writer, "bytes"),
            .num = (int64_t)(stack->own.total_bytes / stack->own.total_blocks),
            .num_unit = text_at(writer, "bytes"),
        };
    }
    add_label(writer, &labels, "thread_name", ml_stacks_thread(writer->stacks, stack->node));
    add_label(writer, &labels, "scope", scope_of(writer->stacks, stack->node));
    add_label(writer, &labels, "heap", writer->profile->heap);
    if (stack->type != 0) {
        add_label(writer, &labels, "type", ml_profile_type_name(process, stack->type));
    }
    if (writer->is_base && writer->is_labelled) {
        labels.labels[labels.count++] = (ml_pprof_Label){
            .key = text_at(writer, "pprof::base"),
            .str = text_at(writer, "true"),
        };
    }
    if (path_take(writer, stack->node)) {
        put(writer, ml_pprof_Profile_sample_tag, ml_pprof_Sample_fields, &sample);
    }
}

/* Which of the values is shown first. */
static size_t first_of(enum ml_metric metric) {
    switch (metric) {
    case ML_METRIC_TOTAL:
        return 1;
    case ML_METRIC_RESIDENT:
        return RESIDENT_VALUE;
    case ML_METRIC_WASTE:
        return WASTE_VALUE;
    default:
        return 3;
    }
}

/* Which build of the program it was: mappings have the ids of files with frames alone. */
static void put_build(struct writer *writer) {
    char hex[ML_PROFILE_HEX_BYTES];

    if (ml_profile_build_id(writer->profile, hex)[0] != '\0') {
        snprintf(writer->build, sizeof writer->build, ML_PPROF_BUILD_NOTE "%s", hex);
        put_number(writer, ml_pprof_Profile_comment_tag, (uint64_t)text_at(writer, writer->build));
    }
}

static void put_head(struct writer *writer, enum ml_metric metric) {
    const struct ml_profile *profile = writer->profile;
    const ml_pprof_ValueType types[VALUES] = {
        value_type(writer, "alloc_objects", "count"),
        value_type(writer, "alloc_space", "bytes"),
        value_type(writer, "inuse_objects", "count"),
        value_type(writer, "inuse_space", "bytes"),
        value_type(writer, "resident_space", "bytes"),
        value_type(writer, "waste_space", "bytes"),
    };
    const ml_pprof_ValueType period_type = value_type(writer, "space", "bytes");

    for (size_t i = 0; i < VALUES; i++) {
        put(writer, ml_pprof_Profile_sample_type_tag, ml_pprof_ValueType_fields, &types[i]);
    }
    put_number(writer, ml_pprof_Profile_time_nanos_tag, profile->now.realtime_ns);
    put_number(
        writer,
        ml_pprof_Profile_duration_nanos_tag,
        profile->now.monotonic_ns - profile->run_start.monotonic_ns
    );
    put(writer, ml_pprof_Profile_period_type_tag, ml_pprof_ValueType_fields, &period_type);
    put_number(writer, ml_pprof_Profile_period_tag, ml_profile_sampling_bytes(profile));
    put_number(
        writer, ml_pprof_Profile_default_sample_type_tag, (uint64_t)types[first_of(metric)].type
    );
    put_number(
        writer,
        ml_pprof_Profile_comment_tag,
        (uint64_t)text_at(
            writer,
            !ml_profile_is_complete(profile) ? "memlog: not complete, see memlog report"
            : ml_profile_is_covered(profile) ? "memlog: complete, nothing was lost"
                                             : "memlog: of what memlog sees nothing was lost; not "
                                               "covered, see memlog report"
        )
    );
    if (!writer->knows_pages) {
        put_number(
            writer,
            ml_pprof_Profile_comment_tag,
            (uint64_t)text_at(writer, "memlog: resident_space and waste_space are not known")
        );
    }
    put_build(writer);
    put_number(
        writer,
        ml_pprof_Profile_comment_tag,
        (uint64_t)string_at(writer, profile->program.bytes, profile->program.count_bytes)
    );
}

static void
put_notes(struct writer *writer, const struct ml_sender *sender, struct ml_arena *arena) {
    struct ml_sender_value values[ML_SENDER_WORDS];
    char number[24];

    ml_sender_values(writer->profile, sender, values);
    for (size_t i = 0; i < ML_SENDER_WORDS; i++) {
        const char *note = ml_sender_names[i].note;
        const char *text = values[i].text ? values[i].text : number;
        if (!values[i].is_told) {
            continue;
        }
        snprintf(number, sizeof number, "%" PRIu64, values[i].number);
        const size_t bytes = sizeof ML_SENDER_NOTE + strlen(note) + 1 + strlen(text);
        char *comment = ml_arena_take(arena, bytes);
        if (!comment) {
            fail(writer, ML_ENV_MEMORY);
            return;
        }
        snprintf(comment, bytes, ML_SENDER_NOTE "%s %s", note, text);
        put_number(writer, ml_pprof_Profile_comment_tag, (uint64_t)text_at(writer, comment));
    }
}

static void put_strings(struct writer *writer) {
    for (size_t i = 0; writer->status == ML_OK && i < writer->strings.count; i++) {
        const struct ml_profile_text *string = &writer->strings.strings[i];
        if (!pb_encode_tag(&writer->stream, PB_WT_STRING, ml_pprof_Profile_string_table_tag) ||
            !pb_encode_string(
                &writer->stream, (const pb_byte_t *)string->bytes, string->count_bytes
            )) {
            fail(writer, ML_ENV_SYSTEM);
        }
    }
}

static void put_samples(struct writer *writer) {
    for (size_t p = 0; p < writer->profile->processes_count; p++) {
        const struct ml_profile_process *process = &writer->profile->processes[p];
        const struct ml_stack_list *details = &writer->stacks->details[p];
        const struct ml_stack_list *list =
            details->stacks ? details : &writer->stacks->processes[p];

        for (size_t i = 0; i < list->count; i++) {
            ml_progress_pieces("Writing stacks", i, list->count, process->name.bytes);
            /* Of several heaps malloc's are the profile's sums, and the others stand beside. */
            if (list->stacks[i].heap == 0 || writer->profile->heap.count_bytes > 0) {
                put_sample(writer, process, &list->stacks[i]);
            }
        }
    }
}

/* Turn to the next dump; ids go on. */
static void turn_to(struct writer *writer, const struct ml_stacks *stacks, bool is_base) {
    if (writer->stacks) {
        writer->first_location += writer->stacks->places_count + 1;
        writer->first_mapping += writer->stacks->files_count;
    }
    writer->profile = stacks->profile;
    writer->stacks = stacks;
    writer->is_base = is_base;
}

static void put_side(struct writer *writer, struct ml_arena *arena) {
    put_samples(writer);
    put_mappings(writer, arena);
    for (uint32_t i = 0; i < writer->stacks->places_count; i++) {
        put_location(writer, i);
    }
    put_no_stack_location(writer);
}

static enum ml_status write_all(
    const struct ml_stacks *after,
    const struct ml_stacks *before,
    enum ml_pprof_base base,
    enum ml_metric metric,
    const struct ml_sender *sender,
    FILE *out
) {
    FILE *gzip = ml_gzip_open(out);
    struct ml_arena arena = {0};
    struct writer writer = {.first_location = 1, .first_mapping = 1};

    if (!gzip) {
        return ML_ENV_MEMORY;
    }
    writer.stream = ml_pb_stream_into(gzip);
    (void)text_at(&writer, ""); /* the table's first must be empty */
    writer.knows_pages = ml_profile_knows_pages(after->profile) &&
                         (!before || ml_profile_knows_pages(before->profile));
    turn_to(&writer, after, false);
    put_head(&writer, metric);
    put_notes(&writer, sender, &arena);
    put_side(&writer, &arena);
    if (before) {
        writer.is_labelled = base == ML_PPROF_DIFF_BASE;
        turn_to(&writer, before, true);
        put_side(&writer, &arena);
    }
    for (size_t i = 0; i < writer.functions_count; i++) {
        put_function(&writer, i + 1, &writer.functions[i]);
    }
    put_strings(&writer);
    writer.status = ml_gzip_close(gzip, writer.status);
    free(writer.functions);
    free(writer.path);
    ml_string_table_fini(&writer.strings);
    ml_index_fini(&writer.functions_index);
    ml_arena_fini(&arena);
    return writer.status;
}

enum ml_status ml_pprof_write_diff(
    const struct ml_stacks *after,
    const struct ml_stacks *before,
    enum ml_pprof_base base,
    enum ml_metric metric,
    FILE *out
) {
    return write_all(after, before, base, metric, NULL, out);
}

enum ml_status ml_pprof_write(
    const struct ml_stacks *stacks, enum ml_metric metric, const struct ml_sender *sender, FILE *out
) {
    return write_all(stacks, NULL, ML_PPROF_BASE, metric, sender, out);
}

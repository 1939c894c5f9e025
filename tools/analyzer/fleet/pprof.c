#include "tools/analyzer/fleet/pprof.h"

#include <stddef.h>
#include <string.h>

#include "tools/analyzer/fleet/profile.h"
#include "tools/analyzer/fleet/proto.h"
#include "tools/analyzer/formats/pprof.pb.h"
#include "tools/analyzer/model/memory.h"

enum { TYPES_MAX = 32, NO_COLUMN = -1 };

/* A function's name by its id. */
struct function {
    uint64_t id;
    uint32_t name; /* a string of the rows */
};

struct reading {
    struct ml_fleet_rows *rows;
    struct ml_fleet_piece *strings;
    size_t strings_count, strings_capacity;
    struct ml_fleet_mapping *mappings;
    size_t mappings_count, mappings_capacity;
    struct function *functions;
    size_t functions_count, functions_capacity;
    struct ml_index functions_index;
    struct ml_fleet_places places;
    ptrdiff_t
        columns[TYPES_MAX]; /* of each of a sample's values: a figure's offset, or NO_COLUMN */
    size_t columns_count;
    /* Of the sample at hand. */
    struct ml_fleet_row row;
    uint32_t thread;
    size_t values_count;
    /* Of memlog's own making: a heap without a name is malloc's. */
    bool is_ours;
};

static bool fail(struct reading *reading) {
    reading->rows->is_failed = true;
    return false;
}

static struct ml_fleet_piece string_of(const struct reading *reading, uint64_t number) {
    return number < reading->strings_count ? reading->strings[number]
                                           : (struct ml_fleet_piece){.count_bytes = 0};
}

/* Each field of that number, in the order of the message. False: it is broken, or `take` said so.
 */
static bool each(
    struct reading *reading,
    struct ml_fleet_piece message,
    uint32_t number,
    bool (*take)(struct reading *reading, struct ml_fleet_piece part)
) {
    struct ml_fleet_field field;

    while (ml_fleet_field(&message, &field)) {
        if (field.number == number && (!field.is_bytes || !take(reading, field.bytes))) {
            return false;
        }
    }
    return message.count_bytes == 0;
}

/* The last field of that number as a number; 0: there is none. */
static uint64_t number_in(struct ml_fleet_piece message, uint32_t number) {
    struct ml_fleet_field field;
    uint64_t value = 0;

    while (ml_fleet_field(&message, &field)) {
        value = field.number == number && !field.is_bytes ? field.value : value;
    }
    return value;
}

/* ---- tables */

static bool take_string(struct reading *reading, struct ml_fleet_piece text) {
    if (reading->strings_count >= (size_t)4 * MEMLOG_FLEET_MAX_FRAMES) {
        reading->rows->is_full = true;
        return false;
    }
    if (!ML_GROW(reading->strings, reading->strings_capacity, reading->strings_count + 1)) {
        return fail(reading);
    }
    reading->strings[reading->strings_count++] = text;
    return true;
}

static bool take_type(struct reading *reading, struct ml_fleet_piece part) {
    struct memlog_fleet_figures figures;
    const struct ml_fleet_piece name =
        string_of(reading, number_in(part, ml_pprof_ValueType_type_tag));
    const uint64_t *figure = ml_fleet_figure(&figures, name, &reading->rows->head.told);

    if (reading->columns_count == TYPES_MAX) {
        return false;
    }
    reading->columns[reading->columns_count++] =
        figure ? (const uint8_t *)figure - (const uint8_t *)&figures : NO_COLUMN;
    return true;
}

static bool take_mapping(struct reading *reading, struct ml_fleet_piece part) {
    const struct ml_fleet_piece build =
        string_of(reading, number_in(part, ml_pprof_Mapping_build_id_tag));

    if (reading->mappings_count >= MEMLOG_FLEET_MAX_FRAMES) {
        reading->rows->is_full = true;
        return false;
    }
    if (!ML_GROW(reading->mappings, reading->mappings_capacity, reading->mappings_count + 1)) {
        return fail(reading);
    }
    reading->mappings[reading->mappings_count++] = (struct ml_fleet_mapping){
        .id = number_in(part, ml_pprof_Mapping_id_tag),
        .start = number_in(part, ml_pprof_Mapping_memory_start_tag),
        .offset = number_in(part, ml_pprof_Mapping_file_offset_tag),
        .module = ml_fleet_file(
            reading->rows, string_of(reading, number_in(part, ml_pprof_Mapping_filename_tag))
        ),
        .build_id = ml_fleet_text(reading->rows, build, MEMLOG_FLEET_FRAME_BUILD_ID_LIMIT),
    };
    return true;
}

static uint64_t hash_of(uint64_t id) {
    return ml_hash(0, &id, sizeof id);
}

static bool take_function(struct reading *reading, struct ml_fleet_piece part) {
    const uint64_t id = number_in(part, ml_pprof_Function_id_tag);
    const struct ml_fleet_piece name =
        string_of(reading, number_in(part, ml_pprof_Function_name_tag));

    if (reading->functions_count >= MEMLOG_FLEET_MAX_FRAMES) {
        reading->rows->is_full = true;
        return false;
    }
    if (!ML_GROW(reading->functions, reading->functions_capacity, reading->functions_count + 1) ||
        !ml_index_add(&reading->functions_index, hash_of(id), (uint32_t)reading->functions_count)) {
        return fail(reading);
    }
    reading->functions[reading->functions_count++] = (struct function
    ){.id = id, .name = ml_fleet_text(reading->rows, name, MEMLOG_FLEET_FRAME_FUNCTION_LIMIT)};
    return true;
}

/* The name of a function; 0: it has none, or there is no such function. */
static uint32_t name_of(const struct reading *reading, uint64_t id) {
    size_t at = 0;
    uint32_t item = ml_index_first(&reading->functions_index, hash_of(id), &at);

    while (item != ML_INDEX_NONE && reading->functions[item].id != id) {
        item = ml_index_next(&reading->functions_index, hash_of(id), &at);
    }
    return item == ML_INDEX_NONE ? 0 : reading->functions[item].name;
}

static int by_id(const void *a, const void *b) {
    const uint64_t first = ((const struct ml_fleet_mapping *)a)->id;
    const uint64_t second = ((const struct ml_fleet_mapping *)b)->id;

    return (first > second) - (first < second);
}

static const struct ml_fleet_mapping *mapping_of(const struct reading *reading, uint64_t id) {
    const struct ml_fleet_mapping wanted = {.id = id};

    return id == 0 || reading->mappings_count == 0
               ? NULL
               : bsearch(&wanted, reading->mappings, reading->mappings_count, sizeof wanted, by_id);
}

static bool is_no_stack(const struct reading *reading, uint32_t name) {
    static const char no_stack[] = "[no stack]";
    const struct ml_string text = ml_fleet_string_of(reading->rows, name);

    return text.count_bytes == sizeof no_stack - 1 &&
           memcmp(text.data, no_stack, sizeof no_stack - 1) == 0;
}

static bool take_location(struct reading *reading, struct ml_fleet_piece part) {
    const struct ml_fleet_frame place = ml_fleet_frame_at(
        reading->rows,
        mapping_of(reading, number_in(part, ml_pprof_Location_mapping_id_tag)),
        number_in(part, ml_pprof_Location_address_tag)
    );
    struct ml_fleet_field field;
    size_t lines = 0;
    bool done = ml_fleet_place_add(&reading->places, number_in(part, ml_pprof_Location_id_tag));

    while (done && ml_fleet_field(&part, &field)) {
        if (field.number != ml_pprof_Location_line_tag || !field.is_bytes) {
            continue;
        }
        const uint32_t name =
            name_of(reading, number_in(field.bytes, ml_pprof_Line_function_id_tag));
        const struct ml_fleet_frame frame = {.function = name};
        lines++;
        if (name != 0 && is_no_stack(reading, name)) {
            continue;
        }
        done = ml_fleet_place_frame(&reading->places, name != 0 ? &frame : &place);
    }
    if (done && lines == 0) {
        done = ml_fleet_place_frame(&reading->places, &place);
    }
    if (done) {
        ml_fleet_place_end(&reading->places);
    }
    return done;
}

/* ---- samples */

static bool take_value(void *context, uint64_t value) {
    struct reading *reading = context;
    const size_t column = reading->values_count++;
    uint8_t *figures = (uint8_t *)&reading->row.figures;

    if (column < reading->columns_count && reading->columns[column] != NO_COLUMN &&
        value <= INT64_MAX) {
        memcpy(figures + reading->columns[column], &value, sizeof value);
    }
    return true;
}

static void take_label(struct reading *reading, struct ml_fleet_piece label) {
    const struct ml_fleet_piece key = string_of(reading, number_in(label, ml_pprof_Label_key_tag));
    const struct ml_fleet_piece text = string_of(reading, number_in(label, ml_pprof_Label_str_tag));
    const struct {
        const char *name;
        uint32_t *string;
        size_t most;
    } known[] = {
        {"process", &reading->row.process, MEMLOG_FLEET_ROW_PROCESS_LIMIT},
        {"process_type", &reading->row.role, MEMLOG_FLEET_ROW_ROLE_LIMIT},
        {"heap", &reading->row.heap, MEMLOG_FLEET_ROW_HEAP_LIMIT},
        {"type", &reading->row.type, MEMLOG_FLEET_ROW_TYPE_LIMIT},
        {"thread_name", &reading->thread, MEMLOG_FLEET_FRAME_FUNCTION_LIMIT},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (ml_fleet_is_text(key, known[i].name)) {
            *known[i].string = ml_fleet_text(reading->rows, text, known[i].most);
        }
    }
}

static bool take_sample(struct reading *reading, struct ml_fleet_piece sample) {
    static const char malloc_heap[] = "malloc";
    struct ml_fleet_field field;
    bool done = true;

    reading->row = (struct ml_fleet_row){.stack = ML_FLEET_NO_STACK};
    reading->thread = 0;
    reading->values_count = 0;
    while (done && ml_fleet_field(&sample, &field)) {
        if (field.number == ml_pprof_Sample_location_id_tag) {
            done = ml_fleet_numbers(&field, ml_fleet_path_add, &reading->places);
        } else if (field.number == ml_pprof_Sample_value_tag) {
            done = ml_fleet_numbers(&field, take_value, reading);
        } else if (field.number == ml_pprof_Sample_label_tag && field.is_bytes) {
            take_label(reading, field.bytes);
        }
    }
    if (!done || sample.count_bytes > 0) {
        return false;
    }
    if (reading->row.heap == 0 && reading->is_ours) {
        reading->row.heap =
            ml_fleet_string(reading->rows, malloc_heap, MEMLOG_FLEET_ROW_HEAP_LIMIT);
    }
    reading->row.stack = ml_fleet_path_stack(&reading->places, reading->thread);
    ml_fleet_row(reading->rows, &reading->row);
    return true;
}

/* ---- the head */

/* What was told before counts. */
static void
tell(struct reading *reading, struct ml_string *to, struct ml_fleet_piece text, size_t most_bytes) {
    if (to->count_bytes == 0) {
        *to = ml_fleet_string_of(reading->rows, ml_fleet_text(reading->rows, text, most_bytes));
    }
}

/* Text behind "memlog: NOTE "; false: it begins otherwise. */
static bool behind(struct ml_fleet_piece *text, const char *note) {
    const size_t own = sizeof ML_SENDER_NOTE - 1;
    const size_t length = strlen(note);

    if (text->count_bytes <= own + length || memcmp(text->bytes + own, note, length) != 0 ||
        text->bytes[own + length] != ' ') {
        return false;
    }
    text->bytes += own + length + 1;
    text->count_bytes -= own + length + 1;
    return true;
}

/* A decimal number of 19 digits at most. */
static bool number_of(struct ml_fleet_piece text, uint64_t *out_number) {
    enum { DIGITS_MAX = 19, TEN = 10 };

    *out_number = 0;
    for (size_t i = 0; i < text.count_bytes; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9' || i == DIGITS_MAX) {
            return false;
        }
        *out_number = *out_number * TEN + (uint64_t)(text.bytes[i] - '0');
    }
    return text.count_bytes > 0;
}

/* False: it is another of memlog's notes. */
static bool take_note(struct reading *reading, struct ml_fleet_piece text) {
    for (size_t i = 0; i < ML_SENDER_WORDS; i++) {
        uint64_t number = 0;
        if (behind(&text, ml_sender_names[i].note)) {
            const bool is_number = number_of(text, &number);
            ml_fleet_told(reading->rows, (enum ml_sender_word)i, text, is_number ? &number : NULL);
            return true;
        }
    }
    return false;
}

/* memlog's own notes are "memlog: ...", then the program's name. */
static void take_comment(struct reading *reading, uint64_t number) {
    static const char own[] = ML_SENDER_NOTE;
    static const char build[] = "memlog: build id ";
    struct memlog_fleet_begin_request *head = &reading->rows->head;
    const struct ml_fleet_piece text = string_of(reading, number);

    if (text.count_bytes < sizeof own - 1 || memcmp(text.bytes, own, sizeof own - 1) != 0) {
        if (reading->is_ours) {
            tell(reading, &head->program, text, MEMLOG_FLEET_BEGIN_REQUEST_PROGRAM_LIMIT);
        }
        return;
    }
    reading->is_ours = true;
    if (take_note(reading, text)) {
        return;
    }
    if (ml_fleet_is_text(text, "memlog: complete, nothing was lost")) {
        head->complete = true;
        head->covered = true;
        head->told |= MEMLOG_FLEET_TOLD_COMPLETE;
    } else if (memmem(text.bytes, text.count_bytes, "nothing was lost; not covered", 29)) {
        head->complete = true;
        head->told |= MEMLOG_FLEET_TOLD_COMPLETE;
    } else if (memmem(text.bytes, text.count_bytes, "not complete", 12)) {
        head->told |= MEMLOG_FLEET_TOLD_COMPLETE;
    } else if (text.count_bytes > sizeof build - 1 && memcmp(text.bytes, build, sizeof build - 1) == 0) {
        tell(
            reading,
            &head->build_id,
            (struct ml_fleet_piece
            ){text.bytes + sizeof build - 1, text.count_bytes - (sizeof build - 1)},
            MEMLOG_FLEET_BEGIN_REQUEST_BUILD_ID_LIMIT
        );
    }
}

static bool on_comment(void *context, uint64_t number) {
    take_comment(context, number);
    return true;
}

/* Once all strings are there. */
static bool head_read(struct reading *reading, struct ml_fleet_piece message) {
    struct memlog_fleet_begin_request *head = &reading->rows->head;
    struct ml_fleet_field field;
    bool done = true;

    head->version = MEMLOG_FLEET_FLEET_VERSION;
    head->time_ns = number_in(message, ml_pprof_Profile_time_nanos_tag);
    head->sampling_bytes = number_in(message, ml_pprof_Profile_period_tag);
    while (done && ml_fleet_field(&message, &field)) {
        if (field.number == ml_pprof_Profile_comment_tag) {
            done = ml_fleet_numbers(&field, on_comment, reading);
        }
    }
    return done;
}

static void free_reading(struct reading *reading) {
    ml_fleet_places_fini(&reading->places);
    ml_index_fini(&reading->functions_index);
    free(reading->strings);
    free(reading->mappings);
    free(reading->functions);
}

static bool body_read(struct reading *reading, struct ml_fleet_piece message) {
    if (!each(reading, message, ml_pprof_Profile_mapping_tag, take_mapping)) {
        return false;
    }
    ML_SORT(reading->mappings, reading->mappings_count, by_id);
    return each(reading, message, ml_pprof_Profile_function_tag, take_function) &&
           each(reading, message, ml_pprof_Profile_location_tag, take_location) &&
           each(reading, message, ml_pprof_Profile_sample_tag, take_sample);
}

enum ml_status ml_fleet_pprof_read(struct ml_fleet_piece message, struct ml_fleet_rows *rows) {
    struct reading reading = {.rows = rows, .places = {.rows = rows}};
    enum ml_status status = ML_PEER_FORM;

    if (each(&reading, message, ml_pprof_Profile_string_table_tag, take_string) &&
        each(&reading, message, ml_pprof_Profile_sample_type_tag, take_type) &&
        head_read(&reading, message)) {
        status = (rows->head.told & MEMLOG_FLEET_TOLD_LIVE) != 0 ? ML_OK : ML_ENV_MISSING;
    }
    if (status == ML_OK && !body_read(&reading, message)) {
        status = ML_PEER_FORM;
    }
    free_reading(&reading);
    return status;
}

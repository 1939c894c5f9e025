#include "tools/analyzer/fleet/otlp.h"

#include <string.h>

#include "tools/analyzer/fleet/profile.h"
#include "tools/analyzer/fleet/proto.h"
#include "tools/analyzer/formats/otlp_fields.h"
#include "tools/analyzer/model/memory.h"

/* A list of parts of a message. */
struct parts {
    struct ml_fleet_piece *list;
    size_t count, capacity;
};

/* What attributes say of a sample. */
enum { PROCESS, ROLE, TYPE, THREAD, COMPONENT, MEANINGS };

struct attribute {
    unsigned meaning; /* MEANINGS: none of ours */
    uint32_t text;    /* a string of the rows */
};

struct reading {
    struct ml_fleet_rows *rows;
    struct parts strings, stacks;
    struct ml_fleet_mapping *mappings;
    size_t mappings_count, mappings_capacity;
    uint32_t *functions; /* of each its name */
    size_t functions_count, functions_capacity;
    struct attribute *attributes;
    size_t attributes_count, attributes_capacity;
    struct ml_fleet_places places;
    /* Of the profile at hand: its figure, and whether it is the private memory. */
    struct ml_fleet_piece type;
    /* Of the sample at hand. */
    uint32_t texts[MEANINGS];
    uint64_t stack, value;
    bool is_ours; /* its scope is memlog */
};

typedef bool take_part(struct reading *reading, struct ml_fleet_piece part);

/* Each field of that number, in the order of the message. False: it is broken, or `take` said so.
 */
static bool
each(struct reading *reading, struct ml_fleet_piece message, uint32_t number, take_part *take) {
    struct ml_fleet_field field;

    while (ml_fleet_field(&message, &field)) {
        if (field.number == number && (!field.is_bytes || !take(reading, field.bytes))) {
            return false;
        }
    }
    return message.count_bytes == 0;
}

/* The last field of that number. */
static struct ml_fleet_field last_in(struct ml_fleet_piece message, uint32_t number) {
    struct ml_fleet_field field;
    struct ml_fleet_field last = {.number = 0};

    while (ml_fleet_field(&message, &field)) {
        last = field.number == number ? field : last;
    }
    return last;
}

static uint64_t number_in(struct ml_fleet_piece message, uint32_t number) {
    return last_in(message, number).value;
}

static struct ml_fleet_piece string_of(const struct reading *reading, uint64_t number) {
    return number < reading->strings.count ? reading->strings.list[number]
                                           : (struct ml_fleet_piece){.count_bytes = 0};
}

/* Room for one more in a table. False: no memory, or there are too many. */
static bool
is_room(struct reading *reading, void **list, size_t *capacity, size_t count, size_t size) {
    if (count >= (size_t)4 * MEMLOG_FLEET_MAX_FRAMES) {
        reading->rows->is_full = true;
        return false;
    }
    if (!ml_grow(list, capacity, count + 1, size)) {
        reading->rows->is_failed = true;
        return false;
    }
    return true;
}

#define ROOM(reading, list)                                                                        \
    is_room(                                                                                       \
        (reading),                                                                                 \
        (void **)&(reading)->list,                                                                 \
        &(reading)->list##_capacity,                                                               \
        (reading)->list##_count,                                                                   \
        sizeof *(reading)->list                                                                    \
    )

/* ---- the dictionary */

static bool part_add(struct reading *reading, struct parts *parts, struct ml_fleet_piece part) {
    if (!is_room(
            reading, (void **)&parts->list, &parts->capacity, parts->count, sizeof *parts->list
        )) {
        return false;
    }
    parts->list[parts->count++] = part;
    return true;
}

static bool take_string(struct reading *reading, struct ml_fleet_piece part) {
    return part_add(reading, &reading->strings, part);
}

static bool take_stack(struct reading *reading, struct ml_fleet_piece part) {
    return part_add(reading, &reading->stacks, part);
}

static bool take_function(struct reading *reading, struct ml_fleet_piece part) {
    const struct ml_fleet_piece name = string_of(reading, number_in(part, ML_OTLP_FUNCTION_NAME));

    if (!ROOM(reading, functions)) {
        return false;
    }
    reading->functions[reading->functions_count++] =
        ml_fleet_text(reading->rows, name, MEMLOG_FLEET_FRAME_FUNCTION_LIMIT);
    return true;
}

/* The value of an attribute or of a pair of key and value, as a text. */
static struct ml_fleet_piece text_in(struct ml_fleet_piece part) {
    return last_in(last_in(part, ML_OTLP_ATTRIBUTE_VALUE).bytes, ML_OTLP_ANY_STRING).bytes;
}

static bool take_attribute(struct reading *reading, struct ml_fleet_piece part) {
    static const struct {
        const char *key;
        size_t most;
    } known[MEANINGS] = {
        [PROCESS] = {"process.executable.name", MEMLOG_FLEET_ROW_PROCESS_LIMIT},
        [ROLE] = {"memlog.role", MEMLOG_FLEET_ROW_ROLE_LIMIT},
        [TYPE] = {"memlog.type", MEMLOG_FLEET_ROW_TYPE_LIMIT},
        [THREAD] = {"thread.name", MEMLOG_FLEET_FRAME_FUNCTION_LIMIT},
        [COMPONENT] = {"memlog.component", MEMLOG_FLEET_MAX_WORD_BYTES},
    };
    static const char build_key[] = "process.executable.build_id.gnu";
    const struct ml_fleet_piece key = string_of(reading, number_in(part, ML_OTLP_ATTRIBUTE_KEY));
    struct attribute attribute = {.meaning = 0};

    while (attribute.meaning < MEANINGS && !ml_fleet_is_text(key, known[attribute.meaning].key)) {
        attribute.meaning++;
    }
    if (attribute.meaning < MEANINGS) {
        attribute.text = ml_fleet_text(reading->rows, text_in(part), known[attribute.meaning].most);
    } else if (ml_fleet_is_text(key, build_key)) {
        attribute.text =
            ml_fleet_text(reading->rows, text_in(part), MEMLOG_FLEET_FRAME_BUILD_ID_LIMIT);
    }
    if (!ROOM(reading, attributes)) {
        return false;
    }
    reading->attributes[reading->attributes_count++] = attribute;
    return true;
}

static bool take_build(void *context, uint64_t number) {
    struct reading *reading = context;
    struct ml_fleet_mapping *mapping = &reading->mappings[reading->mappings_count - 1];

    if (number < reading->attributes_count && reading->attributes[number].meaning == MEANINGS &&
        reading->attributes[number].text != 0) {
        mapping->build_id = reading->attributes[number].text;
    }
    return true;
}

static bool take_mapping(struct reading *reading, struct ml_fleet_piece part) {
    struct ml_fleet_field field;
    bool done = ROOM(reading, mappings);

    if (!done) {
        return false;
    }
    reading->mappings[reading->mappings_count] = (struct ml_fleet_mapping){
        .id = reading->mappings_count,
        .start = number_in(part, ML_OTLP_MAPPING_START),
        .offset = number_in(part, ML_OTLP_MAPPING_OFFSET),
        .module =
            ml_fleet_file(reading->rows, string_of(reading, number_in(part, ML_OTLP_MAPPING_FILE))),
    };
    reading->mappings_count++;
    while (done && ml_fleet_field(&part, &field)) {
        if (field.number == ML_OTLP_MAPPING_ATTRIBUTES) {
            done = ml_fleet_numbers(&field, take_build, reading);
        }
    }
    return done && part.count_bytes == 0;
}

static bool take_location(struct reading *reading, struct ml_fleet_piece part) {
    const uint64_t mapping = number_in(part, ML_OTLP_LOCATION_MAPPING);
    const struct ml_fleet_frame place = ml_fleet_frame_at(
        reading->rows,
        mapping > 0 && mapping < reading->mappings_count ? &reading->mappings[mapping] : NULL,
        number_in(part, ML_OTLP_LOCATION_ADDRESS)
    );
    struct ml_fleet_field field;
    size_t lines = 0;
    bool done = ml_fleet_place_add(&reading->places, reading->places.count);

    while (done && ml_fleet_field(&part, &field)) {
        if (field.number != ML_OTLP_LOCATION_LINES || !field.is_bytes) {
            continue;
        }
        const uint64_t function = number_in(field.bytes, ML_OTLP_LINE_FUNCTION);
        const struct ml_fleet_frame frame = {
            .function = function < reading->functions_count ? reading->functions[function] : 0};
        lines++;
        done = ml_fleet_place_frame(&reading->places, frame.function != 0 ? &frame : &place);
    }
    if (done && lines == 0) {
        done = ml_fleet_place_frame(&reading->places, &place);
    }
    if (done) {
        ml_fleet_place_end(&reading->places);
    }
    return done;
}

/* In the order in which one needs the other. */
static bool take_dictionary(struct reading *reading, struct ml_fleet_piece part) {
    return each(reading, part, ML_OTLP_DICTIONARY_STRINGS, take_string) &&
           each(reading, part, ML_OTLP_DICTIONARY_ATTRIBUTES, take_attribute) &&
           each(reading, part, ML_OTLP_DICTIONARY_MAPPINGS, take_mapping) &&
           each(reading, part, ML_OTLP_DICTIONARY_FUNCTIONS, take_function) &&
           each(reading, part, ML_OTLP_DICTIONARY_LOCATIONS, take_location) &&
           each(reading, part, ML_OTLP_DICTIONARY_STACKS, take_stack);
}

/* ---- samples */

static bool take_meaning(void *context, uint64_t number) {
    struct reading *reading = context;

    if (number < reading->attributes_count && reading->attributes[number].meaning < MEANINGS) {
        reading->texts[reading->attributes[number].meaning] = reading->attributes[number].text;
    }
    return true;
}

static bool add_value(void *context, uint64_t number) {
    struct reading *reading = context;

    if (number <= INT64_MAX) {
        reading->value += number;
    }
    return true;
}

/* The stack of that number. */
static uint32_t stack_of(struct reading *reading) {
    struct ml_fleet_field field;
    struct ml_fleet_piece part = {.count_bytes = 0};

    if (reading->stack < reading->stacks.count) {
        part = reading->stacks.list[reading->stack];
    }
    while (ml_fleet_field(&part, &field)) {
        if (field.number == ML_OTLP_STACK_LOCATIONS) {
            (void)ml_fleet_numbers(&field, ml_fleet_path_add, &reading->places);
        }
    }
    return ml_fleet_path_stack(&reading->places, reading->texts[THREAD]);
}

static void add_row(struct reading *reading) {
    static const char malloc_heap[] = "malloc";
    struct ml_fleet_row row = {
        .role = reading->texts[ROLE],
        .process = reading->texts[PROCESS],
        .type = reading->texts[TYPE],
    };
    uint64_t *figure = ml_fleet_figure(&row.figures, reading->type, &reading->rows->head.told);

    if (!figure) {
        return;
    }
    if (reading->is_ours) {
        row.heap = ml_fleet_string(reading->rows, malloc_heap, MEMLOG_FLEET_ROW_HEAP_LIMIT);
    }
    *figure = reading->value;
    row.stack = stack_of(reading);
    ml_fleet_row(reading->rows, &row);
}

static bool take_sample(struct reading *reading, struct ml_fleet_piece sample) {
    struct ml_fleet_field field;
    bool done = true;

    memset(reading->texts, 0, sizeof reading->texts);
    reading->stack = 0;
    reading->value = 0;
    while (done && ml_fleet_field(&sample, &field)) {
        if (field.number == ML_OTLP_SAMPLE_STACK) {
            reading->stack = field.value;
        } else if (field.number == ML_OTLP_SAMPLE_ATTRIBUTES) {
            done = ml_fleet_numbers(&field, take_meaning, reading);
        } else if (field.number == ML_OTLP_SAMPLE_VALUES) {
            done = ml_fleet_numbers(&field, add_value, reading);
        }
    }
    if (reading->texts[COMPONENT] != 0 && ml_fleet_is_text(reading->type, "private_memory")) {
        reading->rows->head.private_bytes += reading->value;
    } else {
        add_row(reading);
    }
    return done && sample.count_bytes == 0;
}

/* memlog's are of the time of the dump, which is the profile's end. */
static bool take_profile(struct reading *reading, struct ml_fleet_piece part) {
    struct memlog_fleet_begin_request *head = &reading->rows->head;
    struct memlog_fleet_figures nothing;
    const struct ml_fleet_piece type = last_in(part, ML_OTLP_PROFILE_SAMPLE_TYPE).bytes;

    reading->type = string_of(reading, number_in(type, ML_OTLP_VALUE_TYPE_TYPE));
    (void)ml_fleet_figure(&nothing, reading->type, &head->told);
    head->time_ns =
        number_in(part, ML_OTLP_PROFILE_TIME) + number_in(part, ML_OTLP_PROFILE_DURATION);
    head->sampling_bytes = number_in(part, ML_OTLP_PROFILE_PERIOD);
    return each(reading, part, ML_OTLP_PROFILE_SAMPLES, take_sample);
}

static bool take_scope(struct reading *reading, struct ml_fleet_piece part) {
    const struct ml_fleet_piece scope = last_in(part, ML_OTLP_SCOPE_PROFILES_SCOPE).bytes;

    reading->is_ours = ml_fleet_is_text(last_in(scope, ML_OTLP_SCOPE_NAME).bytes, "memlog");
    return each(reading, part, ML_OTLP_SCOPE_PROFILES_PROFILES, take_profile);
}

/* ---- whose it is */

static bool take_resource_attribute(struct reading *reading, struct ml_fleet_piece part) {
    struct memlog_fleet_begin_request *head = &reading->rows->head;
    const struct ml_fleet_piece key = last_in(part, ML_OTLP_KEY_VALUE_KEY).bytes;
    const struct {
        const char *key;
        struct ml_string *to;
        size_t most;
    } known[] = {
        {"service.name", &head->program, MEMLOG_FLEET_BEGIN_REQUEST_PROGRAM_LIMIT},
        {"process.executable.build_id.gnu",
         &head->build_id,
         MEMLOG_FLEET_BEGIN_REQUEST_BUILD_ID_LIMIT},
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (ml_fleet_is_text(key, known[i].key)) {
            *known[i].to = ml_fleet_string_of(
                reading->rows, ml_fleet_text(reading->rows, text_in(part), known[i].most)
            );
        }
    }
    for (size_t i = 0; i < ML_SENDER_WORDS; i++) {
        if (ml_fleet_is_text(key, ml_sender_names[i].key)) {
            const struct ml_fleet_field whole =
                last_in(last_in(part, ML_OTLP_KEY_VALUE_VALUE).bytes, ML_OTLP_ANY_INT);
            const bool is_number = whole.number == ML_OTLP_ANY_INT && !whole.is_bytes;
            ml_fleet_told(
                reading->rows,
                (enum ml_sender_word)i,
                text_in(part),
                is_number ? &whole.value : NULL
            );
        }
    }
    return true;
}

static bool take_resource(struct reading *reading, struct ml_fleet_piece part) {
    const struct ml_fleet_piece resource = last_in(part, ML_OTLP_RESOURCE_PROFILES_RESOURCE).bytes;

    return each(reading, resource, ML_OTLP_RESOURCE_ATTRIBUTES, take_resource_attribute) &&
           each(reading, part, ML_OTLP_RESOURCE_PROFILES_SCOPE_PROFILES, take_scope);
}

static void free_reading(struct reading *reading) {
    ml_fleet_places_fini(&reading->places);
    free(reading->strings.list);
    free(reading->stacks.list);
    free(reading->mappings);
    free(reading->functions);
    free(reading->attributes);
}

enum ml_status ml_fleet_otlp_read(struct ml_fleet_piece message, struct ml_fleet_rows *rows) {
    struct reading reading = {.rows = rows, .places = {.rows = rows}};
    enum ml_status status = ML_PEER_FORM;

    rows->head.version = MEMLOG_FLEET_FLEET_VERSION;
    if (each(&reading, message, ML_OTLP_REQUEST_DICTIONARY, take_dictionary) &&
        each(&reading, message, ML_OTLP_REQUEST_RESOURCE_PROFILES, take_resource)) {
        status = (rows->head.told & MEMLOG_FLEET_TOLD_LIVE) != 0 ? ML_OK : ML_ENV_MISSING;
    }
    free_reading(&reading);
    return status;
}

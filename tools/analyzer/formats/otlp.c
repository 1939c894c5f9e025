#include "tools/analyzer/formats/otlp.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "ipc/wire/event.h"
#include "tools/analyzer/formats/gzip_stream.h"
#include "tools/analyzer/formats/otlp_fields.h"
#include "tools/analyzer/memory/components.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/model/string_table.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, VARINT_MAX_BYTES = 10, GUID_BYTES = 16 };

enum figure { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, FIGURES };

/* A message as it grows. */
struct message {
    unsigned char *bytes;
    size_t count, capacity;
};

struct writer {
    const struct ml_profile *profile;
    const struct ml_stacks *stacks;
    const struct ml_sender *sender;                             /* NULL: none */
    struct message functions, strings, attributes, stack_table; /* of the dictionary, ready */
    struct ml_string_table texts;                               /* those in `strings` */
    uint32_t functions_count, attributes_count, stacks_count;
    uint32_t *stack_of; /* of each node, its place in the stack table; 0: not there yet */
    bool failed;
};

static void put_raw(struct writer *writer, struct message *to, const void *bytes, size_t count) {
    if (!ML_GROW(to->bytes, to->capacity, to->count + count)) {
        writer->failed = true;
        return;
    }
    if (count > 0) {
        memcpy(to->bytes + to->count, bytes, count);
    }
    to->count += count;
}

static void put_varint(struct writer *writer, struct message *to, uint64_t value) {
    unsigned char bytes[VARINT_MAX_BYTES];
    size_t count = 0;

    do {
        bytes[count++] = (unsigned char)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value > 0);
    put_raw(writer, to, bytes, count);
}

static void put_number(struct writer *writer, struct message *to, unsigned field, uint64_t value) {
    if (value != 0) {
        put_varint(writer, to, (uint64_t)field << 3 | WIRE_VARINT);
        put_varint(writer, to, value);
    }
}

static void put_bytes(
    struct writer *writer, struct message *to, unsigned field, const void *bytes, size_t count
) {
    put_varint(writer, to, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(writer, to, count);
    put_raw(writer, to, bytes, count);
}

/* Put the part in, and free it. */
static void
put_message(struct writer *writer, struct message *to, unsigned field, struct message *take_part) {
    put_bytes(writer, to, field, take_part->bytes, take_part->count);
    free(take_part->bytes);
    *take_part = (struct message){0};
}

/* proto3 wants UTF-8 in strings: other bytes become '?'. */
static void put_text(
    struct writer *writer, struct message *to, unsigned field, const struct ml_profile_text *text
) {
    put_varint(writer, to, (uint64_t)field << 3 | WIRE_BYTES);
    put_varint(writer, to, text->count_bytes);
    for (size_t i = 0; i < text->count_bytes;) {
        size_t count = ml_utf8_length(text->bytes + i, text->count_bytes - i);
        put_raw(writer, to, count > 0 ? text->bytes + i : "?", count > 0 ? count : 1);
        i += count > 0 ? count : 1;
    }
}

/* The text's place in the string table. */
static uint32_t text_at(struct writer *writer, struct ml_profile_text text) {
    size_t known = writer->texts.count;
    uint32_t item = ml_string_table_add(&writer->texts, text.bytes, text.count_bytes);

    if (item == ML_STRING_NONE) {
        writer->failed = true;
        return 0;
    }
    if (item == known) {
        put_text(writer, &writer->strings, ML_OTLP_DICTIONARY_STRINGS, &text);
    }
    return item;
}

static uint32_t word_at(struct writer *writer, const char *word) {
    return text_at(writer, (struct ml_profile_text){.bytes = word, .count_bytes = strlen(word)});
}

/* A text, or a number when `text` is NULL. */
static void put_any(
    struct writer *writer,
    struct message *value,
    const struct ml_profile_text *text,
    uint64_t number
) {
    if (text) {
        put_text(writer, value, ML_OTLP_ANY_STRING, text);
    } else {
        put_varint(writer, value, ML_OTLP_ANY_INT << 3 | WIRE_VARINT);
        put_varint(writer, value, number);
    }
}

/* An attribute in the dictionary, of either kind. */
static uint32_t attribute_at(
    struct writer *writer, const char *key, const struct ml_profile_text *text, uint64_t number
) {
    struct message value = {0};
    struct message attribute = {0};

    put_any(writer, &value, text, number);
    put_number(writer, &attribute, ML_OTLP_ATTRIBUTE_KEY, word_at(writer, key));
    put_message(writer, &attribute, ML_OTLP_ATTRIBUTE_VALUE, &value);
    put_message(writer, &writer->attributes, ML_OTLP_DICTIONARY_ATTRIBUTES, &attribute);
    return ++writer->attributes_count;
}

/* A new function's place in the table. */
static uint32_t
put_function(struct writer *writer, const char *name, const char *linkage, const char *file) {
    struct message function = {0};

    put_number(writer, &function, ML_OTLP_FUNCTION_NAME, word_at(writer, name));
    put_number(writer, &function, ML_OTLP_FUNCTION_SYSTEM_NAME, word_at(writer, linkage));
    put_number(writer, &function, ML_OTLP_FUNCTION_FILE, word_at(writer, file));
    put_message(writer, &writer->functions, ML_OTLP_DICTIONARY_FUNCTIONS, &function);
    return ++writer->functions_count;
}

static void
put_line(struct writer *writer, struct message *location, uint32_t function, uint32_t number) {
    struct message line = {0};

    put_number(writer, &line, ML_OTLP_LINE_FUNCTION, function);
    put_number(writer, &line, ML_OTLP_LINE_LINE, number);
    put_message(writer, location, ML_OTLP_LOCATION_LINES, &line);
}

/* Each place is the location of its number + 1. */
static void put_location(struct writer *writer, struct message *dictionary, size_t number) {
    const struct ml_place *place = &writer->stacks->places[number];
    struct message location = {0};
    char buffer[ML_PLACE_NAME_BYTES];
    uint64_t address = place->offset;

    if (place->file != ML_STACKS_NONE) {
        address += (uint64_t)writer->stacks->files[place->file].bias;
        put_number(writer, &location, ML_OTLP_LOCATION_MAPPING, (uint64_t)place->file + 1);
    }
    put_number(writer, &location, ML_OTLP_LOCATION_ADDRESS, address);
    for (size_t i = 0; i < place->symbols_count; i++) {
        const struct ml_symbol *symbol = &writer->stacks->symbols[place->first_symbol + i];
        uint32_t function = put_function(writer, symbol->function, symbol->linkage, symbol->file);
        put_line(writer, &location, function, symbol->line);
    }
    if (place->symbols_count == 0 && place->kind != ML_FRAME_ADDRESS) {
        /* The buffer's text is temporary: only fixed words are static. */
        const char *word = ml_place_name(place, buffer);
        put_line(writer, &location, put_function(writer, word == buffer ? "" : word, "", ""), 0);
    }
    put_message(writer, dictionary, ML_OTLP_DICTIONARY_LOCATIONS, &location);
}

static void put_mapping(struct writer *writer, struct message *dictionary, size_t number) {
    const struct ml_code_file *file = &writer->stacks->files[number];
    struct message mapping = {0};
    struct message attributes = {0};
    char hex[ML_PROFILE_HEX_BYTES];
    struct ml_profile_text build_id = {.bytes = ml_profile_hex(file->build_id, hex)};

    build_id.count_bytes = strlen(hex);
    put_number(writer, &mapping, ML_OTLP_MAPPING_START, file->start);
    put_number(writer, &mapping, ML_OTLP_MAPPING_LIMIT, file->end);
    put_number(writer, &mapping, ML_OTLP_MAPPING_FILE, text_at(writer, file->path));
    if (build_id.count_bytes > 0) {
        put_varint(
            writer,
            &attributes,
            attribute_at(writer, "process.executable.build_id.gnu", &build_id, 0)
        );
        put_message(writer, &mapping, ML_OTLP_MAPPING_ATTRIBUTES, &attributes);
    }
    put_message(writer, dictionary, ML_OTLP_DICTIONARY_MAPPINGS, &mapping);
}

/* The node's stack in the table, innermost first; 0: no stack. Threads are attributes. */
static uint32_t stack_at(struct writer *writer, uint32_t node) {
    const uint32_t first = node;
    struct message locations = {0};
    struct message stack = {0};

    if (node == ML_STACKS_NONE || writer->stack_of[node] != 0) {
        return node == ML_STACKS_NONE ? 0 : writer->stack_of[node];
    }
    for (; node != ML_STACKS_NONE; node = writer->stacks->nodes[node].parent) {
        uint32_t place = writer->stacks->nodes[node].place;
        if (writer->stacks->places[place].kind != ML_FRAME_THREAD) {
            put_varint(writer, &locations, (uint64_t)place + 1);
        }
    }
    put_message(writer, &stack, ML_OTLP_STACK_LOCATIONS, &locations);
    put_message(writer, &writer->stack_table, ML_OTLP_DICTIONARY_STACKS, &stack);
    writer->stack_of[first] = ++writer->stacks_count;
    return writer->stack_of[first];
}

static uint64_t figure_of(const struct ml_profile_totals *totals, enum figure figure) {
    const uint64_t values[FIGURES] = {
        totals->total_blocks, totals->total_bytes, totals->live_blocks, totals->live_bytes};

    return values[figure];
}

static void put_sample(
    struct writer *writer,
    struct message *profile,
    const struct ml_profile_process *process,
    const struct ml_stack *stack,
    enum figure figure,
    const uint32_t attributes[3]
) {
    struct message sample = {0};
    struct message indices = {0};
    struct message values = {0};
    const struct ml_profile_text thread = ml_stacks_thread(writer->stacks, stack->node);
    const struct ml_profile_text type = ml_profile_type_name(process, stack->type);

    put_number(writer, &sample, ML_OTLP_SAMPLE_STACK, stack_at(writer, stack->node));
    for (size_t i = 0; i < 3; i++) {
        put_varint(writer, &indices, attributes[i]);
    }
    if (thread.count_bytes > 0) {
        put_varint(writer, &indices, attribute_at(writer, "thread.name", &thread, 0));
    }
    if (type.count_bytes > 0) {
        put_varint(writer, &indices, attribute_at(writer, "memlog.type", &type, 0));
    }
    put_message(writer, &sample, ML_OTLP_SAMPLE_ATTRIBUTES, &indices);
    put_varint(writer, &values, figure_of(&stack->own, figure));
    put_message(writer, &sample, ML_OTLP_SAMPLE_VALUES, &values);
    put_message(writer, profile, ML_OTLP_PROFILE_SAMPLES, &sample);
}

static void put_type(
    struct writer *writer, struct message *to, unsigned field, const char *type, const char *unit
) {
    struct message value = {0};

    put_number(writer, &value, ML_OTLP_VALUE_TYPE_TYPE, word_at(writer, type));
    put_number(writer, &value, ML_OTLP_VALUE_TYPE_UNIT, word_at(writer, unit));
    put_message(writer, to, field, &value);
}

/* A separate id for each of the profiles, the same at every try. */
static void id_of(const char *guid, unsigned number, unsigned char out_id[GUID_BYTES]) {
    for (size_t i = 0; i < GUID_BYTES; i++) {
        const char pair[] = {guid[2 * i], guid[2 * i + 1], '\0'};
        out_id[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    out_id[GUID_BYTES - 1] ^= (unsigned char)number;
}

/* What all profiles have behind their samples. `number`: 0, 1, ... */
static void end_profile(
    struct writer *writer,
    struct message *to,
    struct message *take_profile,
    const char *guid,
    unsigned number
) {
    const struct ml_profile *dump = writer->profile;
    const uint64_t start_ns = dump->run_start.realtime_ns;
    unsigned char id[GUID_BYTES];

    put_varint(writer, take_profile, ML_OTLP_PROFILE_TIME << 3 | WIRE_FIXED64);
    for (unsigned i = 0; i < 8; i++) {
        const unsigned char byte = (unsigned char)(start_ns >> 8 * i);
        put_raw(writer, take_profile, &byte, 1);
    }
    put_number(
        writer,
        take_profile,
        ML_OTLP_PROFILE_DURATION,
        dump->now.monotonic_ns - dump->run_start.monotonic_ns
    );
    put_type(writer, take_profile, ML_OTLP_PROFILE_PERIOD_TYPE, "allocated_bytes", "bytes");
    put_number(writer, take_profile, ML_OTLP_PROFILE_PERIOD, ml_profile_sampling_bytes(dump));
    id_of(guid, number, id);
    put_bytes(writer, take_profile, ML_OTLP_PROFILE_ID, id, sizeof id);
    put_message(writer, to, ML_OTLP_SCOPE_PROFILES_PROFILES, take_profile);
}

static void put_profile(
    struct writer *writer,
    struct message *to,
    enum figure figure,
    const char *guid,
    uint32_t (*attributes)[3]
) {
    static const char *const types[FIGURES] = {
        "alloc_objects", "alloc_space", "inuse_objects", "inuse_space"};
    static const char *const units[FIGURES] = {"count", "bytes", "count", "bytes"};
    const struct ml_profile *dump = writer->profile;
    struct message profile = {0};

    put_type(writer, &profile, ML_OTLP_PROFILE_SAMPLE_TYPE, types[figure], units[figure]);
    for (size_t p = 0; p < dump->processes_count; p++) {
        const struct ml_stack_list *list = &writer->stacks->processes[p];
        for (size_t i = 0; i < list->count; i++) {
            if (figure_of(&list->stacks[i].own, figure) > 0) {
                put_sample(
                    writer, &profile, &dump->processes[p], &list->stacks[i], figure, attributes[p]
                );
            }
        }
    }
    end_profile(writer, to, &profile, guid, figure);
}

/* A sample without a stack, whose attribute is the component. */
static void put_component(
    struct writer *writer,
    struct message *profile,
    uint32_t component,
    uint64_t bytes,
    const uint32_t attributes[3]
) {
    struct message sample = {0};
    struct message indices = {0};
    struct message values = {0};

    for (size_t i = 0; i < 3; i++) {
        put_varint(writer, &indices, attributes[i]);
    }
    put_varint(writer, &indices, component);
    put_message(writer, &sample, ML_OTLP_SAMPLE_ATTRIBUTES, &indices);
    put_varint(writer, &values, bytes);
    put_message(writer, &sample, ML_OTLP_SAMPLE_VALUES, &values);
    put_message(writer, profile, ML_OTLP_PROFILE_SAMPLES, &sample);
}

/* The private memory of each process by components. Nothing where no mappings were read. */
static void
put_memory(struct writer *writer, struct message *to, const char *guid, uint32_t (*attributes)[3]) {
    const struct ml_profile *dump = writer->profile;
    uint32_t names[ML_COMPONENTS];
    struct message profile = {0};
    bool was_read = false;

    for (size_t p = 0; p < dump->processes_count; p++) {
        was_read = was_read || dump->processes[p].regions_count > 0;
    }
    if (!was_read) {
        return;
    }
    for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
        const char *name = ml_component_name(i);
        const struct ml_profile_text text = {.bytes = name, .count_bytes = strlen(name)};
        names[i] = attribute_at(writer, "memlog.component", &text, 0);
    }
    put_type(writer, &profile, ML_OTLP_PROFILE_SAMPLE_TYPE, "private_memory", "bytes");
    for (size_t p = 0; p < dump->processes_count; p++) {
        struct ml_components components;
        ml_components_of(&dump->processes[p], &components);
        for (enum ml_component i = 0; i < ML_COMPONENTS; i++) {
            if (components.of[i].private > 0) {
                put_component(writer, &profile, names[i], components.of[i].private, attributes[p]);
            }
        }
    }
    end_profile(writer, to, &profile, guid, FIGURES);
}

/* A text, or a number when `text` is NULL. */
static void put_resource_attribute(
    struct writer *writer,
    struct message *resource,
    const char *key,
    const struct ml_profile_text *text,
    uint64_t number
) {
    const struct ml_profile_text key_text = {.bytes = key, .count_bytes = strlen(key)};
    struct message value = {0};
    struct message attribute = {0};

    put_any(writer, &value, text, number);
    put_text(writer, &attribute, ML_OTLP_KEY_VALUE_KEY, &key_text);
    put_message(writer, &attribute, ML_OTLP_KEY_VALUE_VALUE, &value);
    put_message(writer, resource, ML_OTLP_RESOURCE_ATTRIBUTES, &attribute);
}

static void put_resource(struct writer *writer, struct message *to) {
    char hex[ML_PROFILE_HEX_BYTES];
    struct ml_profile_text build = {.bytes = ml_profile_build_id(writer->profile, hex)};
    struct ml_sender_value values[ML_SENDER_WORDS];
    struct message resource = {0};

    build.count_bytes = strlen(hex);
    ml_sender_values(writer->profile, writer->sender, values);
    put_resource_attribute(writer, &resource, "service.name", &writer->profile->program, 0);
    if (build.count_bytes > 0) {
        put_resource_attribute(writer, &resource, "process.executable.build_id.gnu", &build, 0);
    }
    for (size_t i = 0; i < ML_SENDER_WORDS; i++) {
        const char *text = values[i].text;
        const struct ml_profile_text told = {.bytes = text, .count_bytes = text ? strlen(text) : 0};
        if (values[i].is_told) {
            put_resource_attribute(
                writer, &resource, ml_sender_names[i].key, text ? &told : NULL, values[i].number
            );
        }
    }
    put_message(writer, to, ML_OTLP_RESOURCE_PROFILES_RESOURCE, &resource);
}

static void put_dictionary(struct writer *writer, struct message *request) {
    struct message dictionary = {0};

    put_bytes(writer, &dictionary, ML_OTLP_DICTIONARY_MAPPINGS, "", 0);
    for (size_t i = 0; i < writer->stacks->files_count; i++) {
        put_mapping(writer, &dictionary, i);
    }
    put_bytes(writer, &dictionary, ML_OTLP_DICTIONARY_LOCATIONS, "", 0);
    for (size_t i = 0; i < writer->stacks->places_count; i++) {
        put_location(writer, &dictionary, i);
    }
    put_bytes(writer, &dictionary, ML_OTLP_DICTIONARY_FUNCTIONS, "", 0);
    put_raw(writer, &dictionary, writer->functions.bytes, writer->functions.count);
    put_bytes(writer, &dictionary, ML_OTLP_DICTIONARY_LINKS, "", 0);
    put_raw(writer, &dictionary, writer->strings.bytes, writer->strings.count);
    put_bytes(writer, &dictionary, ML_OTLP_DICTIONARY_ATTRIBUTES, "", 0);
    put_raw(writer, &dictionary, writer->attributes.bytes, writer->attributes.count);
    put_bytes(writer, &dictionary, ML_OTLP_DICTIONARY_STACKS, "", 0);
    put_raw(writer, &dictionary, writer->stack_table.bytes, writer->stack_table.count);
    put_message(writer, request, ML_OTLP_REQUEST_DICTIONARY, &dictionary);
}

static void put_request(
    struct writer *writer, const char *guid, uint32_t (*attributes)[3], struct message *request
) {
    const struct ml_profile_text name = {.bytes = "memlog", .count_bytes = 6};
    struct message scope = {0};
    struct message scope_profiles = {0};
    struct message resource_profiles = {0};

    (void)word_at(writer, ""); /* the table's first must be empty */
    for (size_t i = 0; i < writer->profile->processes_count; i++) {
        const struct ml_profile_process *process = &writer->profile->processes[i];
        const char *role = ml_profile_role_name(process->role);
        const struct ml_profile_text role_text = {.bytes = role, .count_bytes = strlen(role)};
        attributes[i][0] = attribute_at(writer, "process.pid", NULL, process->pid);
        attributes[i][1] = attribute_at(writer, "process.executable.name", &process->name, 0);
        attributes[i][2] = attribute_at(writer, "memlog.role", &role_text, 0);
    }
    put_resource(writer, &resource_profiles);
    put_text(writer, &scope, ML_OTLP_SCOPE_NAME, &name);
    put_message(writer, &scope_profiles, ML_OTLP_SCOPE_PROFILES_SCOPE, &scope);
    for (enum figure figure = 0; figure < FIGURES; figure++) {
        put_profile(writer, &scope_profiles, figure, guid, attributes);
    }
    put_memory(writer, &scope_profiles, guid, attributes);
    put_message(
        writer, &resource_profiles, ML_OTLP_RESOURCE_PROFILES_SCOPE_PROFILES, &scope_profiles
    );
    put_message(writer, request, ML_OTLP_REQUEST_RESOURCE_PROFILES, &resource_profiles);
    put_dictionary(writer, request);
}

static enum ml_status write_gzipped(const struct message *request, FILE *out) {
    FILE *gzip = ml_gzip_open(out);

    if (!gzip) {
        return ML_ENV_MEMORY;
    }
    /* A write error is reported when it is closed. */
    (void)fwrite(request->bytes, 1, request->count, gzip);
    return ml_gzip_close(gzip, ML_OK);
}

enum ml_status ml_otlp_write(
    const struct ml_stacks *stacks, const char *guid, const struct ml_sender *sender, FILE *out
) {
    const struct ml_profile *profile = stacks->profile;
    struct writer writer = {.profile = profile, .stacks = stacks, .sender = sender};
    struct message request = {0};
    uint32_t(*attributes)[3] = calloc(profile->processes_count + 1, sizeof *attributes);
    enum ml_status status = ML_ENV_MEMORY;

    writer.stack_of = calloc(stacks->nodes_count + 1, sizeof *writer.stack_of);
    if (attributes && writer.stack_of) {
        put_request(&writer, guid, attributes, &request);
        status = writer.failed ? ML_ENV_MEMORY : write_gzipped(&request, out);
    }
    free(attributes);
    free(writer.stack_of);
    free(writer.functions.bytes);
    free(writer.strings.bytes);
    free(writer.attributes.bytes);
    free(writer.stack_table.bytes);
    free(request.bytes);
    ml_string_table_fini(&writer.texts);
    return status;
}

#include "tools/analyzer/fleet/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "tools/analyzer/fleet/profile.h"

/* A process's dump as it is read. */
struct reading {
    struct ml_fleet_rows *rows;
    json_t *names;         /* pid in decimal -> process's name */
    const json_t *regions; /* of this process */
    uint32_t *strings;     /* our numbers of the file's strings, by id */
    size_t strings_count;  /* one more than the largest id */
    uint32_t *stacks;      /* our stack of the file's nodes, by id */
    size_t stacks_count;   /* likewise */
    uint32_t role, process;
    /* Of its live blocks: those of processes that have ended, which nothing holds any more. */
    uint64_t left_bytes, left_blocks;
    bool has_heap;
};

static uint64_t number_of(const json_t *value) {
    const json_int_t number = json_integer_value(value);
    return number > 0 ? (uint64_t)number : 0;
}

static uint64_t member(const json_t *object, const char *name) {
    return number_of(json_object_get(object, name));
}

static const char *text_of(const json_t *object, const char *name) {
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static bool hex_of(const char *text, uint64_t *out) {
    const size_t digits = strspn(text, "0123456789abcdef");

    if (digits == 0 || digits > 16 || text[digits] != '\0') {
        return false;
    }
    *out = strtoull(text, NULL, 16);
    return true;
}

/* ---- frames */

/* "pc:ADDRESS": the module and the place in it. False: it lies in none of the process's. */
static bool
place_of(const struct reading *reading, const char *name, struct ml_fleet_frame *out_frame) {
    uint64_t address = 0;

    if (strncmp(name, "pc:", 3) != 0 || !hex_of(name + 3, &address)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(reading->regions); i++) {
        const json_t *region = json_array_get(reading->regions, i);
        uint64_t start = 0;
        uint64_t size = 0;
        uint64_t bias = 0;
        if (hex_of(text_of(region, "sa"), &start) && hex_of(text_of(region, "sz"), &size) &&
            hex_of(text_of(region, "lb"), &bias) && address - start < size) {
            out_frame->module = ml_fleet_string(
                reading->rows, text_of(region, "mf"), MEMLOG_FLEET_FRAME_MODULE_LIMIT
            );
            out_frame->build_id = ml_fleet_string(
                reading->rows, text_of(region, "id"), MEMLOG_FLEET_FRAME_BUILD_ID_LIMIT
            );
            out_frame->offset = address - bias;
            return true;
        }
    }
    return false;
}

static struct ml_fleet_frame frame_of(const struct reading *reading, const char *name) {
    struct ml_fleet_frame frame = {.offset = 0};

    if (!place_of(reading, name, &frame)) {
        frame.function = ml_fleet_string(reading->rows, name, MEMLOG_FLEET_FRAME_FUNCTION_LIMIT);
    }
    return frame;
}

/* ---- numbered lists */

/* One more than the largest id, at most as many as could be in it. */
static size_t ids_end(const json_t *list) {
    size_t end = 1;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const uint64_t id = member(json_array_get(list, i), "id");
        if (id >= end && id <= MEMLOG_FLEET_MAX_STACKS) {
            end = (size_t)id + 1;
        }
    }
    return end;
}

/* The file's strings by id; "" where it has none of that id. Borrowed. False: no memory. */
static bool texts_read(const json_t *list, const char ***out_texts, size_t *out_count) {
    *out_count = ids_end(list);
    *out_texts = calloc(*out_count, sizeof **out_texts);
    for (size_t i = 0; *out_texts && i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        const uint64_t id = member(one, "id");
        if (id < *out_count) {
            (*out_texts)[id] = text_of(one, "string");
        }
    }
    return *out_texts != NULL;
}

/* A node's parent comes before it. */
static bool nodes_read(
    struct reading *reading, const json_t *list, const char *const *texts, size_t texts_count
) {
    reading->stacks_count = ids_end(list);
    reading->stacks = calloc(reading->stacks_count, sizeof *reading->stacks);
    for (size_t i = 0; reading->stacks && i < json_array_size(list); i++) {
        const json_t *node = json_array_get(list, i);
        const uint64_t id = member(node, "id");
        const uint64_t parent = member(node, "parent");
        const uint64_t string = member(node, "name_sid");
        const char *name = string < texts_count && texts[string] ? texts[string] : "";
        if (id == 0 || id >= reading->stacks_count || parent >= reading->stacks_count) {
            continue;
        }
        const struct ml_fleet_frame frame = frame_of(reading, name);
        reading->stacks[id] = strcmp(name, "[no stack]") == 0
                                  ? ML_FLEET_NO_STACK
                                  : ml_fleet_stack(reading->rows, reading->stacks[parent], &frame);
    }
    return reading->stacks != NULL;
}

/* Our numbers of the types' names; 0: not known. */
static bool types_read(
    struct reading *reading, const json_t *list, const char *const *texts, size_t texts_count
) {
    reading->strings_count = ids_end(list);
    reading->strings = calloc(reading->strings_count, sizeof *reading->strings);
    for (size_t i = 0; reading->strings && i < json_array_size(list); i++) {
        const json_t *type = json_array_get(list, i);
        const uint64_t id = member(type, "id");
        const uint64_t string = member(type, "name_sid");
        if (id > 0 && id < reading->strings_count && string < texts_count && texts[string]) {
            reading->strings[id] =
                ml_fleet_string(reading->rows, texts[string], MEMLOG_FLEET_ROW_TYPE_LIMIT);
        }
    }
    return reading->strings != NULL;
}

/* ---- figures */

enum { COLUMNS_MAX = 4 };

/* All of a process's rows are left, or it is a merged one that has one row alone. */
static void leave_out(uint64_t *figure, uint64_t *left) {
    const uint64_t part = *figure < *left ? *figure : *left;

    *figure -= part;
    *left -= part;
}

/* The rows of one heap in some columns; `offsets` are those of the figures. */
static void heap_read(
    struct reading *reading,
    const char *name,
    const json_t *heap,
    const char *const *columns,
    const size_t *offsets,
    size_t columns_count
) {
    const json_t *nodes = json_object_get(heap, "nodes");
    const json_t *types = json_object_get(heap, "types");
    const uint32_t number = ml_fleet_string(reading->rows, name, MEMLOG_FLEET_ROW_HEAP_LIMIT);
    const json_t *values[COLUMNS_MAX];

    for (size_t c = 0; c < columns_count; c++) {
        values[c] = json_object_get(heap, columns[c]);
    }
    for (size_t i = 0; i < json_array_size(nodes); i++) {
        const uint64_t node = number_of(json_array_get(nodes, i));
        const uint64_t type = number_of(json_array_get(types, i));
        struct ml_fleet_row row = {
            .role = reading->role,
            .process = reading->process,
            .heap = number,
            .type = type < reading->strings_count ? reading->strings[type] : 0,
            .stack = node < reading->stacks_count ? reading->stacks[node] : ML_FLEET_NO_STACK,
        };
        for (size_t c = 0; c < columns_count; c++) {
            const uint64_t value = number_of(json_array_get(values[c], i));
            memcpy((uint8_t *)&row.figures + offsets[c], &value, sizeof value);
        }
        leave_out(&row.figures.live_bytes, &reading->left_bytes);
        leave_out(&row.figures.live_blocks, &reading->left_blocks);
        ml_fleet_row(reading->rows, &row);
    }
}

static void heaps_read(
    struct reading *reading,
    json_t *heaps,
    const char *const *columns,
    const size_t *offsets,
    size_t columns_count
) {
    const char *name = NULL;
    json_t *heap = NULL;

    json_object_foreach(heaps, name, heap) {
        heap_read(reading, name, heap, columns, offsets, columns_count);
    }
}

static void figures_read(struct reading *reading, const json_t *dumps) {
    static const char *const live[] = {"sizes", "counts"};
    static const size_t live_offsets[] = {
        offsetof(struct memlog_fleet_figures, live_bytes),
        offsetof(struct memlog_fleet_figures, live_blocks)};
    static const char *const ours[] = {"peak_sizes", "peak_counts", "total_sizes", "total_counts"};
    static const size_t our_offsets[] = {
        offsetof(struct memlog_fleet_figures, peak_bytes),
        offsetof(struct memlog_fleet_figures, peak_blocks),
        offsetof(struct memlog_fleet_figures, total_bytes),
        offsetof(struct memlog_fleet_figures, total_blocks)};
    const json_t *heaps = json_object_get(dumps, "heaps_v2");
    json_t *own = json_object_get(json_object_get(dumps, "memlog"), "heaps");

    heaps_read(reading, json_object_get(heaps, "allocators"), live, live_offsets, 2);
    heaps_read(reading, own, ours, our_offsets, 4);
    reading->rows->head.told |= own ? MEMLOG_FLEET_TOLD_PEAK | MEMLOG_FLEET_TOLD_TOTAL : 0;
}

/* ---- processes */

static void process_read(struct reading *reading, const json_t *event) {
    const json_t *dumps = json_object_get(json_object_get(event, "args"), "dumps");
    const json_t *maps = json_object_get(json_object_get(dumps, "heaps_v2"), "maps");
    const json_t *strings = json_object_get(maps, "strings");
    const json_t *own = json_object_get(dumps, "memlog");
    const char **texts = NULL;
    size_t texts_count = 0;
    char pid[24];

    if (!maps || !texts_read(strings, &texts, &texts_count)) {
        return;
    }
    snprintf(
        pid, sizeof pid, "%" JSON_INTEGER_FORMAT, json_integer_value(json_object_get(event, "pid"))
    );
    reading->has_heap = true;
    reading->regions = json_object_get(json_object_get(dumps, "process_mmaps"), "vm_regions");
    reading->role =
        ml_fleet_string(reading->rows, text_of(own, "role"), MEMLOG_FLEET_ROW_ROLE_LIMIT);
    reading->process = ml_fleet_string(
        reading->rows, text_of(reading->names, pid), MEMLOG_FLEET_ROW_PROCESS_LIMIT
    );
    reading->left_bytes = member(own, "left_bytes");
    reading->left_blocks = member(own, "left_blocks");
    reading->rows->head.private_bytes += member(own, "private_bytes");
    if (nodes_read(reading, json_object_get(maps, "nodes"), texts, texts_count) &&
        types_read(reading, json_object_get(maps, "types"), texts, texts_count)) {
        figures_read(reading, dumps);
    } else {
        reading->rows->is_failed = true;
    }
    free(reading->stacks);
    free(reading->strings);
    reading->stacks = NULL;
    reading->strings = NULL;
    free((void *)texts);
}

static void name_read(struct reading *reading, const json_t *event) {
    char pid[24];

    if (strcmp(text_of(event, "name"), "process_name") == 0) {
        const json_t *name = json_object_get(json_object_get(event, "args"), "name");
        snprintf(
            pid,
            sizeof pid,
            "%" JSON_INTEGER_FORMAT,
            json_integer_value(json_object_get(event, "pid"))
        );
        (void)json_object_set_new(reading->names, pid, json_deep_copy(name));
    }
}

static struct ml_string head_string(struct ml_fleet_rows *rows, const char *text, size_t most) {
    return ml_fleet_string_of(rows, ml_fleet_string(rows, text, most));
}

static void cost_read(struct ml_fleet_rows *rows, const json_t *own) {
    const struct ml_fleet_piece no_text = {.count_bytes = 0};
    const json_t *told = json_object_get(own, "cost_ppm");
    const uint64_t promised_ppm = member(own, "promised_ppm");
    const uint64_t cost_ppm = number_of(told);

    ml_fleet_told(rows, ML_SENDER_PROMISED, no_text, &promised_ppm);
    if (json_is_integer(told) && json_integer_value(told) >= 0) {
        ml_fleet_told(rows, ML_SENDER_COST, no_text, &cost_ppm);
    }
}

/* Once all strings are there: they do not move any more. */
static void head_read(struct ml_fleet_rows *rows, const json_t *metadata) {
    const json_t *own = json_object_get(metadata, "memlog");
    const uint64_t weight = member(own, "weight");
    struct memlog_fleet_begin_request *head = &rows->head;

    head->version = MEMLOG_FLEET_FLEET_VERSION;
    head->program =
        head_string(rows, text_of(own, "program"), MEMLOG_FLEET_BEGIN_REQUEST_PROGRAM_LIMIT);
    head->build_id =
        head_string(rows, text_of(own, "build_id"), MEMLOG_FLEET_BEGIN_REQUEST_BUILD_ID_LIMIT);
    head->host = head_string(rows, text_of(own, "host"), MEMLOG_FLEET_BEGIN_REQUEST_HOST_LIMIT);
    head->program_version = head_string(
        rows, text_of(own, "program_version"), MEMLOG_FLEET_BEGIN_REQUEST_PROGRAM_VERSION_LIMIT
    );
    head->reason =
        head_string(rows, text_of(own, "reason"), MEMLOG_FLEET_BEGIN_REQUEST_REASON_LIMIT);
    head->trigger =
        head_string(rows, text_of(own, "trigger"), MEMLOG_FLEET_BEGIN_REQUEST_TRIGGER_LIMIT);
    head->time_ns = member(own, "time_ns");
    head->weight = weight <= UINT32_MAX ? (uint32_t)weight : 0;
    head->complete = json_is_true(json_object_get(own, "complete"));
    head->covered = json_is_true(json_object_get(own, "covered"));
    head->sampling_bytes = member(own, "sampling_bytes");
    cost_read(rows, own);
    head->processes = member(own, "processes");
    head->left_bytes = member(own, "left_bytes");
    head->told |= MEMLOG_FLEET_TOLD_LIVE | (own ? MEMLOG_FLEET_TOLD_COMPLETE : 0);
}

static void events_read(struct reading *reading, const json_t *events) {
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "ph"), "M") == 0) {
            name_read(reading, event);
        }
    }
    for (size_t i = 0; i < json_array_size(events); i++) {
        const json_t *event = json_array_get(events, i);
        if (strcmp(text_of(event, "ph"), "v") == 0) {
            process_read(reading, event);
        }
    }
}

enum ml_status ml_fleet_trace_read(struct json_t *root, struct ml_fleet_rows *rows) {
    struct reading reading = {.rows = rows, .names = json_object()};

    if (!reading.names) {
        return ML_ENV_MEMORY;
    }
    events_read(&reading, json_object_get(root, "traceEvents"));
    head_read(rows, json_object_get(root, "metadata"));
    json_decref(reading.names);
    return reading.has_heap ? ML_OK : ML_ENV_MISSING;
}

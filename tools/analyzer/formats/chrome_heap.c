#include "tools/analyzer/formats/chrome_heap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/model/string_table.h"

/* Of blocks of which the program says no type. All others have their own ids. */
enum { TYPE_UNKNOWN = 0 };

struct writer {
    struct ml_json *json;
    const struct ml_chrome_heap *heap;
    struct ml_chrome_numbers *numbers;
    struct ml_arena arena;          /* names that are made here */
    struct ml_string_table strings; /* their numbers in the file go on from the process before */
    uint64_t *node_ids; /* of each of the stacks' nodes: its innermost frame's; 0: not used */
    bool done;          /* false: without memory for some of it */
};

/* The string's number in the file; the bytes must live as long as the writer. */
static uint64_t string_number(struct writer *writer, const char *bytes, size_t count_bytes) {
    uint32_t item = ml_string_table_add(&writer->strings, bytes, count_bytes);

    if (item == ML_STRING_NONE) {
        writer->done = false;
        return 0;
    }
    return writer->numbers->string + 1 + item;
}

/* Returns the node's id. */
static uint64_t put_node(struct writer *writer, uint64_t parent, const char *name) {
    struct ml_json *json = writer->json;
    uint64_t id = ++writer->numbers->node;

    ml_json_open(json, '{');
    ml_json_number_member(json, "id", id);
    ml_json_number_member(json, "name_sid", string_number(writer, name, strlen(name)));
    if (parent != 0) {
        ml_json_number_member(json, "parent", parent);
    }
    ml_json_close(json, '}');
    return id;
}

/* The name of a place without a function. Owner: the arena's, or static. */
static const char *nameless(struct writer *writer, const struct ml_place *place) {
    char buffer[ML_PLACE_NAME_BYTES];
    uint64_t address = place->offset;
    char *name = NULL;

    if (place->kind != ML_FRAME_ADDRESS) {
        return ml_place_name(place, buffer);
    }
    if (place->file != ML_STACKS_NONE) {
        address += writer->heap->file_biases[place->file];
    }
    snprintf(buffer, sizeof buffer, "pc:%" PRIx64, address);
    name = ml_arena_text(&writer->arena, buffer, strlen(buffer));
    writer->done = writer->done && name;
    return name ? name : "";
}

/* A node for each function at the place, the outermost of those that were inlined first. */
static void put_frames(struct writer *writer, uint32_t node) {
    const struct ml_stacks *stacks = writer->heap->stacks;
    const struct ml_stack_node *one = &stacks->nodes[node];
    const struct ml_place *place = &stacks->places[one->place];
    uint64_t parent = one->parent == ML_STACKS_NONE ? 0 : writer->node_ids[one->parent];
    size_t count = place->symbols_count > 0 ? place->symbols_count : 1;

    for (size_t i = count; i > 0; i--) {
        const char *name = "";
        if (place->symbols_count > 0) {
            name = stacks->symbols[place->first_symbol + i - 1].function;
        }
        parent = put_node(writer, parent, name[0] ? name : nameless(writer, place));
    }
    writer->node_ids[node] = parent;
}

static bool has_metric(const struct ml_stack *stack, enum ml_metric metric) {
    return ml_metric_bytes(&stack->own, metric) > 0 || ml_metric_blocks(&stack->own, metric) > 0;
}

bool ml_chrome_heap_shows(
    const struct ml_stack *stack, enum ml_metric metric, bool tells_all_figures
) {
    return has_metric(stack, metric) || (tells_all_figures && stack->own.total_blocks > 0);
}

static bool shows(const struct ml_chrome_heap *heap, const struct ml_stack *stack) {
    return ml_chrome_heap_shows(stack, heap->metric, heap->tells_all_figures);
}

/* The nodes that the process's stacks need, parents first. Returns the id of "no stack"; 0: no
 * block is without one. */
static uint64_t put_nodes(struct writer *writer) {
    const struct ml_chrome_heap *heap = writer->heap;
    uint64_t no_stack = 0;

    for (size_t i = 0; i < heap->list->count; i++) {
        uint32_t node = heap->list->stacks[i].node;
        if (!shows(heap, &heap->list->stacks[i])) {
            continue;
        }
        if (node == ML_STACKS_NONE && no_stack == 0) {
            no_stack = put_node(writer, 0, "[no stack]");
        }
        /* Only marked: ids are given in the second walk, to parents before their children. */
        while (node != ML_STACKS_NONE && writer->node_ids[node] == 0) {
            writer->node_ids[node] = UINT64_MAX;
            node = heap->stacks->nodes[node].parent;
        }
    }
    for (uint32_t i = 0; i < heap->stacks->nodes_count; i++) {
        if (writer->node_ids[i] != 0) {
            put_frames(writer, i);
        }
    }
    return no_stack;
}

static void put_type(struct writer *writer, uint32_t id, struct ml_profile_text name) {
    struct ml_json *json = writer->json;

    ml_json_open(json, '{');
    ml_json_number_member(json, "id", id);
    ml_json_number_member(json, "name_sid", string_number(writer, name.bytes, name.count_bytes));
    ml_json_close(json, '}');
}

static void put_types(struct writer *writer) {
    static const char unknown_word[] = "[unknown]";
    const struct ml_profile_text unknown = {
        .bytes = unknown_word, .count_bytes = sizeof unknown_word - 1};
    const struct ml_chrome_heap *heap = writer->heap;
    bool *is_put = calloc(ml_profile_types_end(heap->process), sizeof *is_put);

    writer->done = writer->done && is_put;
    ml_json_open_member(writer->json, "types", '[');
    put_type(writer, TYPE_UNKNOWN, unknown);
    for (size_t i = 0; is_put && i < heap->list->count; i++) {
        const struct ml_stack *stack = &heap->list->stacks[i];
        if (stack->type != TYPE_UNKNOWN && !is_put[stack->type] && shows(heap, stack)) {
            is_put[stack->type] = true;
            put_type(writer, stack->type, ml_profile_type_name(heap->process, stack->type));
        }
    }
    ml_json_close(writer->json, ']');
    free(is_put);
}

/* Behind nodes and types, which number them. */
static void put_strings(struct writer *writer) {
    struct ml_json *json = writer->json;

    ml_json_open_member(json, "strings", '[');
    for (size_t i = 0; i < writer->strings.count; i++) {
        const struct ml_profile_text *string = &writer->strings.strings[i];
        ml_json_open(json, '{');
        ml_json_number_member(json, "id", writer->numbers->string + 1 + i);
        ml_json_text_member(json, "string", string->bytes, string->count_bytes);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

/* Returns the id of "no stack". */
static uint64_t put_maps(struct writer *writer) {
    struct ml_json *json = writer->json;
    uint64_t no_stack = 0;

    ml_json_open_member(json, "maps", '{');
    ml_json_open_member(json, "nodes", '[');
    no_stack = put_nodes(writer);
    ml_json_close(json, ']');
    put_types(writer);
    put_strings(writer);
    ml_json_close(json, '}');
    return no_stack;
}

enum column {
    COLUMN_COUNTS,
    COLUMN_SIZES,
    COLUMN_TYPES,
    COLUMN_NODES,
    COLUMNS_OF_CHROME,
    /* Ours. */
    COLUMN_PEAK_COUNTS = COLUMNS_OF_CHROME,
    COLUMN_PEAK_SIZES,
    COLUMN_TOTAL_COUNTS,
    COLUMN_TOTAL_SIZES,
    COLUMNS
};

static void put_column(
    struct writer *writer, enum column column, bool is_ours, uint32_t of_heap, uint64_t no_stack
) {
    static const char *const names[COLUMNS] = {
        "counts",
        "sizes",
        "types",
        "nodes",
        "peak_counts",
        "peak_sizes",
        "total_counts",
        "total_sizes"};
    const struct ml_chrome_heap *heap = writer->heap;
    struct ml_json *json = writer->json;

    ml_json_open_member(json, names[column], '[');
    for (size_t i = 0; i < heap->list->count; i++) {
        const struct ml_stack *stack = &heap->list->stacks[i];
        const uint64_t values[COLUMNS] = {
            [COLUMN_COUNTS] = ml_metric_blocks(&stack->own, heap->metric),
            [COLUMN_SIZES] = ml_metric_bytes(&stack->own, heap->metric),
            [COLUMN_TYPES] = stack->type,
            [COLUMN_NODES] =
                stack->node == ML_STACKS_NONE ? no_stack : writer->node_ids[stack->node],
            [COLUMN_PEAK_COUNTS] = stack->tree_peak_blocks,
            [COLUMN_PEAK_SIZES] = stack->tree_peak_bytes,
            [COLUMN_TOTAL_COUNTS] = stack->own.total_blocks,
            [COLUMN_TOTAL_SIZES] = stack->own.total_bytes,
        };
        if (stack->heap == of_heap &&
            (is_ours ? shows(heap, stack) : has_metric(stack, heap->metric))) {
            ml_json_number(json, values[column]);
        }
    }
    ml_json_close(json, ']');
}

const char *ml_chrome_heap_name(
    const struct ml_profile_process *process,
    uint32_t heap,
    char out_name[ML_CHROME_HEAP_NAME_BYTES]
) {
    (void
    )snprintf(out_name, ML_CHROME_HEAP_NAME_BYTES, "%s", ml_profile_heap_name(process, heap).bytes);
    for (char *at = strchr(out_name, '/'); at; at = strchr(at, '/')) {
        *at = '_';
    }
    if (strcmp(out_name, "components") == 0) { /* all memory's, which stand beside */
        (void)snprintf(out_name, ML_CHROME_HEAP_NAME_BYTES, "[components, as reported]");
    }
    return out_name;
}

bool ml_chrome_heap_tells(
    const struct ml_profile *profile, const struct ml_profile_process *process, size_t number
) {
    return !profile->heap.bytes ||
           ml_profile_text_eq(
               ml_profile_heap_name(process, process->heaps[number].id), profile->heap
           );
}

/* One heap's own columns. */
static void put_allocator(struct writer *writer, bool is_ours, uint32_t heap, uint64_t no_stack) {
    const enum column first = is_ours ? COLUMN_TYPES : 0;
    const enum column end = is_ours ? COLUMNS : COLUMNS_OF_CHROME;
    char name[ML_CHROME_HEAP_NAME_BYTES];

    ml_json_open_member(writer->json, ml_chrome_heap_name(writer->heap->process, heap, name), '{');
    for (enum column column = first; column < end; column++) {
        put_column(writer, column, is_ours, heap, no_stack);
    }
    ml_json_close(writer->json, '}');
}

static void put_allocators(struct writer *writer, bool is_ours, uint64_t no_stack) {
    const struct ml_chrome_heap *heap = writer->heap;

    if (!heap->stacks->profile->heap.bytes || !heap->has_heaps) {
        put_allocator(writer, is_ours, 0, no_stack);
    }
    for (size_t i = 0; heap->has_heaps && i < heap->process->heaps_count; i++) {
        if (ml_chrome_heap_tells(heap->stacks->profile, heap->process, i)) {
            put_allocator(writer, is_ours, heap->process->heaps[i].id, no_stack);
        }
    }
}

static void put_all_figures(struct writer *writer, uint64_t no_stack) {
    enum { VERSION = 1 };
    const struct ml_profile_process *process = writer->heap->process;
    struct ml_json *json = writer->json;

    ml_json_open_member(json, "memlog", '{');
    ml_json_number_member(json, "version", VERSION);
    ml_json_string_member(json, "role", ml_profile_role_name(process->role));
    ml_json_number_member(json, "sampling_bytes", process->sampling_bytes);
    if (process->overhead.promised_ppm != 0) {
        ml_json_number_member(json, "promised_ppm", process->overhead.promised_ppm);
        ml_json_number_member(json, "cost_ppm", ml_profile_cost_ppm(process));
    }
    ml_json_number_member(json, "processes", ml_profile_stands_for(process));
    ml_json_number_member(json, "private_bytes", process->footprint_bytes);
    ml_json_number_member(json, "left_bytes", writer->heap->left_bytes);
    ml_json_number_member(json, "left_blocks", writer->heap->left_blocks);
    ml_json_open_member(json, "heaps", '{');
    put_allocators(writer, true, no_stack);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
}

static void put_heaps(struct writer *writer) {
    struct ml_json *json = writer->json;
    uint64_t no_stack = 0;

    ml_json_open_member(json, "heaps_v2", '{');
    ml_json_number_member(json, "version", 1);
    no_stack = put_maps(writer);
    ml_json_open_member(json, "allocators", '{');
    put_allocators(writer, false, no_stack);
    ml_json_close(json, '}');
    ml_json_close(json, '}');
    if (writer->heap->tells_all_figures) {
        put_all_figures(writer, no_stack);
    }
}

enum ml_status ml_chrome_heap_write(
    struct ml_json *json, const struct ml_chrome_heap *heap, struct ml_chrome_numbers *numbers
) {
    struct writer writer = {.json = json, .heap = heap, .numbers = numbers, .done = true};

    writer.node_ids = calloc(heap->stacks->nodes_count + 1, sizeof *writer.node_ids);
    if (!writer.node_ids) {
        return ML_ENV_MEMORY;
    }
    put_heaps(&writer);
    numbers->string += writer.strings.count;
    free(writer.node_ids);
    ml_string_table_fini(&writer.strings);
    ml_arena_fini(&writer.arena);
    return writer.done ? ML_OK : ML_ENV_MEMORY;
}

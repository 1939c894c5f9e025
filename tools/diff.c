#include "tools/diff.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/memory.h"

/* A frame within its callers. */
struct frame_node {
    uint32_t parent; /* ML_STACKS_NONE: outermost */
    uint32_t text;   /* number of the frame's text */
    uint32_t row;    /* in the diff; ML_STACKS_NONE: no stack ends here */
};

struct texts {
    char **texts;
    size_t count, capacity;
    struct ml_index index;
};

struct builder {
    struct ml_diff *diff;
    struct ml_arena arena;
    struct texts texts;
    struct frame_node *nodes;
    size_t nodes_count, nodes_capacity;
    struct ml_index nodes_index;
    uint32_t no_stack_row;
};

static uint32_t text_intern(struct builder *builder, const char *text) {
    struct texts *texts = &builder->texts;
    size_t count = strlen(text);
    uint64_t hash = ml_hash(0, text, count);
    size_t at = 0;

    for (uint32_t item = ml_index_first(&texts->index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&texts->index, hash, &at)) {
        if (item < texts->count && strcmp(texts->texts[item], text) == 0) {
            return item;
        }
    }
    if (!ml_grow(
            (void **)&texts->texts, &texts->capacity, texts->count + 1, sizeof texts->texts[0]
        ) ||
        !ml_index_add(&texts->index, hash, (uint32_t)texts->count)) {
        return ML_STACKS_NONE;
    }
    texts->texts[texts->count] = ml_arena_text(&builder->arena, text, count);
    return texts->texts[texts->count] ? (uint32_t)texts->count++ : ML_STACKS_NONE;
}

static uint32_t node_intern(struct builder *builder, uint32_t parent, uint32_t text) {
    const uint32_t key[] = {parent, text};
    uint64_t hash = ml_hash(0, key, sizeof key);
    size_t at = 0;

    for (uint32_t item = ml_index_first(&builder->nodes_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&builder->nodes_index, hash, &at)) {
        if (builder->nodes[item].parent == parent && builder->nodes[item].text == text) {
            return item;
        }
    }
    if (!ml_grow(
            (void **)&builder->nodes,
            &builder->nodes_capacity,
            builder->nodes_count + 1,
            sizeof builder->nodes[0]
        ) ||
        !ml_index_add(&builder->nodes_index, hash, (uint32_t)builder->nodes_count)) {
        return ML_STACKS_NONE;
    }
    builder->nodes[builder->nodes_count] =
        (struct frame_node){.parent = parent, .text = text, .row = ML_STACKS_NONE};
    return (uint32_t)builder->nodes_count++;
}

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* What tells a frame: its function, or its address, and the file's name without the folder. */
static uint32_t frame_text(
    struct builder *builder,
    const struct ml_stacks *stacks,
    const struct ml_place *place,
    const struct ml_symbol *symbol
) {
    const char *module =
        place->file == ML_STACKS_NONE ? "" : base_name(stacks->files[place->file].path.bytes);
    char buffer[ML_PLACE_NAME_BYTES];
    const char *name =
        symbol && symbol->function[0] ? symbol->function : ml_place_name(place, buffer);
    char *text = NULL;
    uint32_t number = ML_STACKS_NONE;

    if (asprintf(&text, "%u %s\n%s", place->kind, name, module) >= 0) {
        number = text_intern(builder, text);
        free(text);
    }
    return number;
}

/* The place's frames below `node`. */
static uint32_t place_follow(
    struct builder *builder,
    const struct ml_stacks *stacks,
    const struct ml_place *place,
    uint32_t node
) {
    size_t count = place->symbols_count > 0 ? place->symbols_count : 1;

    for (size_t i = count; i > 0; i--) {
        const struct ml_symbol *symbol =
            place->symbols_count > 0 ? &stacks->symbols[place->first_symbol + i - 1] : NULL;
        uint32_t text = frame_text(builder, stacks, place, symbol);
        node = text == ML_STACKS_NONE ? text : node_intern(builder, node, text);
        if (node == ML_STACKS_NONE) {
            break;
        }
    }
    return node;
}

static struct ml_diff_stack *
row_of(struct builder *builder, uint32_t *row, enum ml_diff_side side, uint32_t node) {
    struct ml_diff *diff = builder->diff;

    if (*row == ML_STACKS_NONE) {
        if (!ml_grow(
                (void **)&diff->stacks, &diff->capacity, diff->count + 1, sizeof diff->stacks[0]
            )) {
            return NULL;
        }
        diff->stacks[diff->count] = (struct ml_diff_stack){.side = side, .node = node};
        *row = (uint32_t)diff->count++;
    }
    return &diff->stacks[*row];
}

static void add_totals(struct ml_profile_totals *sum, const struct ml_profile_totals *one) {
    sum->live_bytes += one->live_bytes;
    sum->live_blocks += one->live_blocks;
    sum->peak_bytes += one->peak_bytes;
    sum->peak_blocks += one->peak_blocks;
    sum->total_bytes += one->total_bytes;
    sum->total_blocks += one->total_blocks;
}

static bool
side_add(struct builder *builder, const struct ml_stacks *stacks, enum ml_diff_side side) {
    uint32_t *nodes = calloc(stacks->nodes_count + 1, sizeof *nodes);
    bool done = nodes != NULL;

    /* Parents come first. */
    for (size_t i = 0; done && i < stacks->nodes_count; i++) {
        const struct ml_stack_node *node = &stacks->nodes[i];
        uint32_t parent = node->parent == ML_STACKS_NONE ? ML_STACKS_NONE : nodes[node->parent];
        nodes[i] = place_follow(builder, stacks, &stacks->places[node->place], parent);
        done = nodes[i] != ML_STACKS_NONE;
    }
    for (size_t i = 0; done && i < stacks->tree.count; i++) {
        const struct ml_stack *stack = &stacks->tree.stacks[i];
        uint32_t *row = stack->node == ML_STACKS_NONE ? &builder->no_stack_row
                                                      : &builder->nodes[nodes[stack->node]].row;
        struct ml_diff_stack *entry = row_of(builder, row, side, stack->node);
        if (entry) {
            add_totals(&entry->sides[side], &stack->own);
        }
        done = entry != NULL;
    }
    free(nodes);
    return done;
}

enum ml_status
ml_diff_init(struct ml_diff *diff, const struct ml_stacks *from, const struct ml_stacks *to) {
    struct builder builder = {.diff = diff, .no_stack_row = ML_STACKS_NONE};
    bool done = false;

    *diff = (struct ml_diff){0};
    done = side_add(&builder, from, ML_DIFF_FROM) && side_add(&builder, to, ML_DIFF_TO);
    ml_arena_fini(&builder.arena);
    ml_index_fini(&builder.texts.index);
    ml_index_fini(&builder.nodes_index);
    free(builder.texts.texts);
    free(builder.nodes);
    return done ? ML_OK : ML_ENV_MEMORY;
}

void ml_diff_fini(struct ml_diff *diff) {
    free(diff->stacks);
    *diff = (struct ml_diff){0};
}

#include "tools/analyzer/stacks/frame_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/progress/progress.h"

static uint32_t text_intern(struct ml_frame_tree *tree, const char *text) {
    return ml_string_table_copy(&tree->texts, text, strlen(text));
}

static uint32_t frame_intern(struct ml_frame_tree *tree, struct ml_frame frame) {
    uint64_t hash = ml_hash(0, &frame, sizeof frame);
    size_t at = 0;

    for (uint32_t item = ml_index_first(&tree->frames_index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&tree->frames_index, hash, &at)) {
        if (memcmp(&tree->frames[item], &frame, sizeof frame) == 0) {
            return item;
        }
    }
    if (!ML_GROW(tree->frames, tree->frames_capacity, tree->frames_count + 1) ||
        !ml_index_add(&tree->frames_index, hash, (uint32_t)tree->frames_count)) {
        return ML_STACKS_NONE;
    }
    tree->frames[tree->frames_count] = frame;
    return (uint32_t)tree->frames_count++;
}

uint32_t ml_frame_tree_child(
    struct ml_frame_tree *tree, uint32_t parent, uint32_t kind, const char *name, const char *module
) {
    const struct ml_frame frame = {
        .parent = parent,
        .kind = kind,
        .name = text_intern(tree, name),
        .module = text_intern(tree, module),
    };

    if (frame.name == ML_STRING_NONE || frame.module == ML_STRING_NONE) {
        return ML_STACKS_NONE;
    }
    return frame_intern(tree, frame);
}

/* The longest name of an unnamed frame: a file's name (NAME_MAX) and an address. */
enum { UNNAMED_BYTES = 256 + ML_PLACE_NAME_BYTES };

/* What frames are told apart by. */
struct telling {
    const char *const *names; /* of files; NULL: their own */
    bool has_sources, has_lines;
};

/* `symbol` NULL: there is none. */
static uint32_t child_of(
    struct ml_frame_tree *tree,
    struct ml_frame frame,
    const char *name,
    const struct telling *telling,
    const struct ml_symbol *symbol
) {
    frame.name = text_intern(tree, name);
    if (telling->has_sources) {
        frame.source = text_intern(tree, symbol ? symbol->file : "");
        frame.line = telling->has_lines && symbol ? symbol->line : 0;
    }
    if (frame.name == ML_STRING_NONE || frame.module == ML_STRING_NONE ||
        frame.source == ML_STRING_NONE) {
        return ML_STACKS_NONE;
    }
    return frame_intern(tree, frame);
}

/* Add the place's frames below `parent`, the outermost first. Returns the innermost's number. */
static uint32_t place_add(
    struct ml_frame_tree *tree,
    const struct ml_stacks *stacks,
    const struct ml_place *place,
    const struct telling *telling,
    uint32_t parent
) {
    const char *const *names = telling->names;
    struct ml_frame frame = {.parent = parent, .kind = place->kind};
    const char *module = "";
    char buffer[ML_PLACE_NAME_BYTES];
    char unnamed[UNNAMED_BYTES];
    const char *name = ml_place_name(place, buffer);

    if (place->file != ML_STACKS_NONE) {
        module = names ? names[place->file] : basename(stacks->files[place->file].path.bytes);
    }
    if (module[0]) {
        snprintf(unnamed, sizeof unnamed, "%.255s+%s", module, name);
        name = unnamed;
    }
    frame.module = text_intern(tree, module);
    if (place->symbols_count == 0) {
        return child_of(tree, frame, name, telling, NULL);
    }
    for (size_t i = place->symbols_count; i > 0; i--) {
        const struct ml_symbol *symbol = &stacks->symbols[place->first_symbol + i - 1];
        const char *function = symbol->function[0] ? symbol->function : name;
        frame.parent = child_of(tree, frame, function, telling, symbol);
        if (frame.parent == ML_STACKS_NONE) {
            break;
        }
    }
    return frame.parent;
}

static bool nodes_add(
    struct ml_frame_tree *tree,
    const struct ml_stacks *stacks,
    const struct telling *telling,
    uint32_t *out_frames
) {
    /* Parents come first. */
    for (size_t i = 0; i < stacks->nodes_count; i++) {
        const struct ml_stack_node *node = &stacks->nodes[i];
        uint32_t parent =
            node->parent == ML_STACKS_NONE ? ML_STACKS_NONE : out_frames[node->parent];

        ml_progress_pieces("Merging stacks", i, stacks->nodes_count, NULL);
        out_frames[i] = place_add(tree, stacks, &stacks->places[node->place], telling, parent);
        if (out_frames[i] == ML_STACKS_NONE) {
            return false;
        }
    }
    return true;
}

bool ml_frame_tree_add(
    struct ml_frame_tree *tree, const struct ml_stacks *stacks, uint32_t *out_frames
) {
    return ml_frame_tree_add_named(tree, stacks, NULL, out_frames);
}

bool ml_frame_tree_add_named(
    struct ml_frame_tree *tree,
    const struct ml_stacks *stacks,
    const char *const *names,
    uint32_t *out_frames
) {
    const struct telling telling = {.names = names};

    return nodes_add(tree, stacks, &telling, out_frames);
}

bool ml_frame_tree_add_sources(
    struct ml_frame_tree *tree, const struct ml_stacks *stacks, bool has_lines, uint32_t *out_frames
) {
    const struct telling telling = {.has_sources = true, .has_lines = has_lines};

    return nodes_add(tree, stacks, &telling, out_frames);
}

void ml_frame_tree_fini(struct ml_frame_tree *tree) {
    free(tree->frames);
    ml_index_fini(&tree->frames_index);
    ml_string_table_fini(&tree->texts);
    *tree = (struct ml_frame_tree){0};
}

const char *ml_frame_name(const struct ml_frame_tree *tree, uint32_t frame) {
    return tree->texts.strings[tree->frames[frame].name].bytes;
}

const char *ml_frame_module(const struct ml_frame_tree *tree, uint32_t frame) {
    return tree->texts.strings[tree->frames[frame].module].bytes;
}

const char *ml_frame_source(const struct ml_frame_tree *tree, uint32_t frame) {
    return tree->texts.strings[tree->frames[frame].source].bytes;
}

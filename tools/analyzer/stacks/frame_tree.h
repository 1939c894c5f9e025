/* Stacks as a tree of frames told by their functions: what flame graphs, diffs and trees of others
 * show. Room: tools. Context: one thread.
 *
 * One rule: a frame is told by its callers, its function and the name of the file that it is in,
 * not by addresses: stacks of two builds fall together. Inlined functions are frames of their own;
 * a frame without a name is told by file and address. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_FRAME_TREE_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_FRAME_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/string_table.h"
#include "tools/analyzer/stacks/stacks.h"

struct ml_frame {
    uint32_t parent; /* ML_STACKS_NONE: outermost; else a smaller number than its own */
    uint32_t kind;   /* as a place's */
    uint32_t name;   /* text: "main", "libc.so.6+0x29d90", "[stack not walked further]" */
    uint32_t module; /* text: the file's name without its folder; "" none */
};

struct ml_frame_tree {
    struct ml_frame *frames;
    size_t frames_count, frames_capacity;
    struct ml_index frames_index;
    struct ml_string_table texts;
};

/* An empty tree is all zero. Add the stacks' frames; out_frames[i] is the innermost frame of
 * stacks->nodes[i] (as many as there are nodes). False: no memory; then _fini is still allowed. */
bool ml_frame_tree_add(
    struct ml_frame_tree *tree, const struct ml_stacks *stacks, uint32_t *out_frames
);

/* The same, each file called by another name (as many as the stacks have files; NULL: its own). */
bool ml_frame_tree_add_named(
    struct ml_frame_tree *tree,
    const struct ml_stacks *stacks,
    const char *const *names,
    uint32_t *out_frames
);

/* One frame below `parent` (ML_STACKS_NONE: outermost), told by kind, name and module. Returns its
 * number, ML_STACKS_NONE without memory. */
uint32_t ml_frame_tree_child(
    struct ml_frame_tree *tree, uint32_t parent, uint32_t kind, const char *name, const char *module
);

void ml_frame_tree_fini(struct ml_frame_tree *tree);

/* Texts of a frame. */
const char *ml_frame_name(const struct ml_frame_tree *tree, uint32_t frame);
const char *ml_frame_module(const struct ml_frame_tree *tree, uint32_t frame);

#endif

/* Stacks as a tree of functions, for flame graphs, diffs and other formats. Room: tools. Context:
 * one thread.
 *
 * One rule: equal frames have equal callers, functions and file names, whatever their addresses. So
 * stacks of two builds are compared. An inlined function is a frame of its own. A frame without a
 * name is known by file and address. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_FRAME_TREE_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_FRAME_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/index.h"
#include "tools/analyzer/model/string_table.h"
#include "tools/analyzer/stacks/stacks.h"

struct ml_frame {
    uint32_t parent; /* ML_STACKS_NONE: outermost; always before its children */
    uint32_t kind;   /* as a place's */
    uint32_t name;   /* text: "main", "libc.so.6+0x29d90", "[stack not walked further]" */
    uint32_t module; /* text: the file's name without folder; "": none */
    uint32_t source; /* of _add_sources(): text: the source file; "": not known. Else 0 */
    uint32_t line;   /* of _add_sources(), if it was asked for: in that file; else 0 */
};

struct ml_frame_tree {
    struct ml_frame *frames;
    size_t frames_count, frames_capacity;
    struct ml_index frames_index;
    struct ml_string_table texts;
};

/* Add the frames of all stacks; an empty tree is all zero. out_frames[i] becomes the innermost
 * frame of stacks->nodes[i]. False: no memory; _fini is needed even then. */
bool ml_frame_tree_add(
    struct ml_frame_tree *tree, const struct ml_stacks *stacks, uint32_t *out_frames
);

/* The same with other names of files. `names` has one for each file; NULL: the files' own. */
bool ml_frame_tree_add_named(
    struct ml_frame_tree *tree,
    const struct ml_stacks *stacks,
    const char *const *names,
    uint32_t *out_frames
);

/* The same, and frames of different source files are different, with `has_lines` also those of
 * different lines. */
bool ml_frame_tree_add_sources(
    struct ml_frame_tree *tree, const struct ml_stacks *stacks, bool has_lines, uint32_t *out_frames
);

/* The number of the frame with that kind, name and module below `parent` (ML_STACKS_NONE:
 * outermost). It is made when it is missing. ML_STACKS_NONE: no memory. */
uint32_t ml_frame_tree_child(
    struct ml_frame_tree *tree, uint32_t parent, uint32_t kind, const char *name, const char *module
);

void ml_frame_tree_fini(struct ml_frame_tree *tree);

const char *ml_frame_name(const struct ml_frame_tree *tree, uint32_t frame);
const char *ml_frame_module(const struct ml_frame_tree *tree, uint32_t frame);
const char *ml_frame_source(const struct ml_frame_tree *tree, uint32_t frame);

#endif

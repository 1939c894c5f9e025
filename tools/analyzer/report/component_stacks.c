/* Who holds a component: its stacks as a tree, from the innermost function outwards. Room: tools.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/report/component_table.h"
#include "tools/analyzer/report/internal.h"
#include "tools/analyzer/stacks/frame_tree.h"

/* Children of a frame that are shown; the others are one line. */
enum { CHILDREN = 12, SIZE_COLUMNS = 12, INDENT_MAX = 40 };

struct tree {
    const struct ml_component_table *table;
    const struct ml_stacks *stacks;
    struct ml_frame_tree frames;
    uint64_t *bytes; /* of each frame and its callers' */
    size_t capacity;
    uint64_t all;
    size_t depth; /* frames of a stack; 0: all */
};

/* The frame below `parent`, which gets the bytes. ML_STACKS_NONE: no memory. */
static uint32_t frame_add(
    struct tree *tree, uint32_t parent, const char *name, const char *module, uint64_t bytes
) {
    const size_t before = tree->frames.frames_count;
    const uint32_t frame = ml_frame_tree_child(&tree->frames, parent, 0, name, module);

    if (frame == ML_STACKS_NONE ||
        !ML_GROW(tree->bytes, tree->capacity, tree->frames.frames_count)) {
        return ML_STACKS_NONE;
    }
    if (tree->frames.frames_count > before) {
        tree->bytes[frame] = 0;
    }
    tree->bytes[frame] += bytes;
    return frame;
}

/* The frames of a place, the innermost first. */
static bool place_add(
    struct tree *tree,
    const struct ml_place *place,
    size_t *frames,
    uint32_t *parent,
    uint64_t bytes
) {
    const struct ml_stacks *stacks = tree->stacks;
    const char *module =
        place->file == ML_STACKS_NONE ? "" : basename(stacks->files[place->file].path.bytes);
    char name[ML_REPORT_NAME_BYTES];
    char buffer[ML_PLACE_NAME_BYTES];

    snprintf(
        name, sizeof name, "%.900s%s%s", module, module[0] ? "+" : "", ml_place_name(place, buffer)
    );
    for (size_t i = 0; i == 0 || i < place->symbols_count; i++) {
        const char *function =
            place->symbols_count > 0 ? stacks->symbols[place->first_symbol + i].function : "";
        if (tree->depth > 0 && *frames >= tree->depth) {
            return true;
        }
        *parent = frame_add(tree, *parent, function[0] ? function : name, module, bytes);
        (*frames)++;
        if (*parent == ML_STACKS_NONE) {
            return false;
        }
    }
    return true;
}

/* A row without a stack is one frame: what it is of. */
static bool row_add(struct tree *tree, const struct ml_row *row) {
    const uint64_t bytes = row->figures.proportional + row->figures.swapped;
    uint32_t parent = ML_STACKS_NONE;
    uint32_t node = row->node;
    size_t frames = 0;
    char permissions[ML_ROW_PERMISSIONS_BYTES];
    char name[ML_REPORT_NAME_BYTES];

    tree->all += bytes;
    if (node == ML_STACKS_NONE) {
        const char *path = row->path.count_bytes > 0 ? row->path.bytes : "no name";
        snprintf(
            name, sizeof name, "[%s, %s]", path, ml_row_permissions(row->permissions, permissions)
        );
        return frame_add(tree, parent, name, "", bytes) != ML_STACKS_NONE;
    }
    for (; node != ML_STACKS_NONE; node = tree->stacks->nodes[node].parent) {
        const struct ml_place *place = &tree->stacks->places[tree->stacks->nodes[node].place];
        if (!place_add(tree, place, &frames, &parent, bytes)) {
            return false;
        }
    }
    return true;
}

static bool rows_add(struct tree *tree, const char *component) {
    struct ml_rows rows = {0};
    size_t unread = 0;
    bool done = ml_rows_of_dump(&rows, tree->stacks, &unread);

    for (size_t i = 0; done && i < rows.count; i++) {
        const uint32_t number = ml_policy_component(
            tree->table->policy, tree->stacks, &rows.items[i], tree->table->text
        );
        done = number != ML_STRING_NONE;
        if (done && strcmp(tree->table->policy->components.strings[number].bytes, component) == 0) {
            done = row_add(tree, &rows.items[i]);
        }
    }
    ml_rows_fini(&rows);
    return done;
}

static int frame_order(const void *left, const void *right, void *context) {
    const struct tree *tree = context;
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    const uint32_t parent_a = tree->frames.frames[a].parent;
    const uint32_t parent_b = tree->frames.frames[b].parent;

    if (parent_a != parent_b) {
        return parent_a > parent_b ? 1 : -1;
    }
    if (tree->bytes[a] != tree->bytes[b]) {
        return tree->bytes[a] < tree->bytes[b] ? 1 : -1;
    }
    return (a > b) - (a < b);
}

/* Frames by parent, then bytes; where each frame's children begin. */
struct layout {
    uint32_t *sorted;
    size_t *first; /* of each frame; behind them that of the outermost */
};

static bool layout_init(struct layout *layout, struct tree *tree) {
    const size_t count = tree->frames.frames_count;

    layout->sorted = calloc(count + 1, sizeof *layout->sorted);
    layout->first = calloc(count + 1, sizeof *layout->first);
    if (!layout->sorted || !layout->first) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        layout->sorted[i] = (uint32_t)i;
        layout->first[i] = count;
    }
    layout->first[count] = count;
    if (count > 0) {
        qsort_r(layout->sorted, count, sizeof *layout->sorted, frame_order, tree);
    }
    for (size_t i = count; i > 0; i--) {
        const uint32_t parent = tree->frames.frames[layout->sorted[i - 1]].parent;
        layout->first[parent == ML_STACKS_NONE ? count : parent] = i - 1;
    }
    return true;
}

static void
put_line(const struct ml_report_page *page, const struct tree *tree, uint64_t bytes, size_t depth) {
    ml_report_print(
        page,
        "%*s %5.1f%%  %*s",
        SIZE_COLUMNS,
        ml_units_size(bytes).text,
        tree->all > 0 ? (double)bytes / (double)tree->all * 100 : 0.0,
        (int)(2 * (depth < INDENT_MAX ? depth : INDENT_MAX)),
        ""
    );
}

/* The frames of one parent. Those beyond the first are one line. Returns the position of the last
 * one that is shown, plus one. */
static size_t
shown_end(const struct tree *tree, const struct layout *layout, size_t at, uint32_t parent) {
    size_t end = at;

    while (end < tree->frames.frames_count && end - at < CHILDREN &&
           tree->frames.frames[layout->sorted[end]].parent == parent) {
        end++;
    }
    return end;
}

static void put_rest(
    const struct ml_report_page *page,
    const struct tree *tree,
    const struct layout *layout,
    size_t at,
    size_t depth
) {
    const uint32_t parent = tree->frames.frames[layout->sorted[at - 1]].parent;
    uint64_t bytes = 0;
    size_t count = 0;

    for (;
         at < tree->frames.frames_count && tree->frames.frames[layout->sorted[at]].parent == parent;
         at++) {
        bytes += tree->bytes[layout->sorted[at]];
        count++;
    }
    if (count > 0) {
        put_line(page, tree, bytes, depth);
        ml_report_print(page, "%zu more\n", count);
    }
}

/* A level of the walk: which children are left. */
struct level {
    size_t at, end;
};

/* Depth first, without recursion: stacks may be deep. */
static bool
put_tree(const struct ml_report_page *page, const struct tree *tree, const struct layout *layout) {
    const size_t count = tree->frames.frames_count;
    struct level *levels = calloc(count + 2, sizeof *levels);
    size_t depth = 0;

    if (!levels) {
        return false;
    }
    levels[0].at = layout->first[count];
    levels[0].end = shown_end(tree, layout, levels[0].at, ML_STACKS_NONE);
    for (;;) {
        struct level *level = &levels[depth];
        if (level->at == level->end) {
            if (level->end > 0 && level->end < count) {
                put_rest(page, tree, layout, level->end, depth);
            }
            if (depth == 0) {
                break;
            }
            depth--;
            continue;
        }
        const uint32_t frame = layout->sorted[level->at++];
        put_line(page, tree, tree->bytes[frame], depth);
        ml_report_put(page, ml_frame_name(&tree->frames, frame));
        if (ml_frame_module(&tree->frames, frame)[0]) {
            ml_report_print(page, ML_DIM "  ");
            ml_report_put(page, ml_frame_module(&tree->frames, frame));
            ml_report_print(page, ML_PLAIN);
        }
        ml_report_print(page, "\n");
        if (layout->first[frame] < count) {
            depth++;
            levels[depth].at = layout->first[frame];
            levels[depth].end = shown_end(tree, layout, levels[depth].at, frame);
        }
    }
    free(levels);
    return true;
}

enum ml_status ml_component_expand(
    const struct ml_component_table *table,
    const struct ml_stacks *stacks,
    const char *component,
    size_t depth,
    const struct ml_report_style *style,
    FILE *out
) {
    const struct ml_report_page page = {.style = style, .out = out};
    struct tree tree = {.table = table, .stacks = stacks, .depth = depth};
    struct layout layout = {.sorted = NULL};
    enum ml_status status = rows_add(&tree, component) ? ML_OK : ML_ENV_MEMORY;

    if (status == ML_OK && tree.frames.frames_count == 0) {
        status = ML_ENV_MISSING;
    }
    if (status == ML_OK) {
        ml_report_print(&page, ML_BOLD);
        ml_report_put(&page, component);
        ml_report_print(&page, ML_PLAIN "  %s\n", ml_units_size(tree.all).text);
        status =
            layout_init(&layout, &tree) && put_tree(&page, &tree, &layout) ? ML_OK : ML_ENV_MEMORY;
    }
    free(layout.sorted);
    free(layout.first);
    free(tree.bytes);
    ml_frame_tree_fini(&tree.frames);
    return status;
}

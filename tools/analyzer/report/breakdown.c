#include "tools/analyzer/report/breakdown.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/formats/process_words.h"
#include "tools/analyzer/formats/units.h"
#include "tools/analyzer/names/allocator_frames.h"
#include "tools/analyzer/progress/progress.h"

enum { ML_WORDS_OF_PROCESS_BYTES = 1024, SOURCE_BYTES = 4096 };

/* Instead of a row's number: there is no row. */
#define NO_ROW UINT32_MAX

/* What identifies a row within one breakdown: the numbers of its texts; of a source file its line
 * + 1 and its text, or 0 and the module. */
struct row_key {
    uint32_t name, module;
};

struct work {
    struct ml_breakdown *breakdown;
    const struct ml_stacks *stacks;
    enum ml_breakdown_by by;
    bool is_every_frame_shown;
    uint32_t *frames;     /* innermost frame of each node */
    uint32_t *rows;       /* row of each frame */
    uint32_t *seen;       /* of each row: the last stack that counted it, + 1 */
    struct row_key *keys; /* of each row */
    size_t keys_capacity, seen_capacity;
    uint32_t no_stack; /* the row of blocks without a stack */
};

static void totals_add(struct ml_breakdown_row *row, const struct ml_stack *stack) {
    ml_profile_totals_add(&row->self, &stack->own);
    row->temporary_blocks += stack->temporary_blocks;
}

/* NO_ROW: no memory. */
static uint32_t row_new(struct ml_breakdown *breakdown, const char *name, const char *module) {
    if (breakdown->rows_count == NO_ROW ||
        !ML_GROW(breakdown->rows, breakdown->rows_capacity, breakdown->rows_count + 1)) {
        return NO_ROW;
    }
    breakdown->rows[breakdown->rows_count] =
        (struct ml_breakdown_row){.name = name, .module = module};
    return (uint32_t)breakdown->rows_count++;
}

/* Of a source file or line. NO_ROW: no memory. */
static uint32_t row_of_source(struct work *work, uint32_t frame) {
    struct ml_breakdown *breakdown = work->breakdown;
    const char *module = ml_frame_module(&breakdown->frames, frame);
    const char *file = ml_frame_source(&breakdown->frames, frame);
    const uint32_t line = breakdown->frames.frames[frame].line;
    const char *name = file;
    char text[SOURCE_BYTES];
    uint32_t row = NO_ROW;

    if (!file[0]) {
        return row_new(breakdown, module[0] ? module : "[no file]", "no line information");
    }
    if (line > 0) {
        snprintf(text, sizeof text, "%.4000s:%" PRIu32, file, line);
        name = ml_arena_text(&breakdown->arena, text, strlen(text));
    }
    row = name ? row_new(breakdown, name, "") : NO_ROW;
    if (row != NO_ROW) {
        breakdown->rows[row].file = file;
        breakdown->rows[row].line = line;
    }
    return row;
}

static struct row_key key_of(const struct work *work, uint32_t frame) {
    const struct ml_frame_tree *tree = &work->breakdown->frames;
    const struct ml_frame *one = &tree->frames[frame];

    if (ml_breakdown_is_of_sources(work->by) && ml_frame_source(tree, frame)[0]) {
        return (struct row_key){.name = one->line + 1, .module = one->source};
    }
    return (struct row_key
    ){.name = work->by == ML_BY_FUNCTION || work->by == ML_BY_SCOPE ? one->name : 0,
      .module = one->module};
}

/* The row of a frame, which is added when it is missing. NO_ROW: no memory. */
static uint32_t row_of_frame(struct work *work, uint32_t frame) {
    struct ml_breakdown *breakdown = work->breakdown;
    const struct row_key key = key_of(work, frame);
    const char *module = ml_frame_module(&breakdown->frames, frame);
    uint64_t hash = ml_hash(0, &key, sizeof key);
    size_t at = 0;
    uint32_t row = NO_ROW;

    for (uint32_t item = ml_index_first(&breakdown->index, hash, &at); item != ML_INDEX_NONE;
         item = ml_index_next(&breakdown->index, hash, &at)) {
        // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): what the index names stands there
        if (work->keys[item].name == key.name && work->keys[item].module == key.module) {
            return item;
        }
    }
    if (ml_breakdown_is_of_sources(work->by)) {
        row = row_of_source(work, frame);
    } else if (work->by == ML_BY_MODULE) {
        row = row_new(breakdown, module[0] ? module : "[no file]", "");
    } else {
        row = row_new(breakdown, ml_frame_name(&breakdown->frames, frame), module);
    }
    if (row == NO_ROW || !ML_GROW(work->keys, work->keys_capacity, row + 1) ||
        !ML_GROW(work->seen, work->seen_capacity, row + 1) ||
        !ml_index_add(&breakdown->index, hash, row)) {
        return NO_ROW;
    }
    work->keys[row] = key;
    work->seen[row] = 0;
    return row;
}

/* Whether frames of that kind have rows. */
static bool has_row(const struct work *work, uint32_t kind) {
    if (work->by == ML_BY_SCOPE) {
        return kind == ML_FRAME_SCOPE;
    }
    /* A scope is in no source file: what it has is its function's. */
    return kind != ML_FRAME_THREAD &&
           !(kind == ML_FRAME_SCOPE && ml_breakdown_is_of_sources(work->by));
}

/* Give each frame its row. Parents come first. */
static bool rows_find(struct work *work) {
    for (size_t i = 0; i < work->breakdown->frames.frames_count; i++) {
        work->rows[i] = NO_ROW;
        if (has_row(work, work->breakdown->frames.frames[i].kind)) {
            work->rows[i] = row_of_frame(work, (uint32_t)i);
            if (work->rows[i] == NO_ROW) {
                return false;
            }
        }
    }
    return true;
}

/* That frame, or the innermost of its callers that has a row; ML_STACKS_NONE: none has. */
static uint32_t with_row(const struct work *work, uint32_t frame) {
    while (frame != ML_STACKS_NONE && work->rows[frame] == NO_ROW) {
        frame = work->breakdown->frames.frames[frame].parent;
    }
    return frame;
}

/* The frame whose `self` a stack counts in; ML_STACKS_NONE: there is none. */
static uint32_t frame_of(const struct work *work, uint32_t node) {
    const struct ml_frame_tree *tree = &work->breakdown->frames;
    const uint32_t innermost = with_row(work, work->frames[node]);
    uint32_t frame = innermost;

    if (work->by == ML_BY_SCOPE || work->is_every_frame_shown) {
        return innermost;
    }
    while (frame != ML_STACKS_NONE && ml_is_allocator_frame(ml_frame_name(tree, frame))) {
        frame = with_row(work, tree->frames[frame].parent);
    }
    return frame != ML_STACKS_NONE ? frame : innermost; /* there may be only allocator frames */
}

static bool count_stack(struct work *work, const struct ml_stack *stack, size_t number) {
    struct ml_breakdown *breakdown = work->breakdown;
    uint32_t self = NO_ROW;

    if (stack->node != ML_STACKS_NONE) {
        uint32_t frame = frame_of(work, stack->node);
        self = frame != ML_STACKS_NONE ? work->rows[frame] : NO_ROW;
        for (; frame != ML_STACKS_NONE; frame = breakdown->frames.frames[frame].parent) {
            uint32_t row = work->rows[frame];
            // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): each row has its place there
            if (row != NO_ROW && work->seen[row] != number + 1) {
                work->seen[row] = (uint32_t)number + 1;
                ml_profile_totals_add(&breakdown->rows[row].cumulative, &stack->own);
            }
        }
    }
    if (self == NO_ROW) {
        if (work->no_stack == NO_ROW) {
            work->no_stack =
                row_new(breakdown, work->by == ML_BY_SCOPE ? "[no scope]" : "[no stack]", "");
        }
        self = work->no_stack;
        if (self == NO_ROW) {
            return false;
        }
        ml_profile_totals_add(&breakdown->rows[self].cumulative, &stack->own);
    }
    totals_add(&breakdown->rows[self], stack);
    return true;
}

static bool by_frames(struct work *work) {
    const struct ml_stack_list *list = &work->stacks->tree;
    bool done = false;

    work->frames = calloc(work->stacks->nodes_count + 1, sizeof *work->frames);
    if (work->frames && ml_breakdown_is_of_sources(work->by)) {
        done = ml_frame_tree_add_sources(
            &work->breakdown->frames, work->stacks, work->by == ML_BY_LINE, work->frames
        );
    } else if (work->frames) {
        done = ml_frame_tree_add(&work->breakdown->frames, work->stacks, work->frames);
    }
    if (done) {
        work->rows = calloc(work->breakdown->frames.frames_count + 1, sizeof *work->rows);
        done = work->rows && rows_find(work);
    }
    for (size_t i = 0; done && i < list->count; i++) {
        ml_progress_pieces("Adding stacks up", i, list->count, NULL);
        done = count_stack(work, &list->stacks[i], i);
    }
    free(work->frames);
    free(work->rows);
    free(work->seen);
    free(work->keys);
    return done;
}

/* The row of that name, and of that text beside it (one of the program's own), which is added when
 * it is missing. NO_ROW: no memory. */
static uint32_t
row_beside(struct ml_breakdown *breakdown, struct ml_profile_text name, const char *beside) {
    const uint64_t hash = ml_hash(0, name.bytes, name.count_bytes);
    size_t at = 0;
    uint32_t row = ml_index_first(&breakdown->index, hash, &at);

    while (row != ML_INDEX_NONE && (strcmp(breakdown->rows[row].name, name.bytes) != 0 ||
                                    strcmp(breakdown->rows[row].module, beside) != 0)) {
        row = ml_index_next(&breakdown->index, hash, &at);
    }
    if (row == ML_INDEX_NONE) {
        row = row_new(breakdown, name.bytes, beside);
        if (row != NO_ROW && !ml_index_add(&breakdown->index, hash, row)) {
            return NO_ROW;
        }
    }
    return row;
}

static uint32_t row_named(struct ml_breakdown *breakdown, struct ml_profile_text name) {
    return row_beside(breakdown, name, "");
}

/* No row has callees. */
static void finish_names(struct ml_breakdown *breakdown, const char *nameless) {
    for (size_t i = 0; i < breakdown->rows_count; i++) {
        struct ml_breakdown_row *row = &breakdown->rows[i];
        row->name = row->name[0] ? row->name : nameless;
        row->cumulative = row->self;
    }
}

static bool by_threads(struct work *work) {
    struct ml_breakdown *breakdown = work->breakdown;
    const struct ml_stack_list *list = &work->stacks->tree;

    for (size_t i = 0; i < list->count; i++) {
        const uint32_t row =
            row_named(breakdown, ml_stacks_thread(work->stacks, list->stacks[i].node));
        if (row == NO_ROW) {
            return false;
        }
        totals_add(&breakdown->rows[row], &list->stacks[i]);
    }
    finish_names(breakdown, "[threads without a name]");
    return true;
}

static bool count_types(
    struct ml_breakdown *breakdown,
    const struct ml_profile *profile,
    const struct ml_profile_process *process,
    const struct ml_stack_list *list
) {
    const bool is_shown = ml_profile_is_shown(profile, process);

    for (size_t i = 0; i < list->count; i++) {
        const struct ml_stack stack = ml_stack_in_tree(list->stacks[i], is_shown);
        const struct ml_profile_typed type = ml_profile_type_of(process, stack.type);
        uint32_t row = NO_ROW;

        if (stack.heap != 0 && !profile->heap.bytes) {
            continue; /* the dump's figures are malloc's */
        }
        row = row_beside(breakdown, type.name, ml_profile_known_word(type.known));
        if (row == NO_ROW) {
            return false;
        }
        totals_add(&breakdown->rows[row], &stack);
    }
    return true;
}

static bool by_types(struct work *work) {
    const struct ml_stacks *stacks = work->stacks;
    bool done = true;

    for (size_t i = 0; done && i < stacks->processes_count; i++) {
        const struct ml_stack_list *details = &stacks->details[i];
        done = count_types(
            work->breakdown,
            stacks->profile,
            &stacks->profile->processes[i],
            details->stacks ? details : &stacks->processes[i]
        );
    }
    finish_names(work->breakdown, "[no type]");
    return done;
}

/* Also the temporary blocks, which the sums of a heap lack. */
static bool count_heap(
    struct ml_breakdown *breakdown,
    const struct ml_profile_process *process,
    uint32_t heap,
    struct ml_profile_totals totals,
    bool is_shown
) {
    const uint32_t row = row_named(breakdown, ml_profile_heap_name(process, heap));

    if (row == NO_ROW) {
        return false;
    }
    if (!is_shown) {
        ml_profile_totals_forget_live(&totals);
    }
    ml_profile_totals_add(&breakdown->rows[row].self, &totals);
    for (size_t c = 0; c < process->cells_count + process->apart_count; c++) {
        breakdown->rows[row].temporary_blocks +=
            process->cells[c].heap == heap ? process->cells[c].temporary_blocks : 0;
    }
    return true;
}

static bool by_heaps(struct work *work) {
    const struct ml_profile *profile = work->stacks->profile;
    bool done = true;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        const bool is_shown = ml_profile_is_shown(profile, process);
        done = done && count_heap(work->breakdown, process, 0, process->totals, is_shown);
        for (size_t h = 0; done && h < process->heaps_count; h++) {
            const struct ml_profile_heap *heap = &process->heaps[h];
            done = count_heap(work->breakdown, process, heap->id, heap->own, is_shown);
        }
    }
    finish_names(work->breakdown, "[heap without a name]");
    return done;
}

static bool by_sizes(struct work *work) {
    enum { CLASSES = 65 }; /* floor(log2(size)) + 1 of 64 bits, and 0 */
    struct ml_breakdown_row classes[CLASSES] = {{0}};
    struct ml_breakdown *breakdown = work->breakdown;
    const struct ml_profile *profile = work->stacks->profile;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        const bool is_shown = ml_profile_is_shown(profile, process);
        for (size_t c = 0; c < process->cells_count; c++) {
            const struct ml_stack stack =
                ml_stack_in_tree(ml_stack_of_cell(&process->cells[c], ML_STACKS_NONE), is_shown);
            unsigned at = process->cells[c].size_class;
            totals_add(&classes[at < CLASSES ? at : CLASSES - 1], &stack);
        }
    }
    for (unsigned i = 0; i < CLASSES; i++) {
        char words[ML_UNITS_BYTES + sizeof " and more"];
        uint32_t row = NO_ROW;

        if (classes[i].self.total_blocks == 0) {
            continue;
        }
        snprintf(
            words,
            sizeof words,
            "%s%s",
            ml_units_size(i == 0 ? 0 : UINT64_C(1) << (i - 1)).text,
            i == 0 ? "" : " and more"
        );
        row = row_new(breakdown, ml_arena_text(&breakdown->arena, words, strlen(words)), "");
        if (row == NO_ROW || !breakdown->rows[row].name) {
            return false;
        }
        classes[i].name = breakdown->rows[row].name;
        classes[i].module = "";
        classes[i].size_bytes = i == 0 ? 0 : UINT64_C(1) << (i - 1);
        classes[i].cumulative = classes[i].self;
        breakdown->rows[row] = classes[i];
    }
    return true;
}

static bool by_processes(struct work *work) {
    struct ml_breakdown *breakdown = work->breakdown;
    const struct ml_profile *profile = work->stacks->profile;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        const struct ml_stack_list *list = &work->stacks->processes[i];
        const bool is_shown = ml_profile_is_shown(profile, process);
        char words[ML_WORDS_OF_PROCESS_BYTES];
        char name[ML_WORDS_OF_PROCESS_BYTES];
        ml_process_words(profile, process, words, sizeof words);
        snprintf(name, sizeof name, "%.200s %" PRIu32, process->name.bytes, process->pid);
        const uint32_t row = row_new(
            breakdown,
            ml_arena_text(&breakdown->arena, name, strlen(name)),
            ml_arena_text(&breakdown->arena, words, strlen(words))
        );
        if (row == NO_ROW || !breakdown->rows[row].name || !breakdown->rows[row].module) {
            return false;
        }
        breakdown->rows[row].id = process->id;
        breakdown->rows[row].pid = process->pid;
        for (size_t s = 0; s < list->count; s++) {
            const struct ml_stack stack = ml_stack_in_tree(list->stacks[s], is_shown);
            totals_add(&breakdown->rows[row], &stack);
        }
        breakdown->rows[row].cumulative = breakdown->rows[row].self;
    }
    return true;
}

enum ml_status ml_breakdown_init(
    struct ml_breakdown *breakdown,
    const struct ml_stacks *stacks,
    enum ml_breakdown_by by,
    bool is_every_frame_shown
) {
    struct work work = {
        .breakdown = breakdown,
        .stacks = stacks,
        .by = by,
        .is_every_frame_shown = is_every_frame_shown,
        .no_stack = NO_ROW,
    };
    bool done = false;

    *breakdown = (struct ml_breakdown){0};
    switch (by) {
    case ML_BY_THREAD:
        done = by_threads(&work);
        break;
    case ML_BY_SIZE:
        done = by_sizes(&work);
        break;
    case ML_BY_PROCESS:
        done = by_processes(&work);
        break;
    case ML_BY_TYPE:
        done = by_types(&work);
        break;
    case ML_BY_HEAP:
        done = by_heaps(&work);
        break;
    default:
        done = by_frames(&work);
        break;
    }
    return done ? ML_OK : ML_ENV_MEMORY;
}

void ml_breakdown_fini(struct ml_breakdown *breakdown) {
    free(breakdown->rows);
    ml_frame_tree_fini(&breakdown->frames);
    ml_index_fini(&breakdown->index);
    ml_arena_fini(&breakdown->arena);
    *breakdown = (struct ml_breakdown){0};
}

struct ordering {
    enum ml_metric metric;
    enum ml_breakdown_order order;
};

static uint64_t weight_of(const struct ml_breakdown_row *row, const struct ordering *ordering) {
    switch (ordering->order) {
    case ML_ORDER_CUMULATIVE:
        return ml_metric_bytes(&row->cumulative, ordering->metric);
    case ML_ORDER_BLOCKS:
        return ml_metric_blocks(&row->self, ordering->metric);
    case ML_ORDER_TEMPORARY:
        return row->temporary_blocks;
    default:
        return ml_metric_bytes(&row->self, ordering->metric);
    }
}

/* Largest first, then by cumulative bytes, then by name. The same dump gives the same order. */
static int order_rows(const void *left, const void *right, void *context) {
    const struct ml_breakdown_row *a = left;
    const struct ml_breakdown_row *b = right;
    const struct ordering *ordering = context;
    uint64_t a_weight = weight_of(a, ordering);
    uint64_t b_weight = weight_of(b, ordering);

    if (a_weight == b_weight) {
        a_weight = ml_metric_bytes(&a->cumulative, ordering->metric);
        b_weight = ml_metric_bytes(&b->cumulative, ordering->metric);
    }
    if (a_weight != b_weight) {
        return a_weight < b_weight ? 1 : -1;
    }
    return strcmp(a->name, b->name);
}

void ml_breakdown_sort(
    struct ml_breakdown *breakdown, enum ml_metric metric, enum ml_breakdown_order order
) {
    struct ordering ordering = {.metric = metric, .order = order};

    if (breakdown->rows_count > 1) {
        qsort_r(
            breakdown->rows, breakdown->rows_count, sizeof breakdown->rows[0], order_rows, &ordering
        );
    }
}

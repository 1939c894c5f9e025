#include "tools/analyzer/stacks/regroup.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/wire/event.h"
#include "tools/analyzer/model/string_table.h"
#include "tools/analyzer/stacks/prune.h"

const char *const ml_grouping_words[] = {
    "type",
    "heap",
    "scope",
    "heap,type",
    "backtrace,type",
    "backtrace,heap",
    "backtrace,scope",
    NULL};

enum key { KEY_NONE, KEY_TYPE, KEY_HEAP, KEY_SCOPE };

/* What stands outside of the functions, and what inside. */
struct order {
    enum key outside[2];
    enum key inside;
};

static const struct order orders[] = {
    [ML_GROUP_TYPE] = {.outside = {KEY_TYPE}},
    [ML_GROUP_HEAP] = {.outside = {KEY_HEAP}},
    [ML_GROUP_SCOPE] = {.outside = {KEY_SCOPE}},
    [ML_GROUP_HEAP_TYPE] = {.outside = {KEY_HEAP, KEY_TYPE}},
    [ML_GROUP_BACKTRACE_TYPE] = {.inside = KEY_TYPE},
    [ML_GROUP_BACKTRACE_HEAP] = {.inside = KEY_HEAP},
    [ML_GROUP_BACKTRACE_SCOPE] = {.inside = KEY_SCOPE},
};

enum { IDS = UINT16_MAX + 1 };

/* A stack, and the node that its functions go below. */
struct item {
    uint32_t outside; /* ML_STACKS_NONE: none */
    struct ml_stack stack;
};

struct work {
    struct ml_stacks *stacks;
    const struct order *order;
    const struct ml_profile_process *process;
    size_t nodes_count; /* before any was added */
    size_t types_end;
    uint32_t *types; /* of the process's ids, the place + 1; 0: not known yet */
    uint32_t *heaps;
    bool *is_of_one; /* of the process's ids: no other process has a heap of that name */
    uint32_t *moved; /* of each node, what it became below the node at hand */
    size_t *moved_at;
    size_t round;   /* what was moved in another one does not count */
    uint32_t *path; /* the nodes at hand, innermost first */
    size_t path_count, path_capacity;
    struct item *items;
    size_t items_capacity;
    struct ml_string_table names; /* of heaps */
    size_t *owners;               /* of each name */
    size_t owners_capacity;
};

static bool has_key(const struct order *order, enum key key) {
    return order->outside[0] == key || order->outside[1] == key || order->inside == key;
}

bool ml_grouping_tells_types(enum ml_grouping grouping) {
    return has_key(&orders[grouping], KEY_TYPE);
}

/* Below `parent`, a place of that name. ML_STACKS_NONE: no memory. */
static uint32_t group_node(struct work *work, uint32_t parent, const char *name) {
    const struct ml_place place = {
        .kind = ML_PLACE_GROUP,
        .file = ML_STACKS_NONE,
        .name = {.bytes = name, .count_bytes = strlen(name)}};
    const uint32_t number = ml_stacks_place(work->stacks, &place);

    return number == ML_STACKS_NONE ? ML_STACKS_NONE : ml_stacks_node(work->stacks, parent, number);
}

static uint32_t
named_node(struct work *work, uint32_t parent, uint32_t *cached, struct ml_profile_text name) {
    const struct ml_place place = {.kind = ML_PLACE_GROUP, .file = ML_STACKS_NONE, .name = name};

    if (*cached == 0) {
        *cached = ml_stacks_place(work->stacks, &place) + 1;
    }
    return *cached == 0 ? ML_STACKS_NONE : ml_stacks_node(work->stacks, parent, *cached - 1);
}

static uint32_t type_node(struct work *work, uint32_t parent, uint32_t type) {
    const struct ml_profile_text none = {.bytes = "[no type]", .count_bytes = 9};
    uint32_t *cached = &work->types[type];
    const struct ml_profile_text name =
        *cached == 0 ? ml_profile_type_name(work->process, type) : none;

    return named_node(work, parent, cached, name.count_bytes > 0 ? name : none);
}

static uint32_t heap_node(struct work *work, uint32_t parent, uint32_t heap) {
    uint32_t *cached = &work->heaps[heap];
    struct ml_profile_text name = {.bytes = "", .count_bytes = 0};

    if (*cached == 0) {
        name = ml_profile_heap_name(work->process, heap);
    }
    return named_node(work, parent, cached, name);
}

/* The node and its callers, up to one that was moved in this round or to the outermost one. Returns
 * the former, or ML_STACKS_NONE. False in *out_done: no memory. */
static uint32_t path_take(struct work *work, uint32_t node, bool is_whole, bool *out_done) {
    work->path_count = 0;
    *out_done = true;
    while (node != ML_STACKS_NONE && (is_whole || work->moved_at[node] != work->round)) {
        if (!ML_GROW(work->path, work->path_capacity, work->path_count + 1)) {
            *out_done = false;
            return ML_STACKS_NONE;
        }
        work->path[work->path_count++] = node;
        node = work->stacks->nodes[node].parent;
    }
    return node;
}

static bool is_scope(const struct work *work, uint32_t node) {
    return work->stacks->places[work->stacks->nodes[node].place].kind == ML_FRAME_SCOPE;
}

/* The stack's scopes below `parent`. ML_STACKS_NONE: no memory. */
static uint32_t scope_node(struct work *work, uint32_t parent, uint32_t node) {
    uint32_t last = ML_STACKS_NONE;
    bool done = true;

    (void)path_take(work, node, true, &done);
    for (size_t i = work->path_count; done && i > 0; i--) {
        if (is_scope(work, work->path[i - 1])) {
            last = ml_stacks_node(
                work->stacks,
                last == ML_STACKS_NONE ? parent : last,
                work->stacks->nodes[work->path[i - 1]].place
            );
            done = last != ML_STACKS_NONE;
        }
    }
    if (!done) {
        return ML_STACKS_NONE;
    }
    return last != ML_STACKS_NONE ? last : group_node(work, parent, "[no scope]");
}

/* What `key` says of the stack, below `parent`. ML_STACKS_NONE: no memory. */
static uint32_t
key_node(struct work *work, enum key key, uint32_t parent, const struct ml_stack *stack) {
    switch (key) {
    case KEY_TYPE:
        return type_node(work, parent, stack->type);
    case KEY_HEAP:
        return heap_node(work, parent, stack->heap);
    default:
        return scope_node(work, parent, stack->node);
    }
}

/* The stack's functions below `outside`, which may be none of them. False: no memory. */
static bool functions_move(struct work *work, uint32_t outside, uint32_t node, uint32_t *out_node) {
    const bool has_scopes = !has_key(work->order, KEY_SCOPE);
    bool done = true;
    uint32_t caller = outside;
    uint32_t known = ML_STACKS_NONE;

    if (outside == ML_STACKS_NONE && has_scopes) {
        *out_node = node;
        return true;
    }
    known = path_take(work, node, false, &done);
    caller = known != ML_STACKS_NONE ? work->moved[known] : outside;
    for (size_t i = work->path_count; done && i > 0; i--) {
        const uint32_t one = work->path[i - 1];
        if (has_scopes || !is_scope(work, one)) {
            caller = ml_stacks_node(work->stacks, caller, work->stacks->nodes[one].place);
            done = caller != ML_STACKS_NONE;
        }
        work->moved[one] = caller;
        work->moved_at[one] = work->round;
    }
    *out_node = caller;
    return done;
}

/* Of a heap that one process has, its own peak is the tree's, as with --heap. */
static void peak_take(const struct work *work, struct ml_stack *stack) {
    if (!work->stacks->profile->heap.bytes && stack->heap != 0 && work->is_of_one[stack->heap]) {
        stack->tree_peak_bytes = stack->own.peak_bytes;
        stack->tree_peak_blocks = stack->own.peak_blocks;
        stack->tree_peak_bytes_variance = stack->own.variances.peak_bytes;
        stack->tree_peak_blocks_variance = stack->own.variances.peak_blocks;
    }
}

static bool item_take(struct work *work, struct item *item, const struct ml_stack *stack) {
    bool done = true;

    *item = (struct item){.outside = ML_STACKS_NONE, .stack = *stack};
    for (size_t k = 0; done && k < 2 && work->order->outside[k] != KEY_NONE; k++) {
        item->outside = key_node(work, work->order->outside[k], item->outside, stack);
        done = item->outside != ML_STACKS_NONE;
    }
    peak_take(work, &item->stack);
    return done;
}

/* The stack as it is now. */
static bool item_finish(struct work *work, struct item *item) {
    const enum key inside = work->order->inside;
    const struct ml_stack was = item->stack;
    uint32_t node = ML_STACKS_NONE;

    if (!functions_move(work, item->outside, was.node, &node)) {
        return false;
    }
    if (inside != KEY_NONE) {
        node = node != ML_STACKS_NONE ? node : group_node(work, ML_STACKS_NONE, "[no stack]");
        node = node != ML_STACKS_NONE ? key_node(work, inside, node, &was) : node;
    }
    item->stack.node = node;
    item->stack.heap = item->stack.type = 0;
    return node != ML_STACKS_NONE;
}

static int by_outside(const void *left, const void *right) {
    const uint32_t a = ((const struct item *)left)->outside;
    const uint32_t b = ((const struct item *)right)->outside;

    return (a > b) - (a < b);
}

/* Whether the stack is of the heaps that are shown. */
static bool is_shown(const struct work *work, const struct ml_stack *stack) {
    return work->stacks->profile->heap.bytes || has_key(work->order, KEY_HEAP) || stack->heap == 0;
}

/* The names of the process's heaps, and whether it alone has each. */
static bool process_begin(struct work *work, const struct ml_profile_process *process) {
    work->process = process;
    memset(work->types, 0, work->types_end * sizeof *work->types);
    memset(work->heaps, 0, IDS * sizeof *work->heaps);
    memset(work->is_of_one, 0, IDS * sizeof *work->is_of_one);
    for (size_t i = 0; i < process->heaps_count; i++) {
        const uint32_t heap = process->heaps[i].id;
        const struct ml_profile_text name = ml_profile_heap_name(process, heap);
        const uint32_t number = ml_string_table_add(&work->names, name.bytes, name.count_bytes);
        if (number == ML_STRING_NONE) {
            return false;
        }
        if (heap < IDS && number < work->owners_capacity) {
            work->is_of_one[heap] = work->owners[number] == 1;
        }
    }
    return true;
}

static bool list_make(
    struct work *work,
    const struct ml_profile_process *process,
    const struct ml_stack_list *from,
    struct ml_stack_list *to
) {
    size_t count = 0;
    bool done = process_begin(work, process) && ml_stack_list_reserve(to, from->count) &&
                ML_GROW(work->items, work->items_capacity, from->count);

    for (size_t i = 0; done && i < from->count; i++) {
        if (is_shown(work, &from->stacks[i])) {
            done = item_take(work, &work->items[count++], &from->stacks[i]);
        }
    }
    if (count > 1) {
        qsort(work->items, count, sizeof work->items[0], by_outside);
    }
    for (size_t i = 0; done && i < count; i++) {
        work->round += i == 0 || work->items[i].outside != work->items[i - 1].outside;
        done = item_finish(work, &work->items[i]);
        to->stacks[to->count++] = work->items[i].stack;
    }
    ml_stack_list_finish(to);
    return done;
}

/* How many processes have a heap of each name. */
static bool owners_count(struct work *work) {
    const struct ml_profile *profile = work->stacks->profile;

    for (size_t p = 0; p < profile->processes_count; p++) {
        const struct ml_profile_process *process = &profile->processes[p];
        for (size_t h = 0; h < process->heaps_count; h++) {
            const struct ml_profile_text name = ml_profile_heap_name(process, process->heaps[h].id);
            const size_t was = work->names.count;
            const uint32_t number = ml_string_table_add(&work->names, name.bytes, name.count_bytes);
            if (number == ML_STRING_NONE ||
                !ML_GROW(work->owners, work->owners_capacity, work->names.count)) {
                return false;
            }
            work->owners[number] = number == was ? 1 : work->owners[number] + 1;
        }
    }
    return true;
}

/* Above all types of all processes, those that were found among them. */
static size_t types_end(const struct ml_profile *profile) {
    size_t end = 0;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const size_t one = ml_profile_types_end(&profile->processes[i]);
        end = one > end ? one : end;
    }
    return end;
}

static bool work_begin(struct work *work) {
    const size_t count = work->stacks->nodes_count;

    work->types_end = types_end(work->stacks->profile);
    work->types = calloc(work->types_end + 1, sizeof *work->types);
    work->heaps = calloc(IDS, sizeof *work->heaps);
    work->is_of_one = calloc(IDS, sizeof *work->is_of_one);
    work->moved = calloc(count + 1, sizeof *work->moved);
    work->moved_at = calloc(count + 1, sizeof *work->moved_at);
    return work->types && work->heaps && work->is_of_one && work->moved && work->moved_at &&
           owners_count(work);
}

static void work_fini(struct work *work) {
    free(work->types);
    free(work->heaps);
    free(work->is_of_one);
    free(work->moved);
    free(work->moved_at);
    free(work->path);
    free(work->items);
    free(work->owners);
    ml_string_table_fini(&work->names);
}

enum ml_status ml_regrouped_init(
    struct ml_regrouped *regrouped, struct ml_stacks *stacks, enum ml_grouping grouping
) {
    struct work work = {.stacks = stacks, .order = &orders[grouping]};
    struct ml_stack_list tree = {0};
    bool done = work_begin(&work);

    *regrouped = (struct ml_regrouped){0};
    regrouped->processes = calloc(stacks->processes_count + 1, sizeof regrouped->processes[0]);
    done = done && regrouped->processes;
    for (size_t i = 0; done && i < stacks->processes_count; i++) {
        const struct ml_stack_list *details = &stacks->details[i];
        regrouped->processes_count++;
        done = list_make(
            &work,
            &stacks->profile->processes[i],
            details->stacks ? details : &stacks->processes[i],
            &regrouped->processes[i]
        );
    }
    done = done && ml_stacks_add_up(stacks, regrouped->processes, &tree);
    regrouped->tree = tree;
    work_fini(&work);
    return done ? ML_OK : ML_ENV_MEMORY;
}

void ml_regrouped_fini(struct ml_regrouped *regrouped) {
    for (size_t i = 0; i < regrouped->processes_count; i++) {
        free(regrouped->processes[i].stacks);
    }
    free(regrouped->processes);
    free(regrouped->tree.stacks);
    *regrouped = (struct ml_regrouped){0};
}

/* The list's entries become those of `other`, whose own they become. */
static void swap(struct ml_stack_list *list, struct ml_stack_list *other) {
    const struct ml_stack_list was = *list;

    *list = *other;
    *other = was;
}

enum ml_status ml_stacks_regroup(struct ml_stacks *stacks, enum ml_grouping grouping) {
    struct ml_regrouped regrouped;
    enum ml_status status = ML_OK;

    if (grouping == ML_GROUP_NONE) {
        return ML_OK;
    }
    status = ml_regrouped_init(&regrouped, stacks, grouping);
    if (status == ML_OK) {
        swap(&stacks->tree, &regrouped.tree);
        for (size_t i = 0; i < stacks->processes_count; i++) {
            swap(&stacks->processes[i], &regrouped.processes[i]);
            free(stacks->details[i].stacks);
            stacks->details[i] = (struct ml_stack_list){0};
        }
        status = ml_stacks_forget(stacks);
    }
    ml_regrouped_fini(&regrouped);
    return status;
}

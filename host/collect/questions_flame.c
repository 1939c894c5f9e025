/* The flame graph of everything that was chosen: stacks of all reports, merged by what their frames
 * are called. Room: host. */
#include <stdlib.h>
#include <string.h>

#include "host/collect/questions_internal.h"

struct flame_node {
    int64_t names; /* of the stacks with samples that end there; 0: none does */
    uint32_t parent;
    double live, peak, total; /* its own, not its callees' */
    double whole;             /* of the question's metric, with its callees' */
    uint32_t number;          /* in the answer; 0: it is left out */
    char *name;
};

struct flame {
    struct ml_answering *answering;
    struct flame_node *nodes; /* number 0: the root */
    size_t count, capacity;
    uint32_t *slots; /* hash table by parent and name; 0: free */
    size_t slots_count;
    int64_t *known; /* stacks, and the node of each, in a second table */
    uint32_t *known_nodes;
    size_t known_slots, known_count;
    bool is_failed;
};

static uint64_t hash_of(uint64_t seed, const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    uint64_t hash = seed ^ 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; i++) {
        hash = (hash ^ at[i]) * 0x100000001b3u;
    }
    return hash ^ (hash >> 32);
}

/* Twice as many slots, and all nodes in them. */
static bool slots_grow(struct flame *flame) {
    const size_t wanted = flame->slots_count > 0 ? flame->slots_count * 2 : 1024;
    uint32_t *slots = calloc(wanted, sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (size_t i = 1; i < flame->count; i++) {
        const struct flame_node *node = &flame->nodes[i];
        size_t at = hash_of(node->parent, node->name, strlen(node->name)) & (wanted - 1);
        while (slots[at] != 0) {
            at = (at + 1) & (wanted - 1);
        }
        slots[at] = (uint32_t)i;
    }
    free(flame->slots);
    flame->slots = slots;
    flame->slots_count = wanted;
    return true;
}

static bool nodes_reserve(struct flame *flame) {
    if (flame->count < flame->capacity) {
        return true;
    }
    const size_t wanted = flame->capacity > 0 ? flame->capacity * 2 : 1024;
    struct flame_node *grown = reallocarray(flame->nodes, wanted, sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    flame->nodes = grown;
    flame->capacity = wanted;
    return true;
}

/* The child of that name; 0 where memory ran out. */
static uint32_t child_of(struct flame *flame, uint32_t parent, const char *name) {
    if (flame->count * 2 >= flame->slots_count && !slots_grow(flame)) {
        flame->is_failed = true;
        return 0;
    }
    size_t at = hash_of(parent, name, strlen(name)) & (flame->slots_count - 1);
    while (flame->slots[at] != 0) {
        const struct flame_node *node = &flame->nodes[flame->slots[at]];
        if (node->parent == parent && strcmp(node->name, name) == 0) {
            return flame->slots[at];
        }
        at = (at + 1) & (flame->slots_count - 1);
    }
    char *copy = strdup(name);
    if (copy == NULL || !nodes_reserve(flame)) {
        free(copy);
        flame->is_failed = true;
        return 0;
    }
    flame->nodes[flame->count] = (struct flame_node){.parent = parent, .name = copy};
    flame->slots[at] = (uint32_t)flame->count;
    return (uint32_t)flame->count++;
}

/* Where a stack stands, or would, in the table of known ones. */
static size_t known_slot(const struct flame *flame, int64_t stack) {
    size_t at = hash_of(0, &stack, sizeof(stack)) & (flame->known_slots - 1);
    while (flame->known[at] != 0 && flame->known[at] != stack) {
        at = (at + 1) & (flame->known_slots - 1);
    }
    return at;
}

static bool known_grow(struct flame *flame) {
    const size_t before = flame->known_slots;
    int64_t *known = flame->known;
    uint32_t *nodes = flame->known_nodes;
    flame->known_slots = before > 0 ? before * 2 : 1024;
    flame->known = calloc(flame->known_slots, sizeof(*flame->known));
    flame->known_nodes = calloc(flame->known_slots, sizeof(*flame->known_nodes));
    const bool done = flame->known != NULL && flame->known_nodes != NULL;
    for (size_t i = 0; done && i < before; i++) {
        if (known[i] != 0) {
            const size_t at = known_slot(flame, known[i]);
            flame->known[at] = known[i];
            flame->known_nodes[at] = nodes[i];
        }
    }
    free(known);
    free(nodes);
    return done;
}

static void know(struct flame *flame, int64_t stack, uint32_t node) {
    if (flame->known_count * 2 >= flame->known_slots && !known_grow(flame)) {
        flame->is_failed = true;
        return;
    }
    const size_t at = known_slot(flame, stack);
    flame->known_count += flame->known[at] == 0;
    flame->known[at] = stack;
    flame->known_nodes[at] = node;
}

/* The node of a stack; its callers' come first. A contract bounds how deep they lie. */
static uint32_t node_of(struct flame *flame, int64_t stack, unsigned depth) {
    enum { NAME_BYTES = 640 };
    char name[NAME_BYTES];
    if (stack == 0 || flame->is_failed || depth > MEMLOG_FLEET_MAX_FRAMES_IN_STACK) {
        return 0;
    }
    if (flame->known_slots > 0) {
        const size_t at = known_slot(flame, stack);
        if (flame->known[at] == stack) {
            return flame->known_nodes[at];
        }
    }
    struct ml_store_rows *rows = ml_answering_find(flame->answering, ML_SQL_NODE, stack);
    if (!ml_store_rows_next(rows)) {
        return 0;
    }
    const int64_t parent = ml_store_rows_id(rows, 0);
    const char *function = ml_store_rows_text(rows, 1);
    if (function[0] != '\0') {
        (void)snprintf(name, sizeof(name), "%s", function);
    } else {
        (void)snprintf(name, sizeof(name), "[%s]", ml_store_rows_text(rows, 2));
    }
    ml_store_rows_end(rows);
    const uint32_t node = child_of(flame, node_of(flame, parent, depth + 1), name);
    know(flame, stack, node);
    return node;
}

/* ---- the largest nodes alone */

static double figure_of(const struct flame_node *node, enum ml_asked_metric metric) {
    switch (metric) {
    case ML_ASKED_PEAK:
        return node->peak;
    case ML_ASKED_TOTAL:
        return node->total;
    case ML_ASKED_LIVE:
        break;
    }
    return node->live;
}

/* The largest first. A caller is not smaller than what it called, and comes first: it is never left
 * out alone. */
static int by_whole(const void *a, const void *b, void *nodes) {
    const uint32_t one = *(const uint32_t *)a;
    const uint32_t other = *(const uint32_t *)b;
    const double whole = ((const struct flame_node *)nodes)[one].whole;
    const double other_whole = ((const struct flame_node *)nodes)[other].whole;
    if (whole != other_whole) {
        return whole > other_whole ? -1 : 1;
    }
    return one < other ? -1 : one > other;
}

/* What a node holds that is left out is its caller's own. */
static void fold(struct flame *flame) {
    for (size_t i = flame->count - 1; i > 0; i--) {
        const struct flame_node *node = &flame->nodes[i];
        struct flame_node *caller = &flame->nodes[node->parent];
        if (node->number == 0) {
            caller->live += node->live;
            caller->peak += node->peak;
            caller->total += node->total;
        }
    }
}

/* Give numbers to the nodes that the answer has. False: no memory. */
static bool choose(struct flame *flame) {
    const struct ml_question *question = flame->answering->question;
    const size_t most = question->limit > 0 ? question->limit : flame->count;
    uint32_t *order = calloc(flame->count, sizeof(*order));
    uint32_t number = 0;
    if (order == NULL) {
        return false;
    }
    for (size_t i = flame->count - 1; i > 0; i--) {
        struct flame_node *node = &flame->nodes[i];
        node->whole += figure_of(node, question->metric);
        flame->nodes[node->parent].whole += node->whole;
        order[i - 1] = (uint32_t)i;
    }
    if (flame->count - 1 > most) {
        qsort_r(order, flame->count - 1, sizeof(*order), by_whole, flame->nodes);
    }
    for (size_t i = 0; i < most && i + 1 < flame->count; i++) {
        flame->nodes[order[i]].number = 1;
    }
    free(order);
    fold(flame);
    for (size_t i = 1; i < flame->count; i++) {
        flame->nodes[i].number = flame->nodes[i].number != 0 ? ++number : 0;
    }
    return true;
}

static void put_stack(struct ml_json *json, int64_t names) {
    if (names != 0) {
        ml_answering_id(json, "stack", names);
    } else {
        ml_json_key(json, "stack");
        ml_json_null(json);
    }
}

static void put_flame(struct ml_json *json, const struct flame *flame) {
    ml_json_number_member(json, "nodes_all", flame->count - 1);
    ml_json_open_member(json, "nodes", '[');
    for (size_t i = 1; i < flame->count; i++) {
        const struct flame_node *node = &flame->nodes[i];
        if (node->number == 0) {
            continue;
        }
        ml_json_open(json, '{');
        ml_json_string_member(json, "name", node->name);
        ml_json_number_member(json, "parent", flame->nodes[node->parent].number);
        put_stack(json, node->names);
        ml_json_double_member(json, "live_bytes", node->live);
        ml_json_double_member(json, "peak_bytes", node->peak);
        ml_json_double_member(json, "total_bytes", node->total);
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

static void flame_fini(struct flame *flame) {
    for (size_t i = 1; i < flame->count; i++) {
        free(flame->nodes[i].name);
    }
    free(flame->nodes);
    free(flame->slots);
    free(flame->known);
    free(flame->known_nodes);
}

/* ---- what is merged */

struct sum {
    int64_t stack, names;
    double live, peak, total;
};

struct sums {
    struct sum *list;
    int64_t *stacks; /* of the list, once more, as engines want them */
    size_t count, capacity;
};

static bool sums_reserve(struct sums *sums) {
    if (sums->count < sums->capacity) {
        return true;
    }
    const size_t wanted = sums->capacity > 0 ? sums->capacity * 2 : 1024;
    struct sum *list = reallocarray(sums->list, wanted, sizeof(*list));
    if (list == NULL) {
        return false;
    }
    sums->list = list;
    int64_t *stacks = reallocarray(sums->stacks, wanted, sizeof(*stacks));
    if (stacks == NULL) {
        return false;
    }
    sums->stacks = stacks;
    sums->capacity = wanted;
    return true;
}

/* False: no memory. */
static bool sums_read(struct sums *sums, struct ml_store_rows *rows) {
    while (ml_store_rows_next(rows)) {
        if (!sums_reserve(sums)) {
            ml_store_rows_end(rows);
            return false;
        }
        sums->stacks[sums->count] = ml_store_rows_id(rows, 0);
        sums->list[sums->count++] = (struct sum
        ){.stack = ml_store_rows_id(rows, 0),
          .live = ml_store_rows_real(rows, 1),
          .peak = ml_store_rows_real(rows, 2),
          .total = ml_store_rows_real(rows, 3),
          .names = ml_store_rows_id(rows, 4)};
    }
    return true;
}

static void merge(struct flame *flame, const struct sums *sums) {
    for (size_t i = 0; !flame->is_failed && i < sums->count; i++) {
        const struct sum *sum = &sums->list[i];
        const uint32_t node = node_of(flame, sum->stack, 0);
        if (!flame->is_failed) {
            flame->nodes[node].live += sum->live;
            flame->nodes[node].peak += sum->peak;
            flame->nodes[node].total += sum->total;
            flame->nodes[node].names = sum->names;
        }
    }
}

void ml_answer_flame(struct ml_answering *answering) {
    struct flame flame = {.answering = answering};
    struct sums sums = {.list = NULL};
    ml_answering_put_sums(&answering->json, ml_answering_sums(answering));
    flame.is_failed = !nodes_reserve(&flame);
    if (!flame.is_failed) {
        flame.nodes[flame.count++] = (struct flame_node){.name = NULL};
    }
    flame.is_failed =
        flame.is_failed || !sums_read(&sums, ml_answering_find(answering, ML_SQL_SUMS, 0));
    if (!flame.is_failed) {
        ml_answering_expect(answering, ML_SQL_NODE, sums.stacks, sums.count);
        merge(&flame, &sums);
        flame.is_failed = flame.is_failed || !choose(&flame);
    }
    if (flame.is_failed) {
        answering->status = ML_ENV_MEMORY;
    } else {
        put_flame(&answering->json, &flame);
    }
    free(sums.list);
    free(sums.stacks);
    flame_fini(&flame);
}

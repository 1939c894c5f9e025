#include "service/heap/stack_store.h"

#include <string.h>

void ml_stack_store_init(struct ml_stack_store *store, struct ml_budget *budget) {
    *store = (struct ml_stack_store){.budget = budget};
}

enum { UNNAMED_ROOM_MIN = 64, NAMES_ROOM_MIN = 16 };

static size_t module_bytes(const struct ml_stored_module *module) {
    return sizeof(*module) + module->build_id_bytes + module->path_bytes;
}

static void free_module(struct ml_stack_store *store, struct ml_stored_module *take_module) {
    if (take_module != NULL) {
        ml_budget_free(store->budget, take_module, module_bytes(take_module));
    }
}

static void free_string(struct ml_stack_store *store, struct ml_stored_string *take_string) {
    if (take_string != NULL) {
        ml_budget_free(store->budget, take_string, sizeof(*take_string) + take_string->count_bytes);
    }
}

static void free_names(struct ml_stack_store *store, const struct ml_stored_names *names) {
    ml_budget_free(store->budget, names->strings, names->end * sizeof(*names->strings));
}

void ml_stack_store_fini(struct ml_stack_store *store) {
    for (uint32_t i = 0; i < store->pages_count; i++) {
        ml_budget_free(
            store->budget, store->pages[i], ML_NODE_PAGE_NODES * sizeof(struct ml_stored_node)
        );
    }
    for (uint32_t i = 0; i < store->modules_end; i++) {
        free_module(store, store->modules[i]);
    }
    for (uint32_t i = 0; i < store->strings_end; i++) {
        free_string(store, store->strings[i]);
    }
    for (uint32_t i = 0; i < store->found_end; i++) {
        free_string(store, store->found[i]);
    }
    ml_budget_free(
        store->budget, store->unnamed, store->unnamed_capacity * sizeof(*store->unnamed)
    );
    free_names(store, &store->heaps);
    free_names(store, &store->types);
    ml_budget_free(store->budget, store->found, store->found_end * sizeof(*store->found));
    ml_budget_free(store->budget, store->pages, store->pages_count * sizeof(*store->pages));
    ml_budget_free(store->budget, store->modules, store->modules_end * sizeof(*store->modules));
    ml_budget_free(store->budget, store->strings, store->strings_end * sizeof(*store->strings));
    *store = (struct ml_stack_store){.budget = store->budget};
}

/* The node of that id, with room made for it. NULL when refused. */
static struct ml_stored_node *touch(struct ml_stack_store *store, uint32_t id) {
    struct ml_stored_node *page = ml_budget_entry(
        store->budget,
        &store->pages,
        &store->pages_count,
        id / ML_NODE_PAGE_NODES,
        ML_NODES_MAX / ML_NODE_PAGE_NODES,
        ML_NODE_PAGE_NODES * sizeof(*page)
    );
    if (page == NULL) {
        return NULL;
    }
    store->nodes_end = id >= store->nodes_end ? id + 1 : store->nodes_end;
    return &page[id % ML_NODE_PAGE_NODES];
}

/* List a node that needs a name. Without room it goes without one. */
static void list_unnamed(struct ml_stack_store *store, uint32_t id) {
    if (store->unnamed_count == store->unnamed_capacity) {
        const uint32_t capacity =
            store->unnamed_capacity == 0 ? UNNAMED_ROOM_MIN : 2 * store->unnamed_capacity;
        struct ml_stored_unnamed *larger = ml_budget_resize(
            store->budget,
            store->unnamed,
            store->unnamed_capacity * sizeof(*larger),
            capacity * sizeof(*larger)
        );
        if (larger == NULL) {
            return;
        }
        store->unnamed = larger;
        store->unnamed_capacity = capacity;
    }
    store->unnamed[store->unnamed_count++] = (struct ml_stored_unnamed){.node = id};
}

static enum ml_status define_node(struct ml_stack_store *store, const struct ml_event_node *event) {
    struct ml_stored_node *node = touch(store, event->id);
    if (node == NULL) {
        return ML_ENV_MEMORY;
    }
    store->nodes_count += node->defined ? 0 : 1;
    node->address = event->address;
    node->parent = event->parent;
    node->link = event->frame == ML_FRAME_ADDRESS ? event->module : event->string_id;
    node->frame = (uint8_t)event->frame;
    node->is_found = false;
    if (!node->defined && event->frame == ML_FRAME_ADDRESS && event->module == 0) {
        list_unnamed(store, event->id);
    }
    node->defined = true;
    return ML_OK;
}

static enum ml_status
define_module(struct ml_stack_store *store, const struct ml_event_module *event) {
    if (!ml_budget_reach(
            store->budget, &store->modules, &store->modules_end, event->id, ML_MODULES_MAX
        )) {
        return ML_ENV_MEMORY;
    }
    struct ml_stored_module *module =
        ml_budget_new(store->budget, sizeof(*module) + event->build_id_bytes + event->path_bytes);
    if (module == NULL) {
        return ML_ENV_MEMORY;
    }
    module->start = event->start;
    module->end = event->end;
    module->bias = event->bias;
    module->code_address = event->code_address;
    module->code_offset = event->code_offset;
    module->build_id_bytes = event->build_id_bytes;
    module->path_bytes = event->path_bytes;
    if (event->build_id_bytes > 0) {
        memcpy(module->bytes, event->build_id, event->build_id_bytes);
    }
    if (event->path_bytes > 0) {
        memcpy(module->bytes + event->build_id_bytes, event->path, event->path_bytes);
    }
    free_module(store, store->modules[event->id]);
    store->modules[event->id] = module;
    return ML_OK;
}

static struct ml_stored_string *
copy_string(struct ml_stack_store *store, const void *bytes, uint32_t count_bytes) {
    struct ml_stored_string *string = ml_budget_new(store->budget, sizeof(*string) + count_bytes);
    if (string != NULL) {
        string->count_bytes = count_bytes;
        if (count_bytes > 0) {
            memcpy(string->bytes, bytes, count_bytes);
        }
    }
    return string;
}

static enum ml_status
define_string(struct ml_stack_store *store, const struct ml_event_name *event) {
    if (!ml_budget_reach(
            store->budget, &store->strings, &store->strings_end, event->id, ML_STRINGS_MAX
        )) {
        return ML_ENV_MEMORY;
    }
    struct ml_stored_string *string = copy_string(store, event->bytes, event->bytes_count);
    if (string == NULL) {
        return ML_ENV_MEMORY;
    }
    free_string(store, store->strings[event->id]);
    store->strings[event->id] = string;
    return ML_OK;
}

static enum ml_status define_name(
    struct ml_stack_store *store, struct ml_stored_names *names, const struct ml_event_name *event
) {
    if (event->id >= names->end) {
        uint32_t end = names->end != 0 ? names->end * 2 : NAMES_ROOM_MIN;
        end = event->id < end ? end : event->id + 1;
        uint32_t *larger = ml_budget_resize(
            store->budget, names->strings, names->end * sizeof(*larger), end * sizeof(*larger)
        );
        if (larger == NULL) {
            return ML_ENV_MEMORY;
        }
        memset(larger + names->end, 0, (end - names->end) * sizeof(*larger));
        *names = (struct ml_stored_names){.strings = larger, .end = end};
    }
    names->strings[event->id] = event->string_id;
    return ML_OK;
}

enum ml_status ml_stack_store_define(struct ml_stack_store *store, const struct ml_event *event) {
    switch (event->kind) {
    case ML_EVENT_NODE:
        return define_node(store, &event->node);
    case ML_EVENT_MODULE:
        return define_module(store, &event->module);
    case ML_EVENT_STRING:
        return define_string(store, &event->name);
    case ML_EVENT_HEAP:
        return define_name(store, &store->heaps, &event->name);
    case ML_EVENT_TYPE:
        return define_name(store, &store->types, &event->name);
    default:
        return ML_BUG_CONTRACT;
    }
}

enum ml_status ml_stack_store_find_name(
    struct ml_stack_store *store, const void *bytes, uint32_t count_bytes, uint32_t *out_index
) {
    const uint32_t index = store->found_count;
    if (index >= ML_NODES_MAX ||
        !ml_budget_reach(store->budget, &store->found, &store->found_end, index, ML_NODES_MAX)) {
        return ML_ENV_MEMORY;
    }
    store->found[index] = copy_string(store, bytes, count_bytes);
    if (store->found[index] == NULL) {
        return ML_ENV_MEMORY;
    }
    store->found_count++;
    *out_index = index;
    return ML_OK;
}

void ml_stack_store_name_node(struct ml_stack_store *store, uint32_t id, uint32_t index) {
    struct ml_stored_node *node = ml_stack_store_node(store, id);
    if (node != NULL && node->defined && node->frame == ML_FRAME_ADDRESS && node->link == 0) {
        node->frame = ML_FRAME_SCRIPT;
        node->link = index;
        node->is_found = true;
    }
}

const struct ml_stored_string *
ml_stack_store_string_of(const struct ml_stack_store *store, const struct ml_stored_node *node) {
    struct ml_stored_string *const *strings = node->is_found ? store->found : store->strings;
    const uint32_t end = node->is_found ? store->found_count : store->strings_end;
    return node->link < end ? strings[node->link] : NULL;
}

enum ml_status
ml_stack_store_name_module(struct ml_stack_store *store, uint32_t id, const char *path) {
    struct ml_stored_module *const unnamed = store->modules[id];
    store->modules[id] = NULL; /* borrowed by the event until the new one has its copy */
    const struct ml_event_module event = {
        .id = id,
        .start = unnamed->start,
        .end = unnamed->end,
        .bias = unnamed->bias,
        .code_address = unnamed->code_address,
        .code_offset = unnamed->code_offset,
        .build_id = unnamed->bytes,
        .build_id_bytes = unnamed->build_id_bytes,
        .path = (const uint8_t *)path,
        .path_bytes = (uint32_t)strlen(path)};
    const enum ml_status status = define_module(store, &event);
    if (status == ML_OK) {
        free_module(store, unnamed);
    } else {
        store->modules[id] = unnamed;
    }
    return status;
}

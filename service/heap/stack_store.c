#include "service/heap/stack_store.h"

#include <string.h>

void ml_stack_store_init(struct ml_stack_store *store, struct ml_budget *budget) {
    *store = (struct ml_stack_store){.budget = budget};
}

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
    ml_budget_free(store->budget, store->pages, store->pages_count * sizeof(*store->pages));
    ml_budget_free(store->budget, store->modules, store->modules_end * sizeof(*store->modules));
    ml_budget_free(store->budget, store->strings, store->strings_end * sizeof(*store->strings));
    *store = (struct ml_stack_store){.budget = store->budget};
}

/* A table of pointers that reaches `index`, new ones NULL. Doubled, so that ids in rising order
 * cost no copy each. NULL when refused: the old one stays. */
static void *
reach(struct ml_budget *budget, void *table, uint32_t *count, uint32_t index, uint32_t limit) {
    if (index < *count) {
        return table;
    }
    uint32_t wanted = *count < 16 ? 16 : *count * 2;
    wanted = wanted <= index ? index + 1 : wanted;
    wanted = wanted > limit ? limit : wanted;
    void *grown = ml_budget_resize(budget, table, *count * sizeof(void *), wanted * sizeof(void *));
    if (grown == NULL) {
        return NULL;
    }
    memset((char *)grown + *count * sizeof(void *), 0, (wanted - *count) * sizeof(void *));
    *count = wanted;
    return grown;
}

/* The node of that id, with room made for it. */
static enum ml_status
touch(struct ml_stack_store *store, uint32_t id, struct ml_stored_node **out_node) {
    const uint32_t page = id / ML_NODE_PAGE_NODES;
    if (page >= store->pages_count) {
        void *pages = reach(
            store->budget,
            store->pages,
            &store->pages_count,
            page,
            ML_NODES_MAX / ML_NODE_PAGE_NODES
        );
        if (pages == NULL) {
            return ML_ENV_MEMORY;
        }
        store->pages = pages;
    }
    if (store->pages[page] == NULL) {
        store->pages[page] =
            ml_budget_new(store->budget, ML_NODE_PAGE_NODES * sizeof(struct ml_stored_node));
        if (store->pages[page] == NULL) {
            return ML_ENV_MEMORY;
        }
    }
    if (id >= store->nodes_end) {
        store->nodes_end = id + 1;
    }
    *out_node = &store->pages[page][id % ML_NODE_PAGE_NODES];
    return ML_OK;
}

static enum ml_status define_node(struct ml_stack_store *store, const struct ml_event_node *event) {
    struct ml_stored_node *node = NULL;
    const enum ml_status status = touch(store, event->id, &node);
    if (status != ML_OK) {
        return status;
    }
    store->nodes_count += node->defined ? 0 : 1;
    node->address = event->address;
    node->parent = event->parent;
    node->link = event->frame == ML_FRAME_ADDRESS ? event->module : event->string_id;
    node->frame = (uint8_t)event->frame;
    node->defined = true;
    return ML_OK;
}

static enum ml_status
define_module(struct ml_stack_store *store, const struct ml_event_module *event) {
    void *modules =
        reach(store->budget, store->modules, &store->modules_end, event->id, ML_MODULES_MAX);
    if (modules == NULL) {
        return ML_ENV_MEMORY;
    }
    store->modules = modules;
    struct ml_stored_module *module =
        ml_budget_new(store->budget, sizeof(*module) + event->build_id_bytes + event->path_bytes);
    if (module == NULL) {
        return ML_ENV_MEMORY;
    }
    module->start = event->start;
    module->end = event->end;
    module->bias = event->bias;
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

static enum ml_status
define_string(struct ml_stack_store *store, const struct ml_event_name *event) {
    void *strings =
        reach(store->budget, store->strings, &store->strings_end, event->id, ML_STRINGS_MAX);
    if (strings == NULL) {
        return ML_ENV_MEMORY;
    }
    store->strings = strings;
    struct ml_stored_string *string =
        ml_budget_new(store->budget, sizeof(*string) + event->bytes_count);
    if (string == NULL) {
        return ML_ENV_MEMORY;
    }
    string->count_bytes = event->bytes_count;
    if (event->bytes_count > 0) {
        memcpy(string->bytes, event->bytes, event->bytes_count);
    }
    free_string(store, store->strings[event->id]);
    store->strings[event->id] = string;
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
    default:
        return ML_BUG_CONTRACT;
    }
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

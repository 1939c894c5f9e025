#include <malloc.h>

#include "service/session/figures.h"
#include "service/session/internal.h"

/* With fewer a walk through malloc's heap does not pay. */
enum { GIVE_BACK_BYTES = 4 << 20 };

static uint64_t queues_bytes(const struct ml_sequencer *sequencer) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < sequencer->lanes_count; i++) {
        if (sequencer->lanes[i] != NULL) {
            sum += sequencer->lanes[i]->capacity * sizeof(struct ml_timed);
        }
    }
    return sum;
}

static uint64_t nodes_bytes(const struct ml_stack_store *store) {
    uint64_t sum = store->pages_count * sizeof(*store->pages);
    for (uint32_t i = 0; i < store->pages_count; i++) {
        sum += store->pages[i] == NULL ? 0 : ML_NODE_PAGE_NODES * sizeof(struct ml_stored_node);
    }
    return sum;
}

/* Give back to the system what malloc keeps. A sanitizer has its own allocator. */
static void trim(void) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    (void)malloc_trim(0);
#endif
}

void ml_session_give_back(struct ml_session *session, bool finished) {
    const uint64_t used_bytes = session->budget.used_bytes;
    if (used_bytes > session->high_bytes) {
        session->high_bytes = used_bytes;
    } else if (finished && session->high_bytes - used_bytes >= GIVE_BACK_BYTES) {
        session->high_bytes = used_bytes;
        trim();
    }
}

struct ml_session_memory ml_session_memory(const struct ml_session *session) {
    struct ml_session_memory memory = {.used_bytes = session->budget.used_bytes};
    for (const struct ml_client *client = session->first; client != NULL; client = client->next) {
        const struct ml_tracker *tracker = &client->tracker;
        memory.blocks += tracker->live.count;
        memory.blocks_bytes += ml_live_map_bytes(&tracker->live);
        memory.cells += tracker->cells.count;
        memory.cells_bytes += tracker->cells.capacity * sizeof(struct ml_cell) +
                              tracker->cells.index_capacity * sizeof(uint32_t);
        memory.nodes += client->stacks.nodes_count;
        memory.nodes_bytes += nodes_bytes(&client->stacks);
        memory.queues_bytes += queues_bytes(&client->sequencer);
    }
    return memory;
}

#include "tests/service/session/model.h"

#include <stdlib.h>
#include <string.h>

void model_init(struct model *model) {
    memset(model, 0, sizeof(*model));
}

void model_fini(struct model *model) {
    free(model->events);
}

uint32_t model_add_client(struct model *model) {
    if (model->clients_count == MODEL_CLIENTS) {
        abort();
    }
    model->clients[model->clients_count].in_tree = true;
    return model->clients_count++;
}

void model_add(
    struct model *model,
    uint32_t client,
    uint32_t lane,
    uint64_t order,
    const struct ml_event *event
) {
    if (model->events_count == model->events_capacity) {
        model->events_capacity = model->events_capacity * 2 + 64;
        model->events = realloc(model->events, model->events_capacity * sizeof(*model->events));
        if (model->events == NULL) {
            abort();
        }
    }
    model->events[model->events_count++] =
        (struct model_event){.client = client, .lane = lane, .order = order, .event = *event};
}

static int compare(const void *left, const void *right) {
    const struct model_event *a = left;
    const struct model_event *b = right;
    if (a->event.time != b->event.time) {
        return a->event.time < b->event.time ? -1 : 1;
    }
    if (a->client != b->client) {
        return a->client < b->client ? -1 : 1;
    }
    if (a->lane != b->lane) {
        return a->lane < b->lane ? -1 : 1;
    }
    return a->order < b->order ? -1 : 1;
}

static uint32_t
cell_of(struct model_client *client, const struct ml_event_block *block, uint32_t size_class) {
    for (uint32_t i = 0; i < client->cells_count; i++) {
        const struct model_cell *cell = &client->cells[i];
        if (cell->node == block->node && cell->heap == block->heap && cell->type == block->type &&
            cell->size_class == size_class) {
            return i;
        }
    }
    if (client->cells_count == MODEL_CELLS) {
        abort();
    }
    struct model_cell *cell = &client->cells[client->cells_count];
    cell->node = block->node;
    cell->heap = block->heap;
    cell->type = block->type;
    cell->size_class = size_class;
    return client->cells_count++;
}

static struct model_block *find(struct model_client *client, uint64_t address, uint32_t heap) {
    for (uint32_t i = 0; i < MODEL_BLOCKS; i++) {
        struct model_block *block = &client->blocks[i];
        if (block->live && block->address == address && block->heap == heap) {
            return block;
        }
    }
    return NULL;
}

/* A new maximum: its cells hold now what they held at it. */
static void keep_peak(struct model_client *client, struct ml_totals *totals, uint32_t heap) {
    totals->peak_bytes = totals->live_bytes;
    totals->peak_blocks = totals->live_blocks;
    for (uint32_t i = 0; i < client->cells_count; i++) {
        struct model_cell *cell = &client->cells[i];
        if (cell->heap == heap) {
            cell->own.peak_bytes = cell->own.live_bytes;
            cell->own.peak_blocks = cell->own.live_blocks;
            cell->variances.own.peak_bytes = cell->variances.own.live_bytes;
            cell->variances.own.peak_blocks = cell->variances.own.live_blocks;
        }
    }
}

static struct ml_totals *totals_of(struct model_client *client, uint32_t heap) {
    return heap == 0 ? &client->totals : &client->heaps[heap];
}

static void note(struct model *model, struct model_client *client, uint64_t ticks) {
    if (client->totals.live_bytes > client->totals.peak_bytes) {
        client->peak_ticks = ticks;
        keep_peak(client, &client->totals, 0);
    }
    for (uint32_t heap = 1; heap < ML_HEAPS_MAX; heap++) {
        if (client->heaps[heap].live_bytes > client->heaps[heap].peak_bytes) {
            keep_peak(client, &client->heaps[heap], heap);
        }
    }
    uint64_t bytes = 0;
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < model->clients_count; i++) {
        bytes += model->clients[i].in_tree ? model->clients[i].totals.live_bytes : 0;
        blocks += model->clients[i].in_tree ? model->clients[i].totals.live_blocks : 0;
    }
    model->tree.live_bytes = bytes;
    model->tree.live_blocks = blocks;
    if (bytes <= model->tree.peak_bytes) {
        return;
    }
    model->tree.peak_bytes = bytes;
    model->tree.peak_blocks = blocks;
    model->tree_peak_ticks = ticks;
    for (uint32_t i = 0; i < model->clients_count; i++) {
        struct model_client *each = &model->clients[i];
        for (uint32_t c = 0; c < each->cells_count; c++) {
            each->cells[c].tree_bytes = each->in_tree ? each->cells[c].own.live_bytes : 0;
            each->cells[c].tree_blocks = each->in_tree ? each->cells[c].own.live_blocks : 0;
            const struct ml_totals *variances = &each->cells[c].variances.own;
            each->cells[c].variances.tree_bytes = each->in_tree ? variances->live_bytes : 0;
            each->cells[c].variances.tree_blocks = each->in_tree ? variances->live_blocks : 0;
        }
    }
}

static void take_out(struct model_client *client, struct model_block *block) {
    struct ml_totals *own = &client->cells[block->cell].own;
    own->live_bytes -= block->bytes;
    own->live_blocks -= block->blocks;
    client->cells[block->cell].variances.own.live_bytes -= block->bytes_variance;
    client->cells[block->cell].variances.own.live_blocks -= block->blocks_variance;
    totals_of(client, block->heap)->live_bytes -= block->bytes;
    totals_of(client, block->heap)->live_blocks -= block->blocks;
    block->live = false;
}

static void put_in(struct model_client *client, const struct model_block *block) {
    struct model_block *old = find(client, block->address, block->heap);
    if (old != NULL) {
        client->missed_frees++;
        take_out(client, old);
    }
    uint32_t place = 0;
    while (client->blocks[place].live) {
        place++;
        if (place == MODEL_BLOCKS) {
            abort();
        }
    }
    client->blocks[place] = *block;
    client->blocks[place].live = true;
    struct ml_totals *own = &client->cells[block->cell].own;
    own->live_bytes += block->bytes;
    own->live_blocks += block->blocks;
    client->cells[block->cell].variances.own.live_bytes += block->bytes_variance;
    client->cells[block->cell].variances.own.live_blocks += block->blocks_variance;
    totals_of(client, block->heap)->live_bytes += block->bytes;
    totals_of(client, block->heap)->live_blocks += block->blocks;
}

static void
alloc(struct model_client *client, struct model_lane *lane, const struct ml_event_block *event) {
    uint32_t size_class = 0;
    while (event->size_bytes >> size_class != 0) {
        size_class++;
    }
    const struct model_block block = {
        .address = event->address,
        .heap = event->heap,
        .bytes = event->weight_bytes,
        .blocks = event->weight_blocks,
        .bytes_variance = event->weight_bytes * (event->weight_bytes - event->size_bytes),
        .blocks_variance = event->weight_blocks * (event->weight_blocks - 1),
        .cell = cell_of(client, event, size_class),
    };
    put_in(client, &block);
    struct ml_totals *own = &client->cells[block.cell].own;
    own->total_bytes += block.bytes;
    own->total_blocks += block.blocks;
    client->cells[block.cell].variances.own.total_bytes += block.bytes_variance;
    client->cells[block.cell].variances.own.total_blocks += block.blocks_variance;
    totals_of(client, block.heap)->total_bytes += block.bytes;
    totals_of(client, block.heap)->total_blocks += block.blocks;
    lane->resizing = false;
    lane->last_address = event->address;
    lane->last_heap = event->heap;
}

static void release(
    struct model_client *client,
    struct model_lane *lane,
    const struct ml_event_block *event,
    bool resize
) {
    struct model_block *block = find(client, event->address, event->heap);
    if (resize) {
        lane->resizing = block != NULL;
    }
    if (block == NULL) {
        *(event->heap == 0 ? &client->unknown_frees : &client->heaps_unknown_frees[event->heap]) +=
            (event->marks & ML_BLOCK_UNSURE) == 0;
    } else {
        const bool next = (event->marks & ML_BLOCK_SKIPPED) == 0 &&
                          lane->last_address == event->address && lane->last_heap == event->heap;
        if (!resize && next) {
            client->cells[block->cell].temporary_blocks += block->blocks;
        }
        if (resize) {
            lane->resized = *block;
        }
        take_out(client, block);
    }
    lane->last_address = 0;
}

static void apply_block(
    struct model *model,
    struct model_client *client,
    struct model_lane *lane,
    const struct ml_event *event
) {
    if (!client->in_tree) {
        client->in_tree = true;
        client->left = client->left == 2 ? 0 : client->left;
        note(model, client, event->time);
    }
    client->events++;
    switch (event->kind) {
    case ML_EVENT_ALLOC:
        alloc(client, lane, &event->block);
        break;
    case ML_EVENT_FREE:
        release(client, lane, &event->block, false);
        break;
    case ML_EVENT_RESIZE:
        release(client, lane, &event->block, true);
        break;
    default:
        if (lane->resizing) {
            put_in(client, &lane->resized);
        }
        lane->resizing = false;
        lane->last_address = 0;
        break;
    }
    note(model, client, event->time);
    if (client->left == 1) {
        client->in_tree = false;
        note(model, client, event->time);
    }
}

static void leave_for_good(struct model *model, struct model_client *client, uint64_t ticks) {
    client->in_tree = false;
    client->left = 1;
    note(model, client, ticks);
}

static void apply(struct model *model, const struct model_event *at) {
    struct model_client *client = &model->clients[at->client];
    switch (at->event.kind) {
    case ML_EVENT_NONE:
        client->lanes[at->lane].resizing = false;
        client->lanes[at->lane].last_address = 0;
        break;
    case ML_EVENT_REAPED:
        leave_for_good(
            model, &model->clients[at->event.reaped_pid - MODEL_FIRST_PID], at->event.time
        );
        break;
    case ML_EVENT_END:
        client->in_tree = false;
        if (at->lane == MODEL_HOST_LANE || client->left != 1) {
            client->left = at->lane != MODEL_HOST_LANE && at->event.end_kind == ML_END_EXEC ? 2 : 1;
        }
        note(model, client, at->event.time);
        break;
    case ML_EVENT_FORK:
        if (client->forks_count < MODEL_FORKS) {
            client->forks[client->forks_count].serial = at->event.fork_serial;
            client->forks[client->forks_count].bytes = client->totals.live_bytes;
            client->forks[client->forks_count++].blocks = client->totals.live_blocks;
        }
        break;
    default:
        apply_block(model, client, &client->lanes[at->lane], &at->event);
        break;
    }
}

void model_apply(struct model *model, uint64_t ticks) {
    qsort(model->events, model->events_count, sizeof(*model->events), compare);
    uint32_t done = 0;
    while (done < model->events_count && model->events[done].event.time <= ticks) {
        apply(model, &model->events[done++]);
    }
    memmove(
        model->events, model->events + done, (model->events_count - done) * sizeof(*model->events)
    );
    model->events_count -= done;
}

/* A simple model of what the events of a process mean. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>

#include "tests/client/capture.h"

struct block {
    uint64_t address, size_bytes;
};

struct model {
    struct block *table;
    size_t mask;
};

static struct block *slot_of(struct model *model, uint64_t address) {
    size_t slot = (address * 0x9e3779b97f4a7c15u >> 20) & model->mask;
    while (model->table[slot].address != 0 && model->table[slot].address != address) {
        slot = (slot + 1) & model->mask;
    }
    return &model->table[slot];
}

/* A dead block keeps its slot, marked by a size that no block has. */
static const uint64_t DEAD = UINT64_MAX;

struct captured_sums capture_sums(const struct captured_process *process) {
    struct captured_sums sums = {0};
    struct model model = {.mask = 1};
    struct block resized[256] = {0};
    while (model.mask < process->events_count * 2 + 16) {
        model.mask = model.mask * 2 + 1;
    }
    model.table = calloc(model.mask + 1, sizeof(struct block));
    ck_assert_ptr_nonnull(model.table);
    for (size_t i = 0; i < process->events_count; i++) {
        const struct ml_event *event = &process->events[i].event;
        struct block *block = slot_of(&model, event->block.address);
        struct block *pending = &resized[process->events[i].lane % 256];
        switch (event->kind) {
        case ML_EVENT_ALLOC:
            if (block->address != 0 && block->size_bytes != DEAD) {
                sums.double_allocs++;
                sums.live_bytes -= block->size_bytes;
                sums.live_blocks--;
            }
            *block = (struct block){event->block.address, event->block.size_bytes};
            sums.live_bytes += block->size_bytes;
            sums.total_bytes += block->size_bytes;
            sums.live_blocks++;
            sums.total_blocks++;
            break;
        case ML_EVENT_FREE:
        case ML_EVENT_RESIZE:
            if (block->address == 0 || block->size_bytes == DEAD) {
                sums.unknown_frees++;
                *pending = (struct block){0};
                break;
            }
            *pending = *block;
            sums.live_bytes -= block->size_bytes;
            sums.live_blocks--;
            block->size_bytes = DEAD;
            break;
        case ML_EVENT_CANCEL:
            if (pending->address != 0) {
                *slot_of(&model, pending->address) = *pending;
                sums.live_bytes += pending->size_bytes;
                sums.live_blocks++;
            }
            break;
        default:
            break;
        }
    }
    free(model.table);
    return sums;
}

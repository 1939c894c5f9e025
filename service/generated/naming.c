#include "service/generated/naming.h"

/* A run-time tells of code before the code runs. The clocks are read one after the other, and one
 * is made of the other: they may differ by so much. */
static const uint64_t slack_ns = 1000000;

/* By the two moments: the clocks do not run evenly for ever. */
static uint64_t ns_of(const struct ml_naming_clock *clock, uint64_t ticks) {
    if (clock->ticks_are_ns) {
        return ticks;
    }
    if (clock->now_ticks <= clock->start_ticks || clock->now_ns <= clock->start_ns ||
        ticks <= clock->start_ticks) {
        return clock->start_ns;
    }
    const double rate =
        (double)(clock->now_ns - clock->start_ns) / (double)(clock->now_ticks - clock->start_ticks);
    return clock->start_ns + (uint64_t)((double)(ticks - clock->start_ticks) * rate);
}

/* The moment of a node's first event by the file's clock. Without one the last name counts. */
static uint64_t time_of(
    const struct ml_stored_unnamed *unnamed,
    const struct ml_naming_clock *clock,
    bool has_times,
    enum ml_jit_clock jit_clock
) {
    if (!has_times || unnamed->ticks == 0 || (jit_clock == ML_JIT_TICKS && clock->ticks_are_ns)) {
        return UINT64_MAX;
    }
    return jit_clock == ML_JIT_TICKS ? unnamed->ticks : ns_of(clock, unnamed->ticks) + slack_ns;
}

/* The name of a line, read when the first node needs it. */
static enum ml_status
name_of(struct ml_stack_store *store, int fd, struct ml_code_line *line, uint32_t *out_found) {
    char name[ML_CODE_NAME_MAX_BYTES];
    uint32_t index = 0;
    *out_found = line->found;
    if (line->found != 0 || line->name_bytes == 0) {
        return ML_OK;
    }
    line->name_bytes = ml_code_name_read(fd, line, name);
    if (line->name_bytes == 0) {
        return ML_OK;
    }
    const enum ml_status status = ml_stack_store_find_name(store, name, line->name_bytes, &index);
    if (status == ML_OK) {
        line->found = index + 1;
        *out_found = line->found;
    }
    return status;
}

static enum ml_status
name_nodes(struct ml_stack_store *store, int fd, const struct ml_code_index *index) {
    enum ml_status status = ML_OK;
    for (uint32_t i = 0; i < index->targets_count && status == ML_OK; i++) {
        const struct ml_code_target *target = &index->targets[i];
        uint32_t found = 0;
        if (target->line != 0) {
            status = name_of(store, fd, &index->lines[target->line - 1], &found);
        }
        if (status == ML_OK && found != 0) {
            ml_stack_store_name_node(store, target->node, found - 1);
        }
    }
    return status;
}

/* Those that still have no name stay, with the moments that were learnt. */
static void keep_unnamed(struct ml_stack_store *store) {
    uint32_t kept = 0;
    uint32_t timed = 0;
    for (uint32_t i = 0; i < store->unnamed_count; i++) {
        const struct ml_stored_node *node = ml_stack_store_node(store, store->unnamed[i].node);
        if (node != NULL && node->frame == ML_FRAME_ADDRESS) {
            store->unnamed[kept++] = store->unnamed[i];
            timed += i < store->untimed_first;
        }
    }
    store->unnamed_count = kept;
    store->untimed_first = timed;
}

enum ml_status ml_naming_read(
    struct ml_stack_store *store,
    int fd,
    enum ml_code_kind kind,
    const struct ml_naming_clock *clock,
    const struct ml_code_pause *pause
) {
    const bool has_times = kind == ML_CODE_JIT_DUMP;
    enum ml_jit_clock jit_clock = ML_JIT_MONOTONIC;
    struct ml_code_index index = {.budget = NULL};
    enum ml_status status = has_times ? ml_jit_dump_clock(fd, &jit_clock) : ML_OK;
    if (status == ML_OK) {
        status = ml_code_index_init(&index, store->budget, store->unnamed_count);
    }
    if (status == ML_OK) {
        for (uint32_t i = 0; i < index.targets_count; i++) {
            const struct ml_stored_unnamed *unnamed = &store->unnamed[i];
            index.targets[i] = (struct ml_code_target
            ){.address = ml_stack_store_node(store, unnamed->node)->address,
              .time = time_of(unnamed, clock, has_times, jit_clock),
              .node = unnamed->node};
        }
        ml_code_index_sort(&index);
        status =
            has_times ? ml_jit_dump_read(fd, &index, pause) : ml_perf_map_read(fd, &index, pause);
        const enum ml_status named = name_nodes(store, fd, &index);
        status = status == ML_OK ? named : status;
        keep_unnamed(store);
    }
    ml_code_index_fini(&index);
    return status;
}

#include "host/engine/list/dump.h"

#include <stdlib.h>
#include <string.h>

#include "host/engine/list/judge.h"
#include "host/engine/list/known.h"
#include "host/engine/members/watch.h"

/* The list that is being made. */
struct order {
    struct memlog_service_unrecorded *items;
    uint32_t count, room;
};

/* The arguments lie behind one another, each with its NUL. */
static struct ml_bytes line_of(const struct ml_command_line *line) {
    struct ml_bytes bytes = {.data = NULL, .count_bytes = 0};
    if (line->count > 0) {
        const char *const first = line->arguments[0];
        const char *const last = line->arguments[line->count - 1];
        const size_t count = (size_t)(last - first) + strlen(last) + 1;
        bytes.data = (const uint8_t *)first;
        bytes.count_bytes = count < MEMLOG_SERVICE_UNRECORDED_COMMAND_LINE_LIMIT
                                ? (uint32_t)count
                                : MEMLOG_SERVICE_UNRECORDED_COMMAND_LINE_LIMIT;
    }
    return bytes;
}

static void put_one(struct order *order, const struct ml_unrecorded *one) {
    if (order->count == order->room) {
        return;
    }
    struct memlog_service_unrecorded *item = &order->items[order->count++];
    *item = (struct memlog_service_unrecorded){
        .id = one->id,
        .parent_id = one->parent_id,
        .pid = (uint32_t)one->pid,
        .parent_pid = (uint32_t)one->parent_pid,
        .role = (enum memlog_service_role)one->role,
        .state = ml_member_state_told(one->state),
        .exit_code = one->ending.exit_code,
        .signal = (uint32_t)one->ending.signal,
        .forked = ml_unrecorded_is_fork(one),
        .idle = one->kind == ML_UNRECORDED_IDLE_FORK,
        .start = one->start,
        .end = one->end,
        .footprint_bytes = one->footprint_bytes,
        .resident_bytes = one->resident_bytes,
        .folded_processes = one->folded_processes,
        .folded_failed = one->folded_failed,
        .name = ml_string_of(one->name),
        .command_line = line_of(&one->line),
        .executable = ml_string_of(one->executable != NULL ? one->executable : ""),
        .reason = ml_string_of(one->reason),
        .status = ml_service_link_status(&one->status),
        .unreadable = one->is_unreadable,
    };
}

/* A member without a profile. */
static void put_member(struct order *order, const struct ml_member *member) {
    if (order->count == order->room) {
        return;
    }
    const char *reason = member->note[0] != '\0' ? member->note : "it was never recorded";
    struct memlog_service_unrecorded *item = &order->items[order->count++];
    *item = (struct memlog_service_unrecorded){
        .id = member->id,
        .parent_id = member->parent_id,
        .pid = (uint32_t)member->pid,
        .parent_pid = (uint32_t)member->parent_pid,
        .role = (enum memlog_service_role)member->role,
        .state = ml_member_state_told(member->state),
        .exit_code = member->ending.exit_code,
        .signal = (uint32_t)member->ending.signal,
        .forked = member->birth == ML_BIRTH_FORK,
        .start = member->start,
        .end = member->end,
        .footprint_bytes = member->footprint_bytes,
        .resident_bytes = member->resident_bytes,
        .name = ml_string_of(member->name),
        .command_line = line_of(&member->line),
        .executable = ml_string_of(member->executable),
        .reason = ml_string_of(reason),
        .status = ml_service_link_status(&member->status),
        .unreadable = member->is_unreadable,
    };
}

uint64_t ml_engine_list_missed(const struct ml_engine *engine) {
    return ml_engine_unknown_endings(engine) + engine->unrecorded.left_out;
}

const char *ml_list_source(const struct ml_engine *engine) {
    return engine->list->events_fd >= 0 ? "kernel events" : "walks";
}

void ml_list_order(struct ml_engine *engine, struct memlog_service_dump_order *out_order) {
    const struct ml_unrecorded_table *table = &engine->unrecorded;
    const uint32_t most = engine->members.count + table->count;
    struct order order = {
        .room = most < MEMLOG_SERVICE_DUMP_ORDER_UNRECORDED_LIMIT
                    ? most
                    : MEMLOG_SERVICE_DUMP_ORDER_UNRECORDED_LIMIT};
    order.items = calloc((size_t)order.room + 1, sizeof(*order.items));
    order.room = order.items != NULL ? order.room : 0;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        if (!ml_recording_in_service(engine->members.items[i]->recording)) {
            put_member(&order, engine->members.items[i]);
        }
    }
    for (uint32_t i = 0; i < table->count; i++) {
        ml_list_judge(engine, table->items[i]); /* a report may have come late */
        put_one(&order, table->items[i]);
    }
    out_order->unrecorded.items = order.items;
    out_order->unrecorded.count = order.count;
    out_order->list_source = ml_string_of(ml_list_source(engine));
    /* Where the kernel dropped events, only walks tell. */
    out_order->list_blind_ns =
        engine->list->events_fd < 0 || engine->list->has_lost_events ? engine->list->blind_ns : 0;
    out_order->list_missed = ml_engine_list_missed(engine);
}

void ml_list_order_fini(struct memlog_service_dump_order *order) {
    free((void *)(uintptr_t)order->unrecorded.items);
    order->unrecorded.items = NULL;
    order->unrecorded.count = 0;
}

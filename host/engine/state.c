#include "host/engine/state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/process/clock.h"

enum { NS_PER_MS = 1000000, TREE_EVERY_MS = 250 };

void ml_engine_notice(struct ml_engine *engine, const char *format, ...) {
    if (engine->phase == ML_PHASE_CLOSED) {
        return;
    }
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    engine->on_notice(engine->context, text);
}

void ml_engine_figures(struct ml_engine *engine, ml_engine_on_figures *on_reply, void *context) {
    const struct memlog_service_figures_request request = {.nothing = 0};
    ML_SERVICE_ASK(&engine->link, memlog_service_figures, &request, on_reply, context);
}

void ml_engine_set_phase(struct ml_engine *engine, enum ml_engine_phase_event event) {
    const enum ml_engine_phase next = ml_engine_phase_next(engine->phase, event);
    engine->members.forbidden_count += next == ML_PHASE_FORBIDDEN;
    engine->phase = next != ML_PHASE_FORBIDDEN ? next : engine->phase;
}

void ml_engine_add_not_profiled(
    struct ml_engine *engine, pid_t pid, pid_t parent_pid, const char *reason, const char *path
) {
    if (engine->not_profiled_count >= ML_NOT_PROFILED_MAX) {
        return;
    }
    struct ml_not_profiled *items =
        reallocarray(engine->not_profiled, engine->not_profiled_count + 1, sizeof(*items));
    if (items == NULL) {
        return;
    }
    engine->not_profiled = items;
    struct ml_not_profiled *item = &items[engine->not_profiled_count++];
    *item = (struct ml_not_profiled
    ){.pid = pid,
      .parent_pid = parent_pid,
      .path = strdup(path != NULL ? path : ""),
      .heard_ns = ml_clock_timestamp(engine->clock).monotonic_ns};
    (void)snprintf(item->reason, sizeof(item->reason), "%s", reason);
}

/* The earliest member that has ended and has a history loses it. */
static void drop_ended_memory(struct ml_engine *engine) {
    uint32_t at = engine->memory_dropped;
    while (at < engine->members.count && engine->members.items[at]->state != ML_MEMBER_RUNNING &&
           engine->members.items[at]->memory.count == 0) {
        at++;
    }
    engine->memory_dropped = at;
    for (; at < engine->members.count; at++) {
        struct ml_member *member = engine->members.items[at];
        if (member->state != ML_MEMBER_RUNNING && member->memory.count > 0) {
            ml_memory_history_fini(&member->memory);
            return;
        }
    }
}

static void note_memory(
    struct ml_engine *engine,
    struct ml_memory_history *history,
    uint64_t ms,
    const struct ml_memory_figures *figures
) {
    if (!ml_memory_history_note(history, &engine->memory_room, ms, figures)) {
        drop_ended_memory(engine);
        (void)ml_memory_history_note(history, &engine->memory_room, ms, figures);
    }
}

/* What all that run held when each was last read. */
static struct ml_memory_figures tree_figures(const struct ml_engine *engine) {
    struct ml_memory_figures sum = {.resident_bytes = 0};
    for (uint32_t i = 0; i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING) {
            sum.resident_bytes += member->resident_bytes;
            sum.private_bytes += member->footprint_bytes;
        }
    }
    for (uint32_t i = 0; i < engine->unrecorded.count; i++) {
        const struct ml_unrecorded *one = engine->unrecorded.items[i];
        if (one->state == ML_MEMBER_RUNNING) {
            sum.resident_bytes += one->resident_bytes;
            sum.private_bytes += one->footprint_bytes;
        }
    }
    return sum;
}

void ml_engine_note_memory(
    struct ml_engine *engine,
    struct ml_memory_history *history,
    uint64_t resident_bytes,
    uint64_t private_bytes
) {
    const struct ml_memory_figures own = {
        .resident_bytes = resident_bytes, .private_bytes = private_bytes};
    const uint64_t ms = ml_clock_timestamp(engine->clock).monotonic_ns / NS_PER_MS;
    const uint64_t noted_ms = engine->memory_noted_ms;
    note_memory(engine, history, ms, &own);
    /* Adding up takes a look at each process: once a while. */
    if (noted_ms == 0 || ms - noted_ms >= TREE_EVERY_MS) {
        const struct ml_memory_figures tree = tree_figures(engine);
        engine->memory_noted_ms = ms;
        note_memory(engine, &engine->tree_memory, ms, &tree);
    }
}

/* If a process holds the lease at each try, the host reads the clock anyway. */
enum { LEASE_ENDS_MAX = 4 };

struct memlog_service_moment ml_engine_timestamp(struct ml_engine *engine) {
    struct memlog_service_moment timestamp;
    int ends = 0;
    do {
        ml_endpoint_lease_end(engine->lease_fd);
        timestamp = ml_clock_timestamp(engine->clock);
    } while (ml_endpoint_lease_held(engine->lease_fd) && ++ends < LEASE_ENDS_MAX);
    return timestamp;
}

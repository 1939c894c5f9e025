#include <stdlib.h>
#include <string.h>

#include "service/control/answer.h"

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"

static uint64_t *live_by_node(void *context, uint32_t id, uint32_t *out_count) {
    struct ml_client *client = ml_session_find(context, id);
    *out_count = 0;
    return client == NULL ? NULL : ml_client_live_by_node(client, out_count);
}

/* The process that holds most. */
struct largest {
    uint32_t id; /* 0: nobody */
    uint64_t live_bytes;
};

static void consider(struct largest *largest, const struct ml_client *client) {
    const struct ml_client_face face = ml_client_face(client);
    const uint64_t live_bytes = ml_client_figures(client).totals.live_bytes;
    if (face.running && live_bytes > largest->live_bytes) {
        *largest = (struct largest){.id = face.id, .live_bytes = live_bytes};
    }
}

/* Of all running processes. */
static uint32_t largest_of_all(struct ml_session *session) {
    struct largest largest = {.id = 0};
    for (struct ml_client *client = ml_session_next(session, NULL); client != NULL;
         client = ml_session_next(session, client)) {
        consider(&largest, client);
    }
    return largest.id;
}

/* Of the processes in a memory. */
static uint32_t
largest_in(struct ml_session *session, const struct memlog_service_uint32_array *ids) {
    struct largest largest = {.id = 0};
    for (uint32_t i = 0; i < ids->count; i++) {
        const struct ml_client *client = ml_session_find(session, ids->items[i]);
        if (client != NULL) {
            consider(&largest, client);
        }
    }
    return largest.id;
}

static void collect_memories(
    struct ml_session *session,
    const struct memlog_service_observation *observation,
    uint32_t largest_id,
    struct ml_trigger_memory *out_memories
) {
    for (uint32_t i = 0; i < observation->memories.count; i++) {
        const struct memlog_service_observed_memory *observed = &observation->memories.items[i];
        out_memories[i] = (struct ml_trigger_memory
        ){.used_bytes = observed->used_bytes,
          .limit_bytes = observed->limit_bytes,
          .high_events = observed->high_events,
          .max_events = observed->max_events,
          .some_percent_100 = observed->some_percent_100,
          .full_percent_100 = observed->full_percent_100,
          .dumped_kinds = observed->dumped_kinds,
          .largest_id = observed->has_all ? largest_id : largest_in(session, &observed->ids)};
        ml_string_copy(out_memories[i].name, sizeof(out_memories[i].name), observed->name);
    }
}

/* The observed processes that the session knows. */
static size_t collect_processes(
    struct ml_session *session,
    const struct memlog_service_observation *observation,
    struct ml_trigger_process *out_processes
) {
    size_t count = 0;
    for (uint32_t i = 0; i < observation->processes.count; i++) {
        const struct memlog_service_observed_process *observed = &observation->processes.items[i];
        const struct ml_client *client = ml_session_find(session, observed->id);
        if (client == NULL) {
            continue; /* refused or unknown: see on_update_process */
        }
        const struct ml_client_face face = ml_client_face(client);
        const struct ml_totals totals = ml_client_figures(client).totals;
        out_processes[count++] = (struct ml_trigger_process
        ){.id = face.id,
          .pid = face.pid,
          .role = face.role,
          .name = face.name,
          .running = face.running,
          .footprint_bytes = observed->footprint_bytes,
          .live_bytes = totals.live_bytes,
          .peak_bytes = totals.peak_bytes,
          .heap_bytes = ml_coverage_heap(totals.live_bytes, totals.live_blocks),
          .heap_most_bytes = ml_coverage_heap(totals.peak_bytes, totals.peak_blocks),
          .killed_by = observed->killed_by,
          .by_oom = observed->by_oom,
          .footprint_high_bytes = observed->footprint_high_bytes,
          .is_first = observed->is_first};
    }
    return count;
}

static enum ml_status answer(
    const struct ml_call *call,
    const struct ml_trigger_decision *decisions,
    size_t decisions_count,
    uint64_t checked_ns
) {
    struct memlog_service_decision *items = calloc(decisions_count + 1, sizeof(*items));
    if (items == NULL) {
        return ML_ENV_MEMORY;
    }
    for (size_t i = 0; i < decisions_count; i++) {
        items[i] = (struct memlog_service_decision
        ){.kind = (enum memlog_service_trigger_kind)decisions[i].kind,
          .dump = decisions[i].dump,
          .id = decisions[i].id,
          .node = decisions[i].node,
          .node_bytes = decisions[i].node_bytes,
          .memory = decisions[i].memory,
          .checked_ns = checked_ns,
          .reason = ml_string_cut(decisions[i].reason, MEMLOG_SERVICE_DECISION_REASON_LIMIT)};
    }
    const struct memlog_service_observe_reply reply = {
        .decisions = {.items = items, .count = (uint32_t)decisions_count}};
    const enum ml_status status = memlog_service_observe_answer(call, &reply);
    free(items);
    return status;
}

enum ml_status ml_answer_observe(
    const struct ml_answer_scene *scene,
    const struct ml_call *call,
    const struct memlog_service_observation *observation
) {
    struct ml_session *session = scene->session;
    struct ml_trigger_process *processes =
        calloc((size_t)observation->processes.count + 1, sizeof(*processes));
    struct ml_trigger_memory *memories =
        calloc((size_t)observation->memories.count + 1, sizeof(*memories));
    struct ml_trigger_decision *decisions = calloc(ML_TRIGGER_DECISIONS_MAX, sizeof(*decisions));
    enum ml_status status = ML_ENV_MEMORY;
    if (processes != NULL && memories != NULL && decisions != NULL) {
        const uint32_t largest_id = largest_of_all(session);
        collect_memories(session, observation, largest_id, memories);
        const struct ml_trigger_look look = {
            .now_ns = observation->now.monotonic_ns,
            .whole = observation->whole,
            .random = observation->random,
            .tree_peak_bytes = ml_session_totals(session).peak_bytes,
            .processes = processes,
            .processes_count = collect_processes(session, observation, processes),
            .memories = memories,
            .memories_count = observation->memories.count,
            .largest_id = largest_id,
            .dumped_ns = observation->dumped_ns.items,
            .dumped_count = observation->dumped_ns.count,
            .live_by_node = live_by_node,
            .context = session};
        const size_t count = ml_triggers_look(scene->triggers, &look, decisions);
        status = answer(call, decisions, count, look.now_ns);
    }
    free(processes);
    free(memories);
    free(decisions);
    return status;
}

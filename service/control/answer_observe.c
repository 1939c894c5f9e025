#include <stdlib.h>
#include <string.h>

#include "service/control/answer.h"

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"

struct memory_text {
    char bytes[MEMLOG_SERVICE_OBSERVED_MEMORY_NAME_LIMIT + 1];
};

/* Who is in a memory. */
struct memory_members {
    bool has_all;
    uint32_t *ids;
    uint32_t count;
};

struct ml_observation {
    struct memlog_service_moment now;
    bool whole;
    uint64_t random;
    struct memlog_service_observed_process *processes;
    uint32_t processes_count;
    struct ml_trigger_memory *memories;
    struct memory_text *names;
    struct memory_members *members; /* of each memory */
    uint32_t memories_count;
    uint64_t *dumped_ns;
    uint32_t dumped_count;
};

/* One more memory. False: no memory for it. */
static bool
copy_memory(struct ml_observation *copy, const struct memlog_service_observed_memory *memory) {
    const uint32_t place = copy->memories_count++;
    struct memory_members *members = &copy->members[place];
    members->has_all = memory->has_all;
    members->ids = calloc((size_t)memory->ids.count + 1, sizeof(*members->ids));
    if (members->ids == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < memory->ids.count; i++) {
        members->ids[members->count++] = memory->ids.items[i];
    }
    if (memory->name.count_bytes > 0) {
        memcpy(copy->names[place].bytes, memory->name.data, memory->name.count_bytes);
    }
    copy->memories[place] = (struct ml_trigger_memory
    ){.name = copy->names[place].bytes,
      .used_bytes = memory->used_bytes,
      .limit_bytes = memory->limit_bytes,
      .high_events = memory->high_events,
      .max_events = memory->max_events,
      .some_percent_100 = memory->some_percent_100,
      .full_percent_100 = memory->full_percent_100,
      .dumped_kinds = memory->dumped_kinds};
    return true;
}

struct ml_observation *ml_observation_new(const struct memlog_service_observation *observation) {
    struct ml_observation *copy = calloc(1, sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }
    copy->now = observation->now;
    copy->whole = observation->whole;
    copy->random = observation->random;
    copy->processes = calloc((size_t)observation->processes.count + 1, sizeof(*copy->processes));
    copy->memories = calloc((size_t)observation->memories.count + 1, sizeof(*copy->memories));
    copy->names = calloc((size_t)observation->memories.count + 1, sizeof(*copy->names));
    copy->members = calloc((size_t)observation->memories.count + 1, sizeof(*copy->members));
    copy->dumped_ns = calloc((size_t)observation->dumped_ns.count + 1, sizeof(*copy->dumped_ns));
    bool done = copy->processes != NULL && copy->memories != NULL && copy->names != NULL &&
                copy->members != NULL && copy->dumped_ns != NULL;
    for (uint32_t i = 0; done && i < observation->memories.count; i++) {
        done = copy_memory(copy, &observation->memories.items[i]);
    }
    if (!done) {
        ml_observation_free(copy);
        return NULL;
    }
    for (uint32_t i = 0; i < observation->processes.count; i++) {
        copy->processes[i] = observation->processes.items[i];
    }
    copy->processes_count = observation->processes.count;
    for (uint32_t i = 0; i < observation->dumped_ns.count; i++) {
        copy->dumped_ns[i] = observation->dumped_ns.items[i];
    }
    copy->dumped_count = observation->dumped_ns.count;
    return copy;
}

void ml_observation_free(struct ml_observation *take_observation) {
    if (take_observation != NULL) {
        for (uint32_t i = 0;
             take_observation->members != NULL && i < take_observation->memories_count;
             i++) {
            free(take_observation->members[i].ids);
        }
        free(take_observation->members);
        free(take_observation->processes);
        free(take_observation->memories);
        free(take_observation->names);
        free(take_observation->dumped_ns);
        free(take_observation);
    }
}

static uint64_t *live_by_node(void *context, uint32_t id, uint32_t *out_count) {
    struct ml_client *client = ml_session_find(context, id);
    *out_count = 0;
    return client == NULL ? NULL : ml_client_live_by_node(client, out_count);
}

/* Who of several holds most. */
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

/* Of all that run. */
static uint32_t largest_of_all(struct ml_session *session) {
    struct largest largest = {.id = 0};
    for (struct ml_client *client = ml_session_next(session, NULL); client != NULL;
         client = ml_session_next(session, client)) {
        consider(&largest, client);
    }
    return largest.id;
}

/* Of those that count into a memory. */
static uint32_t
largest_in(struct ml_session *session, const struct memory_members *members, uint32_t of_all) {
    struct largest largest = {.id = 0};
    for (uint32_t i = 0; i < members->count; i++) {
        const struct ml_client *client = ml_session_find(session, members->ids[i]);
        if (client != NULL) {
            consider(&largest, client);
        }
    }
    return members->has_all ? of_all : largest.id;
}

/* Who is in the observation and known here. */
static size_t collect(
    const struct ml_answer_scene *scene,
    const struct ml_observation *observation,
    struct ml_trigger_process *out_processes
) {
    size_t count = 0;
    for (uint32_t i = 0; i < observation->processes_count; i++) {
        const struct memlog_service_observed_process *observed = &observation->processes[i];
        const struct ml_client *client = ml_session_find(scene->session, observed->id);
        if (client == NULL) {
            continue; /* refused, or never heard of: on_update_process */
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
    const struct ml_observation *observation
) {
    const uint32_t largest_id = largest_of_all(scene->session);
    struct ml_trigger_process *processes =
        calloc((size_t)observation->processes_count + 1, sizeof(*processes));
    struct ml_trigger_decision *decisions = calloc(ML_TRIGGER_DECISIONS_MAX, sizeof(*decisions));
    enum ml_status status = ML_ENV_MEMORY;
    for (uint32_t i = 0; i < observation->memories_count; i++) {
        observation->memories[i].largest_id =
            largest_in(scene->session, &observation->members[i], largest_id);
    }
    if (processes != NULL && decisions != NULL) {
        const struct ml_trigger_look look = {
            .now_ns = observation->now.monotonic_ns,
            .whole = observation->whole,
            .random = observation->random,
            .tree_peak_bytes = ml_session_totals(scene->session).peak_bytes,
            .processes = processes,
            .processes_count = collect(scene, observation, processes),
            .memories = observation->memories,
            .memories_count = observation->memories_count,
            .largest_id = largest_id,
            .dumped_ns = observation->dumped_ns,
            .dumped_count = observation->dumped_count,
            .live_by_node = live_by_node,
            .context = scene->session};
        const size_t count = ml_triggers_look(scene->triggers, &look, decisions);
        status = answer(call, decisions, count, look.now_ns);
    }
    free(processes);
    free(decisions);
    return status;
}

#include "service/triggers/triggers.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/triggers/internal.h"

static const uint64_t ns_per_s = UINT64_C(1000000000);

struct ml_triggers *
ml_triggers_new(const struct memlog_service_trigger_rules *rules, uint64_t now_ns) {
    struct ml_triggers *triggers = calloc(1, sizeof(*triggers));
    if (triggers != NULL) {
        triggers->rules = *rules;
        triggers->start_ns = now_ns;
        triggers->interval_ns = now_ns;
    }
    return triggers;
}

static struct ml_trigger_decision *
add(struct ml_triggers *triggers,
    enum memlog_service_trigger_kind kind,
    const char *format,
    va_list args) {
    if (triggers->decisions_count >= ML_TRIGGER_DECISIONS_MAX) {
        return NULL;
    }
    struct ml_trigger_decision *decision = &triggers->decisions[triggers->decisions_count++];
    *decision = (struct ml_trigger_decision){.kind = kind, .memory = triggers->memory};
    (void)vsnprintf(decision->reason, sizeof(decision->reason), format, args);
    return decision;
}

void ml_trigger_leave(
    struct ml_triggers *triggers, enum memlog_service_trigger_kind kind, const char *format, ...
) {
    va_list args;
    va_start(args, format);
    (void)add(triggers, kind, format, args);
    va_end(args);
}

/* How long the rate limit forbids another dump; 0: not at all. */
static uint64_t forbidden_ns(const struct ml_triggers *triggers) {
    const struct memlog_service_trigger_rules *rules = &triggers->rules;
    const unsigned most =
        rules->most_dumps < ML_TRIGGER_RECENT ? rules->most_dumps : ML_TRIGGER_RECENT;
    if (most == 0 || rules->most_seconds == 0 || triggers->recent_count < most) {
        return 0;
    }
    const uint64_t first_ns =
        triggers->recent_ns[(triggers->recent_count - most) % ML_TRIGGER_RECENT];
    const uint64_t free_ns = first_ns + rules->most_seconds * ns_per_s;
    return free_ns > triggers->look->now_ns ? free_ns - triggers->look->now_ns : 0;
}

/* The stack that holds most. */
static void find_guilty(const struct ml_trigger_look *look, struct ml_trigger_decision *decision) {
    uint32_t count = 0;
    uint64_t *nodes =
        look->live_by_node == NULL ? NULL : look->live_by_node(look->context, decision->id, &count);
    for (uint32_t i = 1; nodes != NULL && i < count; i++) {
        if (nodes[i] > decision->node_bytes) {
            decision->node = i;
            decision->node_bytes = nodes[i];
        }
    }
    free(nodes);
}

static const struct ml_trigger_process *
find_process(const struct ml_trigger_look *look, uint32_t id) {
    for (size_t i = 0; i < look->processes_count; i++) {
        if (look->processes[i].id == id) {
            return &look->processes[i];
        }
    }
    return NULL;
}

/* Whether the threshold is one of memory as the kernel counts it. */
static bool is_of_memory(enum memlog_service_trigger_kind kind) {
    return kind == MEMLOG_SERVICE_TRIGGER_KIND_FOOTPRINT ||
           kind == MEMLOG_SERVICE_TRIGGER_KIND_LIMIT ||
           kind == MEMLOG_SERVICE_TRIGGER_KIND_TIME_TO_LIMIT ||
           kind == MEMLOG_SERVICE_TRIGGER_KIND_PRESSURE ||
           kind == MEMLOG_SERVICE_TRIGGER_KIND_KILLED;
}

/* Name the stack that holds most. A heap that does not explain the private memory is not what
 * filled it: then nobody is to blame, and the decision says so. */
static void blame(const struct ml_trigger_look *look, struct ml_trigger_decision *decision) {
    const struct ml_trigger_process *process = find_process(look, decision->id);
    if (process == NULL || !is_of_memory(decision->kind) ||
        ml_coverage_explains(process->heap_bytes, process->footprint_bytes)) {
        find_guilty(look, decision);
        return;
    }
    const size_t used = strlen(decision->reason);
    char live[ML_COVERAGE_SIZE_BYTES];
    char peak[ML_COVERAGE_SIZE_BYTES];
    (void)snprintf(
        decision->reason + used,
        sizeof(decision->reason) - used,
        ml_coverage_explains(process->heap_most_bytes, process->footprint_bytes)
            ? "; %s of heap is live, %s was: the allocator may keep what was freed"
            : "; its heap, %s live and %s at its peak, does not explain that",
        ml_coverage_size(process->live_bytes, live),
        ml_coverage_size(process->peak_bytes, peak)
    );
}

bool ml_trigger_take(
    struct ml_triggers *triggers,
    enum memlog_service_trigger_kind kind,
    struct ml_trigger_guilty guilty,
    const char *format,
    ...
) {
    va_list args;
    va_start(args, format);
    struct ml_trigger_decision *decision = add(triggers, kind, format, args);
    va_end(args);
    if (decision == NULL) {
        return false; /* it stays crossed until the next look */
    }
    decision->id = guilty.id;
    decision->node = guilty.node;
    decision->node_bytes = guilty.node_bytes;
    const uint64_t wait_ns = triggers->dumped ? 0 : forbidden_ns(triggers);
    if (wait_ns > 0) {
        const size_t used = strlen(decision->reason);
        (void)snprintf(
            decision->reason + used,
            sizeof(decision->reason) - used,
            "; but %" PRIu32 " dumps in %" PRIu32 " s are the limit, the next may come in %" PRIu64
            " s",
            triggers->rules.most_dumps,
            triggers->rules.most_seconds,
            (wait_ns + ns_per_s - 1) / ns_per_s
        );
        return false;
    }
    decision->dump = true;
    if (guilty.id != 0 && guilty.node == 0) {
        blame(triggers->look, decision);
    }
    if (!triggers->dumped) {
        triggers->dumped = true;
        triggers->recent_ns[triggers->recent_count++ % ML_TRIGGER_RECENT] = triggers->look->now_ns;
    }
    return true;
}

static void interval(struct ml_triggers *triggers) {
    const uint64_t every_ns = triggers->rules.every_seconds * ns_per_s;
    const uint64_t now_ns = triggers->look->now_ns;
    if (every_ns == 0) {
        return;
    }
    const uint64_t since_ns = now_ns - triggers->interval_ns;
    if (since_ns < every_ns) {
        ml_trigger_leave(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_EVERY,
            "the next is due in %" PRIu64 " s",
            (every_ns - since_ns) / ns_per_s
        );
    } else if (ml_trigger_take(
                   triggers,
                   MEMLOG_SERVICE_TRIGGER_KIND_EVERY,
                   (struct ml_trigger_guilty){0},
                   "every %" PRIu32 " s",
                   triggers->rules.every_seconds
               )) {
        /* Counted from the last due time: looks come late. */
        triggers->interval_ns += since_ns / every_ns * every_ns;
    }
}

static void peak(struct ml_triggers *triggers) {
    const uint64_t step_bytes = triggers->rules.peak_step_bytes;
    const uint64_t peak_bytes = triggers->look->tree_peak_bytes;
    char size[ML_COVERAGE_SIZE_BYTES];
    char before[ML_COVERAGE_SIZE_BYTES];
    if (step_bytes == 0) {
        return;
    }
    (void)ml_coverage_size(peak_bytes, size);
    (void)ml_coverage_size(triggers->peak_bytes, before);
    if (peak_bytes < triggers->peak_bytes || peak_bytes - triggers->peak_bytes < step_bytes) {
        ml_trigger_leave(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_PEAK,
            "the tree's peak is %s, at its last dump it was %s",
            size,
            before
        );
    } else if (ml_trigger_take(
                   triggers,
                   MEMLOG_SERVICE_TRIGGER_KIND_PEAK,
                   (struct ml_trigger_guilty){.id = triggers->look->largest_id},
                   "the tree's peak is %s, at its last dump it was %s",
                   size,
                   before
               )) {
        triggers->peak_bytes = peak_bytes;
    }
}

static void control(struct ml_triggers *triggers) {
    const uint32_t one_in = triggers->rules.control_one_in;
    if (one_in == 0) {
        return;
    }
    if (triggers->look->random % one_in == 0) {
        (void)ml_trigger_take(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_CONTROL,
            (struct ml_trigger_guilty){0},
            "by chance, one look in %" PRIu32,
            one_in
        );
    } else {
        ml_trigger_leave(
            triggers, MEMLOG_SERVICE_TRIGGER_KIND_CONTROL, "not drawn, one look in %" PRIu32, one_in
        );
    }
}

/* Dumps of an earlier service count as its own. */
static void remember(struct ml_triggers *triggers, const struct ml_trigger_look *look) {
    const size_t taken = triggers->recent_count == 0 ? look->dumped_count : 0;
    for (size_t i = 0; i < taken; i++) {
        triggers->recent_ns[triggers->recent_count++ % ML_TRIGGER_RECENT] = look->dumped_ns[i];
    }
    for (size_t i = 0; i < look->processes_count; i++) {
        const uint64_t high_bytes = look->processes[i].footprint_high_bytes;
        struct ml_trigger_state *state =
            high_bytes == 0 ? NULL : ml_trigger_state_of(triggers, look->processes[i].id);
        if (state != NULL && state->footprint_high_bytes == 0) {
            state->footprint_high_bytes = high_bytes;
        }
    }
}

size_t ml_triggers_look(
    struct ml_triggers *triggers,
    const struct ml_trigger_look *look,
    struct ml_trigger_decision out_decisions[ML_TRIGGER_DECISIONS_MAX]
) {
    triggers->look = look;
    triggers->decisions = out_decisions;
    triggers->decisions_count = 0;
    triggers->dumped = false;
    triggers->memory = 0;
    remember(triggers, look);
    /* Triggers that name a process come first, since the dump carries the first reason. */
    ml_trigger_killed(triggers);
    if (look->whole) {
        ml_trigger_stack(triggers);
        ml_trigger_growth(triggers);
        ml_trigger_footprint(triggers);
        ml_trigger_live(triggers);
    }
    ml_trigger_memories(triggers);
    if (look->whole) {
        peak(triggers);
        interval(triggers);
        control(triggers);
    }
    triggers->look = NULL;
    triggers->decisions = NULL;
    return triggers->decisions_count;
}

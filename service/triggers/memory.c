/* Triggers of a memory that has a limit: a control group, the machine. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "service/triggers/internal.h"

static const uint64_t ns_per_s = UINT64_C(1000000000);

enum {
    /* A usage this far below the threshold arms it again. */
    LIMIT_BACK_PERCENT = 5,
    SLOPE_POINTS_MIN = 3
};

/* Whether the look at hand includes that memory. */
static bool is_seen(const struct ml_trigger_look *look, const char *name) {
    for (size_t i = 0; i < look->memories_count; i++) {
        if (strcmp(look->memories[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* A new state, or that of a control group that is gone. NULL: none is left. */
static struct ml_trigger_memory_state *free_state(struct ml_triggers *triggers) {
    if (triggers->memories_count < ML_TRIGGER_MEMORIES) {
        return &triggers->memories[triggers->memories_count++];
    }
    for (unsigned i = 0; i < ML_TRIGGER_MEMORIES; i++) {
        if (!is_seen(triggers->look, triggers->memories[i].name)) {
            return &triggers->memories[i];
        }
    }
    return NULL;
}

/* Whether a dump of that kind was taken for it, by an earlier service too. */
static bool
had_dump(const struct ml_trigger_memory *memory, enum memlog_service_trigger_kind kind) {
    return (memory->dumped_kinds >> kind & 1) != 0;
}

static struct ml_trigger_memory_state *
state_of(struct ml_triggers *triggers, const struct ml_trigger_memory *memory) {
    for (unsigned i = 0; i < triggers->memories_count; i++) {
        if (strcmp(triggers->memories[i].name, memory->name) == 0) {
            return &triggers->memories[i];
        }
    }
    struct ml_trigger_memory_state *state = free_state(triggers);
    if (state == NULL) {
        return NULL;
    }
    const bool pressed = had_dump(memory, MEMLOG_SERVICE_TRIGGER_KIND_PRESSURE);
    *state = (struct ml_trigger_memory_state
    ){.crossed =
          {[ML_TRIGGER_LIMIT] = had_dump(memory, MEMLOG_SERVICE_TRIGGER_KIND_LIMIT),
           [ML_TRIGGER_TIME_TO_LIMIT] = had_dump(memory, MEMLOG_SERVICE_TRIGGER_KIND_TIME_TO_LIMIT),
           [ML_TRIGGER_PRESSURE_SOME] = pressed,
           [ML_TRIGGER_PRESSURE_FULL] = pressed},
      .high_events = memory->high_events,
      .max_events = memory->max_events};
    (void)snprintf(state->name, sizeof(state->name), "%s", memory->name);
    return state;
}

static void look_at_limit(
    struct ml_triggers *triggers,
    const struct ml_trigger_memory *memory,
    struct ml_trigger_memory_state *state
) {
    const uint32_t percent = triggers->rules.limit_percent;
    if (percent == 0 || memory->limit_bytes == 0) {
        return;
    }
    const double used = 100. * (double)memory->used_bytes / (double)memory->limit_bytes;
    char size[ML_COVERAGE_SIZE_BYTES];
    char limit[ML_COVERAGE_SIZE_BYTES];
    (void)ml_coverage_size(memory->used_bytes, size);
    (void)ml_coverage_size(memory->limit_bytes, limit);
    if (used >= percent && !state->crossed[ML_TRIGGER_LIMIT]) {
        state->crossed[ML_TRIGGER_LIMIT] = ml_trigger_take(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_LIMIT,
            (struct ml_trigger_guilty){.id = memory->largest_id},
            "%s has used %s of its %s, %.0f %%, %" PRIu32 " %% are the threshold",
            memory->name,
            size,
            limit,
            used,
            percent
        );
        return;
    }
    if (used + LIMIT_BACK_PERCENT < percent) {
        state->crossed[ML_TRIGGER_LIMIT] = false;
    }
    if (triggers->look->whole) {
        ml_trigger_leave(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_LIMIT,
            "%s has used %s of its %s%s",
            memory->name,
            size,
            limit,
            state->crossed[ML_TRIGGER_LIMIT] ? ", and had its dump" : ""
        );
    }
}

static void add_point(struct ml_trigger_memory_state *state, uint64_t now_ns, uint64_t used_bytes) {
    if (state->points_count == ML_TRIGGER_SLOPE) {
        memmove(
            state->points, state->points + 1, (ML_TRIGGER_SLOPE - 1) * sizeof(state->points[0])
        );
        state->points_count--;
    }
    state->points[state->points_count++] =
        (struct ml_trigger_point){.now_ns = now_ns, .used_bytes = used_bytes};
}

/* By least squares over the last looks. Units: bytes a second. */
static double slope_of(const struct ml_trigger_memory_state *state) {
    const struct ml_trigger_point *first = &state->points[0];
    double sum_t = 0;
    double sum_b = 0;
    double sum_tt = 0;
    double sum_tb = 0;
    const double count = state->points_count;
    for (unsigned i = 0; i < state->points_count; i++) {
        const double t = (double)(state->points[i].now_ns - first->now_ns) / (double)ns_per_s;
        const double b = (double)state->points[i].used_bytes - (double)first->used_bytes;
        sum_t += t;
        sum_b += b;
        sum_tt += t * t;
        sum_tb += t * b;
    }
    const double spread = count * sum_tt - sum_t * sum_t;
    return spread > 0 ? (count * sum_tb - sum_t * sum_b) / spread : 0;
}

static void look_ahead(
    struct ml_triggers *triggers,
    const struct ml_trigger_memory *memory,
    struct ml_trigger_memory_state *state
) {
    const uint32_t seconds = triggers->rules.to_limit_seconds;
    if (seconds == 0 || memory->limit_bytes == 0) {
        return;
    }
    add_point(state, triggers->look->now_ns, memory->used_bytes);
    const double slope = state->points_count < SLOPE_POINTS_MIN ? 0 : slope_of(state);
    const double room = memory->used_bytes < memory->limit_bytes
                            ? (double)(memory->limit_bytes - memory->used_bytes)
                            : 0;
    const bool near = slope > 0 && room / slope <= seconds;
    if (near && !state->crossed[ML_TRIGGER_TIME_TO_LIMIT]) {
        char size[ML_COVERAGE_SIZE_BYTES];
        state->crossed[ML_TRIGGER_TIME_TO_LIMIT] = ml_trigger_take(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_TIME_TO_LIMIT,
            (struct ml_trigger_guilty){.id = memory->largest_id},
            "%s grows by %s a second and is at its limit in %.0f s",
            memory->name,
            ml_coverage_size((uint64_t)slope, size),
            room / slope
        );
        return;
    }
    if (state->points_count >= SLOPE_POINTS_MIN && (slope <= 0 || room / slope > 2. * seconds)) {
        state->crossed[ML_TRIGGER_TIME_TO_LIMIT] = false;
    }
    if (triggers->look->whole) {
        ml_trigger_leave(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_TIME_TO_LIMIT,
            near ? "%s is as near to its limit as at its dump"
                 : "%s is not within the threshold of its limit",
            memory->name
        );
    }
}

/* One of the two pressures. It is armed again when it falls below half the threshold. */
static void look_at_pressure(
    struct ml_triggers *triggers,
    const struct ml_trigger_memory *memory,
    const char *word,
    uint32_t percent_100,
    uint32_t threshold,
    bool *crossed
) {
    if (threshold == 0) {
        return;
    }
    if (percent_100 >= threshold * 100 && !*crossed) {
        *crossed = ml_trigger_take(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_PRESSURE,
            (struct ml_trigger_guilty){.id = memory->largest_id},
            "%s: %s of its tasks waited for memory %.2f %% of the last 10 s, %" PRIu32
            " %% are the threshold",
            memory->name,
            word,
            percent_100 / 100.,
            threshold
        );
        return;
    }
    if (percent_100 < threshold * 50) {
        *crossed = false;
    }
    if (triggers->look->whole) {
        ml_trigger_leave(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_PRESSURE,
            "%s: %s of its tasks waited for memory %.2f %% of the last 10 s",
            memory->name,
            word,
            percent_100 / 100.
        );
    }
}

static void look_at_events(
    struct ml_triggers *triggers,
    const struct ml_trigger_memory *memory,
    struct ml_trigger_memory_state *state
) {
    const uint64_t high = memory->high_events - state->high_events;
    const uint64_t max = memory->max_events - state->max_events;
    if (!triggers->rules.pressure_events) {
        return;
    }
    if (high == 0 && max == 0) {
        state->crossed[ML_TRIGGER_EVENTS] = false; /* one look without an event arms it again */
        if (triggers->look->whole) {
            ml_trigger_leave(
                triggers,
                MEMLOG_SERVICE_TRIGGER_KIND_PRESSURE,
                "%s has not come to its limit since the last look",
                memory->name
            );
        }
        return;
    }
    if (!state->crossed[ML_TRIGGER_EVENTS] &&
        !ml_trigger_take(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_PRESSURE,
            (struct ml_trigger_guilty){.id = memory->largest_id},
            "%s came to its limit: the kernel counted %" PRIu64 " times high, %" PRIu64
            " times max since the last look",
            memory->name,
            high,
            max
        )) {
        return; /* the next look counts them again */
    }
    state->crossed[ML_TRIGGER_EVENTS] = true;
    state->high_events = memory->high_events;
    state->max_events = memory->max_events;
}

void ml_trigger_memories(struct ml_triggers *triggers) {
    for (size_t i = 0; i < triggers->look->memories_count; i++) {
        const struct ml_trigger_memory *memory = &triggers->look->memories[i];
        struct ml_trigger_memory_state *state = state_of(triggers, memory);
        if (state == NULL) {
            break;
        }
        triggers->memory = (uint32_t)i + 1;
        look_at_limit(triggers, memory, state);
        look_ahead(triggers, memory, state);
        look_at_pressure(
            triggers,
            memory,
            "some",
            memory->some_percent_100,
            triggers->rules.pressure_some_percent,
            &state->crossed[ML_TRIGGER_PRESSURE_SOME]
        );
        look_at_pressure(
            triggers,
            memory,
            "all",
            memory->full_percent_100,
            triggers->rules.pressure_full_percent,
            &state->crossed[ML_TRIGGER_PRESSURE_FULL]
        );
        look_at_events(triggers, memory, state);
    }
    triggers->memory = 0;
}

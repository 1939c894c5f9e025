/* Triggers of one process: footprint, live heap, growth, one stack's budget, its end by SIGKILL. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/triggers/internal.h"

static const uint64_t ns_per_s = UINT64_C(1000000000);

enum { SIGNAL_KILL = 9, WHO_BYTES = ML_TRIGGER_REASON_BYTES };

/* The word before its name; none for a process whose role is not known. */
static const char *role_word(const struct ml_trigger_process *process) {
    static const char *const words[] = {"browser ", "renderer ", "gpu ", "utility ", ""};
    if (process->role == MEMLOG_SERVICE_ROLE_BROWSER && process->is_first) {
        return "main ";
    }
    return words[process->role];
}

/* "renderer chrome (4711)". Returns out_text. */
static const char *who(const struct ml_trigger_process *process, char out_text[WHO_BYTES]) {
    (void)snprintf(
        out_text, WHO_BYTES, "%s%s (%" PRIu32 ")", role_word(process), process->name, process->pid
    );
    return out_text;
}

struct ml_trigger_state *ml_trigger_state_of(struct ml_triggers *triggers, uint32_t id) {
    if (id >= triggers->states_count) {
        const uint32_t count = id + id / 2 + 16;
        struct ml_trigger_state *states =
            reallocarray(triggers->states, count, sizeof(*triggers->states));
        if (states == NULL) {
            return NULL;
        }
        memset(
            states + triggers->states_count, 0, (count - triggers->states_count) * sizeof(*states)
        );
        triggers->states = states;
        triggers->states_count = count;
    }
    return &triggers->states[id];
}

static void base_fini(struct ml_trigger_base *base) {
    free(base->nodes);
    *base = (struct ml_trigger_base){0};
}

void ml_trigger_killed(struct ml_triggers *triggers) {
    for (size_t i = 0; i < triggers->look->processes_count; i++) {
        const struct ml_trigger_process *process = &triggers->look->processes[i];
        struct ml_trigger_state *state =
            process->killed_by != 0 ? ml_trigger_state_of(triggers, process->id) : NULL;
        if (state == NULL || state->told_killed) {
            continue;
        }
        char name[WHO_BYTES];
        char live[ML_COVERAGE_SIZE_BYTES];
        char footprint[ML_COVERAGE_SIZE_BYTES];
        (void)ml_coverage_size(process->live_bytes, live);
        (void)ml_coverage_size(process->footprint_bytes, footprint);
        if (!triggers->rules.killed || process->killed_by != SIGNAL_KILL) {
            ml_trigger_leave(
                triggers,
                MEMLOG_SERVICE_TRIGGER_KIND_KILLED,
                "%s was ended by signal %" PRIu32
                "; dumps are for SIGKILL alone, where that is wanted",
                who(process, name),
                process->killed_by
            );
            state->told_killed = true;
        } else {
            state->told_killed = ml_trigger_take(
                triggers,
                MEMLOG_SERVICE_TRIGGER_KIND_KILLED,
                (struct ml_trigger_guilty){.id = process->id},
                "%s was killed%s; its live heap was %s, its private memory when "
                "last read %s",
                who(process, name),
                process->by_oom ? " by the kernel, out of memory" : " by SIGKILL",
                live,
                footprint
            );
        }
    }
}

/* One rule of the kind "a figure of a process over its role's threshold". */
struct threshold {
    enum memlog_service_trigger_kind kind;
    const struct memlog_service_size_by_role *by_role;
    uint64_t again_bytes;
    size_t figure;     /* where in struct ml_trigger_process */
    size_t high;       /* where in struct ml_trigger_state */
    const char *words; /* of the figure */
};

static uint64_t field(const void *base, size_t offset) {
    uint64_t value = 0;
    memcpy(&value, (const char *)base + offset, sizeof(value));
    return value;
}

static void set_field(void *base, size_t offset, uint64_t value) {
    memcpy((char *)base + offset, &value, sizeof(value));
}

static uint64_t
size_of_role(const struct memlog_service_size_by_role *sizes, enum memlog_service_role role) {
    const uint64_t by_role[] = {
        sizes->browser, sizes->renderer, sizes->gpu, sizes->utility, sizes->other};
    return by_role[role];
}

/* The threshold that holds now; 0: none. */
static uint64_t bar_of(
    const struct threshold *rule,
    const struct ml_trigger_process *process,
    const struct ml_trigger_state *state
) {
    const uint64_t first = size_of_role(rule->by_role, process->role);
    const uint64_t high = field(state, rule->high);
    if (first == 0 || high == 0) {
        return first;
    }
    return rule->again_bytes == 0 || high > UINT64_MAX - rule->again_bytes
               ? UINT64_MAX
               : high + rule->again_bytes;
}

static void look_at_threshold(struct ml_triggers *triggers, const struct threshold *rule) {
    const struct ml_trigger_process *nearest = NULL;
    uint64_t nearest_bar = 0;
    char name[WHO_BYTES];
    char size[ML_COVERAGE_SIZE_BYTES];
    char limit[ML_COVERAGE_SIZE_BYTES];
    for (size_t i = 0; i < triggers->look->processes_count; i++) {
        const struct ml_trigger_process *process = &triggers->look->processes[i];
        struct ml_trigger_state *state = ml_trigger_state_of(triggers, process->id);
        const uint64_t bar = state == NULL || !process->running ? 0 : bar_of(rule, process, state);
        const uint64_t bytes = field(process, rule->figure);
        if (bar == 0) {
            continue;
        }
        (void)ml_coverage_size(bytes, size);
        (void)ml_coverage_size(bar, limit);
        if (bytes > bar) {
            if (ml_trigger_take(
                    triggers,
                    rule->kind,
                    (struct ml_trigger_guilty){.id = process->id},
                    "%s has %s of %s, over %s%s",
                    who(process, name),
                    size,
                    rule->words,
                    limit,
                    field(state, rule->high) == 0 ? "" : ", again"
                )) {
                set_field(state, rule->high, bytes);
            }
        } else if (nearest == NULL || (double)bytes * (double)nearest_bar > (double)field(nearest, rule->figure) * (double)bar) {
            nearest = process;
            nearest_bar = bar;
        }
    }
    if (nearest != NULL) {
        ml_trigger_leave(
            triggers,
            rule->kind,
            "the nearest is %s with %s of %s, not over %s",
            who(nearest, name),
            ml_coverage_size(field(nearest, rule->figure), size),
            rule->words,
            nearest_bar == UINT64_MAX ? "any: it had its dump"
                                      : ml_coverage_size(nearest_bar, limit)
        );
    }
}

void ml_trigger_footprint(struct ml_triggers *triggers) {
    const struct threshold rule = {
        .kind = MEMLOG_SERVICE_TRIGGER_KIND_FOOTPRINT,
        .by_role = &triggers->rules.footprint_bytes,
        .again_bytes = triggers->rules.footprint_again_bytes,
        .figure = offsetof(struct ml_trigger_process, footprint_bytes),
        .high = offsetof(struct ml_trigger_state, footprint_high_bytes),
        .words = "private memory",
    };
    look_at_threshold(triggers, &rule);
}

void ml_trigger_live(struct ml_triggers *triggers) {
    const struct threshold rule = {
        .kind = MEMLOG_SERVICE_TRIGGER_KIND_LIVE,
        .by_role = &triggers->rules.live_bytes,
        .again_bytes = triggers->rules.live_again_bytes,
        .figure = offsetof(struct ml_trigger_process, live_bytes),
        .high = offsetof(struct ml_trigger_state, live_high_bytes),
        .words = "live heap",
    };
    look_at_threshold(triggers, &rule);
}

static void base_take(
    struct ml_triggers *triggers,
    const struct ml_trigger_process *process,
    struct ml_trigger_base *base
) {
    const struct ml_trigger_look *look = triggers->look;
    base_fini(base);
    base->taken_ns = look->now_ns;
    base->live_bytes = process->live_bytes;
    if (look->live_by_node != NULL) {
        base->nodes = look->live_by_node(look->context, process->id, &base->nodes_count);
    }
}

/* The stack that has gained most since `base`. */
static void find_gain(
    const struct ml_trigger_look *look,
    uint32_t id,
    const struct ml_trigger_base *base,
    uint32_t *out_node,
    uint64_t *out_bytes
) {
    uint32_t count = 0;
    uint64_t *nodes =
        look->live_by_node == NULL ? NULL : look->live_by_node(look->context, id, &count);
    for (uint32_t i = 1; nodes != NULL && i < count; i++) {
        const uint64_t before = base->nodes != NULL && i < base->nodes_count ? base->nodes[i] : 0;
        if (nodes[i] > before && nodes[i] - before > *out_bytes) {
            *out_node = i;
            *out_bytes = nodes[i] - before;
        }
    }
    free(nodes);
}

/* Growth is counted from a moment between half of the time and all of it ago, so two moments are
 * kept. A moment with more live bytes than now is dropped. */
static void grow(struct ml_triggers *triggers, const struct ml_trigger_process *process) {
    struct ml_trigger_state *state = ml_trigger_state_of(triggers, process->id);
    const uint64_t window_ns = triggers->rules.growth_seconds * ns_per_s;
    const uint64_t now_ns = triggers->look->now_ns;
    if (state == NULL) {
        return;
    }
    if (!process->running) {
        base_fini(&state->old);
        base_fini(&state->young);
        return;
    }
    if (state->old.taken_ns == 0 || process->live_bytes < state->old.live_bytes) {
        base_fini(&state->young);
        base_take(triggers, process, &state->old);
        return;
    }
    const uint64_t gained = process->live_bytes - state->old.live_bytes;
    if (gained >= triggers->rules.growth_bytes) {
        uint32_t node = 0;
        uint64_t node_bytes = 0;
        char name[WHO_BYTES];
        char size[ML_COVERAGE_SIZE_BYTES];
        find_gain(triggers->look, process->id, &state->old, &node, &node_bytes);
        if (ml_trigger_take(
                triggers,
                MEMLOG_SERVICE_TRIGGER_KIND_GROWTH,
                (struct ml_trigger_guilty){process->id, node, node_bytes},
                "%s has gained %s of live heap in %" PRIu64 " s",
                who(process, name),
                ml_coverage_size(gained, size),
                (now_ns - state->old.taken_ns) / ns_per_s
            )) {
            base_fini(&state->young);
            base_take(triggers, process, &state->old);
        }
        return;
    }
    if (now_ns - state->old.taken_ns > window_ns) {
        base_fini(&state->old);
        state->old = state->young;
        state->young = (struct ml_trigger_base){0};
        if (state->old.taken_ns == 0) {
            base_take(triggers, process, &state->old);
        }
    } else if (now_ns - state->old.taken_ns > window_ns / 2 && state->young.taken_ns == 0) {
        base_take(triggers, process, &state->young);
    }
}

void ml_trigger_growth(struct ml_triggers *triggers) {
    if (triggers->rules.growth_bytes == 0) {
        return;
    }
    const size_t before = triggers->decisions_count;
    for (size_t i = 0; i < triggers->look->processes_count; i++) {
        grow(triggers, &triggers->look->processes[i]);
    }
    if (triggers->decisions_count == before) {
        char size[ML_COVERAGE_SIZE_BYTES];
        ml_trigger_leave(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_GROWTH,
            "nobody has gained %s of live heap in %" PRIu32 " s",
            ml_coverage_size(triggers->rules.growth_bytes, size),
            triggers->rules.growth_seconds
        );
    }
}

/* The mark of that node, made if there is none. NULL: no memory. */
static struct ml_trigger_node *mark_of(struct ml_trigger_state *state, uint32_t node) {
    for (uint32_t i = 0; i < state->nodes_count; i++) {
        if (state->nodes[i].node == node) {
            return &state->nodes[i];
        }
    }
    struct ml_trigger_node *nodes =
        reallocarray(state->nodes, (size_t)state->nodes_count + 1, sizeof(*nodes));
    if (nodes == NULL) {
        return NULL;
    }
    state->nodes = nodes;
    nodes[state->nodes_count] = (struct ml_trigger_node){.node = node};
    return &nodes[state->nodes_count++];
}

/* Whether any of its stacks is over its budget. A stack that had its dump must double to have
 * another. */
static void look_at_stacks(struct ml_triggers *triggers, const struct ml_trigger_process *process) {
    const struct ml_trigger_look *look = triggers->look;
    const uint64_t budget = triggers->rules.stack_bytes;
    struct ml_trigger_state *state = ml_trigger_state_of(triggers, process->id);
    uint32_t count = 0;
    uint64_t *nodes = state == NULL || look->live_by_node == NULL
                          ? NULL
                          : look->live_by_node(look->context, process->id, &count);
    for (uint32_t i = 1; nodes != NULL && i < count; i++) {
        struct ml_trigger_node *mark = nodes[i] > budget ? mark_of(state, i) : NULL;
        if (mark == NULL || nodes[i] / 2 < mark->high_bytes) {
            continue;
        }
        char name[WHO_BYTES];
        char size[ML_COVERAGE_SIZE_BYTES];
        char limit[ML_COVERAGE_SIZE_BYTES];
        if (ml_trigger_take(
                triggers,
                MEMLOG_SERVICE_TRIGGER_KIND_STACK,
                (struct ml_trigger_guilty){process->id, i, nodes[i]},
                "one call stack of %s holds %s, over %s",
                who(process, name),
                ml_coverage_size(nodes[i], size),
                ml_coverage_size(mark->high_bytes == 0 ? budget : 2 * mark->high_bytes, limit)
            )) {
            mark->high_bytes = nodes[i];
        }
    }
    free(nodes);
}

void ml_trigger_stack(struct ml_triggers *triggers) {
    if (triggers->rules.stack_bytes == 0) {
        return;
    }
    const size_t before = triggers->decisions_count;
    for (size_t i = 0; i < triggers->look->processes_count; i++) {
        if (triggers->look->processes[i].running) {
            look_at_stacks(triggers, &triggers->look->processes[i]);
        }
    }
    if (triggers->decisions_count == before) {
        char size[ML_COVERAGE_SIZE_BYTES];
        ml_trigger_leave(
            triggers,
            MEMLOG_SERVICE_TRIGGER_KIND_STACK,
            "no call stack is newly over %s",
            ml_coverage_size(triggers->rules.stack_bytes, size)
        );
    }
}

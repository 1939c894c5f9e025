/* The memories that have a limit, for the triggers: the control groups of those that run, who of
 * them is in which, and the machine. Room: host. */
#include <stdlib.h>
#include <string.h>

#include "host/engine/state.h"
#include "host/process/cgroup_info.h"

enum {
    /* Of those whose groups are known so many are asked again at a look, in turn: who is moved to
     * another group is found there soon, and a look at a thousand processes stays short. */
    ASKED_AGAIN = 32,
    GROUPS_MAX = ML_TRIGGER_MEMORIES - 1
};

_Static_assert(GROUPS_MAX <= 64, "a bit of ml_member.groups for each");

/* The group's place, a new one if it was not known; GROUPS_MAX: there is none for it. */
static unsigned place_of(struct ml_engine_triggers *triggers, const struct ml_cgroup *group) {
    unsigned place = GROUPS_MAX;
    for (unsigned i = 0; i < triggers->groups_count; i++) {
        if (strcmp(triggers->groups[i].folder, group->folder) == 0) {
            return i;
        }
        if (triggers->groups[i].folder[0] == '\0') {
            place = i;
        }
    }
    if (place == GROUPS_MAX && triggers->groups_count < GROUPS_MAX) {
        struct ml_cgroup *groups =
            reallocarray(triggers->groups, triggers->groups_count + 1, sizeof(*groups));
        if (groups == NULL) {
            return GROUPS_MAX;
        }
        triggers->groups = groups;
        place = triggers->groups_count++;
    }
    if (place < GROUPS_MAX) {
        triggers->groups[place] = *group;
        triggers->memories_dumped[place + 1] = 0;
        triggers->members_grouped = 0; /* who is below it must be told so */
    }
    return place;
}

/* A group that is to be looked at. */
static void note(struct ml_engine *engine, const struct ml_cgroup *group) {
    struct ml_engine_triggers *triggers = &engine->triggers;
    if (place_of(triggers, group) == GROUPS_MAX && !triggers->groups_left_out) {
        triggers->groups_left_out = true;
        ml_engine_notice(
            engine,
            "%s is not looked at by the triggers, nor is any further one: %d control groups are, "
            "which is the most",
            group->name,
            GROUPS_MAX
        );
    }
}

/* Note what groups the process counts into: each that has a limit kills, whichever is the tighter.
 * Where none has one, its own still tells pressure. */
static void find_groups_of(struct ml_engine *engine, struct ml_member *member) {
    struct ml_engine_triggers *triggers = &engine->triggers;
    struct ml_cgroup own;
    struct ml_cgroup group;
    bool limited = false;
    member->groups = 0;
    if (member->state != ML_MEMBER_RUNNING || !ml_cgroup_of(member->pid, &own)) {
        return;
    }
    group = own;
    do {
        if (ml_cgroup_limit_bytes(&group) != 0) {
            limited = true;
            note(engine, &group);
        }
    } while (ml_cgroup_up(&group));
    if (!limited) {
        note(engine, &own);
    }
    for (unsigned i = 0; i < triggers->groups_count; i++) {
        if (triggers->groups[i].folder[0] != '\0' &&
            ml_cgroup_holds(&triggers->groups[i], own.folder)) {
            member->groups |= UINT64_C(1) << i;
        }
    }
}

static void find_groups(struct ml_engine *engine) {
    struct ml_engine_triggers *triggers = &engine->triggers;
    const uint32_t count = engine->members.count;
    const uint32_t known = triggers->members_grouped < count ? triggers->members_grouped : count;
    for (uint32_t i = 0, asked = 0; i < known && asked < ASKED_AGAIN; i++) {
        triggers->next_asked = triggers->next_asked < known ? triggers->next_asked : 0;
        struct ml_member *member = engine->members.items[triggers->next_asked++];
        if (member->state == ML_MEMBER_RUNNING) {
            find_groups_of(engine, member);
            asked++;
        }
    }
    /* A group that was not known begins this anew, which ends: their number is bounded. */
    while (triggers->members_grouped < count) {
        const uint32_t next = triggers->members_grouped++;
        find_groups_of(engine, engine->members.items[next]);
    }
}

/* The group is gone: its place is another's. */
static void forget(struct ml_engine *engine, unsigned place) {
    engine->triggers.groups[place].folder[0] = '\0';
    for (uint32_t i = 0; i < engine->members.count; i++) {
        engine->members.items[i]->groups &= ~(UINT64_C(1) << place);
    }
}

static struct memlog_service_observed_memory
observed(const char *name, const struct ml_memory_usage *info) {
    return (struct memlog_service_observed_memory
    ){.name = ml_string_cut(name, MEMLOG_SERVICE_OBSERVED_MEMORY_NAME_LIMIT),
      .used_bytes = info->used_bytes,
      .limit_bytes = info->limit_bytes,
      .high_events = info->high_events,
      .max_events = info->max_events,
      .some_percent_100 = info->some_percent_100,
      .full_percent_100 = info->full_percent_100};
}

/* The ids of those that run in the group, behind those that stand in `ids` already. */
static struct memlog_service_uint32_array
ids_in(const struct ml_engine *engine, unsigned place, uint32_t *ids) {
    struct memlog_service_uint32_array in = {.items = ids, .count = 0};
    for (uint32_t i = 0; i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && ml_recording_in_service(member->recording) &&
            (member->groups >> place & 1) != 0) {
            ids[in.count++] = member->id;
        }
    }
    return in;
}

uint32_t ml_engine_look_at_cgroups(
    struct ml_engine *engine,
    struct memlog_service_observed_memory out_memories[ML_TRIGGER_MEMORIES],
    uint32_t **out_ids
) {
    struct ml_engine_triggers *triggers = &engine->triggers;
    struct ml_memory_usage info;
    uint32_t count = 0;
    *out_ids = NULL;
    if (!ml_trigger_rules_watch_memory(&engine->options->triggers)) {
        return 0;
    }
    find_groups(engine);
    uint32_t *next_ids = calloc(
        (size_t)triggers->groups_count * engine->members.running_count + 1, sizeof(*next_ids)
    );
    *out_ids = next_ids;
    for (unsigned i = 0; next_ids != NULL && i < triggers->groups_count; i++) {
        if (triggers->groups[i].folder[0] == '\0') {
            continue;
        }
        if (!ml_cgroup_read(&triggers->groups[i], &info)) {
            forget(engine, i);
            continue;
        }
        triggers->observed[count] = i + 1;
        out_memories[count] = observed(triggers->groups[i].name, &info);
        out_memories[count].ids = ids_in(engine, i, next_ids);
        next_ids += out_memories[count++].ids.count;
    }
    if (ml_machine_read(&info)) {
        triggers->observed[count] = 0;
        out_memories[count] = observed("this machine", &info);
        out_memories[count++].has_all = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        out_memories[i].dumped_kinds = triggers->memories_dumped[triggers->observed[i]];
    }
    return count;
}

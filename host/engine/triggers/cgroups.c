#include "host/engine/triggers/cgroups.h"

#include <stdlib.h>
#include <string.h>

#include "host/process/cgroup_info.h"

enum {
    /* How many known groups are read again at a look, in turn. A process that was moved is found
       soon, and a look at a thousand processes stays short. */
    ASKED_AGAIN = 32,
    GROUPS_MAX = ML_TRIGGER_MEMORIES - 1
};

_Static_assert(GROUPS_MAX <= 64, "a bit of ml_member.groups for each");

/* The group's place, a new one if it was not known. GROUPS_MAX: there is no room. */
static unsigned place_of(struct ml_cgroups *groups, const struct ml_cgroup *group) {
    unsigned place = GROUPS_MAX;
    for (unsigned i = 0; i < groups->count; i++) {
        if (strcmp(groups->items[i].folder, group->folder) == 0) {
            return i;
        }
        if (groups->items[i].folder[0] == '\0') {
            place = i;
        }
    }
    if (place == GROUPS_MAX && groups->count < GROUPS_MAX) {
        struct ml_cgroup *items = reallocarray(groups->items, groups->count + 1, sizeof(*items));
        if (items == NULL) {
            return GROUPS_MAX;
        }
        groups->items = items;
        place = groups->count++;
    }
    if (place < GROUPS_MAX) {
        groups->items[place] = *group;
        groups->dumped[place + 1] = 0;
        groups->members_grouped = 0; /* members below it must be marked */
    }
    return place;
}

/* Note a group that is to be looked at. */
static void note(struct ml_engine *engine, const struct ml_cgroup *group) {
    struct ml_cgroups *groups = engine->cgroups;
    if (place_of(groups, group) == GROUPS_MAX && !groups->has_left_out) {
        groups->has_left_out = true;
        ml_engine_notice(
            engine,
            "the triggers do not look at %s, nor at any further control group: %d are the most",
            group->name,
            GROUPS_MAX
        );
    }
}

/* Note the groups that the process counts into. Each one with a limit may kill. Where none has a
 * limit, its own group still tells pressure. */
static void find_groups_of(struct ml_engine *engine, struct ml_member *member) {
    struct ml_cgroups *groups = engine->cgroups;
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
    for (unsigned i = 0; i < groups->count; i++) {
        if (groups->items[i].folder[0] != '\0' && ml_cgroup_holds(&groups->items[i], own.folder)) {
            member->groups |= UINT64_C(1) << i;
        }
    }
}

static void find_groups(struct ml_engine *engine) {
    struct ml_cgroups *groups = engine->cgroups;
    const uint32_t count = engine->members.count;
    const uint32_t known = groups->members_grouped < count ? groups->members_grouped : count;
    for (uint32_t i = 0, asked = 0; i < known && asked < ASKED_AGAIN; i++) {
        groups->next_asked = groups->next_asked < known ? groups->next_asked : 0;
        struct ml_member *member = engine->members.items[groups->next_asked++];
        if (member->state == ML_MEMBER_RUNNING) {
            find_groups_of(engine, member);
            asked++;
        }
    }
    /* A new group begins this again. It ends, as their number is bounded. */
    while (groups->members_grouped < count) {
        const uint32_t next = groups->members_grouped++;
        find_groups_of(engine, engine->members.items[next]);
    }
}

/* The group is gone, and its place is free. */
static void forget(struct ml_engine *engine, unsigned place) {
    engine->cgroups->items[place].folder[0] = '\0';
    for (uint32_t i = 0; i < engine->members.count; i++) {
        engine->members.items[i]->groups &= ~(UINT64_C(1) << place);
    }
}

static void set_name(struct memlog_service_observed_memory *memory, const char *name) {
    memory->name = ml_string_cut(name, MEMLOG_SERVICE_OBSERVED_MEMORY_NAME_LIMIT);
}

/* Append the ids of the members that run in the group. */
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

uint32_t ml_cgroups_look(
    struct ml_engine *engine,
    struct memlog_service_observed_memory out_memories[ML_TRIGGER_MEMORIES],
    uint32_t **out_ids
) {
    struct ml_cgroups *groups = engine->cgroups;
    uint32_t count = 0;
    *out_ids = NULL;
    if (!ml_trigger_rules_watch_memory(&engine->options->triggers)) {
        return 0;
    }
    find_groups(engine);
    uint32_t *next_ids =
        calloc((size_t)groups->count * engine->members.running_count + 1, sizeof(*next_ids));
    *out_ids = next_ids;
    for (unsigned i = 0; next_ids != NULL && i < groups->count; i++) {
        if (groups->items[i].folder[0] == '\0') {
            continue;
        }
        if (!ml_cgroup_read(&groups->items[i], &out_memories[count])) {
            forget(engine, i);
            continue;
        }
        groups->observed[count] = i + 1;
        set_name(&out_memories[count], groups->items[i].name);
        out_memories[count].ids = ids_in(engine, i, next_ids);
        next_ids += out_memories[count++].ids.count;
    }
    if (ml_machine_read(&out_memories[count])) {
        groups->observed[count] = 0;
        set_name(&out_memories[count], "this machine");
        out_memories[count++].has_all = true;
    }
    for (uint32_t i = 0; i < count; i++) {
        out_memories[i].dumped_kinds = groups->dumped[groups->observed[i]];
    }
    return count;
}

void ml_cgroups_remember(
    struct ml_engine *engine, uint32_t memory, enum memlog_service_trigger_kind kind
) {
    if (memory > 0 && memory <= ML_TRIGGER_MEMORIES) {
        engine->cgroups->dumped[engine->cgroups->observed[memory - 1]] |= 1U << (unsigned)kind;
    }
}

void ml_cgroups_fini(struct ml_engine *engine) {
    free(engine->cgroups->items);
    engine->cgroups->items = NULL;
    engine->cgroups->count = 0;
}

#include "tools/analyzer/memory/sharing.h"

#include <stdlib.h>

enum { KIB = 1024 };

static int object_order(uint64_t device, uint64_t inode, const struct ml_sharing_member *member) {
    if (device != member->device) {
        return (device > member->device) - (device < member->device);
    }
    return (inode > member->inode) - (inode < member->inode);
}

static int member_order(const void *left, const void *right) {
    const struct ml_sharing_member *a = left, *b = right;
    const int objects = object_order(a->device, a->inode, b);

    if (objects != 0) {
        return objects;
    }
    return (a->process->id > b->process->id) - (a->process->id < b->process->id);
}

/* The stack that mapped the region; 0: none is known. *at goes on through the holdings. */
static uint32_t mapper_of(const struct ml_profile_process *process, size_t region, size_t *at) {
    uint32_t node = 0;

    for (; *at < process->holdings_count && process->holdings[*at].region <= region; (*at)++) {
        const struct ml_profile_region_holding *holding = &process->holdings[*at];
        if (holding->region == region && holding->kind == ML_HOLDING_MAPPED && node == 0) {
            node = holding->node;
        }
    }
    return node;
}

bool ml_sharing_add(struct ml_sharing *sharing, const struct ml_profile_process *process) {
    size_t holding = 0;

    for (size_t i = 0; i < process->regions_count; i++) {
        const struct ml_profile_region *region = &process->regions[i];
        const uint32_t node = mapper_of(process, i, &holding);

        if (region->inode == 0) {
            continue;
        }
        if (!ML_GROW(sharing->members, sharing->capacity, sharing->count + 1)) {
            return false;
        }
        sharing->members[sharing->count++] = (struct ml_sharing_member
        ){.device = region->device,
          .inode = region->inode,
          .process = process,
          .mapper = node != 0 ? process : NULL,
          .mapper_node = node,
          .resident = region->resident_kb * KIB,
          .proportional = region->proportional_kb * KIB};
    }
    return true;
}

static void mapper_take(struct ml_sharing_member *to, const struct ml_sharing_member *from) {
    if (!to->mapper) {
        to->mapper = from->mapper;
        to->mapper_node = from->mapper_node;
    }
}

/* Members of one object that do not know it learn the mapper from their neighbour. */
static void mapper_hand_on(const struct ml_sharing_member *from, struct ml_sharing_member *to) {
    if (object_order(from->device, from->inode, to) == 0) {
        mapper_take(to, from);
    }
}

/* One member for all mappings of an object in a process. */
void ml_sharing_finish(struct ml_sharing *sharing) {
    size_t kept = 0;

    ML_SORT(sharing->members, sharing->count, member_order);
    for (size_t i = 0; i < sharing->count; i++) {
        struct ml_sharing_member *last = kept > 0 ? &sharing->members[kept - 1] : NULL;

        if (last && member_order(last, &sharing->members[i]) == 0) {
            last->resident += sharing->members[i].resident;
            last->proportional += sharing->members[i].proportional;
            mapper_take(last, &sharing->members[i]);
        } else {
            sharing->members[kept++] = sharing->members[i];
        }
    }
    sharing->count = kept;
    for (size_t i = 1; i < kept; i++) {
        mapper_hand_on(&sharing->members[i - 1], &sharing->members[i]);
    }
    for (size_t i = kept; i > 1; i--) {
        mapper_hand_on(&sharing->members[i - 1], &sharing->members[i - 2]);
    }
}

void ml_sharing_fini(struct ml_sharing *sharing) {
    free(sharing->members);
    *sharing = (struct ml_sharing){0};
}

static size_t members_of(const struct ml_sharing *sharing, size_t first) {
    const struct ml_sharing_member *member = &sharing->members[first];
    size_t end = first;

    while (end < sharing->count &&
           object_order(member->device, member->inode, &sharing->members[end]) == 0) {
        end++;
    }
    return end - first;
}

size_t ml_sharing_find(
    const struct ml_sharing *sharing,
    const struct ml_profile_region *region,
    const struct ml_sharing_member **out_first
) {
    size_t low = 0;
    size_t high = sharing->count;

    while (region->inode != 0 && low < high) {
        const size_t middle = low + (high - low) / 2;
        if (object_order(region->device, region->inode, &sharing->members[middle]) > 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (region->inode == 0 || low == sharing->count ||
        object_order(region->device, region->inode, &sharing->members[low]) != 0) {
        return 0;
    }
    *out_first = &sharing->members[low];
    return members_of(sharing, low);
}

uint64_t ml_sharing_held_by_others(const struct ml_sharing *sharing) {
    uint64_t held = 0;

    for (size_t first = 0; first < sharing->count;) {
        const size_t count = members_of(sharing, first);
        uint64_t resident = 0;
        uint64_t proportional = 0;

        for (size_t i = first; i < first + count; i++) {
            const struct ml_sharing_member *member = &sharing->members[i];
            resident = member->resident > resident ? member->resident : resident;
            proportional += member->proportional;
        }
        held += resident > proportional ? resident - proportional : 0;
        first += count;
    }
    return held;
}

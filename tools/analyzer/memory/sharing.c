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

bool ml_sharing_add(struct ml_sharing *sharing, const struct ml_profile_process *process) {
    for (size_t i = 0; i < process->regions_count; i++) {
        const struct ml_profile_region *region = &process->regions[i];

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
          .resident = region->resident_kb * KIB,
          .proportional = region->proportional_kb * KIB};
    }
    return true;
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
        } else {
            sharing->members[kept++] = sharing->members[i];
        }
    }
    sharing->count = kept;
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

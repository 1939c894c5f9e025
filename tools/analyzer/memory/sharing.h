/* Which processes of a dump map the same file or shared memory. Room: tools. Context: one thread.
 *
 * One rule: two mappings are of one object if device and inode are equal. Pages that a fork left
 * shared have no object: the kernel does not say with whom. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_SHARING_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_SHARING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/analyzer/model/profile.h"

/* One object in one process. */
struct ml_sharing_member {
    uint64_t device, inode;
    const struct ml_profile_process *process;
    uint64_t resident, proportional; /* bytes, of all its mappings there */
    /* Whose stack of some process mapped it; NULL: that is not known. After ml_sharing_finish() of
     * all members: a child has what its parent mapped, without a stack of its own. */
    const struct ml_profile_process *mapper;
    uint32_t mapper_node; /* id */
};

struct ml_sharing {
    struct ml_sharing_member *members; /* by object, then process */
    size_t count, capacity;
};

/* Add the objects of a process; all of them are added before the first question. False: no memory.
 * An empty one is all zero. */
bool ml_sharing_add(struct ml_sharing *sharing, const struct ml_profile_process *process);
void ml_sharing_finish(struct ml_sharing *sharing);
void ml_sharing_fini(struct ml_sharing *sharing);

/* The members that have the region's object. 0: it has none. */
size_t ml_sharing_find(
    const struct ml_sharing *sharing,
    const struct ml_profile_region *region,
    const struct ml_sharing_member **out_first
);

/* At least so many resident bytes of their objects are charged to processes that were not added: an
 * object is as large as its largest member says, and the members' shares are their proportional
 * bytes. */
uint64_t ml_sharing_held_by_others(const struct ml_sharing *sharing);

#endif

/* What the kernel says of memories that have a limit: control groups of both versions, the machine.
 * Room: host. Context: any; reads only.
 *
 * One rule: what cannot be read is unknown, and never an error of the run. */
#ifndef MEMLOG_HOST_PROCESS_CGROUP_INFO_H
#define MEMLOG_HOST_PROCESS_CGROUP_INFO_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"

/* Where control groups are mounted; another root in tests. */
#define ML_CGROUP_ROOT "/sys/fs/cgroup"

#define ML_PRESSURE_FILE "/proc/pressure/memory"

enum { ML_MEMORY_NAME_BYTES = 256 };

/* A memory control group, as a folder. */
struct ml_cgroup {
    char folder[PATH_MAX];
    size_t mount_count; /* of `folder`: where groups are mounted */
    char
        name[ML_MEMORY_NAME_BYTES]; /* for people, "cgroup /x"; a long one has lost its beginning */
    bool unified;                   /* version 2 */
};

/* The group that a process is in, or the nearest one around it whose figures can be read. `cgroups`
 * is the text of /proc/PID/cgroup. False: there is none that can be read. */
bool ml_cgroup_find(const char *root, const char *cgroups, struct ml_cgroup *out_group);
bool ml_cgroup_of(pid_t pid, struct ml_cgroup *out_group);

/* To the next one around it: what is used in a group counts into all of those, and the limit of
 * each kills. False: there is none whose figures can be read, and the group is as it was. */
bool ml_cgroup_up(struct ml_cgroup *group);

/* Its own; 0: it has none. */
uint64_t ml_cgroup_limit_bytes(const struct ml_cgroup *group);

/* The least of its own and of those around it; 0: none has one. */
uint64_t ml_cgroup_least_limit_bytes(const struct ml_cgroup *group);

/* Whether what a process uses whose own group is the folder `own` counts into that one. */
bool ml_cgroup_holds(const struct ml_cgroup *group, const char *own);

/* Its figures; what is used is without what the page cache would give back at once. False: it is
 * gone. */
bool ml_cgroup_read(const struct ml_cgroup *group, struct memlog_service_observed_memory *out_info);

/* The machine. Source: /proc/meminfo, /proc/pressure/memory. */
bool ml_machine_read(struct memlog_service_observed_memory *out_info);

/* "avg10=" of a pressure file's two lines, in 1/100 %; 0 where there is none. */
void ml_pressure_parse(const char *text, uint32_t *out_some_100, uint32_t *out_full_100);

/* How often the kernel has ended a process for want of memory since it started; 0: not known.
 * Source: /proc/vmstat. */
uint64_t ml_oom_kills(void);

#endif

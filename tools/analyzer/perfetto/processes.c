#include "tools/analyzer/perfetto/processes.h"

#include <stdlib.h>
#include <string.h>

#include "ipc/trace/pid.h"

void ml_join_processes_fini(struct ml_join_processes *processes) {
    free(processes->items);
    ml_index_fini(&processes->index);
    *processes = (struct ml_join_processes){0};
}

void ml_join_members_fini(struct ml_join_members *members) {
    free(members->processes);
    free(members->by_pid);
    *members = (struct ml_join_members){0};
}

static uint64_t hash_of(uint32_t id, uint32_t pid) {
    return ml_hash(ml_hash(0, &id, sizeof id), &pid, sizeof pid);
}

/* The process, which is added if it is new; ML_JOIN_NONE: no memory. */
static uint32_t find_or_add(struct ml_join_processes *processes, uint32_t id, uint32_t pid) {
    const uint64_t hash = hash_of(id, pid);
    size_t at = 0;

    for (uint32_t i = ml_index_first(&processes->index, hash, &at); i != ML_INDEX_NONE;
         i = ml_index_next(&processes->index, hash, &at)) {
        if (processes->items[i].id == id && processes->items[i].pid == pid) {
            return i;
        }
    }
    if (!ML_GROW(processes->items, processes->capacity, processes->count + 1) ||
        !ml_index_add(&processes->index, hash, (uint32_t)processes->count)) {
        return ML_JOIN_NONE;
    }
    processes->items[processes->count] =
        (struct ml_join_process){.id = id, .pid = pid, .trace_pid = pid};
    return (uint32_t)processes->count++;
}

static int order(const void *left, const void *right, void *context) {
    const struct ml_join_process *items = context;
    const uint32_t one = *(const uint32_t *)left, other = *(const uint32_t *)right;
    const struct ml_join_process *a = &items[one], *b = &items[other];

    if (a->pid != b->pid) {
        return (a->pid > b->pid) - (a->pid < b->pid);
    }
    if (a->start_ns != b->start_ns) {
        return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
    }
    return (one > other) - (one < other);
}

/* Numbers of processes, by pid and then by time. */
static void sort_by_pid(const struct ml_join_processes *processes, uint32_t *which, size_t count) {
    if (count > 1) {
        qsort_r(which, count, sizeof *which, order, processes->items);
    }
}

bool ml_join_processes_learn(
    struct ml_join_processes *processes,
    const struct ml_profile *profile,
    size_t dump,
    struct ml_join_members *out_members
) {
    const size_t count = profile->processes_count + profile->others_count;

    out_members->processes = calloc(count + 1, sizeof *out_members->processes);
    out_members->by_pid = calloc(count + 1, sizeof *out_members->by_pid);
    if (!out_members->processes || !out_members->by_pid) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct ml_profile_process *one = i < profile->processes_count
                                                   ? &profile->processes[i]
                                                   : &profile->others[i - profile->processes_count];
        const uint32_t at = find_or_add(processes, one->id, one->pid);
        if (at == ML_JOIN_NONE) {
            return false;
        }
        processes->items[at].start_ns = one->start.monotonic_ns;
        processes->items[at].last_dump = dump;
        out_members->processes[out_members->count++] = at;
    }
    memcpy(out_members->by_pid, out_members->processes, count * sizeof *out_members->by_pid);
    sort_by_pid(processes, out_members->by_pid, count);
    return true;
}

bool ml_join_processes_settle(struct ml_join_processes *processes) {
    uint32_t *sorted = calloc(processes->count + 1, sizeof *sorted);

    if (!sorted) {
        return false;
    }
    for (uint32_t i = 0; i < processes->count; i++) {
        sorted[i] = i;
    }
    sort_by_pid(processes, sorted, processes->count);
    for (size_t i = 0; i + 1 < processes->count; i++) {
        if (processes->items[sorted[i]].pid == processes->items[sorted[i + 1]].pid) {
            processes->items[sorted[i]].trace_pid = ML_TRACE_PID_FORMER + sorted[i];
        }
    }
    free(sorted);
    return true;
}

uint32_t ml_join_process_of(
    const struct ml_join_processes *processes,
    const struct ml_join_members *members,
    uint64_t trace_pid
) {
    size_t low = 0;
    size_t high = members->count;

    if (trace_pid >= ML_TRACE_PID_FORMER) {
        const uint64_t at = trace_pid - ML_TRACE_PID_FORMER;
        return at < members->count ? members->processes[at] : ML_JOIN_NONE;
    }
    while (low < high) { /* the first behind those of that pid */
        const size_t middle = low + (high - low) / 2;
        if (processes->items[members->by_pid[middle]].pid <= trace_pid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low > 0 && processes->items[members->by_pid[low - 1]].pid == trace_pid
               ? members->by_pid[low - 1]
               : ML_JOIN_NONE;
}

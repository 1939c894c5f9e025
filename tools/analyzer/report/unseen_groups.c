#include "tools/analyzer/report/unseen_groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/formats/units.h"

/* A process begins or ends. */
struct step {
    uint64_t monotonic_ns;
    uint64_t bytes;
    bool is_end;
};

static bool is_recorded(const struct ml_profile_process *process) {
    return process->recording == ML_PROFILE_RECORDED;
}

static const char *reason_of(const struct ml_profile_process *process) {
    return is_recorded(process) ? process->unseen.bytes : process->not_recorded_reason.bytes;
}

/* "of 40.0 MiB private memory the heap explains 1.0 MiB: ..." */
static bool is_share(const char *reason) {
    return strncmp(reason, "of ", 3) == 0;
}

/* The reason without the figures of one process. */
static const char *kind_of(const struct ml_profile_process *process) {
    const char *reason = reason_of(process);
    const char *colon = strstr(reason, ": ");
    const bool has_figures = is_share(reason) || (reason[0] >= '0' && reason[0] <= '9');

    return is_recorded(process) && has_figures && colon ? colon + 2 : reason;
}

/* The name of the executable, since processes of one program may give themselves other names. */
static const char *program_of(const struct ml_profile_process *process) {
    const char *path = process->exe_path.bytes ? process->exe_path.bytes : "";
    const char *name = basename(path);

    return name[0] || !process->name.bytes ? name : process->name.bytes;
}

static int order_kinds(const void *left, const void *right) {
    const struct ml_profile_process *a = *(const struct ml_profile_process *const *)left;
    const struct ml_profile_process *b = *(const struct ml_profile_process *const *)right;
    const int names = strcmp(program_of(a), program_of(b));

    if (is_recorded(a) != is_recorded(b)) {
        return is_recorded(a) ? -1 : 1;
    }
    return names != 0 ? names : strcmp(kind_of(a), kind_of(b));
}

static int order_steps(const void *left, const void *right) {
    const struct step *a = left;
    const struct step *b = right;

    if (a->monotonic_ns != b->monotonic_ns) {
        return a->monotonic_ns < b->monotonic_ns ? -1 : 1;
    }
    return (int)b->is_end - (int)a->is_end; /* at one time, ends come before beginnings */
}

static int order_groups(const void *left, const void *right) {
    const struct ml_unseen_group *a = left;
    const struct ml_unseen_group *b = right;

    if (a->most_bytes != b->most_bytes) {
        return a->most_bytes < b->most_bytes ? 1 : -1;
    }
    return (a->processes < b->processes) - (a->processes > b->processes);
}

/* The most private memory at one time, by the last or the largest reading of each process. */
static uint64_t
most_at_once(const struct ml_profile_process *const *some, size_t count, struct step *steps) {
    size_t steps_count = 0;
    uint64_t now_bytes = 0;
    uint64_t most_bytes = 0;

    for (size_t i = 0; i < count; i++) {
        const struct ml_profile_process *one = some[i];
        const uint64_t bytes = ml_profile_private_bytes(one);
        if (one->folded_processes > 0) { /* its figure is the largest of several processes */
            most_bytes = bytes > most_bytes ? bytes : most_bytes;
            continue;
        }
        steps[steps_count++] =
            (struct step){.monotonic_ns = one->start.monotonic_ns, .bytes = bytes};
        if (one->state != MEMLOG_SERVICE_PROCESS_STATE_RUNNING) {
            steps[steps_count++] = (struct step
            ){.monotonic_ns = one->end.monotonic_ns, .bytes = bytes, .is_end = true};
        }
    }
    qsort(steps, steps_count, sizeof *steps, order_steps);
    for (size_t i = 0; i < steps_count; i++) {
        if (!steps[i].is_end) {
            now_bytes += steps[i].bytes;
        } else {
            now_bytes -= steps[i].bytes <= now_bytes ? steps[i].bytes : now_bytes;
        }
        most_bytes = now_bytes > most_bytes ? now_bytes : most_bytes;
    }
    return most_bytes;
}

/* An entry for a program that ran without memlog and is not in the list of processes. */
static struct ml_profile_process process_of(const struct ml_profile_not_profiled *one) {
    const char *name = basename(one->path.bytes);

    return (struct ml_profile_process
    ){.pid = one->pid,
      .name = {.bytes = name[0] ? name : "a program", .count_bytes = strlen(name)},
      .recording = ML_PROFILE_UNRECORDED,
      .not_recorded_reason = one->reason};
}

/* Collect the processes with unseen memory, not sorted. `made` receives entries for programs
 * without a process. */
static size_t collect(
    const struct ml_profile *profile,
    enum ml_unseen_whose whose,
    const struct ml_profile_process **out_order,
    struct ml_profile_process *made
) {
    size_t count = 0;

    for (size_t i = 0; i < profile->others_count; i++) {
        if (ml_profile_hides(&profile->others[i])) {
            out_order[count++] = &profile->others[i];
        }
    }
    if (whose == ML_UNSEEN_UNRECORDED) {
        return count;
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (profile->processes[i].unseen.count_bytes > 0) {
            out_order[count++] = &profile->processes[i];
        }
    }
    for (size_t i = 0; i < profile->not_profiled_count; i++) {
        if (!profile->not_profiled[i].is_listed) {
            made[i] = process_of(&profile->not_profiled[i]);
            out_order[count++] = &made[i];
        }
    }
    return count;
}

static struct ml_unseen_group
group_of(const struct ml_profile_process *const *some, size_t count, struct step *steps) {
    struct ml_unseen_group group = {
        .largest = some[0],
        .name = some[0]->name.bytes,
        .most_bytes = most_at_once(some, count, steps)};

    for (size_t i = 0; i < count; i++) {
        group.processes += ml_profile_stands_for(some[i]);
        if (ml_profile_private_bytes(some[i]) > ml_profile_private_bytes(group.largest)) {
            group.largest = some[i];
        }
        if (strcmp(some[i]->name.bytes, group.name) != 0) {
            group.name = program_of(some[i]);
        }
    }
    return group;
}

struct ml_unseen_group *
ml_unseen_groups(const struct ml_profile *profile, enum ml_unseen_whose whose, size_t *out_count) {
    const size_t made_count = profile->not_profiled_count;
    const size_t room = profile->processes_count + profile->others_count + made_count + 1;
    /* The made entries are behind the groups. The groups point to them, so both must live equally
     * long. */
    struct ml_unseen_group *groups =
        calloc(1, room * sizeof *groups + made_count * sizeof(struct ml_profile_process));
    struct step *steps = calloc(2 * room, sizeof *steps);
    const struct ml_profile_process **order = calloc(room, sizeof *order);
    size_t count = 0;
    size_t groups_count = 0;

    if (groups && steps && order) {
        count = collect(profile, whose, order, (struct ml_profile_process *)(groups + room));
    }
    ML_SORT(order, count, order_kinds);
    for (size_t from = 0, to = 0; from < count; from = to) {
        while (to < count && order_kinds(&order[from], &order[to]) == 0) {
            to++;
        }
        groups[groups_count++] = group_of(&order[from], to - from, steps);
    }
    ML_SORT(groups, groups_count, order_groups);
    free(steps);
    free(order);
    *out_count = groups_count;
    return groups;
}

static void add(char out_text[ML_UNSEEN_WORDS_BYTES], const char *before, const char *part) {
    const size_t used = strlen(out_text);

    snprintf(out_text + used, ML_UNSEEN_WORDS_BYTES - used, "%s%s", before, part);
}

const char *ml_unseen_group_words(
    const struct ml_unseen_group *group, bool is_brief, char out_text[ML_UNSEEN_WORDS_BYTES]
) {
    const struct ml_profile_process *largest = group->largest;
    const bool several = group->processes > 1;
    const char *reason = several ? kind_of(largest) : reason_of(largest);
    char part[2 * ML_UNITS_BYTES];
    const char *before = ": ";
    size_t used = 0;
    char *detail = NULL;

    snprintf(out_text, ML_UNSEEN_WORDS_BYTES, "%.64s", group->name);
    if (several) {
        snprintf(part, sizeof part, "%s processes", ml_units_count(group->processes).text);
        add(out_text, before, part);
        before = ", ";
    }
    if (group->most_bytes > 0 && !is_share(reason)) { /* such a reason names the memory itself */
        snprintf(
            part,
            sizeof part,
            "%s%s private",
            several ? "up to " : "",
            ml_units_size(group->most_bytes).text
        );
        add(out_text, before, part);
        before = ", ";
    }
    if (!is_recorded(largest)) {
        add(out_text, before, "not recorded");
    }
    add(out_text,
        reason[0] ? ": " : "",
        several && is_share(reason_of(largest)) ? "the heap explains little of it: " : "");
    used = strlen(out_text);
    add(out_text, "", reason);
    detail = strstr(out_text + used, ": ");
    if (is_brief && detail) {
        *detail = '\0';
    }
    return out_text;
}

const char *ml_unseen_rest_words(
    const struct ml_unseen_group *groups, size_t count, char out_text[ML_UNSEEN_WORDS_BYTES]
) {
    uint64_t processes = 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < count; i++) {
        processes += groups[i].processes;
        bytes += groups[i].most_bytes;
    }
    snprintf(
        out_text,
        ML_UNSEEN_WORDS_BYTES,
        "... and %s more process%s of %zu kind%s, %s at most",
        ml_units_count(processes).text,
        processes == 1 ? "" : "es",
        count,
        count == 1 ? "" : "s",
        ml_units_size(bytes).text
    );
    return out_text;
}

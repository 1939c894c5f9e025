/* Processes of one program told as one: at last, when a body has no room for each. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/upload/internal.h"

/* Such a process has no pid; above PID_MAX_LIMIT (2^22), so that none has its number. */
enum { PID_PROGRAM = 5000000 };

/* Where modules of such a process are told to be: those of its processes lay anywhere, and may have
 * lain over each other. */
enum { PAGE_BYTES = 4096 };

static bool text_eq(const struct ml_profile_text *a, const struct ml_profile_text *b) {
    return a->count_bytes == b->count_bytes &&
           (a->count_bytes == 0 || memcmp(a->bytes, b->bytes, a->count_bytes) == 0);
}

static bool
is_same_program(const struct ml_profile_process *a, const struct ml_profile_process *b) {
    return text_eq(&a->name, &b->name) && text_eq(&a->exe_path, &b->exe_path);
}

/* The first process of each one's program; the one that a trigger fired for stays apart. */
static void find_programs(const struct ml_profile *profile, size_t *out_programs) {
    const uint32_t apart = profile->trigger.process_id;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *one = &profile->processes[i];
        size_t first = 0;
        while (first < i && (one->id == apart || out_programs[first] != first ||
                             profile->processes[first].id == apart ||
                             !is_same_program(one, &profile->processes[first]))) {
            first++;
        }
        out_programs[i] = first;
    }
}

/* Tell of the module behind those that are told so far, if its file is not there yet. False: no
 * memory. */
static bool module_add(
    struct ml_profile_process *sum,
    const struct ml_profile_process *process,
    const struct ml_profile_module *module
) {
    const struct ml_profile_text path = ml_profile_module_path(process, module);
    uint64_t start = PAGE_BYTES;

    for (size_t i = 0; i < sum->modules_count; i++) {
        if (text_eq(&sum->modules[i].path, &path) &&
            text_eq(&sum->modules[i].build_id, &module->build_id)) {
            return true;
        }
        start = (sum->modules[i].end + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    }
    if (!ml_grow(
            (void **)&sum->modules,
            &sum->modules_capacity,
            sum->modules_count + 1,
            sizeof sum->modules[0]
        )) {
        return false;
    }
    struct ml_profile_module *added = &sum->modules[sum->modules_count++];
    *added = *module;
    added->path = path;
    added->start = start;
    added->end = start + (module->end - module->start);
    added->bias = (int64_t)((uint64_t)module->bias + (start - module->start));
    return true;
}

/* One more process of the program. What each held at its own peak adds up to nothing that ever was,
 * so no peak is told. False: no memory. */
static bool process_add(struct ml_profile_process *sum, const struct ml_profile_process *process) {
    bool done = true;

    sum->footprint_bytes += process->footprint_bytes;
    sum->resident_bytes += process->resident_bytes;
    ml_profile_totals_add(&sum->totals, &process->totals);
    sum->totals.peak_bytes = 0;
    for (size_t i = 0; done && i < process->modules_count; i++) {
        done = module_add(sum, process, &process->modules[i]);
    }
    return done;
}

static bool list_add(struct ml_stack_list *sum, struct ml_stack_list *take_list) {
    bool done = ml_stack_list_reserve(sum, sum->count + take_list->count);

    for (size_t i = 0; done && i < take_list->count; i++) {
        sum->stacks[sum->count++] = take_list->stacks[i];
    }
    free(take_list->stacks);
    *take_list = (struct ml_stack_list){0};
    ml_stack_list_finish(sum);
    return done;
}

/* All processes of the program whose first one that is. False: no memory. */
static bool program_make(
    struct ml_upload_programs *programs,
    const struct ml_profile *profile,
    struct ml_stacks *stacks,
    const size_t *firsts,
    size_t first
) {
    char name[sizeof " (18446744073709551615 processes)"];
    const struct ml_profile_process *process = &profile->processes[first];
    struct ml_profile_process *sum =
        &programs->profile.processes[programs->profile.processes_count];
    struct ml_stack_list *list = &stacks->processes[first];
    size_t count = 1;
    char *told = NULL;
    bool done = true;

    for (size_t i = first + 1; i < profile->processes_count; i++) {
        count += firsts[i] == first;
    }
    if (count == 1) {
        *sum = *process;
        sum->modules_capacity = 0; /* the profile's own */
        programs->profile.processes_count++;
        return true;
    }
    *sum = (struct ml_profile_process
    ){.pid = PID_PROGRAM + (uint32_t)first, .exe_path = process->exe_path};
    programs->profile.processes_count++;
    for (size_t i = first; done && i < profile->processes_count; i++) {
        done = firsts[i] != first || process_add(sum, &profile->processes[i]);
        if (done && i > first && firsts[i] == first) {
            done = list_add(list, &stacks->processes[i]);
        }
    }
    snprintf(name, sizeof name, " (%zu processes)", count);
    told = ml_arena_take(&programs->arena, process->name.count_bytes + sizeof name);
    if (!done || !told) {
        return false;
    }
    memcpy(told, process->name.bytes, process->name.count_bytes);
    strcpy(told + process->name.count_bytes, name);
    sum->name = (struct ml_profile_text){.bytes = told, .count_bytes = strlen(told)};
    programs->told_as_one += count;
    return true;
}

bool ml_upload_programs_init(
    struct ml_upload_programs *programs, const struct ml_profile *profile, struct ml_stacks *stacks
) {
    size_t *firsts = calloc(profile->processes_count + 1, sizeof *firsts);
    bool done = true;

    *programs = (struct ml_upload_programs){.profile = *profile};
    programs->profile.processes =
        calloc(profile->processes_count + 1, sizeof programs->profile.processes[0]);
    programs->profile.processes_count = 0;
    done = firsts && programs->profile.processes;
    if (done) {
        find_programs(profile, firsts);
    }
    for (size_t i = 0; done && i < profile->processes_count; i++) {
        done = firsts[i] != i || program_make(programs, profile, stacks, firsts, i);
    }
    stacks->processes_count = done ? 0 : stacks->processes_count;
    for (size_t i = 0; done && i < profile->processes_count; i++) {
        if (firsts[i] == i) {
            const struct ml_stack_list list = stacks->processes[i];
            stacks->processes[i] = (struct ml_stack_list){0};
            stacks->processes[stacks->processes_count++] = list;
        }
    }
    free(firsts);
    return done;
}

void ml_upload_programs_fini(struct ml_upload_programs *programs) {
    for (size_t i = 0; i < programs->profile.processes_count; i++) {
        if (programs->profile.processes[i].modules_capacity > 0) {
            free(programs->profile.processes[i].modules);
        }
    }
    free(programs->profile.processes);
    ml_arena_fini(&programs->arena);
    *programs = (struct ml_upload_programs){0};
}

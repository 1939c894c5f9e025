#include "tools/analyzer/stacks/module_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/stacks/process_pairs.h"

static bool is_called(const struct ml_stacks *stacks, const char *name) {
    for (size_t i = 0; i < stacks->files_count; i++) {
        if (strcmp(basename(stacks->files[i].path.bytes), name) == 0) {
            return true;
        }
    }
    return false;
}

static const char *same_build(const struct ml_stacks *from, const struct ml_code_file *file) {
    for (size_t i = 0; file->build_id.count_bytes > 0 && i < from->files_count; i++) {
        if (ml_profile_text_eq(from->files[i].build_id, file->build_id)) {
            return basename(from->files[i].path.bytes);
        }
    }
    return NULL;
}

/* The length of "libx" in "libx.so.1.2"; 0: the name is not of a shared library. */
static size_t stem_bytes(const char *name) {
    const char *end = strstr(name, ".so");

    return end && (end[3] == '\0' || end[3] == '.') ? (size_t)(end - name) : 0;
}

/* The name of another version of the library. No file of `to` may have that name already. */
static const char *same_library(
    const struct ml_stacks *from, const struct ml_stacks *to, const struct ml_code_file *file
) {
    const char *name = basename(file->path.bytes);
    const size_t stem = stem_bytes(name);

    for (size_t i = 0; stem > 0 && i < from->files_count; i++) {
        const char *other = basename(from->files[i].path.bytes);
        if (stem_bytes(other) == stem && memcmp(other, name, stem) == 0 && !is_called(to, other)) {
            return other;
        }
    }
    return NULL;
}

/* The file number of a process's program; ML_STACKS_NONE: no stack has it. */
static uint32_t
program_of(const struct ml_stacks *stacks, const struct ml_profile_process *process) {
    for (size_t m = 0; m < process->modules_count; m++) {
        const struct ml_profile_module *module = &process->modules[m];
        const struct ml_profile_text path = ml_profile_module_path(process, module);
        for (uint32_t i = 0; module->path.count_bytes == 0 && i < stacks->files_count; i++) {
            if (ml_profile_text_eq(stacks->files[i].path, path) &&
                ml_profile_text_eq(stacks->files[i].build_id, module->build_id)) {
                return i;
            }
        }
    }
    return ML_STACKS_NONE;
}

/* Pair the programs of paired processes. A program that has a pair keeps it. False: no memory. */
static bool
name_programs(const struct ml_stacks *from, const struct ml_stacks *to, const char **names) {
    struct ml_process_pair *pairs = NULL;
    size_t count = 0;

    if (!ml_process_pairs(from->profile, to->profile, &pairs, &count)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (pairs[i].before == SIZE_MAX || pairs[i].after == SIZE_MAX) {
            continue;
        }
        const uint32_t before = program_of(from, &from->profile->processes[pairs[i].before]);
        const uint32_t after = program_of(to, &to->profile->processes[pairs[i].after]);
        if (before != ML_STACKS_NONE && after != ML_STACKS_NONE && !names[after] &&
            !is_called(to, basename(from->files[before].path.bytes))) {
            names[after] = basename(from->files[before].path.bytes);
        }
    }
    free(pairs);
    return true;
}

const char **ml_module_names(const struct ml_stacks *from, const struct ml_stacks *to) {
    const char **names = calloc(to->files_count + 1, sizeof *names);

    if (!names) {
        return NULL;
    }
    for (size_t i = 0; i < to->files_count; i++) {
        const char *name = basename(to->files[i].path.bytes);
        names[i] = same_build(from, &to->files[i]);
        if (!names[i] && is_called(from, name)) {
            names[i] = name;
        }
    }
    if (!name_programs(from, to, names)) {
        free(names);
        return NULL;
    }
    for (size_t i = 0; i < to->files_count; i++) {
        if (!names[i]) {
            names[i] = same_library(from, to, &to->files[i]);
        }
        if (!names[i]) {
            names[i] = basename(to->files[i].path.bytes);
        }
    }
    return names;
}

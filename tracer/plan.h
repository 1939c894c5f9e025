/* What of a process's code is hooked when memlog comes to it: which functions of which objects, and
 * how. Room: tracer. Context: one thread; the process goes on.
 *
 * One rule: files and code are the process's, and may be anything. They are looked at by a child of
 * this program that can do nothing but compute (compute_only.h). What it says is checked
 * here before it is used. */
#ifndef MEMLOG_TRACER_PLAN_H
#define MEMLOG_TRACER_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/entry/families.h"
#include "base/error_message.h"
#include "ipc/attach/block.h"
#include "tracer/process/maps.h"

enum {
    ML_PLAN_OBJECTS_MAX = 1024,
    ML_PLAN_CODE_MAX = ML_FAMILIES_CODE_MAX,
    ML_PLAN_ROOM_BYTES = ML_ATTACH_FUNCTIONS_MAX * ML_FAMILIES_ROOM_BYTES
};

/* One function that is to be hooked. */
struct ml_plan_function {
    struct ml_attach_function function;
    uint32_t object;
    uint8_t trampoline[ML_ENTRY_TRAMPOLINE_MAX];
    uint32_t trampoline_bytes;
};

/* An ELF file that has code in the process. */
struct ml_plan_object {
    const char *path; /* borrowed from the maps */
    uint64_t low, high;
    struct {
        uint64_t start, end;
    } code[ML_PLAN_CODE_MAX];
    uint32_t code_count;
    const uint8_t *file;
    size_t file_bytes;
    uint8_t *memory[ML_PLAN_CODE_MAX]; /* its code, as it is */
    uint64_t room; /* ML_PLAN_ROOM_BYTES within its reach, not mapped yet; 0: there is none */
};

/* What the child says. */
struct ml_plan_answer {
    uint32_t functions_count;
    struct ml_plan_function functions[ML_ATTACH_FUNCTIONS_MAX];
    uint64_t find_object, errno_location;
    uint32_t allocators; /* functions of allocators among them */
    uint32_t has_libc;
    uint32_t is_go; /* the executable was made by Go's linker */
    char refused[ML_ENTRIES_REFUSED_BYTES];
    uint32_t malloc_object; /* whose malloc is called: 1 and its index; 0: none is known */
    /* Of the first look, by object. */
    uint8_t has_family[ML_PLAN_OBJECTS_MAX];
    uint8_t is_libc[ML_PLAN_OBJECTS_MAX];
};

struct ml_plan {
    struct ml_plan_object objects[ML_PLAN_OBJECTS_MAX];
    uint32_t objects_count;
    struct ml_plan_answer *answer; /* shared with the child */
};

/* Look at all objects, and plan. `allocators` is as --allocator gives it. False, with an error
 * message: nothing can be hooked; it says why, and what to do. */
bool ml_plan_make(
    struct ml_plan *plan,
    pid_t pid,
    int memory_fd,
    struct ml_maps *maps,
    const char *allocators,
    struct ml_error_message *error
);

/* Whether the object still lies where it was planned, by what is mapped now. */
bool ml_plan_is_there(const struct ml_plan_object *object, const struct ml_maps *now);

void ml_plan_free(struct ml_plan *plan);

#endif

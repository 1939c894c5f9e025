#include "tracer/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tracer/compute_only.h"
#include "tracer/process/memory.h"
#include "tracer/plan_internal.h"

enum { HEADER_BYTES = 64, FILE_MAX_BYTES = INT_MAX };

/* ---- the objects */

static bool is_object(const struct ml_maps *maps, const struct ml_map *map) {
    return map->inode != 0 && ml_maps_path(maps, map)[0] == '/';
}

/* One object's mappings lie one behind the other. */
static void find_objects(struct ml_plan *plan, const struct ml_maps *maps) {
    struct ml_plan_object *object = NULL;
    const struct ml_map *last = NULL;
    for (size_t i = 0; i < maps->count; i++) {
        const struct ml_map *map = &maps->list[i];
        const bool is_same = object != NULL && last != NULL && map->inode == last->inode &&
                             map->device == last->device && map->offset != 0;
        if (!is_object(maps, map)) {
            if (object != NULL && map->start == object->high) {
                object->high = map->end; /* its zeros */
            }
            continue;
        }
        if (!is_same) {
            object = NULL;
            if (map->offset == 0 && map->is_readable && plan->objects_count < ML_PLAN_OBJECTS_MAX) {
                object = &plan->objects[plan->objects_count++];
                *object =
                    (struct ml_plan_object){.path = ml_maps_path(maps, map), .low = map->start};
            }
        }
        last = map;
        if (object == NULL) {
            continue;
        }
        object->high = map->end;
        if (map->is_executable && !map->is_writable && object->code_count < ML_PLAN_CODE_MAX) {
            object->code[object->code_count].start = map->start;
            object->code[object->code_count].end = map->end;
            object->code_count++;
        }
    }
}

/* A file by the name that the maps have for it, as the process's root has it. The kernel tells
 * names from the reader's root, or from the top of the process's mounts: what lies below the
 * process's root is looked for from there. */
static int open_below_root(pid_t pid, const char *name) {
    enum { FLAGS = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY };
    char link[64];
    char root[PATH_MAX];
    char path[PATH_MAX + sizeof(link)];
    (void)snprintf(link, sizeof(link), "/proc/%d/root", (int)pid);
    (void)snprintf(path, sizeof(path), "%s%s", link, name);
    const int fd = open(path, FLAGS);
    const ssize_t count = fd < 0 ? readlink(link, root, sizeof(root) - 1) : -1;
    if (count <= 1 || strncmp(name, root, (size_t)count) != 0 || name[count] != '/') {
        return fd;
    }
    (void)snprintf(path, sizeof(path), "%s%s", link, name + count);
    return open(path, FLAGS);
}

/* The file, as the process's own root has it, or its executable. */
static int open_object(pid_t pid, const struct ml_plan_object *object, bool is_program) {
    char path[64];
    if (!is_program) {
        return open_below_root(pid, object->path);
    }
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The file counts only where what is loaded begins as it does: it may have been replaced. */
static bool is_loaded(int memory_fd, const struct ml_plan_object *object) {
    uint8_t header[HEADER_BYTES];
    return object->file_bytes > HEADER_BYTES &&
           ml_memory_read(memory_fd, object->low, header, sizeof(header)) &&
           memcmp(header, object->file, sizeof(header)) == 0;
}

static void map_object(pid_t pid, int memory_fd, struct ml_plan_object *object, bool is_program) {
    struct stat about;
    const int fd = open_object(pid, object, is_program);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > HEADER_BYTES &&
        about.st_size < FILE_MAX_BYTES) {
        void *file = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (file != MAP_FAILED) {
            object->file = file;
            object->file_bytes = (size_t)about.st_size;
            if (!is_loaded(memory_fd, object)) {
                (void)munmap(file, object->file_bytes);
                object->file = NULL;
                object->file_bytes = 0;
            }
        }
    }
    (void)close(fd);
}

static void read_program_path(pid_t pid, char out_path[PATH_MAX]) {
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    const ssize_t count = readlink(link, out_path, PATH_MAX - 1);
    out_path[count > 0 ? count : 0] = '\0';
}

/* Objects without code, or whose file cannot be had, are left out. */
static void map_objects(struct ml_plan *plan, pid_t pid, int memory_fd) {
    uint32_t kept = 0;
    char program[PATH_MAX];
    read_program_path(pid, program);
    for (uint32_t i = 0; i < plan->objects_count; i++) {
        struct ml_plan_object *object = &plan->objects[i];
        if (object->code_count > 0) {
            map_object(pid, memory_fd, object, strcmp(object->path, program) == 0);
        }
        if (object->file != NULL) {
            plan->objects[kept++] = *object;
        }
    }
    plan->objects_count = kept;
}

static bool read_code(struct ml_plan *plan, int memory_fd, uint32_t index) {
    struct ml_plan_object *object = &plan->objects[index];
    for (uint32_t i = 0; i < object->code_count; i++) {
        const size_t bytes = (size_t)(object->code[i].end - object->code[i].start);
        object->memory[i] = malloc(bytes);
        if (object->memory[i] == NULL ||
            !ml_memory_read(memory_fd, object->code[i].start, object->memory[i], bytes)) {
            return false;
        }
    }
    return true;
}

/* ---- the child */

/* How the child ended, or that there was none. */
enum apart { APART_DONE, APART_OPEN, APART_DIED };

enum { EXIT_OPEN = 1 };

/* Nothing but to compute. */
static enum apart compute_apart(
    struct ml_plan *plan, const char *allocators, void (*compute)(struct ml_plan *, const char *)
) {
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
        (void)setrlimit(RLIMIT_CORE, &none);
        if (ml_compute_only()) {
            compute(plan, allocators);
            (void)syscall(SYS_exit, 0);
        }
        _exit(EXIT_OPEN);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0 || !WIFEXITED(status)) {
        return APART_DIED;
    }
    return WEXITSTATUS(status) == 0 ? APART_DONE : APART_OPEN;
}

/* Whether it was computed, with an error message otherwise; `what` is looked at. */
static bool was_computed(enum apart apart, const char *what, struct ml_error_message *error) {
    if (apart == APART_OPEN) {
        ml_error_set(
            error,
            "its %s are looked at behind a wall of seccomp alone, and this kernel, or a filter, "
            "grants none",
            what
        );
    } else if (apart == APART_DIED) {
        ml_error_set(error, "its %s cannot be made sense of", what);
    }
    return apart == APART_DONE;
}

/* ---- what it said */

static bool is_in_code(const struct ml_plan_object *object, uint64_t at, uint64_t bytes) {
    for (uint32_t i = 0; i < object->code_count; i++) {
        if (at >= object->code[i].start && at < object->code[i].end &&
            bytes <= object->code[i].end - at) {
            return true;
        }
    }
    return false;
}

/* A jump from the entry to the stub, in place of what stands there; the stub in the object's room.
 */
static bool is_sound(const struct ml_plan *plan, const struct ml_plan_function *one) {
    const struct ml_attach_function *function = &one->function;
    if (one->object >= plan->objects_count || one->trampoline_bytes == 0 ||
        one->trampoline_bytes > ML_ENTRY_TRAMPOLINE_MAX || function->hook >= ML_ATTACH_HOOK_COUNT ||
        function->is_on != 1) {
        return false;
    }
    const struct ml_plan_object *object = &plan->objects[one->object];
    int32_t distance = 0;
    memcpy(&distance, function->jump + 1, sizeof(distance));
    const uint64_t behind = function->entry + ML_ATTACH_ENTRY_BYTES;
    return object->room != 0 && function->stub >= object->room &&
           function->stub - object->room <= ML_PLAN_ROOM_BYTES - ML_FAMILIES_ROOM_BYTES &&
           (function->stub - object->room) % ML_FAMILIES_ROOM_BYTES == 0 &&
           function->next == function->stub + ML_FAMILIES_TRAMPOLINE_AT &&
           is_in_code(object, function->entry, ML_ATTACH_ENTRY_BYTES) &&
           function->jump[0] == 0xe9 && behind + (uint64_t)(int64_t)distance == function->stub;
}

static bool check(struct ml_plan *plan) {
    struct ml_plan_answer *answer = plan->answer;
    answer->refused[sizeof(answer->refused) - 1] = '\0';
    bool sound = answer->functions_count <= ML_ATTACH_FUNCTIONS_MAX &&
                 answer->malloc_object <= plan->objects_count;
    for (uint32_t i = 0; sound && i < answer->functions_count; i++) {
        sound = is_sound(plan, &answer->functions[i]);
    }
    return sound;
}

/* ---- all of it */

static bool prepare(struct ml_plan *plan, int memory_fd, struct ml_maps *maps) {
    for (uint32_t i = 0; i < plan->objects_count; i++) {
        struct ml_plan_object *object = &plan->objects[i];
        if (!plan->answer->has_family[i] && !plan->answer->is_libc[i]) {
            continue;
        }
        object->room = ml_maps_room(maps, object->low, object->high, ML_PLAN_ROOM_BYTES);
        if (object->room == 0 || !ml_maps_take(maps, object->room, ML_PLAN_ROOM_BYTES)) {
            return false;
        }
        if (!read_code(plan, memory_fd, i)) {
            object->room = 0; /* the program has unloaded it meanwhile */
        }
    }
    return true;
}

static bool say_nothing_found(const struct ml_plan *plan, struct ml_error_message *error) {
    if (plan->answer->is_go != 0 && plan->answer->allocators == 0) {
        ml_error_set(
            error,
            "it is a Go program without libc's allocator: its own heap profile (pprof) tells of it"
        );
    } else if (plan->answer->refused[0] != '\0') {
        ml_error_set(error, "its allocator cannot be hooked: %s", plan->answer->refused);
    } else {
        ml_error_set(
            error,
            "no allocator is found in it: it is linked statically and stripped, or its files are "
            "gone. "
            "Start it under memlog run, or keep its symbols"
        );
    }
    return false;
}

bool ml_plan_make(
    struct ml_plan *plan,
    pid_t pid,
    int memory_fd,
    struct ml_maps *maps,
    const char *allocators,
    struct ml_error_message *error
) {
    memset(plan, 0, sizeof(*plan));
    plan->answer = mmap(
        NULL, sizeof(*plan->answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0
    );
    if (plan->answer == MAP_FAILED) {
        plan->answer = NULL;
        ml_error_set(error, "memory ran out");
        return false;
    }
    find_objects(plan, maps);
    map_objects(plan, pid, memory_fd);
    if (!was_computed(compute_apart(plan, allocators, ml_plan_look), "files", error)) {
        return false;
    }
    if (!prepare(plan, memory_fd, maps)) {
        ml_error_set(error, "no memory is free within reach of its code, or it has ended");
        return false;
    }
    enum apart apart = compute_apart(plan, allocators, ml_plan_compute);
    if (apart == APART_DONE && !check(plan)) {
        apart = APART_DIED;
    }
    if (!was_computed(apart, "functions", error)) {
        return false;
    }
    return plan->answer->allocators > 0 ? true : say_nothing_found(plan, error);
}

bool ml_plan_is_there(const struct ml_plan_object *object, const struct ml_maps *now) {
    for (uint32_t i = 0; i < object->code_count; i++) {
        const struct ml_map *map = ml_maps_at(now, object->code[i].start);
        if (map == NULL || map->start != object->code[i].start || !map->is_executable ||
            strcmp(ml_maps_path(now, map), object->path) != 0) {
            return false;
        }
    }
    return true;
}

void ml_plan_free(struct ml_plan *plan) {
    for (uint32_t i = 0; i < plan->objects_count; i++) {
        struct ml_plan_object *object = &plan->objects[i];
        for (uint32_t k = 0; k < object->code_count; k++) {
            free(object->memory[k]);
        }
        (void)munmap((void *)(uintptr_t)object->file, object->file_bytes);
    }
    if (plan->answer != NULL) {
        (void)munmap(plan->answer, sizeof(*plan->answer));
    }
    memset(plan, 0, sizeof(*plan));
}

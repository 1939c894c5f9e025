/* What the planner's child computes. */
#include <string.h>

#include "base/entry/elf_functions.h"
#include "tracer/plan_internal.h"

/* Large, and the child's alone. */
static struct ml_families families;
static struct ml_families_code texts[ML_PLAN_CODE_MAX]; /* of the object that is looked at */

/* ---- the first look */

struct look {
    struct ml_plan *plan;
    uint32_t object;
    uint64_t base;
    bool has_malloc, has_start, throws;
};

static bool see(void *context, const struct ml_elf_function *function) {
    struct look *look = context;
    if (strcmp(function->name, "_dl_find_object") == 0 && !function->is_indirect) {
        look->plan->answer->find_object = look->base + function->address;
    }
    if (strcmp(function->name, "__errno_location") == 0 && !function->is_indirect) {
        look->plan->answer->errno_location = look->base + function->address;
    }
    look->has_malloc = look->has_malloc || strcmp(function->name, "malloc") == 0;
    look->has_start = look->has_start || strcmp(function->name, "__libc_start_main") == 0;
    return true;
}

/* How far off where it was linked for it lies. */
static uint64_t base_of(const struct ml_plan_object *object) {
    uint64_t lowest = 0;
    return ml_elf_lowest_load(object->file, object->file_bytes, &lowest) == ML_ELF_READ
               ? object->low - (lowest & ~UINT64_C(4095))
               : object->low;
}

static void begin(const struct ml_plan_object *object, const char *allocators) {
    memset(&families, 0, sizeof(families));
    families.file = object->file;
    families.file_bytes = object->file_bytes;
    families.base = base_of(object);
    (void)ml_allocator_families_read(allocators, strlen(allocators), &families.given);
}

static bool is_loader(const char *path) {
    const char *slash = strrchr(path, '/');
    return strncmp(slash != NULL ? slash + 1 : path, "ld-linux", 8) == 0;
}

static bool is_go(const struct ml_plan_object *program) {
    static const char mark[] = "\xff Go buildinf:";
    return memmem(program->file, program->file_bytes, mark, sizeof(mark) - 1) != NULL;
}

void ml_plan_look(struct ml_plan *plan, const char *allocators) {
    struct ml_plan_answer *answer = plan->answer;
    answer->is_go = plan->objects_count > 0 && is_go(&plan->objects[0]);
    for (uint32_t i = 0; i < plan->objects_count; i++) {
        const struct ml_plan_object *object = &plan->objects[i];
        struct look look = {.plan = plan, .object = i, .base = base_of(object)};
        (void)ml_elf_functions_each(object->file, object->file_bytes, see, &look);
        answer->is_libc[i] = look.has_start;
        answer->has_libc = answer->has_libc != 0 || look.has_start;
        begin(object, allocators);
        answer->has_family[i] = !is_loader(object->path) && ml_families_find(&families);
        /* The first in the order of addresses is the executable, mostly: its malloc is called by
         * all.
         */
        if (answer->has_family[i] && look.has_malloc &&
            (answer->malloc_object == 0 || answer->is_libc[answer->malloc_object - 1])) {
            answer->malloc_object = i + 1;
        }
    }
}

/* ---- the plan */

static void refuse(struct ml_plan_answer *answer, const char *name, const char *reason) {
    const char *const parts[] = {name, ": ", reason};
    size_t used = 0;
    if (answer->refused[0] != 0) {
        return;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        for (const char *c = parts[i]; *c != 0 && used + 1 < sizeof(answer->refused); c++) {
            answer->refused[used++] = *c;
        }
    }
}

/* A thread that stands within a jump's bytes is waited for, so an entry on two pages, of which a
 * killed tracer might write one, is none to be had. */
static bool is_on_two_pages(const struct ml_entry_plan *entry) {
    return (entry->at & 4095) + ML_ENTRY_JUMP_BYTES > 4096;
}

static void take(
    const struct ml_plan *plan,
    uint32_t object,
    const struct ml_entry_plan *entry,
    uint64_t stub,
    enum ml_attach_hook hook,
    const struct ml_families_function *allocators
) {
    struct ml_plan_answer *answer = plan->answer;
    struct ml_plan_function *one = &answer->functions[answer->functions_count];
    if (answer->functions_count == ML_ATTACH_FUNCTIONS_MAX) {
        return;
    }
    *one = (struct ml_plan_function){.object = object, .trampoline_bytes = entry->trampoline_bytes};
    one->function = (struct ml_attach_function
    ){.entry = entry->at,
      .stub = stub,
      .next = stub + ML_FAMILIES_TRAMPOLINE_AT,
      .hook = hook,
      .is_on = 1};
    if (allocators != NULL) {
        one->function.call = allocators->call;
        one->function.address = allocators->address;
        one->function.keeps = allocators->keeps;
        /* The executable is the first object. Its calls of its own allocator are the program's. */
        if (object > 0) {
            one->function.own_start = plan->objects[object].low;
            one->function.own_bytes = plan->objects[object].high - plan->objects[object].low;
        }
    }
    memcpy(one->function.old, entry->old, ML_ENTRY_JUMP_BYTES);
    memcpy(one->function.jump, entry->jump, ML_ENTRY_JUMP_BYTES);
    memcpy(one->trampoline, entry->trampoline, entry->trampoline_bytes);
    answer->functions_count++;
}

/* An exception that leaves operator new would have to pass our frame, which no table of the process
 * tells of. */
static bool may_throw(const struct ml_plan_object *object, const char *name) {
    const bool is_new = strncmp(name, "_Znw", 4) == 0 || strncmp(name, "_Zna", 4) == 0;
    static const char thrower[] = "__cxa_throw";
    return is_new && strstr(name, "nothrow") == NULL &&
           memmem(object->file, object->file_bytes, thrower, sizeof(thrower)) != NULL;
}

static void plan_allocators(struct ml_plan *plan, uint32_t index, uint64_t *room) {
    struct ml_plan_answer *answer = plan->answer;
    const struct ml_plan_object *object = &plan->objects[index];
    if (!answer->has_family[index] || !ml_families_find(&families)) {
        return;
    }
    (void)ml_families_plan(&families, *room);
    for (uint32_t i = 0; i < families.count; i++) {
        const struct ml_families_function *one = &families.functions[i];
        const uint64_t stub = *room + (uint64_t)i * ML_FAMILIES_ROOM_BYTES;
        if (ml_families_of(&families, one)->refused == one) {
            refuse(answer, one->name, ml_entry_refusal_text(one->refusal));
        }
        if (!ml_families_takes(&families, one)) {
            continue;
        }
        if (is_on_two_pages(&one->plan)) {
            refuse(answer, one->name, "its entry lies on two pages");
        } else if (may_throw(object, one->name)) {
            refuse(answer, one->name, "an exception could not leave it through memlog's code");
        } else {
            take(plan, index, &one->plan, stub, ML_ATTACH_ALLOCATOR, one);
            answer->allocators++;
        }
    }
    *room += (uint64_t)families.count * ML_FAMILIES_ROOM_BYTES;
}

/* The calls of libc that a recorded process must not make unseen. */
static const struct {
    const char *name;
    enum ml_attach_hook hook;
} calls[] = {
    {"dlclose", ML_ATTACH_DLCLOSE},
    {"prctl", ML_ATTACH_PRCTL},
    {"syscall", ML_ATTACH_SYSCALL},
    {"clone", ML_ATTACH_CLONE},
    {"_Fork", ML_ATTACH_FORK},
    {"_exit", ML_ATTACH_EXIT},
    {"execve", ML_ATTACH_EXECVE},
    {"execveat", ML_ATTACH_EXECVEAT},
    {"fexecve", ML_ATTACH_FEXECVE},
};
enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

struct call_search {
    uint64_t addresses[CALLS], sizes[CALLS];
};

static bool see_call(void *context, const struct ml_elf_function *function) {
    struct call_search *search = context;
    for (uint32_t i = 0; i < CALLS; i++) {
        if (strcmp(function->name, calls[i].name) == 0 && !function->is_indirect) {
            search->addresses[i] = families.base + function->address;
            search->sizes[i] = function->size;
        }
    }
    return true;
}

static void plan_call(
    struct ml_plan *plan, uint32_t index, uint64_t at, uint64_t bytes, uint32_t which, uint64_t room
) {
    for (uint32_t i = 0; i < families.code_count; i++) {
        const struct ml_families_code *code = &families.code[i];
        if (at - code->address >= code->count_bytes) {
            continue;
        }
        const size_t inside = (size_t)(at - code->address);
        const struct ml_entry_function function = {
            .code = code->bytes + inside,
            .code_bytes = code->count_bytes - inside,
            .address = at,
            .size = bytes,
            .text = code->bytes,
            .text_bytes = code->count_bytes,
            .text_address = code->address};
        struct ml_entry_plan entry;
        if (ml_entry_plan(&function, room, room + ML_FAMILIES_TRAMPOLINE_AT, &entry) ==
                ML_ENTRY_PLANNED &&
            !is_on_two_pages(&entry)) {
            take(plan, index, &entry, room, calls[which].hook, NULL);
        }
    }
}

static void plan_calls(struct ml_plan *plan, uint32_t index, uint64_t *room) {
    struct call_search search = {.addresses = {0}};
    if (!plan->answer->is_libc[index]) {
        return;
    }
    (void)ml_elf_functions_each(families.file, families.file_bytes, see_call, &search);
    for (uint32_t i = 0; i < CALLS; i++) {
        if (search.addresses[i] != 0) {
            plan_call(plan, index, search.addresses[i], search.sizes[i], i, *room);
            *room += ML_FAMILIES_ROOM_BYTES;
        }
    }
}

void ml_plan_compute(struct ml_plan *plan, const char *allocators) {
    for (uint32_t i = 0; i < plan->objects_count; i++) {
        const struct ml_plan_object *object = &plan->objects[i];
        uint32_t count = 0;
        if (object->room == 0) {
            continue;
        }
        begin(object, allocators);
        for (uint32_t k = 0; k < object->code_count; k++) {
            if (object->memory[k] != NULL) {
                texts[count++] = (struct ml_families_code
                ){.bytes = object->memory[k],
                  .count_bytes = (size_t)(object->code[k].end - object->code[k].start),
                  .address = object->code[k].start};
            }
        }
        families.code = texts;
        families.code_count = count;
        families.may_keep = true;
        families.may_push_calls = true; /* a thread with a shadow stack is not borrowed */
        uint64_t room = object->room;
        plan_allocators(plan, i, &room);
        plan_calls(plan, i, &room);
    }
}

#include "client/unwind/check.h"

#include <dlfcn.h>
#include <string.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

enum { STEPS_MAX = ML_UNWIND_FULL_WALK_MAX };

/* By their first version, which libc.so.6 keeps: their newest is younger than many a container. An
 * older glibc has them in libdl.so.2, and a program without that is not checked. */
__asm__(".symver dlopen, dlopen@GLIBC_2.2.5");
__asm__(".symver dlsym, dlsym@GLIBC_2.2.5");
#pragma weak dlopen
#pragma weak dlsym

/* libunwind.h gives its functions names of their own by macros; the same macros name them here. */
#define NAME_OF(object) NAME_OF_EXPANDED(object)
#define NAME_OF_EXPANDED(name) #name

/* In the loader, and exported by it: where the loader is. */
extern void *__libc_stack_end __attribute__((weak));

bool ml_unwind_checker_may_open(const struct ml_unwind_thread *thread) {
    struct ml_image loader;
    if (&__libc_stack_end == NULL || !ml_image_find((uintptr_t)&__libc_stack_end, &loader)) {
        return false;
    }
    for (uint32_t i = 0; i < thread->count; i++) {
        uintptr_t pc = thread->frames[i].pc;
        if (ml_unwind_kind(thread, i) != ML_FRAME_ADDRESS ||
            (pc >= loader.start && pc < loader.end)) {
            return false; /* unknown of a cut or broken stack */
        }
    }
    return thread->count != 0;
}

static bool find_function(void *library, const char *name, void *out_function) {
    void *symbol = dlsym(library, name);
    memcpy(out_function, &symbol, sizeof symbol);
    return symbol != NULL;
}

enum ml_status ml_unwind_checker_open(struct ml_unwind_checker *out_checker) {
    struct ml_unwind_checker checker = {0};
    int (*set_caching)(unw_addr_space_t, unw_caching_policy_t) = NULL;
    unw_addr_space_t *local_space = NULL;
    const bool has_loader = dlopen != NULL && dlsym != NULL;
    void *library = has_loader ? dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library == NULL) {
        return ML_ENV_MISSING;
    }
    if (!find_function(library, NAME_OF(UNW_ARCH_OBJ(getcontext)), &checker.get_context) ||
        !find_function(library, NAME_OF(unw_init_local), &checker.init) ||
        !find_function(library, NAME_OF(unw_step), &checker.step) ||
        !find_function(library, NAME_OF(unw_get_reg), &checker.get_register) ||
        !find_function(library, NAME_OF(unw_set_caching_policy), &set_caching) ||
        !find_function(library, NAME_OF(unw_local_addr_space), &local_space) ||
        set_caching(*local_space, UNW_CACHE_NONE) != 0) {
        dlclose(library);
        return ML_ENV_MISSING;
    }
    *out_checker = checker;
    return ML_OK;
}

struct comparison {
    const struct ml_unwind_checker *checker;
    unw_cursor_t cursor;
    uintptr_t ip;
    uintptr_t sp;
};

static void read_frame(struct comparison *comparison) {
    (void)comparison->checker->get_register(&comparison->cursor, UNW_REG_IP, &comparison->ip);
    (void)comparison->checker->get_register(&comparison->cursor, UNW_REG_SP, &comparison->sp);
}

/* Step to the hook's caller. */
static bool reach_entry(struct comparison *comparison, const struct ml_unwind_entry *entry) {
    for (uint32_t i = 0; i < STEPS_MAX; i++) {
        read_frame(comparison);
        if (comparison->ip == entry->pc && comparison->sp == entry->sp) {
            return true;
        }
        if (comparison->checker->step(&comparison->cursor) <= 0) {
            return false;
        }
    }
    return false;
}

enum ml_unwind_verdict ml_unwind_checker_compare(
    const struct ml_unwind_checker *checker,
    const struct ml_unwind_thread *thread,
    const struct ml_unwind_entry *entry
) {
    unw_context_t context;
    struct comparison comparison = {.checker = checker};
    if (checker->get_context(&context) != 0 || checker->init(&comparison.cursor, &context) != 0 ||
        !reach_entry(&comparison, entry)) {
        return ML_UNWIND_UNJUDGED;
    }
    int more = 1;
    for (uint32_t i = thread->count; i-- > 0 && ml_unwind_kind(thread, i) != ML_FRAME_CUT;) {
        bool broken = ml_unwind_kind(thread, i) == ML_FRAME_BROKEN;
        bool they_go_on = more > 0 && comparison.ip != 0;
        if (more < 0 || (broken && !they_go_on)) {
            return ML_UNWIND_UNJUDGED;
        }
        uintptr_t ours = broken ? 0 : thread->frames[i].pc;
        uintptr_t theirs = they_go_on ? comparison.ip : 0;
        if (ours != theirs) {
            return ML_UNWIND_DIFFERENT;
        }
        more = checker->step(&comparison.cursor);
        read_frame(&comparison);
    }
    bool whole = thread->count == 0 || thread->skipped == 0;
    return whole && more > 0 && comparison.ip != 0 ? ML_UNWIND_DIFFERENT : ML_UNWIND_EQUAL;
}

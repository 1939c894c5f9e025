/* operator new and delete, in all forms. libstdc++'s and libc++'s call malloc, which is seen there;
 * those of jemalloc, tcmalloc and mimalloc do not. Room: client. Context: any thread; slots are
 * filled by the constructor, or at the first call in a program whose C++ runtime was loaded later.
 *
 * One rule: where the malloc hook sees the call anyway, it is forwarded by one jump and leaves no
 * frame of ours in any stack.
 *
 * A real operator new may throw, so no guard is held while it runs.
 */
#include <stdlib.h>
#include <string.h>

#include "client/hooks/next.h"
#include "client/recording/hook_record.h"
#include "client/recording/thrown.h"
#include "client/state/visible.h"
#include "client/symbols/symbols.h"

/* form, mangled name, parameters, their names */
#define NEW_FORMS(X)                                                                               \
    X(0, "_Znwm", (size_t size), (size))                                                           \
    X(1, "_Znam", (size_t size), (size))                                                           \
    X(2, "_ZnwmRKSt9nothrow_t", (size_t size, const void *nothrow), (size, nothrow))               \
    X(3, "_ZnamRKSt9nothrow_t", (size_t size, const void *nothrow), (size, nothrow))               \
    X(4, "_ZnwmSt11align_val_t", (size_t size, size_t alignment), (size, alignment))               \
    X(5, "_ZnamSt11align_val_t", (size_t size, size_t alignment), (size, alignment))               \
    X(6,                                                                                           \
      "_ZnwmSt11align_val_tRKSt9nothrow_t",                                                        \
      (size_t size, size_t alignment, const void *nothrow),                                        \
      (size, alignment, nothrow))                                                                  \
    X(7,                                                                                           \
      "_ZnamSt11align_val_tRKSt9nothrow_t",                                                        \
      (size_t size, size_t alignment, const void *nothrow),                                        \
      (size, alignment, nothrow))

#define DELETE_FORMS(X)                                                                            \
    X(8, "_ZdlPv", (void *block), (block))                                                         \
    X(9, "_ZdaPv", (void *block), (block))                                                         \
    X(10, "_ZdlPvm", (void *block, size_t size), (block, size))                                    \
    X(11, "_ZdaPvm", (void *block, size_t size), (block, size))                                    \
    X(12, "_ZdlPvRKSt9nothrow_t", (void *block, const void *nothrow), (block, nothrow))            \
    X(13, "_ZdaPvRKSt9nothrow_t", (void *block, const void *nothrow), (block, nothrow))            \
    X(14, "_ZdlPvSt11align_val_t", (void *block, size_t alignment), (block, alignment))            \
    X(15, "_ZdaPvSt11align_val_t", (void *block, size_t alignment), (block, alignment))            \
    X(16,                                                                                          \
      "_ZdlPvmSt11align_val_t",                                                                    \
      (void *block, size_t size, size_t alignment),                                                \
      (block, size, alignment))                                                                    \
    X(17,                                                                                          \
      "_ZdaPvmSt11align_val_t",                                                                    \
      (void *block, size_t size, size_t alignment),                                                \
      (block, size, alignment))                                                                    \
    X(18,                                                                                          \
      "_ZdlPvSt11align_val_tRKSt9nothrow_t",                                                       \
      (void *block, size_t alignment, const void *nothrow),                                        \
      (block, alignment, nothrow))                                                                 \
    X(19,                                                                                          \
      "_ZdaPvSt11align_val_tRKSt9nothrow_t",                                                       \
      (void *block, size_t alignment, const void *nothrow),                                        \
      (block, alignment, nothrow))

#define FORMS(X) NEW_FORMS(X) DELETE_FORMS(X)

enum { FORMS_COUNT = 20, DELETE_FIRST = 8 };

/* The next definitions, and the target of each call: the next definition or our hook. Complete
 * before first use.
 */
static void *next_form[FORMS_COUNT];
__attribute__((used)) static void *target_form[FORMS_COUNT];

/* ---- hooks, for allocators whose operators bypass malloc */

#define NEW_HOOK(form, name, parameters, arguments)                                                \
    static ML_HOOK void *hook_##form parameters {                                                  \
        ML_HOOK_MAY_BE_LEFT();                                                                     \
        const struct ml_unwind_entry entry = ml_unwind_entry_here();                               \
        struct ml_thread *thread = ml_this_thread();                                               \
        if (ml_sampler_passes(thread, size)) {                                                     \
            return ((void *(*)parameters)next_form[form])arguments;                                \
        }                                                                                          \
        const struct ml_hook hook = ml_hook_enter(thread, entry.sp);                               \
        void *block = ((void *(*)parameters)next_form[form])arguments;                             \
        if (ml_likely(hook.lane != NULL && block != NULL)) {                                       \
            ml_hook_alloc(thread, &hook, &entry, block, size);                                     \
        }                                                                                          \
        ml_hook_leave(thread, &hook);                                                              \
        return block;                                                                              \
    }
NEW_FORMS(NEW_HOOK)

#define DELETE_HOOK(form, name, parameters, arguments)                                             \
    static ML_HOOK void hook_##form parameters {                                                   \
        struct ml_thread *thread = ml_this_thread();                                               \
        const uintptr_t frame = (uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *);        \
        if (block != NULL && (ml_sampler_filters(thread) || ml_sampler_filters_booted(thread)) &&  \
            ml_sampler_drops(thread, block)) {                                                     \
            ((void(*) parameters)next_form[form]) arguments;                                       \
            return;                                                                                \
        }                                                                                          \
        const struct ml_hook hook = ml_hook_enter(thread, frame);                                  \
        if (ml_likely(block != NULL)) {                                                            \
            (void)ml_hook_free(thread, &hook, block, ML_OP_FREE);                                  \
        }                                                                                          \
        ((void(*) parameters)next_form[form]) arguments;                                           \
        ml_hook_leave(thread, &hook);                                                              \
    }
DELETE_FORMS(DELETE_HOOK)

/* ---- if no C++ runtime is found: malloc, which records it */

static void *fallback_new(size_t size) {
    void *block = malloc(size == 0 ? 1 : size);
    if (block == NULL) {
        abort(); /* without a runtime bad_alloc cannot be thrown */
    }
    return block;
}

static void *fallback_aligned_new(size_t size, size_t alignment) {
    void *block = NULL;
    if (posix_memalign(&block, alignment < sizeof(void *) ? sizeof(void *) : alignment, size) !=
        0) {
        abort();
    }
    return block;
}

static void *fallback_of(int form) {
    if (form >= DELETE_FIRST) {
        return free;
    }
    return form < 4 ? (void *)fallback_new : (void *)fallback_aligned_new;
}

/* ---- where calls go */

/* Rows of characters, not pointers: a pointer is a relocation in every process. */
enum { NAME_BYTES = 40 };
#define FITS(form, name, parameters, arguments)                                                    \
    _Static_assert(sizeof(name) <= NAME_BYTES, "a longer row");
FORMS(FITS)

#define NAME(form, name, parameters, arguments) [form] = name,
static const char names[FORMS_COUNT][NAME_BYTES] = {FORMS(NAME)};

#define HOOK_OF(form, name, parameters, arguments) [form] = hook_##form,
static void *const hooks[FORMS_COUNT] = {FORMS(HOOK_OF)};

/* The C++ runtimes' operators call malloc and free. */
static bool goes_through_malloc(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *file = slash != NULL ? slash + 1 : path;
    return strncmp(file, "libstdc++", 9) == 0 || strncmp(file, "libc++", 6) == 0;
}

static void settle(int form, struct ml_loaded_symbol next) {
    next_form[form] = next.address;
    atomic_thread_fence(memory_order_release);
    __atomic_store_n(
        &target_form[form],
        goes_through_malloc(next.path) ? next.address : hooks[form],
        __ATOMIC_RELEASE
    );
}

void ml_next_resolve_new(void) {
    for (int form = 0; form < FORMS_COUNT; form++) {
        const struct ml_loaded_symbol next = ml_symbol_next(names[form]);
        if (next.address != NULL) {
            settle(form, next);
        }
    }
}

void ml_next_follow_new(void *(*now)(void *function)) {
    for (int form = 0; form < FORMS_COUNT; form++) {
        void *next = now(next_form[form]);
        if (next != next_form[form]) {
            target_form[form] = target_form[form] == next_form[form] ? next : target_form[form];
            next_form[form] = next;
        }
    }
}

/* Bit per form: undefined at the start. */
static _Atomic uint32_t late_forms;

/* A form that was undefined at the start: a library opened since defines it, visible to itself
 * alone. */
static __attribute__((used)) void *find_late(int form) {
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    struct ml_loaded_symbol next = {.address = NULL};
    for (size_t i = 0; next.address == NULL && i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        next = ml_symbol_of_library(runtimes[i], names[form]);
    }
    atomic_fetch_or(&late_forms, UINT32_C(1) << form);
    if (next.address == NULL) {
        void *fallback = fallback_of(form);
        __atomic_store_n(&target_form[form], fallback, __ATOMIC_RELEASE);
        return fallback;
    }
    settle(form, next);
    return __atomic_load_n(&target_form[form], __ATOMIC_RELAXED);
}

void ml_next_forget_late_new(void) {
    uint32_t forms = atomic_load_explicit(&late_forms, memory_order_relaxed);
    for (int form = 0; forms != 0; form++, forms >>= 1) {
        if ((forms & 1) != 0) {
            __atomic_store_n(&target_form[form], NULL, __ATOMIC_RELEASE);
        }
    }
}

/* One jump through the slot; an empty slot is filled first, with the three argument registers kept.
 */
#define STUB(form, name, parameters, arguments)                                                    \
    __asm__(".text\n"                                                                              \
            ".globl " name "\n"                                                                    \
            ".type " name ", @function\n" name ":\n"                                               \
            ".cfi_startproc\n"                                                                     \
            "mov target_form+8*" #form "(%rip), %rax\n"                                            \
            "test %rax, %rax\n"                                                                    \
            "je 1f\n"                                                                              \
            "jmp *%rax\n"                                                                          \
            "1: push %rdi\n push %rsi\n push %rdx\n"                                               \
            ".cfi_adjust_cfa_offset 24\n"                                                          \
            "mov $" #form ", %edi\n"                                                               \
            "call find_late\n"                                                                     \
            "pop %rdx\n pop %rsi\n pop %rdi\n"                                                     \
            ".cfi_adjust_cfa_offset -24\n"                                                         \
            "jmp *%rax\n"                                                                          \
            ".cfi_endproc\n"                                                                       \
            ".size " name ", . - " name "\n");
FORMS(STUB)

/* The loader's list of what is loaded. Room: client (private). Context: any.
 *
 * One rule: it is read as a debugger reads it. NULL: the program has no loader, or the client,
 * linked into a program without -pie, cannot reach it by its name.
 *
 * A client that was put into a running process is told where it is. */
#ifndef MEMLOG_CLIENT_SYMBOLS_LOADED_H
#define MEMLOG_CLIENT_SYMBOLS_LOADED_H

#include <link.h>
#include <stddef.h>
#include <stdint.h>

#if ML_ATTACHED
#    define ML_LOADED_TOLD __attribute__((visibility("hidden")))
extern ML_LOADED_TOLD const struct r_debug *ml_loaded_list;
extern ML_LOADED_TOLD uintptr_t ml_loaded_told_stack;

static inline const struct r_debug *ml_loaded(void) {
    return ml_loaded_list;
}

static inline uintptr_t ml_loaded_stack_end(void) {
    return ml_loaded_told_stack;
}
#else
/* Weak, as a program without a loader has none. dl_iterate_phdr shows the same list, but the
 * program may define it. */
#    pragma weak _r_debug

static inline const struct r_debug *ml_loaded(void) {
    return &_r_debug;
}

/* The initial stack pointer of the main thread, as the loader keeps it for everybody; 0: not known.
 */
extern void *__libc_stack_end __attribute__((weak));

static inline uintptr_t ml_loaded_stack_end(void) {
    return &__libc_stack_end != NULL ? (uintptr_t)__libc_stack_end : 0;
}
#endif

/* The program itself; NULL: there is no list. */
static inline const struct link_map *ml_loaded_first(void) {
    const struct r_debug *list = ml_loaded();
    return list != NULL ? list->r_map : NULL;
}

#endif

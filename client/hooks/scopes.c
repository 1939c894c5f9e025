/* What a program says of its threads: memlog.h's scopes and names. Room: client. Context: any
 * thread, at any time, a signal handler too.
 *
 * One rule: where nothing is recorded, or stacks have no scopes, a call is a few instructions.
 * errno is kept: nothing here calls libc. */
#include <stddef.h>

#include "client/memlog.h"
#include "client/recording/notes.h"
#include "client/state/visible.h"
#include "client/unwind/unwind.h"

/* Each keeps a frame of its own (ml_unwind_entry_here). */
#define SAY ML_VISIBLE __attribute__((noinline))

/* Once a scope is open, its thread's others are kept too, until none is. */
static bool is_kept(const struct ml_thread *thread) {
    return ml_notes_depth(thread) != 0 || ml_notes_wanted(ML_STACK_PSEUDO);
}

SAY uint32_t memlog_scope_begin(const char *name) {
    struct ml_thread *thread = ml_this_thread();
    if (!is_kept(thread)) {
        return 0;
    }
    const struct ml_scope scope = {
        .name = ml_name_get(ML_NAMES_TEXTS, name, 0), .sp = ml_unwind_entry_here().sp};
    return ml_notes_open(thread, &scope);
}

ML_VISIBLE void memlog_scope_end(void) {
    struct ml_thread *thread = ml_this_thread();
    const uint32_t depth = ml_notes_depth(thread);
    if (ml_unlikely(depth != 0)) {
        ml_notes_close(thread, depth - 1);
    }
}

ML_VISIBLE void memlog_scope_leave(uint32_t before) {
    struct ml_thread *thread = ml_this_thread();
    if (ml_unlikely(ml_notes_depth(thread) > before)) {
        ml_notes_close(thread, before);
    }
}

ML_VISIBLE void memlog_scopes_take(uint32_t before, struct memlog_scopes *out_scopes) {
    struct ml_thread *thread = ml_this_thread();
    const uint32_t depth = ml_notes_depth(thread);
    out_scopes->count = 0;
    for (uint32_t i = before; i < depth && i < ML_NOTES_SCOPES_MAX; i++) {
        if (out_scopes->count < MEMLOG_SCOPES_MAX) {
            out_scopes->scopes[out_scopes->count].name = thread->notes->open[i].name;
            out_scopes->scopes[out_scopes->count++].place = thread->notes->open[i].sp;
        }
    }
    if (depth > before) {
        ml_notes_close(thread, before);
    }
}

SAY uint32_t memlog_scopes_give(const struct memlog_scopes *scopes, int has_own_stack) {
    struct ml_thread *thread = ml_this_thread();
    const uintptr_t here = ml_unwind_entry_here().sp;
    const uint32_t before = ml_notes_depth(thread);
    for (uint32_t i = 0; is_kept(thread) && i < scopes->count; i++) {
        const struct ml_scope scope = {
            .name = scopes->scopes[i].name,
            .sp = has_own_stack != 0 ? scopes->scopes[i].place : here};
        (void)ml_notes_open(thread, &scope);
    }
    return before;
}

ML_VISIBLE void memlog_thread_name(const char *name) {
    if (ml_notes_wanted(ML_STACK_NATIVE_WITH_THREAD_NAMES)) {
        ml_notes_name_thread(
            ml_this_thread(), name != NULL ? ml_name_get(ML_NAMES_TEXTS, name, 0) : NULL
        );
    }
}

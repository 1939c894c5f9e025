/* Which of the objects that were loaded since the start call the allocator past memlog: opened with
 * RTLD_DEEPBIND, or in a namespace of their own (dlmopen). Room: client (private). Context: any
 * thread, inside malloc and between vfork and exec too.
 *
 * One rule: objects are checked on hooks that run anyway, never during dlopen, and libdl is not
 * called. The loader's list is read as a debugger reads it: each link is probed before it is read,
 * and at most ML_OBJECTS_MAX of them. What is found is written to staging and stays there. Objects
 * loaded at the start are not checked: for all of them memlog comes before libc.
 *
 * An object must not be unmapped during a check. dlclose waits for a check that is going on.
 * Objects that are still being loaded are not checked, since loading may fail. iconv's converters
 * are not checked either, since libc closes them by itself. A dlclose that bypasses memlog does not
 * wait: an object found here may call one.
 */
#ifndef MEMLOG_CLIENT_RECORDING_PAST_H
#define MEMLOG_CLIENT_RECORDING_PAST_H

#include <link.h>
#include <stdint.h>

#include "client/state/process.h"

/* The last object of the start, which is never unloaded. NULL: it is not known, and nothing is
 * checked. */
extern ML_OURS const struct link_map *ml_past_start;

/* Check the objects, if one was loaded since the last check or was not bound then. Most calls
 * return without a check. */
void ml_past_look_again(uintptr_t pc);

/* A thread has a stack that is new to it; the call of its allocator returns to `pc`. */
static inline void ml_past_step(uintptr_t pc) {
    const struct link_map *start = ml_past_start;
    if (ml_unlikely(start != NULL && start->l_next != NULL)) {
        ml_past_look_again(pc);
    }
}

/* The constructor has hooked so many functions of the executable's own allocator at their entries;
 * `refused` says why not all of them (at most ML_ENTRIES_REFUSED_BYTES, ended by a 0). */
void ml_past_entries(uint32_t functions, const char *refused);

/* The executable's own allocator is called past these entries, too: the compiler has put its
 * functions into their callers. */
void ml_past_inlined(void);

/* The program has run before the client began, by memlog_start. */
void ml_past_began_late(void);

/* The last check: the process ends, or executes another program. */
void ml_past_look_last(void);

/* Around the real dlclose. The first waits for another thread's check, then checks what may be
 * unmapped. Its answer goes to the second. */
uint32_t ml_past_closing(const void *handle);
void ml_past_closed(uint32_t closing);

/* A forked child has its staging: write there what its parent has found, which holds for the child
 * too. */
void ml_past_tell_again(void);

#endif

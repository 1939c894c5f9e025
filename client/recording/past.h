/* Which of the objects that were loaded since the start call the allocator past memlog: opened with
 * RTLD_DEEPBIND, or in a namespace of their own (dlmopen). Room: client (private). Context: any
 * thread, inside malloc and between vfork and exec too.
 *
 * One rule: objects are looked at where the program comes by anyway, never on dlopen's path, and
 * libdl is asked nothing. The loader's list is read as a debugger reads it: each link is asked for
 * before it is read, and no more of them than ML_OBJECTS_MAX. What was found is told in staging and
 * stays. The objects of the start are not looked at: memlog stands before libc for all of them.
 *
 * An object may not go while it is looked at. Who closes one waits for whoever looks; what is still
 * being loaded, and may fail to, is not looked at; nor are iconv's converters, which libc closes by
 * itself. A dlclose that goes past memlog, as an object's own that is told here, is not waited for.
 */
#ifndef MEMLOG_CLIENT_RECORDING_PAST_H
#define MEMLOG_CLIENT_RECORDING_PAST_H

#include <link.h>
#include <stdint.h>

#include "client/state/process.h"

/* The last object that was there at the start, which stays; NULL: not known, and nobody looks. */
extern ML_OURS const struct link_map *ml_past_start;

/* Look, if something was loaded since the last look or was not bound then, and not each time. */
void ml_past_look_again(uintptr_t pc);

/* A thread comes by with a stack that it has not had, its allocator called from before `pc`. */
static inline void ml_past_step(uintptr_t pc) {
    const struct link_map *start = ml_past_start;
    if (ml_unlikely(start != NULL && start->l_next != NULL)) {
        ml_past_look_again(pc);
    }
}

/* The last moment: the process ends, or becomes another image. */
void ml_past_look_last(void);

/* Around the real dlclose. The first looks at what may go, and waits for another thread's look; its
 * answer is for the second. */
uint32_t ml_past_closing(const void *handle);
void ml_past_closed(uint32_t closing);

/* A forked child has its staging: what its parent found is true of it, too. */
void ml_past_tell_again(void);

#endif

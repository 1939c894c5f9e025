/* The objects of a loader without _dl_find_object, by its list for debuggers. Room: client (private
 * to objects.c). Context: any thread, inside malloc, inside signal handlers; lock-free.
 *
 * One rule: other threads load and unload meanwhile. Each link is probed before it is read, and a
 * description is used where the list leads to it. Of an object itself only what may lie around the
 * address is read: others may be unmapped. */
#ifndef MEMLOG_CLIENT_UNWIND_LISTED_H
#define MEMLOG_CLIENT_UNWIND_LISTED_H

#include "client/unwind/objects.h"

/* Read the list for the first time. */
void ml_listed_begin(void);

/* Something may have been unloaded. */
void ml_listed_changed(void);

/* Errors: false when nothing in the list is there. */
bool ml_listed_find(uintptr_t pc, struct ml_object *out_object);

/* Whether an object that was found is in the list still. */
bool ml_listed_has(const struct ml_object *object);

#endif

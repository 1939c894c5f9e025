/* Whether an allocator inside the executable is called past its functions: the compiler has put
 * them into their callers, as link-time optimization does. No hook of an entry sees these calls.
 * Room: client (private). Context: the constructor: one thread.
 *
 * One rule: it is said only where it is so. So it is told of an allocator that calls through a
 * table of functions (Chromium's), which shows who else does. */
#ifndef MEMLOG_CLIENT_PATCH_INLINED_H
#define MEMLOG_CLIENT_PATCH_INLINED_H

#include <stdbool.h>

#include "client/patch/object_file.h"

/* The families' functions have been found, and their entries may be written by now. */
bool ml_inlined_is(const struct ml_object_file *object, struct ml_families *families);

#endif

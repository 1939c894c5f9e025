/* The client's own memory: one reservation that a fork wipes. Room: client (private). Context: the
 * constructor.
 *
 * One rule: pages come when they are touched; what is reserved costs address space alone. Where
 * address space is scarce (ulimit -v, strict overcommit) everything is made smaller rather than not
 * at all. */
#ifndef MEMLOG_CLIENT_ARENA_H
#define MEMLOG_CLIENT_ARENA_H

#include <stdbool.h>

/* Reserve it and set ml_process's pointers and sizes into it. False: there is no room even for the
 * smallest. */
bool ml_arena_map(void);

/* Give it back. */
void ml_arena_unmap(void);

#endif

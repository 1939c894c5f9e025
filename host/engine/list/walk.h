/* Walking over the tree: who is there that has not said so, and who is not any more. Room: host.
 *
 * One rule: its cost is bounded. A walk reads a few files of each process, some 50 us; it comes as
 * often as takes a fiftieth of a processor at most, and more rarely where nothing happens. Where
 * the kernel tells of births it only begins with one, and makes one when events were lost. */
#ifndef MEMLOG_HOST_ENGINE_LIST_WALK_H
#define MEMLOG_HOST_ENGINE_LIST_WALK_H

#include "host/engine/state.h"

/* Begin the list, with the kernel's events and with walks. */
void ml_list_init(struct ml_engine *engine);
void ml_list_fini(struct ml_engine *engine);

void ml_list_walk(struct ml_engine *engine);

/* Read the memory of those whose time has come, or of all. Returns when the next one's comes
 * (CLOCK_MONOTONIC); UINT64_MAX: nobody's. */
uint64_t ml_list_look(struct ml_engine *engine, bool all);

#endif

/* Walks over the tree: they find processes that have not reported themselves, and those that are
 * gone. Room: host.
 *
 * One rule: its cost is bounded. A walk reads a few files of each process, some 50 us. Walks take a
 * fiftieth of a processor at most, and are rarer where nothing happens. With the kernel's events
 * there is a walk only at the start and when events were lost. */
#ifndef MEMLOG_HOST_ENGINE_LIST_WALK_H
#define MEMLOG_HOST_ENGINE_LIST_WALK_H

#include "host/engine/state.h"

/* Begin the list, by the kernel's events or by walks. */
void ml_list_init(struct ml_engine *engine);
void ml_list_fini(struct ml_engine *engine);

void ml_list_walk(struct ml_engine *engine);

/* Read the memory of entries that are due, or of all. Returns when the next one is due
 * (CLOCK_MONOTONIC); UINT64_MAX: none is. */
uint64_t ml_list_look(struct ml_engine *engine, bool all);

#endif

/* Births, execs and ends by the kernel's events (host/process/events.h). Room: host.
 *
 * One rule: an event may be read late. It speaks of the process that had the pid at its moment. */
#ifndef MEMLOG_HOST_ENGINE_LIST_EVENTS_H
#define MEMLOG_HOST_ENGINE_LIST_EVENTS_H

#include "host/engine/state.h"

/* Hear of births, execs and ends from the kernel, where it tells, by list->events_fd. */
void ml_list_events_open(struct ml_engine *engine);

/* Read all events that are there. */
void ml_list_events_take(struct ml_engine *engine);

/* The same, but only a bounded number. False: the kernel dropped events, and a walk is due. */
bool ml_list_events_take_some(struct ml_engine *engine);

/* A child of the host has ended. False: it is not listed as running. */
bool ml_list_child_ended(struct ml_engine *engine, pid_t pid, const struct ml_ending *ending);

#endif

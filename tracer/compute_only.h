/* A process that can do nothing any more but compute. Room: tracer. Context: a forked child of one
 * thread.
 *
 * One rule: read, write, the end (`exit`, not `exit_group`) and a return from a signal handler are
 * all that is left. */
#ifndef MEMLOG_TRACER_COMPUTE_ONLY_H
#define MEMLOG_TRACER_COMPUTE_ONLY_H

#include <stdbool.h>

/* By seccomp's strict mode. Where a filter is set already, as containers and units of systemd set
 * one, the kernel refuses that mode, and a filter of the same calls is added. False: neither is to
 * be had here. */
bool ml_compute_only(void);

#endif

/* Whether memlog can be attached to a process, before any tracer is started, and which processes
 * have a name. Room: host. Context: any; reads /proc alone. */
#ifndef MEMLOG_HOST_ATTACH_PRECONDITION_H
#define MEMLOG_HOST_ATTACH_PRECONDITION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "host/policy/patterns.h"
#include "host/attach/attachable.h"

/* Why not, in words, with what to do; "": nothing that can be seen stands in the way. The never
 * lists and what a running memlog has already are others' to know. */
void ml_attach_why_not(pid_t pid, char out_text[ML_ATTACHABLE_TEXT_BYTES]);

/* Whether it runs one of memlog's own programs, of this installation. */
bool ml_attach_is_memlog(pid_t pid);

/* This user's processes whose name or command line matches, but for memlog's own, those that memlog
 * is loaded into, and `asker` with its ancestors, whose command lines may hold the expression
 * itself. Up to `capacity` pids; answers how many there are. */
size_t
ml_attach_find(const struct ml_patterns *name, pid_t asker, pid_t *out_pids, size_t capacity);

#endif

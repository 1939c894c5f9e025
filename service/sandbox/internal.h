/* The layers of the sandbox, one function each. Room: service (:sandbox). Context: as sandbox.h.
 *
 * One rule: a layer that the kernel refuses is noted and the next one is tried. */
#ifndef MEMLOG_SERVICE_SANDBOX_INTERNAL_H
#define MEMLOG_SERVICE_SANDBOX_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "service/sandbox/sandbox.h"

/* Note that `what` is missing; `error` is an errno, 0: no more to say. */
void ml_sandbox_miss(struct ml_sandbox_report *report, const char *what, int error);

/* Each answers whether everything of it is on, and notes what is not. */
/* *out_own_mounts: the mount namespace is ours alone. */
bool ml_sandbox_namespaces(struct ml_sandbox_report *report, bool *out_own_mounts);
/* Only where the mounts are our own: elsewhere it would take everybody's root away. */
bool ml_sandbox_root(bool own_mounts, struct ml_sandbox_report *report);
bool ml_sandbox_landlock(struct ml_sandbox_report *report);
bool ml_sandbox_privileges(struct ml_sandbox_report *report);
bool ml_sandbox_limits(struct ml_sandbox_report *report);
bool ml_sandbox_filter(uint32_t left_out_line, struct ml_sandbox_report *report);

#endif

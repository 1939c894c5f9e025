/* The layers of the sandbox, a function each. Room: service (:sandbox). Context: as sandbox.h.
 *
 * One rule: a layer that the kernel refuses is noted, and the next one is tried. */
#ifndef MEMLOG_SERVICE_SANDBOX_INTERNAL_H
#define MEMLOG_SERVICE_SANDBOX_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "service/sandbox/sandbox.h"

/* Note that `what` is missing. `error` is an errno; 0: not known. */
void ml_sandbox_miss(struct ml_sandbox_report *report, const char *what, int error);

/* Each returns whether its layer is wholly on, and notes what is missing. */
/* *out_own_mounts: the process has a mount namespace of its own. */
bool ml_sandbox_namespaces(struct ml_sandbox_report *report, bool *out_own_mounts);
/* Requires a mount namespace of its own: otherwise it would replace every process's root. */
bool ml_sandbox_root(bool own_mounts, struct ml_sandbox_report *report);
bool ml_sandbox_landlock(struct ml_sandbox_report *report);
bool ml_sandbox_privileges(struct ml_sandbox_report *report);
bool ml_sandbox_limits(struct ml_sandbox_report *report);
bool ml_sandbox_filter(uint32_t left_out_line, struct ml_sandbox_report *report);

#endif

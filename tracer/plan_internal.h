/* Private to the plan: what the child computes. Room: tracer. Context: the child, in its sandbox:
 * no system call, no allocation. */
#ifndef MEMLOG_TRACER_PLAN_INTERNAL_H
#define MEMLOG_TRACER_PLAN_INTERNAL_H

#include "tracer/plan.h"

/* Which objects have allocators, and which is libc. */
void ml_plan_look(struct ml_plan *plan, const char *allocators);

/* Plan those of which the code was read. */
void ml_plan_compute(struct ml_plan *plan, const char *allocators);

#endif

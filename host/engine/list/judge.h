/* Why a process is not recorded. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_LIST_JUDGE_H
#define MEMLOG_HOST_ENGINE_LIST_JUDGE_H

#include "host/engine/state.h"

/* Why it is not recorded; copied. */
void ml_list_set_reason(struct ml_unrecorded *one, const char *reason);

/* Nobody could look at its image yet. */
void ml_list_forget_reason(struct ml_unrecorded *one);

/* Find out why it is not recorded, as far as that can be known now. */
void ml_list_judge(struct ml_engine *engine, struct ml_unrecorded *one);

/* The same reason, if that was said of the first program: it is told once. */
void ml_list_root_told(struct ml_engine *engine, const struct ml_not_profiled *item);

#endif

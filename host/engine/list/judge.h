/* Why a process is not recorded. Room: host. */
#ifndef MEMLOG_HOST_ENGINE_LIST_JUDGE_H
#define MEMLOG_HOST_ENGINE_LIST_JUDGE_H

#include "host/engine/state.h"

/* Of a child that ran already when memlog was attached to its parent. */
extern const char ml_list_before_text[];
bool ml_list_is_from_before(const struct ml_unrecorded *one, const struct ml_member *parent);

/* Set the reason why it is not recorded; copied. */
void ml_list_set_reason(struct ml_unrecorded *one, const char *reason);

/* Reset the reason: its image was not seen yet. */
void ml_list_forget_reason(struct ml_unrecorded *one);

/* Find out why it is not recorded, as far as that is known now. */
void ml_list_judge(struct ml_engine *engine, struct ml_unrecorded *one);

/* The same when it is over, or another program has taken its place: what nobody has looked at stays
 * unknown. */
void ml_list_judge_at_end(struct ml_engine *engine, struct ml_unrecorded *one);

/* The first program's report, said once: set the reason of its entry. */
void ml_list_root_told(struct ml_engine *engine, const struct ml_not_profiled *item);

#endif

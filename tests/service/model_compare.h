/* What the session says, held against what it should say, to the byte. Room: tests.
 *
 * One rule: whatever differs fails the test. */
#ifndef MEMLOG_TESTS_SERVICE_MODEL_COMPARE_H
#define MEMLOG_TESTS_SERVICE_MODEL_COMPARE_H

#include "service/snapshot.h"
#include "tests/service/model.h"

/* A process's figures and every one of its cells, with their standard errors; no event was late. */
void model_compare_process(const struct ml_snapshot_process *is, const struct model_client *should);

/* All processes, in the model's order, and the tree's figures. */
void model_compare(const struct ml_snapshot *is, const struct model *should);

#endif

/* What the session says, held against what it should say, to the byte. Room: tests.
 *
 * One rule: whatever differs fails the test. */
#ifndef MEMLOG_TESTS_SERVICE_SESSION_MODEL_COMPARE_H
#define MEMLOG_TESTS_SERVICE_SESSION_MODEL_COMPARE_H

#include "service/snapshot/snapshot.h"
#include "tests/service/session/model.h"

/* All processes, in the model's order, every one of their cells with its standard errors, and the
 * tree's figures; no event was late. */
void model_compare(const struct ml_snapshot *is, const struct model *should);

#endif

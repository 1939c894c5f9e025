/* Compares the session's figures with the model's, to the byte. Room: tests.
 *
 * One rule: any difference fails the test. */
#ifndef MEMLOG_TESTS_SERVICE_SESSION_MODEL_COMPARE_H
#define MEMLOG_TESTS_SERVICE_SESSION_MODEL_COMPARE_H

#include "service/snapshot/snapshot.h"
#include "tests/service/session/model.h"

/* Compare all processes in the model's order, each of their cells with its standard errors, and the
 * tree's figures. No event was late. */
void model_compare(const struct ml_snapshot *is, const struct model *should);

#endif

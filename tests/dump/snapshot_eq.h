/* Compares a snapshot that was written with the profile that was read, figure by figure. Room:
 * tests. Context: a Check test; the first difference fails it.
 *
 * One rule: every member of a dump is compared here, so that one which the writer or the reader
 * forgets fails every such test. */
#ifndef MEMLOG_TESTS_DUMP_SNAPSHOT_EQ_H
#define MEMLOG_TESTS_DUMP_SNAPSHOT_EQ_H

#include "service/snapshot/snapshot.h"
#include "tools/analyzer/model/profile.h"

/* All of it; the file was whole. */
void snapshot_eq(const struct ml_snapshot *wrote, const struct ml_profile *read);

/* The sums of one process, stack or tree. */
void totals_eq(const struct ml_totals *wrote, const struct ml_profile_totals *read);

#endif

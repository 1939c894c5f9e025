/* Many dumps of one run as one SQLite database: `memlog convert --to=sqlite A B C`. Room: tools.
 * Context: one thread.
 *
 * One rule: each dump's rows have the figures that its own database has; of places and processes
 * that several dumps have there is one row. heap_profile_allocation has what changed since the dump
 * before, as trace_processor has it. */
#ifndef MEMLOG_TOOLS_ANALYZER_SQLITE_MANY_H
#define MEMLOG_TOOLS_ANALYZER_SQLITE_MANY_H

#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/stacks/stacks.h"

struct ml_sqlite_many;

/* NULL: no memory. */
struct ml_sqlite_many *ml_sqlite_many_new(void);
void ml_sqlite_many_free(struct ml_sqlite_many *many);

/* Add a dump, which is not needed afterwards. Errors: ML_PEER_STATE: it is of another run than
 * those before; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_sqlite_many_add(struct ml_sqlite_many *many, const struct ml_stacks *stacks);

/* Write all, numbered by their time. Call once. Errors: ML_ENV_MEMORY; ML_ENV_SYSTEM when the file
 * refuses. */
ML_NODISCARD enum ml_status ml_sqlite_many_write(struct ml_sqlite_many *many, FILE *out);

#endif

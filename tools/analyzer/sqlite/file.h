/* A dump as a SQLite database with the names of Perfetto's tables: `memlog convert --to=sqlite`.
 * Room: tools. Context: one thread.
 *
 * One rule: a query over heap_profile_allocation, stack_profile_callsite, _frame, _mapping and
 * _symbol gives the same answer as in trace_processor. Exact figures beyond those, peaks among
 * them, are in memlog_dump, memlog_process and memlog_stack.
 *
 * Shape: tools/analyzer/sqlite/schema.sql. */
#ifndef MEMLOG_TOOLS_ANALYZER_SQLITE_FILE_H
#define MEMLOG_TOOLS_ANALYZER_SQLITE_FILE_H

#include <stdint.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/stacks/stacks.h"

/* Make the database in memory, as dump 1. Owner: sqlite3_free(*out_bytes). Errors: ML_ENV_MEMORY.
 */
ML_NODISCARD enum ml_status
ml_sqlite_file_make(const struct ml_stacks *stacks, unsigned char **out_bytes, int64_t *out_count);

/* Write the database. Errors: ML_ENV_MEMORY; ML_ENV_SYSTEM when the file refuses. */
ML_NODISCARD enum ml_status ml_sqlite_file_write(const struct ml_stacks *stacks, FILE *out);

#endif

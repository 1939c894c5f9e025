/* The tables of a database with figures of whole processes: thread, stats, counter and its tracks.
 * Room: tools. Context: one thread.
 *
 * One rule: names and meanings are trace_processor's, so its queries run; what the dump does not
 * know is NULL. */
#ifndef MEMLOG_TOOLS_ANALYZER_SQLITE_FIGURES_H
#define MEMLOG_TOOLS_ANALYZER_SQLITE_FIGURES_H

#include <sqlite3.h>

#include "tools/analyzer/stacks/stacks.h"

/* Fill the tables of a database with the schema. The upid of processes[i] is i + 1. Returns the
 * first error of SQLite, else SQLITE_OK. */
int ml_sqlite_figures_put(sqlite3 *database, const struct ml_stacks *stacks);

#endif

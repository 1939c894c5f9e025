/* The tables of a database that say what memory is made of: profiler_smaps, memlog_component. Room:
 * tools. Context: one thread.
 *
 * One rule: of each process the sums of both tables are the kernel's figures of one reading.
 * Processes whose mappings were not read have no rows. */
#ifndef MEMLOG_TOOLS_ANALYZER_SQLITE_MEMORY_H
#define MEMLOG_TOOLS_ANALYZER_SQLITE_MEMORY_H

#include <stdint.h>

#include <sqlite3.h>

#include "tools/analyzer/model/profile.h"

/* Open both statements over a database with the schema; on an error they are NULL or partly so.
 * `code` has the first error of SQLite, else SQLITE_OK. */
struct ml_sqlite_memory {
    sqlite3_stmt *regions, *components;
    int code;
};

void ml_sqlite_memory_open(struct ml_sqlite_memory *memory, sqlite3 *database);
void ml_sqlite_memory_close(struct ml_sqlite_memory *memory);

/* Insert what is known of a process. */
void ml_sqlite_memory_put(
    struct ml_sqlite_memory *memory, uint64_t upid, const struct ml_profile_process *process
);

#endif

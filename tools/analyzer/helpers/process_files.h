/* Files that a running process has mapped, even if they were deleted, replaced, or are in another
 * mount namespace. Room: tools. Context: the main thread, before and inside the sandbox.
 *
 * One rule: the sandbox (Landlock) keeps the analyzer from looking into other processes, so a
 * separate one, started before it, does that. It copies requested files into shared memory, and
 * parses only our own questions. The caller compares build ids. A path is followed below its
 * process's root alone, and a file system that does not answer costs one file. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_PROCESS_FILES_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_PROCESS_FILES_H

#include <stdbool.h>
#include <stddef.h>

#include "tools/analyzer/symbols/search.h"

/* Roots that the host has kept of processes that may have ended, before the start: the table of
 * host/analysis/roots.h, and the first of its namespaces. */
void ml_process_files_roots(int table_fd, int first_space_fd);
size_t ml_process_files_roots_count(void);

/* Start it; it ends with this process. Without it nothing is found. */
void ml_process_files_start(void);

/* The path of a copy of the file, for ml_symbol_search_options.process_file. The next call for a
 * file of the same kind overwrites the copy. False: *out_lack says why there is none. */
bool ml_process_files_get(
    const struct ml_process_wanted *wanted,
    char *out_path,
    unsigned long path_bytes,
    struct ml_lack *out_lack
);

#endif

/* Files that a running process has mapped, whatever became of their names: deleted, replaced, or in
 * another mount namespace. Room: tools. Context: the main thread, before and inside the sandbox.
 *
 * One rule: the sandbox (Landlock) keeps their process from looking into any other, so a process of
 * its own, started before them, does: it copies what it is asked for into memory that both have,
 * and parses nothing but our own questions. Whoever asks compares build ids. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_PROCESS_FILES_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_PROCESS_FILES_H

#include <stdbool.h>

#include "tools/analyzer/symbols/search.h"

/* Start it; it ends with this process. Without it nothing is found. */
void ml_process_files_start(void);

/* The path of a copy of the file, for ml_symbol_search_options.process_file. It is overwritten by
 * the next. */
bool ml_process_files_get(
    const struct ml_symbol_wanted *wanted,
    enum ml_process_way way,
    char *out_path,
    unsigned long path_bytes
);

#endif

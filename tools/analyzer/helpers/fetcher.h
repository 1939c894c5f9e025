/* Debug files from the servers of DEBUGINFOD_URLS. Room: tools. Context: the main thread, before
 * and inside the sandbox.
 *
 * One rule: the process that uses the network parses nothing. A separate process
 * (tools/analyzer/helpers/helper.h) takes build ids in hex and answers with a file in debuginfod's
 * cache. That file's contents are read inside the sandbox. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_FETCHER_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_FETCHER_H

#include <stdbool.h>

/* Start it, if DEBUGINFOD_URLS names a server. False: it names none, and nothing is fetched. */
bool ml_fetcher_start(void);

/* The path of the debug file with that build id, PATH_MAX at most. False: no server has it. */
bool ml_fetcher_get(const char *build_id_hex, char *out_path, unsigned long path_bytes);

#endif

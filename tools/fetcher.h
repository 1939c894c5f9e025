/* Debug files from the servers of DEBUGINFOD_URLS. Room: tools. Context: the main thread, before
 * and behind the walls.
 *
 * One rule: whoever asks the network parses nothing. A process of its own, started before the walls
 * go up and before a dump is read, takes build ids in hex and answers with a file in debuginfod's
 * cache; what is in that file is read behind the walls. It ends with the pipe to it. */
#ifndef MEMLOG_TOOLS_FETCHER_H
#define MEMLOG_TOOLS_FETCHER_H

#include <stdbool.h>

/* Start it, if DEBUGINFOD_URLS names a server and libdebuginfod is here. Otherwise, and without it,
 * nothing is fetched. */
void ml_fetcher_start(void);
void ml_fetcher_stop(void);
bool ml_fetcher_is_there(void);

/* The path of the debug file with that build id, PATH_MAX at most. False: nobody has it. */
bool ml_fetcher_get(const char *build_id_hex, char *out_path, unsigned long path_bytes);

#endif

/* Which dump is meant where a folder is named, or nothing. Room: tools. Context: main's thread,
 * before the sandbox is up.
 *
 * One rule: a dump is a file that memlog named, NUMBER.REASON.pftrace, and the newest of a folder
 * is that with the highest number. */
#ifndef MEMLOG_TOOLS_ANALYZER_CLI_NEWEST_H
#define MEMLOG_TOOLS_ANALYZER_CLI_NEWEST_H

#include <limits.h>
#include <stdbool.h>

/* The newest dump in the folder. False: there is none, or it cannot be read. */
bool ml_newest_in(const char *folder, char out_path[PATH_MAX]);

/* The newest dump of the newest run in this folder or in one below it: that which was written last.
 * False: there is none. */
bool ml_newest_here(char out_path[PATH_MAX]);

/* Whether the path is a folder's. */
bool ml_newest_is_folder(const char *path);

#endif

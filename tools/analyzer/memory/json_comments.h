/* Comments in JSON that people write: policies and budgets. Room: tools. Context: any thread.
 *
 * One rule: no line moves, so that whatever reads the JSON names the lines of the file. */
#ifndef MEMLOG_TOOLS_ANALYZER_MEMORY_JSON_COMMENTS_H
#define MEMLOG_TOOLS_ANALYZER_MEMORY_JSON_COMMENTS_H

#include <stddef.h>

/* Make the lines that begin with // blank, behind spaces and tabs. */
void ml_json_drop_comments(char *bytes, size_t count_bytes);

#endif

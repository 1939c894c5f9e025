/* Tells whoever has started the analyzer how it ended (base/watched.h). Room: tools. Context: the
 * begin of the program, before it has threads. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_WATCHED_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_WATCHED_H

/* Fork. Returns in the child alone, which goes on as the analyzer and dies with the process that
 * waits for it. */
void ml_watched_begin(int status_fd);

#endif

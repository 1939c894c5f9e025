/* `memlog collect symbolize`: names for frames that came without. Room: host. Context: the main
 * thread, which waits; a collector may be at work on the same store. */
#ifndef MEMLOG_HOST_COLLECT_SERVER_SYMBOLIZE_H
#define MEMLOG_HOST_COLLECT_SERVER_SYMBOLIZE_H

/* `words`: those behind "symbolize". An exit code. */
int ml_symbolize_run(char *const *words);

#endif

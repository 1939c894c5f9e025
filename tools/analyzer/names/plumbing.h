/* Plumbing stands in stacks and tells nothing of who needs the memory: allocator frames, the
 * standard library's calls of what it was given, the start of threads and programs. Room: tools.
 * Context: any thread.
 *
 * One rule: plumbing is left out of what people read, and one switch, --plumbing, shows it. */
#ifndef MEMLOG_TOOLS_ANALYZER_NAMES_PLUMBING_H
#define MEMLOG_TOOLS_ANALYZER_NAMES_PLUMBING_H

#include <stdbool.h>

/* Whether a function of that name is plumbing, wherever it stands in a stack. */
bool ml_is_plumbing(const char *function);

/* Whether it is of the C library and starts main or a thread: what lies outside of it is, too. */
bool ml_is_startup(const char *function);

#endif

/* Allocator frames stand between an allocation and its caller: operator new, containers, g_malloc.
 * Room: tools. Context: any thread.
 *
 * One rule: people see the first caller that is no allocator frame. Programs (JSON, other formats)
 * get every frame. */
#ifndef MEMLOG_TOOLS_ANALYZER_NAMES_ALLOCATOR_FRAMES_H
#define MEMLOG_TOOLS_ANALYZER_NAMES_ALLOCATOR_FRAMES_H

#include <stdbool.h>

/* Whether a function of that name allocates for its callers. */
bool ml_is_allocator_frame(const char *function);

#endif

/* What stands between an allocation and whoever wanted it: operator new, containers, g_malloc.
 * Room: tools. Context: any thread.
 *
 * One rule: people are shown the first caller that is not an allocator frame; programs (JSON, other
 * formats) get every frame. */
#ifndef MEMLOG_TOOLS_ANALYZER_STACKS_ALLOCATOR_FRAMES_H
#define MEMLOG_TOOLS_ANALYZER_STACKS_ALLOCATOR_FRAMES_H

#include <stdbool.h>

/* Whether a function of that name hands memory on for others. */
bool ml_is_allocator_frame(const char *function);

#endif

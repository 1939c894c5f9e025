/* Stepping aside: a process that cannot run with memlog executes itself again without it. Room:
 * client (private). Context: the constructor, before everything else: one thread, nothing of the
 * program has run yet.
 *
 * One rule: afterwards the process is as it would be without memlog. Sanitizer run-times must see
 * each allocation first, and would show our hooks in their reports. Which libraries a program loads
 * is not known before the exec. */
#ifndef MEMLOG_CLIENT_STARTUP_ASIDE_H
#define MEMLOG_CLIENT_STARTUP_ASIDE_H

#include <stdbool.h>

/* Whether a sanitizer's run-time that has an allocator of its own is in this process. */
bool ml_aside_is_needed(void);

/* Tell the host at that socket (NULL: there is none), or by the connection that was left to this
 * image (-1: none), which is closed; and execute the same file again with these
 * arguments and this environment, from which our variables have been removed. Returns only if the
 * exec fails. */
void ml_aside_step(const char *socket_path, int take_left_fd, char **arguments, char **environment);

#endif

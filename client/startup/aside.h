/* Stepping aside: a process that memlog must not be in begins anew without it. Room: client
 * (private). Context: the constructor, before everything else: one thread, nothing of the program
 * has run yet.
 *
 * One rule: behind it the process is what it would have been without memlog. The run-times of
 * sanitizers want to be the first to see each allocation, and show whoever stands before them in
 * their reports. Nobody can know before the exec which libraries a program will come to have. */
#ifndef MEMLOG_CLIENT_STARTUP_ASIDE_H
#define MEMLOG_CLIENT_STARTUP_ASIDE_H

#include <stdbool.h>

/* Whether a sanitizer's run-time that has an allocator of its own is in this process. */
bool ml_aside_is_needed(void);

/* Tell the host behind that socket (NULL: there is none), and execute the same file once more with
 * these arguments and this environment, out of which ours have been taken. Returns where it could
 * not be executed. */
void ml_aside_step(const char *socket_path, char **arguments, char **environment);

#endif

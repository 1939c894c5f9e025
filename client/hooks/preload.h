/* The client's start. Room: client (private). Context: before the program's own code, with one
 * thread.
 *
 * One rule: whoever comes first begins; a second call does nothing. */
#ifndef MEMLOG_CLIENT_HOOKS_PRELOAD_H
#define MEMLOG_CLIENT_HOOKS_PRELOAD_H

/* What the kernel gave the program: our variables are taken out of the environment. */
void ml_preload_begin(char **arguments, char **environment);

#endif

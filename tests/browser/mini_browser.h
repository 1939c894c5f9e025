/* A browser's tree of processes in small: what every mode of memlog is tried on. Room: tests.
 * Context: main thread.
 *
 *   browser                    the root
 *    +- --type=gpu             1
 *    +- --type=utility         2
 *    +- --type=zygote          enters namespaces of its own
 *        +- (its pid 1)        in an empty root
 *            +- --type=renderer   3, forked, never exec'ed, under seccomp before they do their work
 *
 * One rule: each process allocates MINI_BROWSER_BLOCKS blocks of a size that tells its kind, in a
 * function named after it. */
#ifndef MEMLOG_TESTS_BROWSER_MINI_BROWSER_H
#define MEMLOG_TESTS_BROWSER_MINI_BROWSER_H

enum { MINI_BROWSER_BLOCKS = 500 };

/* Be what the command line says, to the end; returns the exit code. */
int mini_browser_life(int argc, char *argv[]);

#endif

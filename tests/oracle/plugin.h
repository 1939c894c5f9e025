/* What a program of the oracle and the libraries that it loads agree on. Room: tests. Context: C
 * and C++. One rule: a plugin allocates and hands out; the books are kept by the program. */
#ifndef MEMLOG_TESTS_ORACLE_PLUGIN_H
#define MEMLOG_TESTS_ORACLE_PLUGIN_H

#include <stddef.h>

#define PLUGIN_PATH __attribute__((noipa, visibility("default")))

/* What plugin_small.so and plugin_large.so export as `plugin_make`; the block that it returns holds
 * `size` bytes. */
typedef void *plugin_make_fn(size_t size);

#endif

/* The ledger for C++, which does not take C's atomics. Room: tests. Context: one thread.
 * One rule: chains are copied; equal ones are one site. */
#ifndef MEMLOG_TESTS_ORACLE_LEDGER_NAMES_H
#define MEMLOG_TESTS_ORACLE_LEDGER_NAMES_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

void *ledger_named(const char *chain, void *address, size_t size_bytes);
void ledger_named_free(void *address);
void ledger_named_module(const char *name);
void ledger_named_write(const char *label, int argc, char *const argv[]);

/* Called by a plugin for each block that it makes. */
typedef void *ledger_named_fn(const char *chain, void *address, size_t size_bytes);

#ifdef __cplusplus
}
#endif

#endif

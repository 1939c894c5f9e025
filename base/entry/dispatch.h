/* An allocator whose functions call through a table of functions, which a variable points to.
 * Whoever loads that variable allocates: by the allocator's functions, or past them, where the
 * compiler has put these into their callers. Room: base. Context: any; pure. */
#ifndef MEMLOG_BASE_ENTRY_DISPATCH_H
#define MEMLOG_BASE_ENTRY_DISPATCH_H

#include <stddef.h>
#include <stdint.h>

/* Where the variable lies that the code, which runs at `address`, loads first, by an instruction
 * that says where relative to itself. 0: none. */
uint64_t ml_dispatch_variable(const uint8_t *code, size_t count_bytes, uint64_t address);

/* How many instructions of the code load the variable; at most `most` are looked for. */
size_t ml_dispatch_loads(
    const uint8_t *code, size_t count_bytes, uint64_t address, uint64_t variable, size_t most
);

#endif

/* Memory for code within the reach of a jump from a program's code. Room: client (private).
 * Context: the constructor: one thread.
 *
 * One rule: nothing that is mapped already is replaced, and nothing that was written stays
 * writable.
 *
 * The memory is a memfd's, by whose name (memlog-entries) people and reports know whose it is. */
#ifndef MEMLOG_CLIENT_PATCH_NEAR_H
#define MEMLOG_CLIENT_PATCH_NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The address at which `count_bytes` of memory fit so that every byte of [low, high) reaches every
 * byte of it by a 32-bit displacement. The memory is reserved, and not accessible. NULL: there is
 * no room, or the kernel refuses. */
uint8_t *ml_near_reserve(uintptr_t low, uintptr_t high, size_t count_bytes);

/* Put `code` there, executable and not writable. False: the kernel refuses; it is reserved still.
 */
bool ml_near_fill(uint8_t *reserved, const uint8_t *code, size_t count_bytes);

void ml_near_release(uint8_t *reserved, size_t count_bytes);

#endif

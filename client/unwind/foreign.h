/* Safe reads through the program's pointers, before the kernel has checked them. Room: client
 * (private). Context: any thread, between vfork and exec too: a few words of stack, and one system
 * call for each page that is new (arch.h: any sandbox that lets threads live permits it).
 *
 * One rule: a pointer for which the kernel would return EFAULT never makes us crash. Another thread
 * may still unmap the memory between check and read, as with any libc function that reads it. */
#ifndef MEMLOG_CLIENT_UNWIND_FOREIGN_H
#define MEMLOG_CLIENT_UNWIND_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_FOREIGN_STRING_MAX_BYTES = 128 * 1024 /* MAX_ARG_STRLEN: what an exec takes, with its 0 */
};

/* Cache of checked pages; all zero to begin with. Valid during one call of the program. */
struct ml_foreign {
    uintptr_t page; /* the last one that can be read; 0: none */
};

/* Whether [at, at + bytes) can be read. */
bool ml_foreign_readable(struct ml_foreign *foreign, const void *at, size_t bytes);

/* Whether a string with its 0 can be read, and is no longer than ML_FOREIGN_STRING_MAX_BYTES.
 * out_length may be NULL. */
bool ml_foreign_string(struct ml_foreign *foreign, const char *text, size_t *out_length);

/* Whether a list of strings that ends with NULL can be read, all of it, with at most `most`
 * entries. *out_count: without the NULL. A list at NULL is empty, as the kernel has it. */
bool ml_foreign_strings(
    struct ml_foreign *foreign, char *const *list, size_t most, size_t *out_count
);

#endif

/* Reading what the program's pointers point at, before the kernel has looked at it. Room: client
 * (private). Context: any thread, between vfork and exec too: a few words of stack, and one system
 * call for each page that is new (arch.h: any sandbox that lets threads live permits it).
 *
 * One rule: a pointer that the kernel would answer with EFAULT never becomes a fault of ours. What
 * another thread unmaps between the question and the look is not excluded, as little as for any
 * function of libc that reads it. */
#ifndef MEMLOG_CLIENT_UNWIND_FOREIGN_H
#define MEMLOG_CLIENT_UNWIND_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_FOREIGN_STRING_MAX_BYTES = 128 * 1024 /* MAX_ARG_STRLEN: what an exec takes, with its 0 */
};

/* What has been asked already; all zero to begin with. Good for one call of the program's. */
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

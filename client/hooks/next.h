/* The next allocator in line: glibc's, or a shared jemalloc, tcmalloc, mimalloc. Room: client
 * (private). Context: any thread; resolved once, before anything is recorded.
 *
 * One rule: hooks forward to these and never to __libc_*: redis and others also call their
 * allocator by other names, and a block must stay with one allocator. */
#ifndef MEMLOG_CLIENT_HOOKS_NEXT_H
#define MEMLOG_CLIENT_HOOKS_NEXT_H

#include <stddef.h>

#include "client/state/visible.h"

struct ml_next {
    void *(*malloc)(size_t);
    void (*free)(void *);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*reallocarray)(void *, size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*memalign)(size_t, size_t);
    void *(*valloc)(size_t);
    void *(*pvalloc)(size_t);
    void (*free_sized)(void *, size_t);                 /* C23; NULL where the libc is older */
    void (*free_aligned_sized)(void *, size_t, size_t); /* likewise */
};

extern ML_OURS struct ml_next ml_next;

/* Find them all. Code that allocates before our constructor gets memory from
 * client/state/boot_store.h. */
void ml_next_resolve(void);

/* The same for operator new and delete; new.c. */
void ml_next_resolve_new(void);

/* Functions may have come to be called in another way: replace each by what `now` says of it. */
void ml_next_follow(void *(*now)(void *function));
void ml_next_follow_new(void *(*now)(void *function));

/* A library is about to be unloaded, or has been. Operators found in a library that was opened
 * after the start are looked up again at their next call. */
void ml_next_forget_late_new(void);

#endif

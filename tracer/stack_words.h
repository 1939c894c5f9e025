/* The words above a stopped thread's stack pointer. Room: tracer. Context: the tracer's one thread.
 *
 * One rule: only so much is read as lies there, and at most 256 KiB: as far as the frame of a
 * signal handler can be that a thread runs. */
#ifndef MEMLOG_TRACER_STACK_WORDS_H
#define MEMLOG_TRACER_STACK_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether `fits` says so of some word, of which it sees the `span` from there on. */
bool ml_stack_words_any(
    int memory_fd,
    uint64_t pointer,
    size_t span,
    bool (*fits)(const uint64_t *words, const void *context),
    const void *context
);

#endif

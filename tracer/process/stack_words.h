/* The words above a stopped thread's stack pointer. Room: tracer. Context: the tracer's one thread.
 *
 * One rule: only so much is read as lies there, and at most 256 KiB: as far as the frame of a
 * signal handler can be that a thread runs. `fits` says of a word, of which it sees the `span` from
 * there on, whether it is what is looked for. */
#ifndef MEMLOG_TRACER_PROCESS_STACK_WORDS_H
#define MEMLOG_TRACER_PROCESS_STACK_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether it is there. */
bool ml_stack_words_any(
    int memory_fd,
    uint64_t pointer,
    size_t span,
    bool (*fits)(const uint64_t *words, const void *context),
    const void *context
);

/* Whether it is, or may be, among the words below `end`: there may be too many to look at, or they
 * cannot be read. `fits` sees one. */
bool ml_stack_words_below(
    int memory_fd,
    uint64_t pointer,
    uint64_t end,
    bool (*fits)(const uint64_t *word, const void *context),
    const void *context
);

#endif

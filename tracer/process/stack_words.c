#include "tracer/process/stack_words.h"

#include "tracer/process/memory.h"

enum { STEP_BYTES = 65536, MOST_BYTES = 262144, PAGE_BYTES = 4096 };

static uint64_t page_behind(uint64_t at, uint64_t bytes) {
    return (at + bytes) & ~(uint64_t)(PAGE_BYTES - 1);
}

bool ml_stack_words_any(
    int memory_fd,
    uint64_t pointer,
    size_t span,
    bool (*fits)(const uint64_t *words, const void *context),
    const void *context
) {
    static uint64_t words[STEP_BYTES / sizeof(uint64_t)];
    const size_t overlap_bytes = (span - 1) * sizeof(words[0]); /* seen again with what is behind */
    const uint64_t start = pointer & ~UINT64_C(7);
    for (uint64_t at = start; at - start < MOST_BYTES;) {
        size_t bytes = (size_t)(page_behind(at, STEP_BYTES) - at);
        if (!ml_memory_read(memory_fd, at, words, bytes)) {
            bytes = (size_t)(page_behind(at, PAGE_BYTES) - at);
            if (!ml_memory_read(memory_fd, at, words, bytes)) {
                return false; /* the stack's end */
            }
        }
        for (size_t i = 0; i + span <= bytes / sizeof(words[0]); i++) {
            if (fits(&words[i], context)) {
                return true;
            }
        }
        at += bytes > overlap_bytes ? bytes - overlap_bytes : bytes;
    }
    return false;
}

bool ml_stack_words_below(
    int memory_fd,
    uint64_t pointer,
    uint64_t end,
    bool (*fits)(const uint64_t *word, const void *context),
    const void *context
) {
    static uint64_t words[MOST_BYTES / sizeof(uint64_t)];
    const uint64_t start = pointer & ~UINT64_C(7);
    if (end - start > sizeof(words) || !ml_memory_read(memory_fd, start, words, end - start)) {
        return true;
    }
    for (size_t i = 0; i < (end - start) / sizeof(words[0]); i++) {
        if (fits(&words[i], context)) {
            return true;
        }
    }
    return false;
}

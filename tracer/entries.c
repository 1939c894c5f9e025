#include "tracer/entries.h"

#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "tracer/memory.h"

enum {
    STACK_STEP_BYTES = 65536,
    STACK_MAX_BYTES = 262144 /* above a stack pointer: where a handler's frame lies */
};

static bool is_between(const struct ml_attach_function *functions, uint32_t count, uint64_t at) {
    for (uint32_t i = 0; i < count; i++) {
        if (functions[i].is_on != 0 && at - functions[i].entry - 1 < ML_ATTACH_ENTRY_BYTES - 1) {
            return true;
        }
    }
    return false;
}

/* The words of a stack, from its pointer on. What is read in vain lies behind its end. */
static bool has_word_between(
    int memory_fd,
    uint64_t pointer,
    const struct ml_attach_function *functions,
    uint32_t count,
    uint64_t low,
    uint64_t high
) {
    static uint64_t words[STACK_STEP_BYTES / sizeof(uint64_t)];
    uint64_t at = pointer & ~UINT64_C(7);
    for (uint64_t done = 0; done < STACK_MAX_BYTES;) {
        const uint64_t page_end = (at + STACK_STEP_BYTES) & ~UINT64_C(4095);
        size_t bytes = (size_t)(page_end - at);
        if (!ml_memory_read(memory_fd, at, words, bytes)) {
            bytes = (size_t)(((at + 4096) & ~UINT64_C(4095)) - at);
            if (!ml_memory_read(memory_fd, at, words, bytes)) {
                return false;
            }
        }
        for (size_t i = 0; i < bytes / sizeof(words[0]); i++) {
            if (words[i] > low && words[i] < high && is_between(functions, count, words[i])) {
                return true;
            }
        }
        at += bytes;
        done += bytes;
    }
    return false;
}

bool ml_entries_are_busy(
    const struct ml_threads *threads,
    int memory_fd,
    const struct ml_attach_function *functions,
    uint32_t count
) {
    uint64_t low = UINT64_MAX;
    uint64_t high = 0;
    for (uint32_t i = 0; i < count; i++) {
        low = functions[i].entry < low ? functions[i].entry : low;
        high = functions[i].entry + ML_ATTACH_ENTRY_BYTES > high
                   ? functions[i].entry + ML_ATTACH_ENTRY_BYTES
                   : high;
    }
    for (size_t i = 0; i < threads->count; i++) {
        struct user_regs_struct registers;
        if (threads->list[i].state != ML_TRACED_STOPPED) {
            continue;
        }
        if (ptrace(PTRACE_GETREGS, threads->list[i].id, NULL, &registers) != 0) {
            return true;
        }
        if (is_between(functions, count, registers.rip) ||
            has_word_between(memory_fd, registers.rsp, functions, count, low, high)) {
            return true;
        }
    }
    return false;
}

struct ml_entries_result ml_entries_write(
    int memory_fd, const struct ml_attach_function *functions, uint32_t count, bool jumps
) {
    struct ml_entries_result result = {.written = 0};
    for (uint32_t i = 0; i < count; i++) {
        const struct ml_attach_function *one = &functions[i];
        const uint8_t *wanted = jumps ? one->jump : one->old;
        const uint8_t *other = jumps ? one->old : one->jump;
        uint8_t now[ML_ATTACH_ENTRY_BYTES];
        if (jumps && one->is_on == 0) {
            continue;
        }
        if (!ml_memory_read(memory_fd, one->entry, now, sizeof(now))) {
            result.failed++; /* its object is gone */
        } else if (memcmp(now, wanted, sizeof(now)) == 0) {
            result.were_so++;
        } else if (memcmp(now, other, sizeof(now)) != 0) {
            result.foreign++;
        } else if (ml_memory_write(memory_fd, one->entry, wanted, ML_ATTACH_ENTRY_BYTES)) {
            result.written++;
        } else {
            result.failed++;
        }
    }
    return result;
}

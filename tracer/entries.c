#include "tracer/entries.h"

#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "tracer/process/memory.h"
#include "tracer/process/stack_words.h"

static bool is_between(const struct ml_attach_function *functions, uint32_t count, uint64_t at) {
    for (uint32_t i = 0; i < count; i++) {
        if (functions[i].is_on != 0 && at - functions[i].entry - 1 < ML_ATTACH_ENTRY_BYTES - 1) {
            return true;
        }
    }
    return false;
}

/* What the words of a stack are looked through for. */
struct wanted {
    const struct ml_attach_function *functions;
    uint32_t count;
    uint64_t low, high; /* no entry lies elsewhere */
};

static bool is_wanted(const uint64_t *word, const void *context) {
    const struct wanted *wanted = context;
    return *word > wanted->low && *word < wanted->high &&
           is_between(wanted->functions, wanted->count, *word);
}

bool ml_entries_are_busy(
    const struct ml_threads *threads,
    int memory_fd,
    const struct ml_attach_function *functions,
    uint32_t count
) {
    struct wanted wanted = {.functions = functions, .count = count, .low = UINT64_MAX};
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t end = functions[i].entry + ML_ATTACH_ENTRY_BYTES;
        wanted.low = functions[i].entry < wanted.low ? functions[i].entry : wanted.low;
        wanted.high = end > wanted.high ? end : wanted.high;
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
            ml_stack_words_any(memory_fd, registers.rsp, 1, is_wanted, &wanted)) {
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

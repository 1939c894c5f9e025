#include "tracer/passers.h"

#include <sys/ptrace.h>
#include <sys/user.h>

#include "tracer/stack_words.h"

static bool is_ours(const struct ml_attach_block *block, uint64_t at) {
    if (at - block->address < block->bytes) {
        return true;
    }
    for (uint32_t i = 0; i < block->functions_count; i++) {
        if (at - block->functions[i].stub < ML_ATTACH_STUB_BYTES) {
            return true;
        }
    }
    return false;
}

/* The kernel's record of an interrupted thread has rip, eflags and the segments in a row. */
static bool is_interrupted(const uint64_t *words, const void *block) {
    enum { USER_CODE = 0x33, SEGMENT = 0xffff, ALWAYS_SET = 2, FLAGS_END = 1 << 22 };
    return (words[2] & SEGMENT) == USER_CODE && words[1] < FLAGS_END &&
           (words[1] & ALWAYS_SET) != 0 && is_ours(block, words[0]);
}

bool ml_passers_are_there(
    const struct ml_threads *threads, int memory_fd, const struct ml_attach_block *block
) {
    enum { RECORD_WORDS = 3 };
    for (size_t i = 0; i < threads->count; i++) {
        struct user_regs_struct registers;
        if (threads->list[i].state != ML_TRACED_STOPPED) {
            continue;
        }
        if (ptrace(PTRACE_GETREGS, threads->list[i].id, NULL, &registers) != 0 ||
            is_ours(block, registers.rip) ||
            ml_stack_words_any(memory_fd, registers.rsp, RECORD_WORDS, is_interrupted, block)) {
            return true;
        }
    }
    return false;
}

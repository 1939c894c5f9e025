#include "tracer/passers.h"

#include <sys/ptrace.h>
#include <sys/user.h>

#include "tracer/process/maps.h"
#include "tracer/process/memory.h"
#include "tracer/process/stack_words.h"

enum {
    CALL_BYTES =
        512, /* of a function that makes a system call: none of glibc's or musl's is longer */
    CALL_WORDS_MAX = 64,
    ERRNO_BYTES = 16 /* of __errno_location */
};

/* The kernel's record of an interrupted thread has rsp, rip, eflags and the segments in a row. */
enum { RECORD_RSP, RECORD_RIP, RECORD_FLAGS, RECORD_SEGMENTS, RECORD_WORDS };

static bool is_code(const struct ml_attach_block *block, uint64_t at) {
    return at - block->address < block->bytes;
}

static bool is_ours(const struct ml_attach_block *block, uint64_t at) {
    if (is_code(block, at)) {
        return true;
    }
    for (uint32_t i = 0; i < block->functions_count; i++) {
        if (at - block->functions[i].stub < ML_ATTACH_STUB_BYTES) {
            return true;
        }
    }
    return false;
}

static bool is_record(const uint64_t *words) {
    enum { USER_CODE = 0x33, SEGMENT = 0xffff, ALWAYS_SET = 2, FLAGS_END = 1 << 22 };
    return (words[RECORD_SEGMENTS] & SEGMENT) == USER_CODE && words[RECORD_FLAGS] < FLAGS_END &&
           (words[RECORD_FLAGS] & ALWAYS_SET) != 0;
}

/* ---- calls that a hook has made, and comes back from */

/* How far behind the stack pointer the return address lies in the real function, in words. Where
 * one can block, it is known exactly: words further out may be left by a hook of before. */
static size_t words_of_call(enum ml_attach_hook hook) {
    switch (hook) {
    case ML_ATTACH_SYSCALL: /* it has no frame */
        return 1;
    case ML_ATTACH_PRCTL:
    case ML_ATTACH_FORK:
    case ML_ATTACH_EXECVE:
    case ML_ATTACH_EXECVEAT:
    case ML_ATTACH_FEXECVE:
        return CALL_WORDS_MAX;
    case ML_ATTACH_ALLOCATOR: /* the table tells of them */
    case ML_ATTACH_DLCLOSE:   /* the client's start waits for it */
    case ML_ATTACH_CLONE:     /* jumped to */
    case ML_ATTACH_EXIT:      /* does not come back */
    case ML_ATTACH_HOOK_COUNT:
        break;
    }
    return 0;
}

static size_t words_of_call_at(const struct ml_attach_block *block, uint64_t at) {
    if (block->errno_location != 0 && at - block->errno_location < ERRNO_BYTES) {
        return 1;
    }
    for (uint32_t i = 0; i < block->functions_count; i++) {
        if (at - block->functions[i].entry < CALL_BYTES) {
            const size_t words = words_of_call((enum ml_attach_hook)block->functions[i].hook);
            if (words != 0) {
                return words;
            }
        }
    }
    return 0;
}

/* Whether a thread that stands there has been sent by a hook. */
static bool
is_call_of_hook(const struct ml_attach_block *block, int memory_fd, uint64_t at, uint64_t stack) {
    uint64_t words[CALL_WORDS_MAX];
    const size_t count = words_of_call_at(block, at);
    size_t read = count;
    while (read > 0 && !ml_memory_read(memory_fd, stack, words, read * sizeof(words[0]))) {
        read /= 2; /* the stack ends */
    }
    for (size_t i = 0; i < read; i++) {
        if (is_code(block, words[i])) {
            return true;
        }
    }
    return false;
}

struct looked_for {
    const struct ml_attach_block *block;
    int memory_fd;
};

static bool is_interrupted(const uint64_t *words, const void *context) {
    const struct looked_for *looked_for = context;
    return is_record(words) &&
           (is_ours(looked_for->block, words[RECORD_RIP]) ||
            is_call_of_hook(
                looked_for->block, looked_for->memory_fd, words[RECORD_RIP], words[RECORD_RSP]
            ));
}

/* ---- what the table of threads says */

/* Of a hook that a row names. */
struct hook {
    const struct ml_attach_block *block;
    uint64_t thread_pointer; /* of whoever is inside */
    uint64_t frame;
};

/* The stopped process, as the search needs it. */
struct stopped {
    const struct ml_threads *threads;
    int memory_fd;
    struct ml_maps maps;
};

/* The process may have written anything there. Where it says of rows what is not so, it fools
 * itself alone. */
static bool is_sound(const struct ml_attach_threads *table) {
    return table->count <= ML_ATTACH_THREADS_MAX && table->row_bytes <= ML_ATTACH_ROW_BYTES_MAX &&
           table->row_bytes >= sizeof(uint64_t) &&
           table->phase_at <= table->row_bytes - sizeof(uint32_t) &&
           table->frame_at <= table->row_bytes - sizeof(uint64_t);
}

/* A handler runs on a stack of its own that lies further out in the same mapping: it goes back to
 * where the hook may be. */
static bool leads_below(const uint64_t *words, const void *context) {
    const struct hook *hook = context;
    return is_record(words) && words[RECORD_RSP] < hook->frame;
}

static bool leads_back(const uint64_t *words, const void *context) {
    const struct hook *hook = context;
    return is_code(hook->block, words[0]);
}

/* A hook that has called something has an address of its own code below its frame, and so has a
 * handler that has interrupted it. */
static bool
may_be_inside(const struct stopped *stopped, const struct hook *hook, uint64_t stack_pointer) {
    const struct ml_map *stack = ml_maps_at(&stopped->maps, stack_pointer);
    if (stack == NULL || hook->frame <= stack->start || hook->frame > stack->end) {
        return true;
    }
    if (stack_pointer < hook->frame) {
        return ml_stack_words_below(
            stopped->memory_fd, stack_pointer, hook->frame, leads_back, hook
        );
    }
    return ml_stack_words_any(stopped->memory_fd, stack_pointer, RECORD_WORDS, leads_below, hook);
}

/* No thread has the pointer where it has ended; more than one where the program has made threads
 * without one of their own. */
static bool is_any_inside(const struct stopped *stopped, const struct hook *hook) {
    for (size_t i = 0; i < stopped->threads->count; i++) {
        const struct ml_traced *thread = &stopped->threads->list[i];
        struct user_regs_struct registers;
        uint64_t own = 0;
        if (thread->state != ML_TRACED_STOPPED) {
            continue;
        }
        if (ptrace(PTRACE_GETREGS, thread->id, NULL, &registers) != 0) {
            return true;
        }
        /* As the client reads it. */
        if (ml_memory_read(stopped->memory_fd, registers.fs_base, &own, sizeof(own)) &&
            own == hook->thread_pointer && may_be_inside(stopped, hook, registers.rsp)) {
            return true;
        }
    }
    return false;
}

/* False: it cannot be read. */
static bool look_at_row(
    struct stopped *stopped,
    const struct ml_attach_block *block,
    uint32_t i,
    uint64_t pointer,
    bool *out_is_outside
) {
    const struct ml_attach_threads *table = &block->threads;
    const uint64_t row = table->rows + (uint64_t)i * table->row_bytes;
    struct hook hook = {.block = block, .thread_pointer = pointer};
    uint32_t phase = 0;
    if (!ml_memory_read(stopped->memory_fd, row + table->phase_at, &phase, sizeof(phase)) ||
        !ml_memory_read(
            stopped->memory_fd, row + table->frame_at, &hook.frame, sizeof(hook.frame)
        )) {
        return false;
    }
    struct ml_error_message error = {.text = ""};
    if (phase != 0 && stopped->maps.list == NULL &&
        !ml_maps_read(stopped->threads->pid, &stopped->maps, &error)) {
        return false;
    }
    *out_is_outside = phase == 0 || !is_any_inside(stopped, &hook);
    return true;
}

static bool are_rows_inside(
    struct ml_passers *passers, struct stopped *stopped, const struct ml_attach_block *block
) {
    static uint64_t pointers[ML_ATTACH_THREADS_MAX];
    const struct ml_attach_threads *table = &block->threads;
    bool are_there = false;
    if (table->count == 0) {
        return false;
    }
    if (!is_sound(table) ||
        !ml_memory_read(
            stopped->memory_fd, table->pointers, pointers, table->count * sizeof(pointers[0])
        )) {
        return true;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        bool is_outside = true;
        if (pointers[i] <= ML_ATTACH_POINTER_NONE || passers->is_outside[i] != 0) {
            continue;
        }
        if (!look_at_row(stopped, block, i, pointers[i], &is_outside)) {
            return true;
        }
        passers->is_outside[i] = is_outside;
        are_there = are_there || !is_outside;
    }
    return are_there;
}

/* ---- all of it */

bool ml_passers_are_there(
    struct ml_passers *passers,
    const struct ml_threads *threads,
    int memory_fd,
    const struct ml_attach_block *block
) {
    struct stopped stopped = {.threads = threads, .memory_fd = memory_fd};
    const struct looked_for looked_for = {.block = block, .memory_fd = memory_fd};
    for (size_t i = 0; i < threads->count; i++) {
        struct user_regs_struct registers;
        if (threads->list[i].state != ML_TRACED_STOPPED) {
            continue;
        }
        if (ptrace(PTRACE_GETREGS, threads->list[i].id, NULL, &registers) != 0 ||
            is_ours(block, registers.rip) ||
            is_call_of_hook(block, memory_fd, registers.rip, registers.rsp) ||
            ml_stack_words_any(
                memory_fd, registers.rsp, RECORD_WORDS, is_interrupted, &looked_for
            )) {
            return true;
        }
    }
    const bool are_inside = are_rows_inside(passers, &stopped, block);
    ml_maps_free(&stopped.maps);
    return are_inside;
}

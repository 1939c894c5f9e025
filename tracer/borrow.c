#include "tracer/borrow.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "tracer/process/memory.h"

enum {
    STATE_NOTE = 0x202,  /* NT_X86_XSTATE */
    SHADOW_NOTE = 0x204, /* NT_X86_SHSTK */
    MASK_BYTES = 8,
    USER_CODE = 0x33,         /* the code segment of 64-bit programs */
    SCAN_MAX_BYTES = 8 << 20, /* of one mapping's code */
    CALL_TRAP = SIGTRAP | 0x80
};

/* ---- code */

static uint64_t find_bytes(
    const uint8_t *code, size_t count_bytes, const uint8_t *wanted, size_t wanted_bytes, uint64_t at
) {
    const uint8_t *found = memmem(code, count_bytes, wanted, wanted_bytes);
    return found != NULL ? at + (uint64_t)(found - code) : 0;
}

static void look_in(const uint8_t *code, size_t bytes, uint64_t at, struct ml_borrowed_code *out) {
    static const uint8_t call[] = {0x0f, 0x05, 0xc3};
    static const uint8_t back[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
    static const uint8_t long_back[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
    if (out->call_and_return == 0) {
        out->call_and_return = find_bytes(code, bytes, call, sizeof(call), at);
    }
    if (out->return_of_signal == 0) {
        out->return_of_signal = find_bytes(code, bytes, long_back, sizeof(long_back), at);
    }
    if (out->return_of_signal == 0) {
        out->return_of_signal = find_bytes(code, bytes, back, sizeof(back), at);
    }
}

bool ml_borrow_find_code(
    int memory_fd, const struct ml_maps *maps, struct ml_borrowed_code *out_code
) {
    *out_code = (struct ml_borrowed_code){.call_and_return = 0};
    uint8_t *code = malloc(SCAN_MAX_BYTES);
    for (size_t i = 0; i < maps->count && code != NULL; i++) {
        const struct ml_map *map = &maps->list[i];
        const uint64_t all = map->end - map->start;
        const size_t bytes = all < SCAN_MAX_BYTES ? (size_t)all : SCAN_MAX_BYTES;
        if (!map->is_executable || map->is_writable || map->inode == 0 ||
            !ml_memory_read(memory_fd, map->start, code, bytes)) {
            continue;
        }
        look_in(code, bytes, map->start, out_code);
    }
    free(code);
    return out_code->call_and_return != 0 && out_code->return_of_signal != 0;
}

/* ---- borrowing */

/* A restartable sequence must not be left and entered again unnoticed. */
static bool is_in_sequence(const struct ml_traced *thread, int memory_fd) {
    struct {
        uint64_t pointer;
        uint32_t size, signature, flags, pad;
    } area = {.pointer = 0};
    uint64_t present = 0;
    enum { GET_RSEQ = 0x420f, SEQUENCE_AT = 8 };
    const long got =
        ptrace((enum __ptrace_request)GET_RSEQ, thread->id, (void *)sizeof(area), &area);
    return got > 0 && area.pointer != 0 &&
           ml_memory_read(memory_fd, area.pointer + SEQUENCE_AT, &present, sizeof(present)) &&
           present != 0;
}

static bool has_shadow_stack(const struct ml_traced *thread) {
    uint64_t pointer = 0;
    struct iovec part = {.iov_base = &pointer, .iov_len = sizeof(pointer)};
    return ptrace(PTRACE_GETREGSET, thread->id, (void *)SHADOW_NOTE, &part) == 0 && pointer != 0;
}

static bool read_memory(void *context, uint64_t address, void *out_bytes, size_t count_bytes) {
    const int *memory_fd = context;
    return ml_memory_read(*memory_fd, address, out_bytes, count_bytes);
}

static bool
take_image(const struct ml_traced *thread, int memory_fd, struct ml_thread_image *image) {
    struct iovec state = {.iov_base = image->state, .iov_len = sizeof(image->state)};
    if (ptrace(PTRACE_GETREGS, thread->id, NULL, &image->registers) != 0 ||
        ptrace(PTRACE_GETREGSET, thread->id, (void *)STATE_NOTE, &state) != 0 ||
        ptrace(PTRACE_GETSIGMASK, thread->id, (void *)MASK_BYTES, &image->signal_mask) != 0) {
        return false;
    }
    image->state_bytes = state.iov_len;
    image->call = ml_frame_restarted_call(&image->registers, read_memory, &memory_fd);
    return true;
}

static uint64_t place_of_frame(const struct ml_maps *maps, const struct ml_thread_image *image) {
    const struct ml_map *map = ml_maps_at(maps, image->registers.rsp);
    return map != NULL && map->is_writable ? ml_signal_frame_place(image, map->start, map->end) : 0;
}

/* From now on the thread goes back by itself wherever it is let go: at its next step, or behind the
 * system call that it stands in front of. That call becomes getpid: a seccomp filter is asked of a
 * call without a number, too, and permits this one (filters.c). The stack pointer is on the
 * thread's own stack again, so signals may come. */
static bool turn_back(const struct ml_borrowed *borrowed) {
    enum { BEHIND_RETURN = 8 };
    struct user_regs_struct registers = borrowed->image.registers;
    registers.orig_rax = SYS_getpid;
    registers.rax = 0;
    registers.rip = borrowed->code.return_of_signal;
    registers.rsp = borrowed->frame + BEHIND_RETURN;
    return ptrace(PTRACE_SETREGS, borrowed->thread->id, NULL, &registers) == 0;
}

/* The registers last but for what stood in the frame's place: up to them the thread goes back by
 * itself. */
static bool put_back(struct ml_borrowed *borrowed) {
    const pid_t id = borrowed->thread->id;
    struct ml_thread_image *image = &borrowed->image;
    struct iovec state = {.iov_base = image->state, .iov_len = image->state_bytes};
    return ptrace(PTRACE_SETREGSET, id, (void *)STATE_NOTE, &state) == 0 &&
           ptrace(PTRACE_SETSIGMASK, id, (void *)MASK_BYTES, &image->signal_mask) == 0 &&
           ptrace(PTRACE_SETREGS, id, NULL, &image->registers) == 0 &&
           ml_memory_write(
               borrowed->memory_fd, borrowed->frame, borrowed->below, borrowed->below_bytes
           );
}

static bool block_signals(const struct ml_traced *thread) {
    const uint64_t all = ~UINT64_C(0);
    return ptrace(PTRACE_SETSIGMASK, thread->id, (void *)MASK_BYTES, &all) == 0;
}

/* A stack may be too small for it, and no signal come to the program: what stands below it is kept
 * for the end. */
static bool write_frame(struct ml_borrowed *borrowed, const uint8_t *frame, size_t bytes) {
    if (bytes == 0 ||
        !ml_memory_read(borrowed->memory_fd, borrowed->frame, borrowed->below, bytes)) {
        return false;
    }
    borrowed->below_bytes = bytes;
    return ml_memory_write(borrowed->memory_fd, borrowed->frame, frame, bytes);
}

bool ml_borrow(
    struct ml_borrowed *borrowed,
    struct ml_traced *thread,
    int memory_fd,
    const struct ml_maps *maps,
    const struct ml_borrowed_code *code,
    struct ml_error_message *error
) {
    *borrowed = (struct ml_borrowed){.thread = thread, .memory_fd = memory_fd, .code = *code};
    uint8_t *frame = malloc(ML_SIGNAL_FRAME_MAX_BYTES);
    if (frame == NULL || !take_image(thread, memory_fd, &borrowed->image)) {
        ml_error_set(error, "its registers cannot be read");
        free(frame);
        return false;
    }
    const struct user_regs_struct *registers = &borrowed->image.registers;
    borrowed->frame = place_of_frame(maps, &borrowed->image);
    if (registers->cs != USER_CODE || has_shadow_stack(thread)) {
        ml_error_set(
            error,
            registers->cs != USER_CODE ? "it runs 32-bit code" : "it has a shadow stack (CET)"
        );
    } else if (borrowed->frame == 0 || is_in_sequence(thread, memory_fd)) {
        ml_error_set(error, "no thread of it stands where it can be borrowed");
    } else {
        const size_t bytes =
            ml_signal_frame(&borrowed->image, borrowed->frame, code->return_of_signal, frame);
        /* First its return: nobody else would let its signals come again. */
        const bool written = write_frame(borrowed, frame, bytes);
        const bool whole = written && turn_back(borrowed) && block_signals(thread);
        free(frame);
        if (!whole) {
            (void)(written && put_back(borrowed));
            ml_error_set(error, "its stack cannot be written");
        }
        return whole;
    }
    free(frame);
    return false;
}

/* ---- running */

static bool resume(const struct ml_borrowed *borrowed, enum __ptrace_request how, int signal) {
    borrowed->thread->state = ML_TRACED_RUNNING;
    return ptrace(how, borrowed->thread->id, NULL, (void *)(long)signal) == 0;
}

/* Up to its next system call, or the end of one. */
static bool next_stop(const struct ml_borrowed *borrowed, struct user_regs_struct *out_registers) {
    int status = 0;
    int signal = 0;
    for (;;) {
        if (!resume(borrowed, PTRACE_SYSCALL, signal) ||
            !ml_threads_wait(borrowed->thread, &status)) {
            return false;
        }
        if (WSTOPSIG(status) == CALL_TRAP && status >> 16 == 0) {
            return ptrace(PTRACE_GETREGS, borrowed->thread->id, NULL, out_registers) == 0;
        }
        /* All signals are blocked but SIGSTOP: it stops the process's other threads, and this one
         * when it is let go. What remains are faults of our own code, which are not survived. */
        signal = status >> 16 == 0 && WSTOPSIG(status) == SIGSTOP ? SIGSTOP : 0;
        if (status >> 16 == 0 && WSTOPSIG(status) != SIGTRAP && signal == 0) {
            return false;
        }
    }
}

bool ml_borrow_call(
    struct ml_borrowed *borrowed, long number, const uint64_t arguments[6], long *out_result
) {
    struct user_regs_struct registers = borrowed->image.registers;
    registers.orig_rax = (unsigned long long)-1;
    registers.rax = (unsigned long long)number;
    registers.rdi = arguments[0];
    registers.rsi = arguments[1];
    registers.rdx = arguments[2];
    registers.r10 = arguments[3];
    registers.r8 = arguments[4];
    registers.r9 = arguments[5];
    registers.rip = borrowed->code.call_and_return;
    registers.rsp = borrowed->frame;
    if (ptrace(PTRACE_SETREGS, borrowed->thread->id, NULL, &registers) != 0) {
        return false;
    }
    borrowed->is_away = true;
    if (!next_stop(borrowed, &registers) || (long)registers.orig_rax != number ||
        !next_stop(borrowed, &registers)) {
        return false;
    }
    *out_result = (long)registers.rax;
    return true;
}

bool ml_borrow_run(
    struct ml_borrowed *borrowed,
    uint64_t entry,
    uint64_t stack_end,
    uint64_t frame,
    void (*on_call)(void *context),
    void *context
) {
    enum { RETURN_AT = 8 };
    uint8_t *bytes = malloc(ML_SIGNAL_FRAME_MAX_BYTES);
    const size_t count = bytes != NULL ? ml_signal_frame(&borrowed->image, frame, 0, bytes) : 0;
    const bool written = count > 0 && ml_memory_write(borrowed->memory_fd, frame, bytes, count);
    free(bytes);
    struct user_regs_struct registers = borrowed->image.registers;
    registers.orig_rax = (unsigned long long)-1;
    registers.rax = 0;
    registers.rip = entry;
    registers.rsp = stack_end & ~UINT64_C(15);
    registers.rbx = frame + RETURN_AT;
    registers.eflags &= ~UINT64_C(0x400); /* the direction flag */
    if (!written || ptrace(PTRACE_SETREGS, borrowed->thread->id, NULL, &registers) != 0) {
        return false;
    }
    borrowed->is_away = true;
    while (next_stop(borrowed, &registers)) {
        if ((long)registers.orig_rax == SYS_rt_sigreturn) {
            return true;
        }
        const long number = (long)registers.orig_rax;
        if (!next_stop(borrowed, &registers)) {
            return false;
        }
        if (number == SYS_getpid) {
            on_call(context);
        }
    }
    return false;
}

/* The thread is in front of a system call, or behind one. Nothing of it is made. */
bool ml_borrow_end(struct ml_borrowed *borrowed) {
    struct ml_traced *thread = borrowed->thread;
    if (borrowed->is_away) {
        int status = 0;
        /* It stops before its next step. */
        if (!turn_back(borrowed) || ptrace(PTRACE_INTERRUPT, thread->id, NULL, NULL) != 0 ||
            !resume(borrowed, PTRACE_CONT, 0) || !ml_threads_wait(thread, &status) ||
            status >> 16 != PTRACE_EVENT_STOP) {
            return false;
        }
    }
    borrowed->is_away = false;
    return put_back(borrowed);
}

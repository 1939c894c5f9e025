/* The frame of a signal that never came: what the kernel puts on a stack before a handler, so that
 * rt_sigreturn makes a thread go on where it stood. Room: tracer. Context: any; pure.
 *
 * One rule: a thread that runs our code can always go back by itself. The tracer may die at any
 * moment. */
#ifndef MEMLOG_TRACER_FRAME_H
#define MEMLOG_TRACER_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

enum {
    ML_FRAME_STATE_MAX_BYTES = 12288, /* of xsave: 2.7 KiB with AVX-512, 11 KiB with AMX */
    ML_SIGNAL_FRAME_MAX_BYTES = 16384
};

/* What a thread is, by ptrace. */
struct ml_thread_image {
    struct user_regs_struct registers;
    uint64_t signal_mask;
    uint8_t state[ML_FRAME_STATE_MAX_BYTES]; /* NT_X86_XSTATE */
    size_t state_bytes;
    long call; /* that it goes on with by restart_syscall; -1: not known, or none */
};

/* Read another process's memory. False: it cannot be read. */
typedef bool ml_frame_read(void *context, uint64_t address, void *out_bytes, size_t count_bytes);

/* The number of the call that goes on by restart_syscall, as the thread stands behind its
 * `syscall`: by the load of eax in front of that, or where libc's function for all calls that can
 * be cancelled (since glibc 2.41) has it on the stack. -1: it is none of those that go on so, or it
 * is not found. */
long ml_frame_restarted_call(
    const struct user_regs_struct *registers, ml_frame_read *read, void *context
);

/* How large its frame is: no more than the kernel's own. 0: as below. */
size_t ml_signal_frame_bytes(const struct ml_thread_image *image);

/* Where its frame lies in its stack's mapping, [start, end): right below what the thread uses.
 * Where that is near the end it lies deeper, as far down as a signal's would at most, so that the
 * whole state can be read behind its start: where the kernel has to bring a page of the frame back,
 * it asks for so much, whatever is in use. 0: there is no room. */
uint64_t ml_signal_frame_place(
    const struct ml_thread_image *image, uint64_t stack_start, uint64_t stack_end
);

/* The frame as it lies at `address`, which is a multiple of 64: its first word is `return_to`,
 * where a `ret` at its start leads to. 0: the registers' state is none that the kernel would take.
 * Returns its size. A thread with its stack pointer 8 bytes behind `address` that calls
 * rt_sigreturn becomes `image`, and makes the system call again that it was interrupted in. */
size_t ml_signal_frame(
    const struct ml_thread_image *image,
    uint64_t address,
    uint64_t return_to,
    uint8_t out_frame[ML_SIGNAL_FRAME_MAX_BYTES]
);

#endif

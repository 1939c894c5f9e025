/* One thread of another process, borrowed for system calls and for the client's start. Room:
 * tracer. Context: the tracer's one thread; the borrowed thread is stopped, others may run.
 *
 * One rule: whatever the thread does for us ends in a return to where it stood, also without a
 * tracer (frame.h). It runs with all signals blocked, on memory that the program does not use. */
#ifndef MEMLOG_TRACER_BORROW_H
#define MEMLOG_TRACER_BORROW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "tracer/frame.h"
#include "tracer/process/maps.h"
#include "tracer/process/threads.h"

/* Code of the program's own libc that we make use of where it stands. */
struct ml_borrowed_code {
    uint64_t call_and_return;  /* syscall; ret */
    uint64_t return_of_signal; /* mov $15, %eax; syscall */
};

struct ml_borrowed {
    struct ml_traced *thread;
    int memory_fd;
    struct ml_borrowed_code code;
    struct ml_thread_image image;
    uint64_t frame;                           /* on the thread's own stack, below what it uses */
    uint8_t below[ML_SIGNAL_FRAME_MAX_BYTES]; /* what stood there */
    size_t below_bytes;
    bool is_away;   /* it does not stand where it stood */
    bool is_beaten; /* the program has mapped something where we were about to: try elsewhere */
};

/* Find the code in what is mapped. False: there is none. */
bool ml_borrow_find_code(
    int memory_fd, const struct ml_maps *maps, struct ml_borrowed_code *out_code
);

/* Borrow a stopped thread. False, with an error message: it stands where it cannot be borrowed, and
 * goes on as it was. */
bool ml_borrow(
    struct ml_borrowed *borrowed,
    struct ml_traced *thread,
    int memory_fd,
    const struct ml_maps *maps,
    const struct ml_borrowed_code *code,
    struct ml_error_message *error
);

/* Have it make a system call. False: the thread is lost; it goes back by itself. */
bool ml_borrow_call(
    struct ml_borrowed *borrowed, long number, const uint64_t arguments[6], long *out_result
);

/* Have it run code at `entry` on the stack that ends at `stack_end`, until it returns as from a
 * signal whose frame lies at `frame` (ML_SIGNAL_FRAME_MAX_BYTES). `on_call` is told of each getpid
 * that it makes. False: the thread is lost. */
bool ml_borrow_run(
    struct ml_borrowed *borrowed,
    uint64_t entry,
    uint64_t stack_end,
    uint64_t frame,
    void (*on_call)(void *context),
    void *context
);

/* Put it back where it stood, stopped. False: it is lost. */
bool ml_borrow_end(struct ml_borrowed *borrowed);

#endif

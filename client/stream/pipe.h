/* The process's pipe: one frame in it, or why not; waiting for room. Room: client (private).
 * Context: the malloc path.
 *
 * One rule: nothing here is seen by the program: no SIGPIPE, no errno, no cancellation point, no
 * byte into a descriptor that is not ours any more. */
#ifndef MEMLOG_CLIENT_STREAM_PIPE_H
#define MEMLOG_CLIENT_STREAM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ml_pipe_answer {
    ML_PIPE_TAKEN, /* the frame is in the pipe, whole */
    ML_PIPE_FULL,
    ML_PIPE_GONE /* the descriptor is not ours any more, or nobody can ever read it: then the
                    process records no more */
};

/* Put a frame into the pipe, all of it at once (count_bytes <= PIPE_BUF), without waiting. */
enum ml_pipe_answer ml_pipe_put(void *frame, size_t count_bytes);

/* Whether the kernel writes to that pipe without SIGPIPE when it is asked to; nothing is written.
 */
bool ml_pipe_is_silent(int fd);

/* Bytes in the pipe. A pipe that cannot be asked (any more) is said to be empty. */
uint64_t ml_pipe_fill_bytes(void);

/* Wait until the pipe takes something again. At most until a second after it was found full, by
 * whichever thread, and at most until `deadline_ns`; a signal handler that ran ends it early.
 * False, and at once: that moment has passed. Who got a frame in says so by ml_pipe_moves. */
bool ml_pipe_wait(uint64_t now_ns, uint64_t deadline_ns);

/* The pipe has taken something: whoever finds it full from now on waits a second of his own. */
void ml_pipe_moves(void);

enum { ML_PIPE_WAIT_MAX_NS = 1000000000 /* docs/troubleshooting.md */ };

#endif

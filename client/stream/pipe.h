/* The process's pipe: putting a frame, waiting for room. Room: client (private).
 * Context: the malloc path.
 *
 * One rule: the program notices nothing: no SIGPIPE, no errno, no cancellation point, no byte into
 * a descriptor that is no longer ours. */
#ifndef MEMLOG_CLIENT_STREAM_PIPE_H
#define MEMLOG_CLIENT_STREAM_PIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ml_pipe_answer {
    ML_PIPE_TAKEN, /* the frame is in the pipe, whole */
    ML_PIPE_FULL,
    ML_PIPE_GONE /* the descriptor is no longer ours, or the pipe has no reader left: the process
                    stops recording */
};

/* Put a frame into the pipe, all of it at once (count_bytes <= PIPE_BUF), without waiting. */
enum ml_pipe_answer ml_pipe_put(void *frame, size_t count_bytes);

/* Whether the kernel can write to that pipe without SIGPIPE; nothing is written.
 */
bool ml_pipe_is_silent(int fd);

/* Whether a frame can be put at all, under a filter of the program's with these ML_FILTERS_*. */
bool ml_pipe_may_put(uint32_t filters);

/* Bytes in the pipe. 0 if the pipe cannot be queried. */
uint64_t ml_pipe_fill_bytes(void);

/* Wait until the pipe takes something again: at most until `deadline_ns`, and at most a second
 * after any thread found it full. A signal handler ends the wait early. False, at once: that time
 * has passed. Call ml_pipe_moves after each frame put. */
bool ml_pipe_wait(uint64_t now_ns, uint64_t deadline_ns);

/* The pipe has taken something: a thread that finds it full from now on starts a new second. */
void ml_pipe_moves(void);

enum { ML_PIPE_WAIT_MAX_NS = 1000000000 /* docs/troubleshooting.md */ };

#endif

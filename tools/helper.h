/* A process of ours outside of the walls: started before they go up, it does one thing for whoever
 * is behind them, and parses nothing but our own questions. Room: tools. Context: the main thread.
 *
 * One rule: it has no descriptor but its two pipes and one more, so nobody waits for it who waits
 * for the end of our output; it ends with this process. */
#ifndef MEMLOG_TOOLS_HELPER_H
#define MEMLOG_TOOLS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All zero: not started. */
struct ml_helper {
    pid_t pid; /* > 0: it is there */
    int to_fd, from_fd;
    bool was_tried;
};

/* What it does: answer questions until there are no more. `own_fd` as given at the start. */
typedef void ml_helper_serve(int questions_fd, int answers_fd, int own_fd);

/* Start it, once; without it nothing that is asked of it succeeds. `own_fd`: a descriptor that it
 * keeps, borrowed. */
void ml_helper_start(struct ml_helper *helper, ml_helper_serve *serve, int own_fd);

/* Ask: one or two pieces, then whether it did it. */
bool ml_helper_ask(
    const struct ml_helper *helper,
    const void *question,
    size_t question_bytes,
    const void *more,
    size_t more_bytes
);

/* All of it, or false. */
bool ml_helper_read(int fd, void *bytes, size_t count_bytes);

/* The answer. False: nobody wants it any more. */
bool ml_helper_answer(int fd, bool is_done);

#endif

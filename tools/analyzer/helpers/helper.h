/* Processes of the analyzer's outside of its sandbox. Each is started before it goes up, does one
 * thing for whoever is behind them, and parses nothing but our own questions. Room: tools. Context:
 * the main thread.
 *
 * One rule: a helper has its two pipes and one descriptor more, and nothing else that its starter
 * has. The caller's stdin, stdout and stderr, a dump and other helpers' pipes stay outside, so
 * nobody waits for a helper who waits for the end of our output. A helper ends with this process;
 * one that ends earlier takes nothing with it but its own answers. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_HELPER_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ml_helper {
    const char *lost; /* what it means that it is gone: "debug files of servers may be missing" */
    pid_t pid;        /* > 0: it was started */
    int to_fd, from_fd;
    bool was_tried;
    bool is_gone; /* it was asked, and is not there */
};

/* What it does: answer questions until there are no more. `own_fd` as given at the start. */
typedef void ml_helper_serve(int questions_fd, int answers_fd, int own_fd);

/* Start it, once; without it nothing that is asked of it succeeds. `own_fd`: a descriptor that it
 * keeps, borrowed; -1: none. */
void ml_helper_start(struct ml_helper *helper, ml_helper_serve *serve, int own_fd);

/* Ask: one or two pieces, then whether it did it. */
bool ml_helper_ask(
    struct ml_helper *helper,
    const void *question,
    size_t question_bytes,
    const void *more,
    size_t more_bytes
);

/* What follows the answer of one that did it. */
bool ml_helper_take(struct ml_helper *helper, void *bytes, size_t count_bytes);

/* What the `at`-th helper's absence means; "": it was there whenever it was asked. NULL: there are
 * no more. */
const char *ml_helper_lost(size_t at);

/* For helpers: all of it, or false. */
bool ml_helper_read(int fd, void *bytes, size_t count_bytes);

/* For helpers: the answer, and what follows it. False: nobody wants it any more. */
bool ml_helper_answer(int fd, bool is_done, const void *more, size_t more_bytes);

#endif

/* The analyzer's processes outside its sandbox. Each is started before the sandbox, does one thing
 * for the analyzer, and parses only our own questions. Room: tools. Context: the main thread.
 *
 * One rule: a helper has its two pipes and what it is given, and no other of its starter's. It
 * does not hold the caller's stdin, stdout or stderr, a dump or other helpers' pipes, so it never
 * delays the end of our output. A helper ends with this process; if one ends earlier, only its own
 * answers are missing. */
#ifndef MEMLOG_TOOLS_ANALYZER_HELPERS_HELPER_H
#define MEMLOG_TOOLS_ANALYZER_HELPERS_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The first of those that it is given beside. */
enum { ML_HELPER_KEPT_FD = 6, ML_HELPER_KEPT_MAX = 40 };

struct ml_helper {
    const char *lost;    /* consequence of its absence: "debug files of servers may be missing" */
    const int *kept_fds; /* more descriptors that it keeps, at its start */
    size_t kept_count;
    pid_t pid; /* > 0: it was started */
    int to_fd, from_fd;
    bool was_tried;
    bool is_gone; /* a question failed, since it is dead */
    /* Told how far an answer is (ml_helper_tell), in whatever the helper counts; NULL: nobody. */
    void (*progress)(uint64_t done, uint64_t total);
};

/* Its work: answer questions until there are no more. `own_fd` as given at the start. */
typedef void ml_helper_serve(int questions_fd, int answers_fd, int own_fd);

/* Start it, once; without it all questions fail. `own_fd`: a descriptor that it keeps, borrowed;
 * -1: none. */
void ml_helper_start(struct ml_helper *helper, ml_helper_serve *serve, int own_fd);

/* Send a question of one or two pieces; returns whether it succeeded. */
bool ml_helper_ask(
    struct ml_helper *helper,
    const void *question,
    size_t question_bytes,
    const void *more,
    size_t more_bytes
);

/* Read what follows a successful answer. */
bool ml_helper_take(struct ml_helper *helper, void *bytes, size_t count_bytes);

/* The consequence of the `at`-th helper's absence; "": it answered every question. NULL: no more
 * helpers. */
const char *ml_helper_lost(size_t at);

/* For helpers: read all of it, or false. */
bool ml_helper_read(int fd, void *bytes, size_t count_bytes);

/* For helpers, in front of an answer that takes long: so much of it is done. False: the analyzer
 * has ended. */
bool ml_helper_tell(int fd, uint64_t done, uint64_t total);

/* For helpers: send the answer, and what follows it. False: the analyzer has ended. */
bool ml_helper_answer(int fd, bool is_done, const void *more, size_t more_bytes);

#endif

#include "tools/analyzer/helpers/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptors/close_above.h"

/* The helper's descriptors, after the three standard ones. */
enum {
    QUESTIONS_FD = 3,
    ANSWERS_FD = 4,
    OWN_FD = 5,
    FIRST_FDS = 3,
    FDS_MAX = FIRST_FDS + ML_HELPER_KEPT_MAX,
    HIGH_FD = QUESTIONS_FD + FDS_MAX
};

/* The first byte of an answer. */
enum { ANSWER_NO = 0, ANSWER_YES = 1, ANSWER_COMES = 2 };

/* All helpers that were started. */
enum { HELPERS_MAX = 4 };
static struct ml_helper *helpers[HELPERS_MAX];
static size_t helpers_count;

bool ml_helper_read(int fd, void *bytes, size_t count_bytes) {
    char *at = bytes;

    while (count_bytes > 0) {
        ssize_t got = read(fd, at, count_bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        count_bytes -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *bytes, size_t count_bytes) {
    const char *at = bytes;

    while (count_bytes > 0) {
        ssize_t put = write(fd, at, count_bytes);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        at += put;
        count_bytes -= (size_t)put;
    }
    return true;
}

bool ml_helper_tell(int fd, uint64_t done, uint64_t total) {
    const char answer = ANSWER_COMES;
    const uint64_t figures[] = {done, total};

    return write_all(fd, &answer, 1) && write_all(fd, figures, sizeof figures);
}

/* The answer itself, after what was told of its progress. */
static bool take_answer(struct ml_helper *helper, char *out_answer) {
    uint64_t figures[2];

    for (;;) {
        if (!ml_helper_take(helper, out_answer, 1)) {
            return false;
        }
        if (*out_answer != ANSWER_COMES) {
            return true;
        }
        if (!ml_helper_take(helper, figures, sizeof figures)) {
            return false;
        }
        if (helper->progress) {
            helper->progress(figures[0], figures[1]);
        }
    }
}

bool ml_helper_answer(int fd, bool is_done, const void *more, size_t more_bytes) {
    char answer = is_done ? ANSWER_YES : ANSWER_NO;

    return write_all(fd, &answer, 1) && write_all(fd, more, more_bytes);
}

bool ml_helper_ask(
    struct ml_helper *helper,
    const void *question,
    size_t question_bytes,
    const void *more,
    size_t more_bytes
) {
    const struct sigaction ignored = {.sa_handler = SIG_IGN};
    struct sigaction before;
    char answer = ANSWER_NO;

    if (!helper->was_tried || helper->is_gone) {
        return false;
    }
    /* A helper's death must not kill this process by SIGPIPE. */
    (void)sigaction(SIGPIPE, &ignored, &before);
    helper->is_gone = helper->pid <= 0 || !write_all(helper->to_fd, question, question_bytes) ||
                      !write_all(helper->to_fd, more, more_bytes);
    (void)sigaction(SIGPIPE, &before, NULL);
    return !helper->is_gone && take_answer(helper, &answer) && answer == ANSWER_YES;
}

bool ml_helper_take(struct ml_helper *helper, void *bytes, size_t count_bytes) {
    helper->is_gone = helper->is_gone || !ml_helper_read(helper->from_fd, bytes, count_bytes);
    return !helper->is_gone;
}

const char *ml_helper_lost(size_t at) {
    if (at >= helpers_count) {
        return NULL;
    }
    return helpers[at]->is_gone ? helpers[at]->lost : "";
}

/* Keep only these. The standard ones lead to /dev/null. */
static bool
keep_only(const struct ml_helper *helper, int questions_fd, int answers_fd, int own_fd) {
    int high[FDS_MAX] = {questions_fd, answers_fd, own_fd};
    size_t count = FIRST_FDS + helper->kept_count;
    int nothing_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool done = nothing_fd >= 0 && count <= FDS_MAX;

    for (size_t i = FIRST_FDS; done && i < count; i++) {
        high[i] = helper->kept_fds[i - FIRST_FDS];
    }
    for (size_t i = 0; done && i < count; i++) {
        high[i] = fcntl(high[i] >= 0 ? high[i] : nothing_fd, F_DUPFD_CLOEXEC, HIGH_FD);
        done = high[i] >= 0;
    }
    for (int i = 0; done && i <= STDERR_FILENO; i++) {
        done = dup2(nothing_fd, i) >= 0;
    }
    for (size_t i = 0; done && i < count; i++) {
        done = dup2(high[i], QUESTIONS_FD + (int)i) >= 0;
    }
    ml_close_above(QUESTIONS_FD + (int)count - 1);
    return done;
}

/* Closed pipes end the helpers. Wait for them here, as no other code does. */
static void stop_all(void) {
    for (size_t i = 0; i < helpers_count; i++) {
        if (helpers[i]->pid > 0) {
            close(helpers[i]->to_fd);
            close(helpers[i]->from_fd);
            (void)waitpid(helpers[i]->pid, NULL, 0);
            helpers[i]->pid = 0;
        }
    }
}

static void close_pair(const int fds[2]) {
    close(fds[0]);
    close(fds[1]);
}

void ml_helper_start(struct ml_helper *helper, ml_helper_serve *serve, int own_fd) {
    pid_t parent = getpid();
    int questions[2];
    int answers[2];

    if (helper->was_tried || helpers_count == HELPERS_MAX) {
        return;
    }
    helper->was_tried = true;
    if (helpers_count == 0) {
        (void)atexit(stop_all);
    }
    helpers[helpers_count++] = helper;
    if (pipe2(questions, O_CLOEXEC) != 0) {
        return;
    }
    if (pipe2(answers, O_CLOEXEC) != 0) {
        close_pair(questions);
        return;
    }
    helper->pid = fork();
    if (helper->pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && keep_only(helper, questions[0], answers[1], own_fd)) {
            serve(QUESTIONS_FD, ANSWERS_FD, OWN_FD);
        }
        _exit(0);
    }
    if (helper->pid < 0) {
        close_pair(questions);
        close_pair(answers);
        return;
    }
    close(questions[0]);
    close(answers[1]);
    helper->to_fd = questions[1];
    helper->from_fd = answers[0];
}

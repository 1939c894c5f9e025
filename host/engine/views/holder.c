#include "host/engine/views/holder.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/descriptors/close_above.h"
#include "host/process/orphan.h"

/* A process that is being exec'd may keep the one that seizes it in the kernel; then it is ended,
 * and both go on. */
enum { ALARM_SECONDS = 2, ANSWER_MS = 3000 };

enum word { WORD_HOLD = 1, WORD_RELEASE, WORD_HELD, WORD_REFUSED, WORD_LET_GO };

struct message {
    uint32_t word; /* enum word */
    uint32_t serial;
    int32_t pid;
    char why[ML_HOLD_WHY_BYTES];
};

static bool send_message(int fd, const struct message *message) {
    return send(fd, message, sizeof(*message), MSG_NOSIGNAL) == (ssize_t)sizeof(*message);
}

/* ---- the holder's side: nothing here may allocate */

/* Of the process that is forked for one hold. */
static struct ml_memory_hold hold;

/* Until it is to be let go: somebody says so, or the host is gone, or it has been long enough. */
static void hold_one(int fd, const struct message *order) {
    struct message answer = {.word = WORD_HELD, .serial = order->serial};
    struct pollfd said = {.fd = fd, .events = POLLIN};
    (void)alarm(ALARM_SECONDS);
    if (!ml_memory_hold_begin(&hold, order->pid, answer.why)) {
        answer.word = WORD_REFUSED;
        (void)send_message(fd, &answer);
        return;
    }
    if (send_message(fd, &answer)) {
        (void)poll(&said, 1, ML_HOLD_MOST_MS);
    }
    ml_memory_hold_end(&hold);
    answer.word = WORD_LET_GO;
    (void)send_message(fd, &answer);
}

/* fork(2) without libc's handlers, as in host/process/orphan.c. */
static pid_t bare_fork(void) {
    return (pid_t)syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, NULL);
}

/* The host's descriptors are not this process's: whoever waits for their end must see it. */
static void close_others(int fd) {
    ml_close_above(fd);
    for (int other = 0; other < fd; other++) {
        (void)close(other);
    }
}

/* Fork a process for the hold. It ends behind it, and the kernel lets go of what is held still. */
static void serve_one(int fd, const struct message *order) {
    struct message died = {.word = WORD_REFUSED, .serial = order->serial};
    int status = -1;
    const pid_t child = bare_fork();
    if (child == 0) {
        hold_one(fd, order);
        _exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) {
        (void)snprintf(died.why, sizeof(died.why), "the kernel did not let memlog stop it in time");
        (void)send_message(fd, &died);
    }
}

static void serve(void *context) {
    const int fd = *(const int *)context;
    struct message order;
    close_others(fd);
    (void)prctl(PR_SET_NAME, "memlog-holder");
    while (recv(fd, &order, sizeof(order), 0) == (ssize_t)sizeof(order)) {
        if (order.word != WORD_HOLD) {
            continue; /* to let go what was let go in time */
        }
        serve_one(fd, &order);
    }
    _exit(0);
}

/* ---- the reader's side */

pid_t ml_holder_open(struct ml_holder *holder, const struct ml_inherited *inherited) {
    int ends[2] = {-1, -1};
    int pidfd = -1;
    *holder = (struct ml_holder){.fd = -1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return -1;
    }
    const pid_t pid = ml_orphan_start(inherited, serve, &ends[1], &pidfd);
    (void)close(ends[1]);
    ml_descriptor_close(&pidfd);
    if (pid < 0) {
        (void)close(ends[0]);
        return -1;
    }
    holder->fd = ends[0];
    return pid;
}

void ml_holder_close(struct ml_holder *holder) {
    ml_descriptor_close(&holder->fd);
}

/* The next answer to the last order. False: none within that time. */
static bool take_answer(const struct ml_holder *holder, int wait_ms, struct message *out_answer) {
    struct pollfd said = {.fd = holder->fd, .events = POLLIN};
    while (poll(&said, 1, wait_ms) > 0) {
        if (recv(holder->fd, out_answer, sizeof(*out_answer), MSG_DONTWAIT) !=
            (ssize_t)sizeof(*out_answer)) {
            return false;
        }
        if (out_answer->serial == holder->serial) {
            return true;
        }
    }
    return false;
}

bool ml_holder_hold(struct ml_holder *holder, pid_t pid, char out_why[ML_HOLD_WHY_BYTES]) {
    const struct message order = {.word = WORD_HOLD, .serial = ++holder->serial, .pid = pid};
    struct message answer = {.why = "memlog's process for that does not answer"};
    const bool is_answered = holder->fd >= 0 && send_message(holder->fd, &order) &&
                             take_answer(holder, ANSWER_MS, &answer);
    answer.why[ML_HOLD_WHY_BYTES - 1] = '\0';
    (void)snprintf(out_why, ML_HOLD_WHY_BYTES, "%s", answer.why);
    return is_answered && answer.word == WORD_HELD;
}

bool ml_holder_holds(struct ml_holder *holder) {
    struct message answer;
    return !take_answer(holder, 0, &answer);
}

void ml_holder_release(struct ml_holder *holder) {
    const struct message order = {.word = WORD_RELEASE, .serial = holder->serial};
    (void)send_message(holder->fd, &order);
}

#include "tools/analyzer/helpers/watched.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

/* What a watched program tells: who it is, and a helper of its that stands still. */
struct told {
    pid_t itself, helper;
};

/* Who watches, by a pipe to which it writes how the program ended. */
static pid_t start(int out_status[2], struct told *out_told, int exit_code) {
    int tells[2];
    ck_assert(pipe(out_status) == 0 && pipe(tells) == 0);
    const pid_t watcher = fork();
    if (watcher == 0) {
        (void)close(out_status[0]);
        ml_watched_begin(out_status[1]);
        struct told told = {.itself = getpid(), .helper = fork()};
        if (told.helper == 0) {
            (void)raise(SIGSTOP); /* before it has asked to die with its parent */
            _exit(EXIT_FAILURE);
        }
        (void)!write(tells[1], &told, sizeof(told));
        if (exit_code < 0) {
            (void)pause();
        }
        (void)kill(told.helper, SIGKILL);
        _exit(exit_code);
    }
    (void)close(out_status[1]);
    ck_assert_int_eq(read(tells[0], out_told, sizeof(*out_told)), (int)sizeof(*out_told));
    (void)close(tells[0]);
    (void)close(tells[1]);
    return watcher;
}

START_TEST(it_tells_how_the_program_ended) {
    int status[2];
    struct told told;
    int how = 0;
    const pid_t watcher = start(status, &told, 7);
    ck_assert_int_eq(read(status[0], &how, sizeof(how)), (int)sizeof(how));
    ck_assert(WIFEXITED(how) && WEXITSTATUS(how) == 7);
    ck_assert_int_eq(waitpid(watcher, &how, 0), watcher);
    ck_assert_int_eq(how, 0);
}
END_TEST

START_TEST(nobody_is_left_when_nobody_wants_to_know) {
    int status[2];
    struct told told;
    int how = 0;
    const pid_t watcher = start(status, &told, -1);
    (void)close(status[0]);
    ck_assert_int_eq(waitpid(watcher, &how, 0), watcher); /* it waits for all of them */
    ck_assert(kill(told.itself, 0) != 0 && kill(told.helper, 0) != 0);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("watched");
    tcase_add_test(tcase, it_tells_how_the_program_ended);
    tcase_add_test(tcase, nobody_is_left_when_nobody_wants_to_know);
    return run_suite("tools/analyzer/helpers/watched", tcase);
}

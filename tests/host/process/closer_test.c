#include "host/process/closer.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { LONG_MS = 10000 /* against hanging */ };

/* Whether the other end of a pipe is closed within that time. */
static bool is_closed_within(int fd, int limit_ms) {
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    return poll(&poll_fd, 1, limit_ms) == 1 && (poll_fd.revents & POLLHUP) != 0;
}

START_TEST(closes_what_it_is_given) {
    int ends[2];
    ck_assert_int_eq(pipe(ends), 0);
    ml_closer_close(ends[1]);
    ck_assert(is_closed_within(ends[0], LONG_MS));
}
END_TEST

/* One after the other, more than there may be threads at once. */
START_TEST(a_thread_that_has_closed_gives_its_place_back) {
    int closed = 0;
    for (int i = 0; i < 4 * ML_CLOSER_THREADS_MAX; i++) {
        int ends[2];
        ck_assert_int_eq(pipe(ends), 0);
        ml_closer_close(ends[1]);
        closed += is_closed_within(ends[0], LONG_MS);
        (void)close(ends[0]);
    }
    ck_assert_int_eq(closed, 4 * ML_CLOSER_THREADS_MAX);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("closer");
    tcase_add_test(tcase, closes_what_it_is_given);
    tcase_add_test(tcase, a_thread_that_has_closed_gives_its_place_back);
    return run_suite("host/process/closer", tcase);
}

/* How a program of unit tests ends: its one test case is run, and counted. Room: tests.
 *
 * Who links it has assertions that cost next to nothing while they hold (suite.c). */
#ifndef MEMLOG_TESTS_SUITE_H
#define MEMLOG_TESTS_SUITE_H

#include <stdlib.h>

#include <check.h>

/* So many random trials, or a fifth where a sanitizer makes each several times as long. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define FEWER_IF_SANITIZED(count) ((count) / 5)
#else
#    define FEWER_IF_SANITIZED(count) (count)
#endif

/* The program's exit code. CK_VERBOSITY says how much is told. Owner: the case is taken. */
static inline int run_suite(const char *name, TCase *take_case) {
    Suite *suite = suite_create(name);
    suite_add_tcase(suite, take_case);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif

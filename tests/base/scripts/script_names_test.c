#include "base/scripts/script_names.h"

#include <string.h>

#include "tests/suite.h"

static const char *language_of(const char *executable) {
    const struct ml_script_names *names = ml_script_names_of(executable);
    return names != NULL ? names->language : "";
}

START_TEST(run_times_are_known_by_the_names_of_their_executables) {
    ck_assert_str_eq(language_of("/usr/bin/node"), "JavaScript");
    ck_assert_str_eq(language_of("node20"), "JavaScript");
    ck_assert_str_eq(language_of("/opt/jdk-21/bin/java"), "Java");
    ck_assert_str_eq(language_of("/usr/lib/erlang/erts-13/bin/beam.smp"), "Erlang");
    ck_assert_str_eq(language_of("/usr/bin/nodemon"), "");
    ck_assert_str_eq(language_of("/usr/bin/javac"), "");
    ck_assert_str_eq(language_of("/srv/node/worker"), "");
    ck_assert_str_eq(language_of(""), "");
}
END_TEST

START_TEST(a_python_that_cannot_has_no_hint) {
    ck_assert_str_eq(language_of("/usr/bin/python3.12"), "Python");
    ck_assert_str_eq(language_of("python3.14"), "Python");
    ck_assert_str_eq(language_of("python3"), "Python");
    ck_assert_str_eq(language_of("python3.11"), "Python");
    static const char by_frames[] = "memlog run --frames=python";
    ck_assert_str_eq(ml_script_names_of("python3.11")->how, by_frames);
    ck_assert_ptr_nonnull(strstr(ml_script_names_of("python3.14")->how, by_frames));
    ck_assert_ptr_nonnull(strstr(ml_script_names_of("python")->how, by_frames));
    ck_assert_ptr_null(strstr(ml_script_names_of("python3.12")->how, by_frames));
    ck_assert_ptr_null(strstr(ml_script_names_of("python3.14-nogil")->how, by_frames));
    static const char *const read[] = {
        "/usr/bin/python3.11",
        "python3.13",
        "python3.14",
        "python3.13-dbg",
        "/usr/bin/python3",
        "/usr/bin/python3.x",
        "python3-config",
        "/python3.12/ruby"};
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++) {
        ck_assert_ptr_null(ml_script_names_unread_python(read[i]));
    }
    static const char *const unread[] = {
        "/a/python3.12",
        "python3.15",
        "python3.45",
        "python3.99999999999999999999",
        "python3.14t",
        "python3.13-nogil"};
    for (size_t i = 0; i < sizeof unread / sizeof unread[0]; i++) {
        ck_assert_str_eq(ml_script_names_unread_python(unread[i]), "python -X perf names them");
    }
    ck_assert_str_eq(ml_script_names_unread_python("python3.9"), "run it by one of those");
    ck_assert_str_eq(ml_script_names_unread_python("python2.7"), "run it by one of those");
    ck_assert_str_eq(language_of("python3.10"), "");
    ck_assert_str_eq(language_of("python3.9"), "");
    ck_assert_str_eq(language_of("python2.7"), "");
}
END_TEST

START_TEST(who_was_asked_is_known_by_its_arguments) {
    const struct ml_script_names *node = ml_script_names_of("node");
    const struct ml_script_names *python = ml_script_names_of("python3.12");
    ck_assert(ml_script_names_asked(node, "--perf-basic-prof"));
    ck_assert(ml_script_names_asked(node, "--perf-basic-prof-only-functions"));
    ck_assert(!ml_script_names_asked(node, "--perf-prof"));
    ck_assert(ml_script_names_asked(python, "perf"));
    ck_assert(ml_script_names_asked(python, "-Xperf"));
    ck_assert(!ml_script_names_asked(python, "-X"));
    ck_assert(!ml_script_names_asked(ml_script_names_of("java"), ""));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("script_names");
    tcase_add_test(tests, run_times_are_known_by_the_names_of_their_executables);
    tcase_add_test(tests, a_python_that_cannot_has_no_hint);
    tcase_add_test(tests, who_was_asked_is_known_by_its_arguments);
    return run_suite("base/script_names", tests);
}

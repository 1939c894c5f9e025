#include "tools/analyzer/sandbox/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/service/sandbox/attacks.h"

static char folder[64];

static const char *in_folder(const char *name) {
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void setup(void) {
    snprintf(folder, sizeof folder, "/tmp/memlog-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
    unlink(in_folder("out"));
    unlink(in_folder("out.part"));
    rmdir(folder);
}

static bool has_landlock(void) {
    return syscall(SYS_landlock_create_ruleset, NULL, 0, 1 /* its version */) > 0;
}

/* In the sandbox, in a process of its own, as Check's asks for a timer. 0: `check` has found
 * nothing amiss; else its line; -1: killed. */
static int in_sandbox(
    int (*check)(const void *context), const void *context, const char *output, bool is_closed
) {
    const pid_t child = fork();
    int status = 0;

    if (child == 0) {
        /* Should a mount work, it is not everybody's. */
        (void)!unshare(CLONE_NEWNS);
        (void)!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
        if (is_closed) {
            ml_confine_closed();
        } else {
            ml_confine(output, NULL);
        }
        _exit(check(context));
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int confined(int (*check)(const void *context), const void *context, const char *output) {
    return in_sandbox(check, context, output, false);
}

#define EXPECT(promise_)                                                                           \
    if (!(promise_)) {                                                                             \
        return __LINE__ % 256;                                                                     \
    }

static int read_file(const void *context) {
    const int fd = open("/proc/self/exe", O_RDONLY);
    char bytes[4];

    (void)context;
    EXPECT(fd >= 0 && read(fd, bytes, sizeof bytes) == sizeof bytes);
    EXPECT(memcmp(bytes, "\177ELF", sizeof bytes) == 0);
    return 0;
}

START_TEST(files_can_be_read) {
    ck_assert_int_eq(confined(read_file, NULL, NULL), 0);
}
END_TEST

static int write_elsewhere(const void *path) {
    EXPECT(open(path, O_WRONLY | O_CREAT, 0600) == -1);
    EXPECT(errno == EACCES || errno == EPERM);
    return 0;
}

START_TEST(no_file_can_be_written) {
    if (has_landlock()) {
        ck_assert_int_eq(confined(write_elsewhere, in_folder("out"), NULL), 0);
    }
}
END_TEST

static int write_rename_and_remove(const void *path) {
    char part[128];
    int fd = 0;

    snprintf(part, sizeof part, "%s.part", (const char *)path);
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT(fd >= 0 && write(fd, "x", 1) == 1);
    EXPECT(rename(part, path) == 0);
    EXPECT(unlink(path) == 0);
    return 0;
}

START_TEST(the_output_can_be_written_renamed_and_removed_and_nothing_else) {
    const char *out = in_folder("out");

    ck_assert_int_eq(confined(write_rename_and_remove, out, out), 0);
    if (has_landlock()) {
        ck_assert_int_eq(confined(write_elsewhere, "/tmp/memlog-test-elsewhere", out), 0);
    }
}
END_TEST

#ifndef __SANITIZE_ADDRESS__
/* Whoever has taken the analyzer over may read: that is what it is for. */
static bool is_reading(const char *name) {
    static const char *const reading[] = {
        "open_file", "open_root", "read_proc", "ask_path", "nothing"};

    for (size_t i = 0; i < sizeof reading / sizeof reading[0]; i++) {
        if (strcmp(reading[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* What only Landlock keeps from the memory of other processes of the same user, and from where in
 * it what lies. */
static bool needs_landlock(const char *name) {
    return strcmp(name, "open_host_memory") == 0 || strcmp(name, "read_host_memory_map") == 0;
}

/* Newer kernels ask no filter about maps where the reader is root (CAP_PERFMON), older ones do. */
static bool is_kernels_choice(const char *name) {
    return geteuid() == 0 && strcmp(name, "read_host_memory_map") == 0;
}

/* The process that those upon others are aimed at. */
static pid_t victim;

static int attack(const void *name) {
    return (int)attack_try(name, victim);
}

START_TEST(every_attack_is_refused_but_reading) {
    const char *name = attacks[_i].name;
    const char *const outputs[] = {NULL, in_folder("out")};

    victim = getpid();
    for (int i = 0; i < 2; i++) {
        const int end = confined(attack, name, outputs[i]);
        if (is_kernels_choice(name)) {
            continue;
        }
        if (is_reading(name)) {
            ck_assert_msg(end == ATTACK_WORKED, "%s is refused", name);
        } else if (!needs_landlock(name) || has_landlock()) {
            ck_assert_msg(end == ATTACK_REFUSED || end == -1, "%s works", name);
        }
    }
}
END_TEST

static int type_into_the_terminal(const void *context) {
    (void)context;
    EXPECT(ioctl(STDERR_FILENO, TIOCSTI, "x") == -1 && errno == EPERM);
    return 0;
}

/* Who reads for somebody else has no file to put into the answer. */
START_TEST(the_closed_sandbox_opens_nothing) {
    const char *name = attacks[_i].name;
    int end = 0;

    victim = getpid();
    end = in_sandbox(attack, name, NULL, true);
    if (strcmp(name, "nothing") == 0) {
        ck_assert_int_eq(end, ATTACK_WORKED);
    } else if (strcmp(name, "ask_path") != 0 && !is_kernels_choice(name)) {
        ck_assert_msg(end == ATTACK_REFUSED || end == -1, "%s works", name);
    }
}
END_TEST

START_TEST(the_terminal_cannot_be_typed_into) {
    ck_assert_int_eq(confined(type_into_the_terminal, NULL, NULL), 0);
}
END_TEST

static int map_code(const void *context) {
    const int fd = open("/proc/self/exe", O_RDONLY);

    (void)context;
    EXPECT(fd >= 0);
    EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    EXPECT(errno == EPERM);
    return 0;
}

START_TEST(no_library_is_loaded_later) {
    ck_assert_int_eq(confined(map_code, NULL, NULL), 0);
}
END_TEST

/* As a kernel without Landlock would have it: the filter alone. */
static int open_for_writing(const void *path) {
    EXPECT(open("/dev/null", O_WRONLY) == -1 && errno == EPERM);
    EXPECT(open("/dev/null", O_RDWR) == -1 && errno == EPERM);
    EXPECT(open(path, O_RDONLY | O_CREAT, 0600) == -1 && errno == EPERM);
    return 0;
}

START_TEST(nothing_is_opened_for_writing_without_an_output) {
    ck_assert_int_eq(confined(open_for_writing, in_folder("out"), NULL), 0);
}
END_TEST
#endif

int main(void) {
    Suite *suite = suite_create("tools/confine");
    TCase *tests = tcase_create("all");
    SRunner *runner = srunner_create(suite);
    int failed = 0;

    suite_add_tcase(suite, tests);
    tcase_add_unchecked_fixture(tests, setup, teardown);
    tcase_add_test(tests, files_can_be_read);
    tcase_add_test(tests, no_file_can_be_written);
    tcase_add_test(tests, the_output_can_be_written_renamed_and_removed_and_nothing_else);
#ifndef __SANITIZE_ADDRESS__
    tcase_add_loop_test(tests, every_attack_is_refused_but_reading, 0, (int)attacks_count);
    tcase_add_loop_test(tests, the_closed_sandbox_opens_nothing, 0, (int)attacks_count);
    tcase_add_test(tests, the_terminal_cannot_be_typed_into);
    tcase_add_test(tests, no_library_is_loaded_later);
    tcase_add_test(tests, nothing_is_opened_for_writing_without_an_output);
#endif
    srunner_set_fork_status(runner, CK_FORK); /* the sandbox stays */
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

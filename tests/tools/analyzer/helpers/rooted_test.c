/* Paths below another root: the kernel's way and ours lead to the same places, and never out. */
#include "tools/analyzer/helpers/rooted.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static char base[] = "/tmp/memlog-rooted.XXXXXX";
static int root_fd;

static void make(const char *path, const char *text) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq((int)write(fd, text, strlen(text)), (int)strlen(text));
    (void)close(fd);
}

static void make_tree(void) {
    ck_assert_ptr_nonnull(mkdtemp(base));
    ck_assert_int_eq(chdir(base), 0);
    make("secret", "outside");
    ck_assert_int_eq(mkdir("root", 0700), 0);
    ck_assert_int_eq(mkdir("root/lib", 0700), 0);
    ck_assert_int_eq(mkdir("root/usr", 0700), 0);
    ck_assert_int_eq(mkdir("root/usr/lib", 0700), 0);
    make("root/usr/lib/file", "inside");
    ck_assert_int_eq(symlink("/usr/lib/file", "root/absolute"), 0);
    ck_assert_int_eq(symlink("../usr/lib", "root/lib/there"), 0);
    ck_assert_int_eq(symlink("../../../../../../secret", "root/up"), 0);
    ck_assert_int_eq(symlink("round", "root/round"), 0);
    ck_assert_int_eq(symlink("/proc/self/root", "root/magic"), 0);
    ck_assert_int_eq(mkfifo("root/fifo", 0600), 0);
    char outside[64];
    (void)snprintf(outside, sizeof(outside), "%s/secret", base);
    ck_assert_int_eq(symlink(outside, "root/out"), 0);
    root_fd = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(root_fd, 0);
}

static void remove_tree(void) {
    char words[64];
    (void)close(root_fd);
    ck_assert_int_eq(chdir("/"), 0);
    (void)snprintf(words, sizeof(words), "rm -rf %s", base);
    ck_assert_int_eq(system(words), 0);
    (void)snprintf(base, sizeof(base), "/tmp/memlog-rooted.XXXXXX");
}

/* What stands at the place; "": nothing that may be read. */
static const char *text_at(int place_fd) {
    static char text[16];
    const int fd = ml_rooted_read(place_fd);
    const ssize_t count = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    text[count > 0 ? count : 0] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
    return text;
}

START_TEST(a_path_leads_to_the_same_place_by_both_ways) {
    static const struct {
        const char *path, *text;
    } cases[] = {
        {"/usr/lib/file", "inside"},
        {"usr//lib/./file", "inside"},
        {"/usr/../usr/lib/file", "inside"},
        {"/../../usr/lib/file", "inside"},
        {"/absolute", "inside"},
        {"/lib/there/file", "inside"},
        {"/lib/there/../lib/file", "inside"},
        {"/up", ""},
        {"/out", ""},
        {"/round", ""},
        {"/magic/etc/passwd", ""},
        {"/fifo", ""},
        {"/usr/lib", ""},
        {"/usr/lib/file/more", ""},
        {"/missing", ""},
    };
    make_tree();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_msg(
            strcmp(text_at(ml_rooted_open(root_fd, cases[i].path)), cases[i].text) == 0 &&
                strcmp(text_at(ml_rooted_walk(root_fd, cases[i].path)), cases[i].text) == 0,
            "%s",
            cases[i].path
        );
    }
    remove_tree();
}
END_TEST

START_TEST(a_path_of_any_length_ends) {
    char *path = NULL;
    size_t count = 0;
    make_tree();
    FILE *out = open_memstream(&path, &count);
    for (int i = 0; i < 3000; i++) {
        (void)fputs("/lib/..", out);
    }
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_int_lt(ml_rooted_walk(root_fd, path), 0);
    ck_assert_int_lt(ml_rooted_open(root_fd, path), 0);
    free(path);
    remove_tree();
}
END_TEST

/* In a mount namespace of its own it mounts, pivots as containers do, and ends; its handle stays.
 * The exit code is 0 where this may be done. */
static int become_container(void) {
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0 ||
        mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("root", "root", NULL, MS_BIND, NULL) != 0 ||
        mount("memlog", "root/lib", "tmpfs", 0, NULL) != 0) {
        return 77;
    }
    make("root/lib/mounted", "mounted");
    return 0;
}

START_TEST(a_namespace_that_nobody_is_in_any_more_has_its_mounts) {
    int told[2];
    int go[2];
    char path[64];
    char byte = 0;
    int status = 0;
    make_tree();
    ck_assert_int_eq(pipe(told), 0);
    ck_assert_int_eq(pipe(go), 0);
    const pid_t child = fork();
    if (child == 0) {
        const int code = become_container();
        (void)!write(told[1], "x", 1);
        (void)!read(go[0], &byte, 1);
        _exit(code);
    }
    ck_assert_int_eq((int)read(told[0], &byte, 1), 1);
    (void)snprintf(path, sizeof(path), "/proc/%d/ns/mnt", (int)child);
    const int space_fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq((int)write(go[1], "x", 1), 1);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    if (WEXITSTATUS(status) == 0) { /* else this system lets nobody make one */
        const int top_fd = ml_rooted_top(space_fd);
        ck_assert_int_ge(top_fd, 0);
        (void)snprintf(path, sizeof(path), "%s/root/lib/mounted", base);
        ck_assert_str_eq(text_at(ml_rooted_open(top_fd, path)), "mounted");
        ck_assert_int_lt(open(path, O_RDONLY | O_CLOEXEC), 0);
        (void)close(top_fd);
    }
    (void)close(space_fd);
    remove_tree();
}
END_TEST

START_TEST(what_is_no_namespace_has_no_top) {
    const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    ck_assert_int_lt(ml_rooted_top(fd), 0);
    (void)close(fd);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("rooted");
    tcase_add_test(tests, a_path_leads_to_the_same_place_by_both_ways);
    tcase_add_test(tests, a_path_of_any_length_ends);
    tcase_add_test(tests, a_namespace_that_nobody_is_in_any_more_has_its_mounts);
    tcase_add_test(tests, what_is_no_namespace_has_no_top);
    return run_suite("rooted", tests);
}

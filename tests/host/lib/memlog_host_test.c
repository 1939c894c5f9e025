#include "host/lib/memlog_host.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static char place[] = "/tmp/memlog-host-test.XXXXXX";
static char out_folder[PATH_MAX];

/* The build's folder, where this test and the stand-ins lie. */
static void setup(void) {
    ssize_t count = readlink("/proc/self/exe", out_folder, sizeof(out_folder) - 1);
    ck_assert_int_gt(count, 0);
    out_folder[count] = '\0';
    *strrchr(out_folder, '/') = '\0';
    (void)snprintf(place, sizeof(place), "%s", "/tmp/memlog-host-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place));
    ck_assert_int_eq(chdir(place), 0);
}

static void teardown(void) {
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -rf %s", place);
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(system(command), 0);
}

static struct memlog_host *start(char *const *options, char *error, size_t error_bytes) {
    static char service[PATH_MAX + 32];
    (void)snprintf(service, sizeof(service), "%s/host_fake_service", out_folder);
    const struct memlog_host_settings settings = {
        .options = options, .program = "browser", .service_path = service};
    return memlog_host_start(&settings, error, error_bytes);
}

static bool file_has(const char *path, const char *word) {
    char text[8192];
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t count = fread(text, 1, sizeof(text) - 1, file);
    text[count] = '\0';
    (void)fclose(file);
    return strstr(text, word) != NULL;
}

START_TEST(a_linked_host_profiles_the_programs_children) {
    char error[256] = "";
    char *options[] = {(char[]){"--memlog=all-renderers"}, NULL};
    struct memlog_host *host = start(options, error, sizeof(error));
    ck_assert_msg(host != NULL, "%s", error);
    char program[PATH_MAX + 64];
    (void)snprintf(program, sizeof(program), "%s/host_fake_linked", out_folder);
    pid_t child = fork();
    if (child == 0) {
        (void)setenv("MEMLOG_SOCKET", memlog_host_socket(host), 1);
        (void)execl(program, "worker", "--type=renderer", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(WEXITSTATUS(status), 7);
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1); /* the service is no child of ours */
    char path[PATH_MAX];
    ck_assert_int_eq(memlog_host_dump(host, path, sizeof(path)), 0);
    ck_assert_ptr_nonnull(strstr(path, "0001.manual.pftrace"));
    ck_assert_int_eq(memlog_host_stop(host, path, sizeof(path)), 0);
    ck_assert_ptr_nonnull(strstr(path, "memlog.browser."));
    ck_assert(file_has(path, "role=1"));
    ck_assert(file_has(path, "program=browser"));
}
END_TEST

START_TEST(wrong_options_and_a_missing_service_are_named) {
    char error[256] = "";
    char *wrong[] = {(char[]){"--memlgo=all"}, NULL};
    ck_assert_ptr_null(start(wrong, error, sizeof(error)));
    ck_assert_ptr_nonnull(strstr(error, "did you mean '--memlog'"));
    char *none[] = {(char[]){"--memlog=none"}, NULL};
    ck_assert_ptr_null(start(none, error, sizeof(error)));
    ck_assert_ptr_nonnull(strstr(error, "makes no host"));
    ck_assert_int_eq(memlog_host_stop(NULL, NULL, 0), 0);
}
END_TEST

START_TEST(without_a_service_there_is_no_dump_and_the_reason_is_told) {
    char error[256] = "";
    const struct memlog_host_settings settings = {
        .program = "browser", .service_path = "/nonexistent/memlog-service"};
    struct memlog_host *host = memlog_host_start(&settings, error, sizeof(error));
    ck_assert_msg(host != NULL, "%s", error);
    char path[PATH_MAX];
    ck_assert_int_eq(memlog_host_stop(host, path, sizeof(path)), -1);
    ck_assert_ptr_nonnull(strstr(path, "memlog-service did not write it"));
}
END_TEST

#ifdef HAS_ANALYZER
START_TEST(a_page_is_opened_once_and_for_this_machine_alone) {
    char text[512] = "";
    char *options[] = {(char[]){"--page=127.0.0.2:0"}, NULL};
    struct memlog_host *host = start(options, text, sizeof(text));
    ck_assert_msg(host != NULL, "%s", text);
    ck_assert_int_eq(memlog_host_page(host, "192.0.2.1:80", text, sizeof(text)), -1);
    ck_assert_msg(strstr(text, "--page-remote") != NULL, "%s", text);
    ck_assert_int_eq(memlog_host_page(host, "everywhere", text, sizeof(text)), -1);
    ck_assert_msg(strstr(text, "ADDRESS:PORT") != NULL, "%s", text);
    ck_assert_int_eq(memlog_host_page(host, NULL, text, sizeof(text)), 0);
    ck_assert_msg(strncmp(text, "http://127.0.0.2:", 17) == 0, "%s", text);
    ck_assert_ptr_nonnull(strstr(text, "/?token="));
    ck_assert_int_eq(memlog_host_page(host, NULL, text, sizeof(text)), -1);
    ck_assert_str_eq(text, "the page is open already");
    ck_assert_int_eq(memlog_host_stop(host, text, sizeof(text)), 0);
}
END_TEST

START_TEST(a_page_at_a_path_leaves_the_umask_and_no_socket) {
    char text[512] = "";
    struct stat facts;
    (void)umask(0);
    struct memlog_host *host = start(NULL, text, sizeof(text));
    ck_assert_msg(host != NULL, "%s", text);
    ck_assert_int_eq(memlog_host_page(host, "unix:page", text, sizeof(text)), 0);
    ck_assert_int_eq(stat("page", &facts), 0);
    ck_assert_uint_eq(facts.st_mode, S_IFSOCK | S_IRUSR | S_IWUSR);
    ck_assert_uint_eq(umask(0), 0);
    ck_assert_int_eq(memlog_host_stop(host, text, sizeof(text)), 0);
    ck_assert_int_eq(stat("page", &facts), -1);
}
END_TEST

#endif

int main(void) {
    TCase *tcase = tcase_create("memlog_host");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, a_linked_host_profiles_the_programs_children);
    tcase_add_test(tcase, wrong_options_and_a_missing_service_are_named);
    tcase_add_test(tcase, without_a_service_there_is_no_dump_and_the_reason_is_told);
#ifdef HAS_ANALYZER
    tcase_add_test(tcase, a_page_is_opened_once_and_for_this_machine_alone);
    tcase_add_test(tcase, a_page_at_a_path_leaves_the_umask_and_no_socket);
#endif
    return run_suite("host/memlog_host", tcase);
}

#include "base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static char folder[] = "/tmp/memlog-input.XXXXXX";
static char path[64];

static void begin(void) {
    (void)strcpy(strrchr(folder, '.'), ".XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/it", folder);
}

static void end(void) {
    (void)unlink(path);
    (void)rmdir(folder);
}

static void assert_refused(const char *name, int error) {
    bool is_stream = false;
    errno = 0;
    ck_assert_ptr_null(ml_input_open(name, &is_stream));
    ck_assert_int_eq(errno, error);
    ck_assert_int_gt((int)strlen(ml_input_trouble(error)), 0);
}

START_TEST(a_regular_file_is_opened_and_closed_on_exec) {
    bool is_stream = true;
    char text[8] = "";
    FILE *file = fopen(path, "w");
    (void)fputs("words", file);
    (void)fclose(file);
    file = ml_input_open(path, &is_stream);
    ck_assert_ptr_nonnull(file);
    ck_assert(!is_stream);
    ck_assert_int_eq(fcntl(fileno(file), F_GETFD), FD_CLOEXEC);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), file));
    ck_assert_str_eq(text, "words");
    (void)fclose(file);
    const int fd = ml_input_regular(path);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}
END_TEST

START_TEST(a_pipe_is_read_whole_and_waited_for_while_somebody_writes) {
    bool is_stream = false;
    char text[16] = "";
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    const int reader = open(path, O_RDONLY | O_NONBLOCK);
    const int writer = open(path, O_WRONLY);
    (void)close(reader);
    FILE *file = ml_input_open(path, &is_stream); /* nothing is in it yet */
    ck_assert_ptr_nonnull(file);
    ck_assert(is_stream);
    ck_assert_int_eq(fcntl(fileno(file), F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(write(writer, "first ", 6), 6);
    FILE *other = ml_input_open(path, &is_stream);
    ck_assert_ptr_nonnull(other);
    ck_assert_int_eq(write(writer, "second", 6), 6);
    (void)close(writer);
    ck_assert_ptr_nonnull(fgets(text, sizeof(text), other));
    ck_assert_str_eq(text, "first second");
    (void)fclose(other);
    (void)fclose(file);
    errno = 0;
    ck_assert_int_eq(ml_input_regular(path), -1);
    ck_assert_int_eq(errno, ESPIPE);
}
END_TEST

START_TEST(a_pipe_without_a_writer_is_refused_at_once) {
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    assert_refused(path, ENXIO);
}
END_TEST

START_TEST(devices_folders_and_sockets_are_refused_by_what_they_are) {
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_refused(path, ENXIO);
    assert_refused("/dev/zero", ENODEV);
    assert_refused("/dev/null", ENODEV);
    assert_refused(folder, EISDIR);
    assert_refused("/nonexistent", ENOENT);
    (void)close(fd);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("input_file");
    tcase_add_checked_fixture(tcase, begin, end);
    tcase_add_test(tcase, a_regular_file_is_opened_and_closed_on_exec);
    tcase_add_test(tcase, a_pipe_is_read_whole_and_waited_for_while_somebody_writes);
    tcase_add_test(tcase, a_pipe_without_a_writer_is_refused_at_once);
    tcase_add_test(tcase, devices_folders_and_sockets_are_refused_by_what_they_are);
    return run_suite("base/input_file", tcase);
}

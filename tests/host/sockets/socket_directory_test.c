#include "host/sockets/socket_directory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { FILL_MAX = 64 };

static char runtime[] = "/tmp/socket-directory-test.XXXXXX";
static struct ml_error_message error;

static void setup(void) {
    (void)snprintf(runtime, sizeof(runtime), "%s", "/tmp/socket-directory-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(runtime));
    ck_assert_int_eq(setenv("XDG_RUNTIME_DIR", runtime, 1), 0);
    error = (struct ml_error_message){.text = ""};
}

static void teardown(void) {
    char command[64];
    (void)snprintf(command, sizeof(command), "rm -rf %s", runtime);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(folders_and_sockets_are_as_open_as_they_must_be_and_go_again) {
    struct ml_socket_directory directory;
    ck_assert_int_eq(ml_socket_directory_open(&directory, &error), ML_OK);
    struct stat facts;
    ck_assert_int_eq(stat(directory.folder, &facts), 0);
    ck_assert_int_eq(facts.st_mode & 07777, 0711);
    ck_assert_int_eq(stat(directory.client_path, &facts), 0);
    ck_assert_int_eq(facts.st_mode & 07777, 0777);
    ck_assert_int_eq(stat(directory.command_path, &facts), 0);
    ck_assert_int_eq(facts.st_mode & 07777, 0600);
    ck_assert_int_eq(ml_socket_directory_alias(&directory, "/a b/libmemlog.so", &error), ML_OK);
    ck_assert_int_eq(lstat(directory.alias_path, &facts), 0);
    ck_assert_ptr_null(strpbrk(directory.alias_path, " :"));
    struct ml_socket_directory copy = directory;
    ml_socket_directory_close(&directory);
    ck_assert_int_ne(stat(copy.folder, &facts), 0);
    ck_assert_int_ne(stat(copy.command_path, &facts), 0);
}
END_TEST

/* What `ls`, /proc/net/unix and a guess tell: nobody but who was told the name finds the socket. */
START_TEST(other_users_find_no_socket_to_connect_to) {
    struct ml_socket_directory directory;
    ck_assert_int_eq(ml_socket_directory_open(&directory, &error), ML_OK);
    const char *slash = strrchr(directory.client_path, '/');
    ck_assert_int_eq(strncmp(directory.client_path, directory.folder, strlen(directory.folder)), 0);
    ck_assert_uint_eq(strspn(slash + 1, "0123456789abcdef"), 32);
    char *line = NULL;
    size_t size = 0;
    size_t seen = 0;
    FILE *sockets = fopen("/proc/net/unix", "re");
    ck_assert_ptr_nonnull(sockets);
    while (getline(&line, &size, sockets) >= 0) {
        ck_assert_ptr_null(strstr(line, slash + 1));
        const char *path = strstr(line, directory.folder);
        if (path != NULL) { /* where it was made, and is no more */
            line[strcspn(line, "\n")] = '\0';
            ck_assert_int_ne(access(path, F_OK), 0);
            seen++;
        }
    }
    ck_assert_uint_eq(seen, 1);
    free(line);
    (void)fclose(sockets);
    int fd = -1;
    ck_assert_int_eq(ml_socket_directory_connect(directory.client_path, &fd, &error), ML_OK);
    (void)close(fd);
    ml_socket_directory_close(&directory);
}
END_TEST

START_TEST(the_newest_host_is_found_and_dead_ones_are_cleared_away) {
    struct ml_socket_directory older;
    struct ml_socket_directory newer;
    int fd = -1;
    ck_assert_int_eq(ml_socket_directory_connect(NULL, &fd, &error), ML_ENV_MISSING);
    ck_assert_int_eq(ml_socket_directory_open(&older, &error), ML_OK);
    (void)usleep(2000);
    ck_assert_int_eq(ml_socket_directory_open(&newer, &error), ML_OK);
    ck_assert_int_lt(strcmp(older.command_path, newer.command_path), 0);
    struct ml_command_socket *sockets = NULL;
    ck_assert_uint_eq(ml_socket_directory_list(&sockets), 2);
    ck_assert_str_eq(sockets[0].path, newer.command_path);
    ck_assert_str_eq(sockets[1].path, older.command_path);
    free(sockets);
    ck_assert_int_eq(ml_socket_directory_connect(NULL, &fd, &error), ML_OK);
    (void)close(fd);
    /* The newer one dies without a word. */
    (void)close(newer.command_fd);
    newer.command_fd = -1;
    ck_assert_int_eq(ml_socket_directory_connect(NULL, &fd, &error), ML_OK);
    ck_assert_int_ne(access(newer.command_path, F_OK), 0);
    (void)close(fd);
    ml_socket_directory_close(&older);
    ml_socket_directory_close(&newer);
}
END_TEST

/* A socket as a host leaves it that is killed between binding and naming it; `seconds` old. */
static void leave_unnamed(const char *folder, int pid, time_t seconds, char *out_path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%.60s/.new%d", folder, pid);
    (void)strcpy(out_path, address.sun_path);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
    (void)close(fd);
    const struct timespec times[] = {{time(NULL) - seconds, 0}, {time(NULL) - seconds, 0}};
    ck_assert_int_eq(utimensat(AT_FDCWD, out_path, times, 0), 0);
}

START_TEST(what_a_host_had_bound_and_not_named_when_it_was_killed_is_cleared_away) {
    struct ml_socket_directory directory;
    char folder[PATH_MAX];
    char old[PATH_MAX];
    char young[PATH_MAX];
    char living[PATH_MAX];
    int fd = -1;
    ck_assert_int_eq(ml_socket_directory_open(&directory, &error), ML_OK);
    (void)snprintf(folder, sizeof(folder), "%.512s", directory.command_path);
    *strrchr(folder, '/') = '\0';
    const pid_t ended = fork();
    if (ended == 0) {
        _exit(0);
    }
    ck_assert_int_eq(waitpid(ended, NULL, 0), ended);
    leave_unnamed(folder, ended, 60, old);
    leave_unnamed(folder, (int)getpid(), 60, living);
    ck_assert_int_eq(ml_socket_directory_connect(NULL, &fd, &error), ML_OK);
    (void)close(fd);
    ck_assert_int_ne(access(old, F_OK), 0);
    ck_assert_int_eq(access(living, F_OK), 0);
    leave_unnamed(folder, ended, -60, young);
    ck_assert_int_eq(ml_socket_directory_connect(NULL, &fd, &error), ML_OK);
    (void)close(fd);
    ck_assert_int_eq(access(young, F_OK), 0);
    ml_socket_directory_close(&directory);
}
END_TEST

START_TEST(other_hosts_are_counted_while_they_live) {
    struct ml_socket_directory own;
    ck_assert_uint_eq(ml_socket_directory_others(), 0);
    ck_assert_int_eq(ml_socket_directory_open(&own, &error), ML_OK);
    ck_assert_uint_eq(ml_socket_directory_others(), 0);
    char path[256];
    /* One that lives, and one that has been dead for as long as there are pids. */
    (void)snprintf(path, sizeof(path), "%s/memlog/0000000000000001-%d.sock", runtime, getppid());
    (void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    (void)snprintf(path, sizeof(path), "%s/memlog/0000000000000002-%d.sock", runtime, INT_MAX);
    (void)close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    ck_assert_uint_eq(ml_socket_directory_others(), 1);
    ml_socket_directory_close(&own);
}
END_TEST

START_TEST(a_folder_that_others_may_enter_is_passed_over) {
    char folder[64];
    (void)snprintf(folder, sizeof(folder), "%s/memlog", runtime);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    ck_assert_int_eq(chmod(folder, 0755), 0);
    struct ml_socket_directory directory;
    ck_assert_int_eq(ml_socket_directory_open(&directory, &error), ML_OK);
    ck_assert_ptr_null(strstr(directory.command_path, folder));
    int fd = -1;
    ck_assert_int_eq(ml_socket_directory_connect(NULL, &fd, &error), ML_OK);
    (void)close(fd);
    ml_socket_directory_close(&directory);
}
END_TEST

/* As a user of which there is no other process, and whose name in /tmp somebody else has taken. */
START_TEST(a_name_that_another_user_has_taken_keeps_nobody_from_starting_or_being_found) {
    enum { USER = 61234 };
    char taken[64];
    char planted[96];
    (void)snprintf(taken, sizeof(taken), "/tmp/memlog-%d", (int)USER);
    (void)snprintf(planted, sizeof(planted), "%s/9999999999999999-1.sock", taken);
    if (geteuid() != 0 || mkdir(taken, 0777) != 0) {
        return;
    }
    ck_assert_int_eq(chmod(taken, 0777), 0);
    /* A host of the other user's, which looks newer than all. */
    struct ml_socket_directory foreign;
    struct ml_socket_directory own;
    ck_assert_int_eq(ml_socket_directory_open(&foreign, &error), ML_OK);
    ck_assert_int_eq(rename(foreign.command_path, planted), 0);
    ck_assert_int_eq(chmod(planted, 0777), 0);
    ck_assert_int_eq(unsetenv("XDG_RUNTIME_DIR"), 0);
    ck_assert_int_eq(seteuid(USER), 0);
    int fd = -1;
    const enum ml_status before = ml_socket_directory_connect(NULL, &fd, &error);
    const enum ml_status opened = ml_socket_directory_open(&own, &error);
    const enum ml_status found = ml_socket_directory_connect(NULL, &fd, &error);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t count = sizeof(address);
    (void)getpeername(fd, (struct sockaddr *)&address, &count);
    char folder[ML_SOCKET_DIRECTORY_PATH_BYTES];
    (void)snprintf(folder, sizeof(folder), "%s", own.command_path);
    *strrchr(folder, '/') = '\0';
    (void)close(fd);
    ml_socket_directory_close(&own);
    (void)rmdir(folder);
    ck_assert_int_eq(seteuid(0), 0);
    (void)unlink(planted);
    (void)rmdir(taken);
    ml_socket_directory_close(&foreign);
    ck_assert_int_eq(before, ML_ENV_MISSING);
    ck_assert_int_eq(opened, ML_OK);
    ck_assert_int_eq(found, ML_OK);
    ck_assert_int_eq(strncmp(folder, taken, strlen(taken)), 0);
    ck_assert_int_eq(folder[strlen(taken)], '.');
    ck_assert_int_eq(strncmp(address.sun_path, folder, strlen(folder)), 0);
}
END_TEST

START_TEST(a_named_socket_that_nobody_serves_is_named) {
    int fd = -1;
    ck_assert_int_eq(ml_socket_directory_connect("/no/such.sock", &fd, &error), ML_ENV_MISSING);
    ck_assert_ptr_nonnull(strstr(error.text, "/no/such.sock"));
}
END_TEST

START_TEST(the_folder_of_a_killed_host_is_cleared_away_by_the_next) {
    struct ml_socket_directory killed;
    struct ml_socket_directory alive;
    struct ml_socket_directory next;
    ck_assert_int_eq(ml_socket_directory_open(&killed, &error), ML_OK);
    ck_assert_int_eq(ml_socket_directory_open(&alive, &error), ML_OK);
    ck_assert_int_eq(ml_socket_directory_alias(&killed, "/x", &error), ML_OK);
    (void)close(killed.client_fd);
    (void)close(killed.command_fd);
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    ck_assert_int_eq(utimensat(AT_FDCWD, killed.folder, old, 0), 0);
    ck_assert_int_eq(utimensat(AT_FDCWD, alive.folder, old, 0), 0);
    ck_assert_int_eq(ml_socket_directory_open(&next, &error), ML_OK);
    ck_assert_int_ne(access(killed.folder, F_OK), 0);
    ck_assert_int_eq(access(alive.client_path, F_OK), 0);
    ml_socket_directory_close(&next);
    ml_socket_directory_close(&alive);
}
END_TEST

/* Nobody takes what comes, and there is room for no more: as with a host that stands still. */
static void fill(int listening_fd, const char *path, int out_fds[FILL_MAX], int *out_count) {
    int fd = -1;
    ck_assert_int_eq(listen(listening_fd, 1), 0);
    for (*out_count = 0; ml_socket_directory_connect(path, &fd, &error) == ML_OK; (*out_count)++) {
        ck_assert_int_lt(*out_count, FILL_MAX);
        out_fds[*out_count] = fd;
    }
    ck_assert_int_gt(*out_count, 0);
}

START_TEST(a_host_that_stands_still_holds_nobody_up) {
    struct ml_socket_directory older;
    struct ml_socket_directory still;
    struct ml_socket_directory another;
    struct stat facts;
    int fds[2][FILL_MAX];
    int counts[2];
    int fd = -1;
    ck_assert_int_eq(ml_socket_directory_open(&older, &error), ML_OK);
    (void)usleep(2000);
    ck_assert_int_eq(ml_socket_directory_open(&still, &error), ML_OK);
    fill(still.command_fd, still.command_path, fds[0], &counts[0]);
    fill(still.client_fd, still.client_path, fds[1], &counts[1]);
    ck_assert_int_eq(ml_socket_directory_connect(still.command_path, &fd, &error), ML_ENV_AGAIN);
    /* A command speaks to the next one; a new host takes the still one for what it is, alive. */
    ck_assert_int_eq(ml_socket_directory_connect(NULL, &fd, &error), ML_OK);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    (void)close(fd);
    const struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    ck_assert_int_eq(utimensat(AT_FDCWD, still.folder, old, 0), 0);
    ck_assert_int_eq(ml_socket_directory_open(&another, &error), ML_OK);
    ck_assert_int_eq(stat(still.client_path, &facts), 0);
    ck_assert_int_eq(stat(still.command_path, &facts), 0);
    for (int i = 0; i < 2; i++) {
        while (counts[i] > 0) {
            (void)close(fds[i][--counts[i]]);
        }
    }
    ml_socket_directory_close(&another);
    ml_socket_directory_close(&still);
    ml_socket_directory_close(&older);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("socket_directory");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, folders_and_sockets_are_as_open_as_they_must_be_and_go_again);
    tcase_add_test(tcase, other_users_find_no_socket_to_connect_to);
    tcase_add_test(tcase, the_newest_host_is_found_and_dead_ones_are_cleared_away);
    tcase_add_test(tcase, what_a_host_had_bound_and_not_named_when_it_was_killed_is_cleared_away);
    tcase_add_test(tcase, other_hosts_are_counted_while_they_live);
    tcase_add_test(tcase, a_folder_that_others_may_enter_is_passed_over);
    tcase_add_test(
        tcase, a_name_that_another_user_has_taken_keeps_nobody_from_starting_or_being_found
    );
    tcase_add_test(tcase, a_named_socket_that_nobody_serves_is_named);
    tcase_add_test(tcase, a_host_that_stands_still_holds_nobody_up);
    tcase_add_test(tcase, the_folder_of_a_killed_host_is_cleared_away_by_the_next);
    return run_suite("host/socket_directory", tcase);
}

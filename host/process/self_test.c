#include "host/process/self_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/process/launcher.h"

enum { FOLDER_BYTES = PATH_MAX - 64, EXIT_CANNOT_RUN = 126 };

static void remove_folder(const char *folder) {
    DIR *directory = opendir(folder);
    const struct dirent *entry = NULL;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        (void)unlinkat(dirfd(directory), entry->d_name, 0);
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    (void)rmdir(folder);
}

__attribute__((noreturn)) static void
run_child(const char *self, const char *sandbox, const char *output, int said_fd) {
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nowhere < 0 || dup2(nowhere, STDIN_FILENO) < 0 || dup2(nowhere, STDOUT_FILENO) < 0 ||
        dup2(said_fd, STDERR_FILENO) < 0) {
        _exit(EXIT_CANNOT_RUN);
    }
    ml_launcher_forget_loader(environ);
    (void
    )execl(self, self, "run", "--no-page", sandbox, output, "--", self, "--version", (char *)NULL);
    _exit(EXIT_CANNOT_RUN);
}

/* To its end; the first line stays. */
static void listen_to(int fd, char out_said[ML_SELF_TEST_SAID_BYTES]) {
    static const char name[] = "memlog: ";
    char line[ML_SELF_TEST_SAID_BYTES];
    FILE *file = fdopen(fd, "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (out_said[0] == '\0') {
            const bool named = strncmp(line, name, strlen(name)) == 0;
            (void
            )snprintf(out_said, ML_SELF_TEST_SAID_BYTES, "%s", named ? line + strlen(name) : line);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    } else {
        (void)close(fd);
    }
}

static bool run_in(const char *folder, const char *self, const char *sandbox, char *out_said) {
    char output[PATH_MAX];
    int said[2] = {-1, -1};
    int status = -1;
    (void)snprintf(output, sizeof(output), "--output=%s/run", folder);
    if (pipe2(said, O_CLOEXEC) != 0) {
        return false;
    }
    const pid_t child = fork();
    if (child == 0) {
        run_child(self, sandbox, output, said[1]);
    }
    (void)close(said[1]);
    listen_to(said[0], out_said);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* True if the run left its dump; everything of it goes. */
static bool take_dump(const char *folder) {
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/run/0001.exit.pftrace", folder);
    const bool is_there = access(path, F_OK) == 0;
    (void)snprintf(path, sizeof(path), "%s/run", folder);
    remove_folder(path);
    remove_folder(folder);
    return is_there;
}

void ml_self_test_run(const char *sandbox, struct ml_self_test *out_self_test) {
    const char *temporary = getenv("TMPDIR");
    char folder[FOLDER_BYTES];
    char self[PATH_MAX] = "";
    *out_self_test = (struct ml_self_test){.recorded = false};
    const int count = snprintf(
        folder,
        sizeof(folder),
        "%s/memlog-doctor.XXXXXX",
        temporary != NULL && temporary[0] == '/' ? temporary : "/tmp"
    );
    if (count >= (int)sizeof(folder) || readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0 ||
        mkdtemp(folder) == NULL) {
        (void)snprintf(
            out_self_test->said,
            sizeof(out_self_test->said),
            "no folder in TMPDIR or /tmp: %s",
            strerror(errno)
        );
        return;
    }
    const bool ended = run_in(folder, self, sandbox, out_self_test->said);
    out_self_test->recorded = take_dump(folder) && ended;
}

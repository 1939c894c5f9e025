/* The check of `memlog doctor` for an allocator inside the program. Room: host. Context: its own
 * process.
 *
 * The host parses no ELF: memlog-analyzer says in one sentence what would be recorded, and by its
 * exit code whether that is all. The sentence is passed on unread. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "host/cli/doctor_internal.h"
#include "host/process/launcher.h"
#include "host/process/paths.h"
#include "ipc/wire/staging.h"

enum {
    SENTENCE_BYTES = 700,
    RUNNER_BYTES = 256,
    LOOK_SECONDS = 60, /* a browser of 250 MB takes a tenth of one */
    EXECUTABLE_FD = 3,
    HIGH_FD = 10,
    EXIT_LACKING = 3 /* tools/analyzer/cli/command.h */
};

/* The child's side; its messages are the answer as well. */
__attribute__((noreturn)) static void
become_analyzer(const char *analyzer, int executable_fd, int answer_fd, const char *allocators) {
    char option[ML_CONTROL_ALLOCATORS_BYTES + sizeof("--allocator=")];
    const int nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* Moved first: it may have the number of the other. */
    const int answer = fcntl(answer_fd, F_DUPFD_CLOEXEC, HIGH_FD);
    const int executable = fcntl(executable_fd, F_DUPFD_CLOEXEC, HIGH_FD);
    if (nowhere < 0 || answer < 0 || executable < 0 || dup2(nowhere, STDIN_FILENO) < 0 ||
        dup2(answer, STDOUT_FILENO) < 0 || dup2(answer, STDERR_FILENO) < 0 ||
        dup2(executable, EXECUTABLE_FD) < 0) {
        _exit(127);
    }
    (void)alarm(LOOK_SECONDS);
    (void)snprintf(option, sizeof(option), "--allocator=%s", allocators);
    ml_launcher_forget_loader(environ);
    (void)execl(
        analyzer,
        "memlog",
        "--bare",
        "entries",
        "--sentence",
        option,
        "/proc/self/fd/3",
        (char *)NULL
    );
    _exit(127);
}

/* Its exit code, and its answer's first line; -1: it could not be asked, or was killed. */
static int
ask_analyzer(int executable_fd, const char *allocators, char out_sentence[SENTENCE_BYTES]) {
    struct ml_error_message error = {.text = ""};
    char analyzer[PATH_MAX];
    out_sentence[0] = '\0';
    if (ml_paths_find(ML_ANALYZER_FILE, analyzer, &error) != ML_OK) {
        (void)snprintf(out_sentence, SENTENCE_BYTES, "%s", error.text);
        return -1;
    }
    int answer_fd = memfd_create("memlog-doctor", MFD_CLOEXEC);
    const pid_t pid = answer_fd >= 0 ? fork() : -1;
    if (pid == 0) {
        become_analyzer(analyzer, executable_fd, answer_fd, allocators);
    }
    int status = -1;
    pid_t ended = -1;
    do {
        ended = pid > 0 ? waitpid(pid, &status, 0) : -1;
    } while (ended < 0 && pid > 0 && errno == EINTR);
    const bool has_exited = ended == pid && pid > 0 && WIFEXITED(status);
    const ssize_t count = has_exited ? pread(answer_fd, out_sentence, SENTENCE_BYTES - 1, 0) : 0;
    out_sentence[count > 0 ? count : 0] = '\0';
    out_sentence[strcspn(out_sentence, "\n")] = '\0';
    ml_descriptor_close(&answer_fd);
    return has_exited ? WEXITSTATUS(status) : -1;
}

/* "/usr/bin/dash runs it: " where that is not the file that was named, as of a script; else "". */
static void find_runner(int executable_fd, const char *named, char out_words[RUNNER_BYTES]) {
    char link[40];
    char path[PATH_MAX];
    (void)snprintf(link, sizeof(link), "/proc/self/fd/%d", executable_fd);
    const ssize_t count = readlink(link, path, sizeof(path) - 1);
    path[count > 0 ? count : 0] = '\0';
    out_words[0] = '\0';
    if (count > 0 && named[0] != '\0' && strcmp(path, named) != 0) {
        (void)snprintf(out_words, RUNNER_BYTES, "%.*s runs it: ", RUNNER_BYTES / 2, path);
    }
}

void ml_doctor_allocator(
    struct ml_findings *findings, int executable_fd, const char *named, const char *allocators
) {
    char sentence[SENTENCE_BYTES] = "its executable cannot be read";
    char runner[RUNNER_BYTES] = "";
    int exit_code = -1;
    if (executable_fd >= 0) {
        find_runner(executable_fd, named, runner);
        exit_code = ask_analyzer(executable_fd, allocators, sentence);
    }
    if ((exit_code == 0 || exit_code == EXIT_LACKING) && sentence[0] != '\0') {
        ml_doctor_find(
            findings,
            exit_code == 0 ? ML_DOCTOR_OK : ML_DOCTOR_NOTE,
            "allocator",
            "%s%s%s",
            runner,
            sentence,
            runner[0] != '\0' ? "; ask of what it starts by its own name" : ""
        );
        return;
    }
    ml_doctor_find(
        findings,
        ML_DOCTOR_NOTE,
        "allocator",
        "what it asks of malloc is recorded; whether an allocator is inside it could not be told "
        "(%s): a run's report says NOT COVERED where one goes past memlog",
        sentence[0] != '\0' ? sentence : "memlog-analyzer failed"
    );
}

void ml_doctor_allocator_of(struct ml_findings *findings, uint32_t pid, const char *allocators) {
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/exe", pid);
    int executable_fd = open(path, O_RDONLY | O_CLOEXEC);
    ml_doctor_allocator(findings, executable_fd, "", allocators);
    ml_descriptor_close(&executable_fd);
}

#include "tools/process_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* Beyond it nobody has a program; the copy is memory. */
static const off_t copy_max_bytes = (off_t)1 << 30;

struct question {
    uint32_t pid;
    uint32_t way; /* enum ml_process_way */
    uint64_t start, end;
    char path[PATH_MAX];
};

/* The one process, the ends of the pipes to it, and the memory. */
static struct {
    pid_t pid;
    int to_fd, from_fd, copy_fd;
} helper;

/* All of it, or false. */
static bool read_all(int fd, void *bytes, size_t count_bytes) {
    char *at = bytes;

    while (count_bytes > 0) {
        ssize_t got = read(fd, at, count_bytes);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        at += got;
        count_bytes -= (size_t)got;
    }
    return true;
}

static bool write_all(int fd, const void *bytes, size_t count_bytes) {
    const char *at = bytes;

    while (count_bytes > 0) {
        ssize_t put = write(fd, at, count_bytes);
        if (put < 0 && errno == EINTR) {
            continue;
        }
        if (put <= 0) {
            return false;
        }
        at += put;
        count_bytes -= (size_t)put;
    }
    return true;
}

/* As a place alone. The first piece of the file's mapping: only who may administrate may follow it.
 */
static int open_mapped(const struct question *question) {
    char folder[sizeof "/proc/4294967295/map_files"];
    DIR *pieces = NULL;
    const struct dirent *entry = NULL;
    int fd = -1;

    snprintf(folder, sizeof folder, "/proc/%" PRIu32 "/map_files", question->pid);
    pieces = opendir(folder);
    while (fd < 0 && pieces && (entry = readdir(pieces)) != NULL) {
        uint64_t start = 0;
        uint64_t end = 0;
        if (sscanf(entry->d_name, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 &&
            start >= question->start && end <= question->end) {
            fd = openat(dirfd(pieces), entry->d_name, O_PATH | O_CLOEXEC);
        }
    }
    if (pieces) {
        closedir(pieces);
    }
    return fd;
}

static int open_asked(const struct question *question) {
    char path[sizeof "/proc/4294967295/root/" + PATH_MAX];
    const char *link = "exe";
    bool is_named = question->way == ML_PROCESS_ROOT || question->way == ML_PROCESS_FOLDER;

    if (question->way == ML_PROCESS_MAPPED) {
        return open_mapped(question);
    }
    if (is_named) {
        link = question->way == ML_PROCESS_ROOT ? "root/" : "cwd/";
    }
    snprintf(
        path,
        sizeof path,
        "/proc/%" PRIu32 "/%s%s",
        question->pid,
        link,
        is_named ? question->path : ""
    );
    return open(path, O_PATH | O_CLOEXEC);
}

/* For reading, if it is a regular file: to open a device may do something. -1: it is none. */
static int open_regular(const struct question *question, struct stat *out_status) {
    char path[sizeof "/proc/self/fd/2147483647"];
    int place_fd = open_asked(question);
    int fd = -1;

    if (place_fd < 0) {
        return -1;
    }
    if (fstat(place_fd, out_status) == 0 && S_ISREG(out_status->st_mode)) {
        snprintf(path, sizeof path, "/proc/self/fd/%d", place_fd);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    close(place_fd);
    return fd;
}

/* Whether it is the file that was there under its name anyway. */
static bool is_known(const struct question *question, const struct stat *status) {
    struct stat named;

    return stat(question->path, &named) == 0 && named.st_dev == status->st_dev &&
           named.st_ino == status->st_ino;
}

static bool copy_asked(const struct question *question, int copy_fd) {
    struct stat status;
    off_t left = 0;
    int fd = open_regular(question, &status);
    bool done = fd >= 0 && status.st_size <= copy_max_bytes && !is_known(question, &status) &&
                ftruncate(copy_fd, 0) == 0 && lseek(copy_fd, 0, SEEK_SET) == 0;

    for (left = done ? status.st_size : 0; done && left > 0;) {
        ssize_t count = sendfile(copy_fd, fd, NULL, (size_t)left);
        done = count > 0;
        left -= count;
    }
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

/* Answer until the other end is closed. */
static void serve(int questions_fd, int answers_fd, int copy_fd) {
    struct question question;

    while (read_all(questions_fd, &question, sizeof question)) {
        char answer = 0;
        question.path[sizeof question.path - 1] = '\0';
        answer = copy_asked(&question, copy_fd);
        if (!write_all(answers_fd, &answer, 1)) {
            return;
        }
    }
}

/* Where the new process has its descriptors: behind the three that everybody has. */
enum { QUESTIONS_FD = 3, ANSWERS_FD = 4, COPY_FD = 5, HIGH_FD = 10 };

/* Keep these three and none else: whoever waits for the end of our output, or of a pipe to another
 * process of ours, must not wait for this one. */
static bool keep_only(int questions_fd, int answers_fd) {
    const int fds[] = {questions_fd, answers_fd, helper.copy_fd};
    int high[3];
    int nothing_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    bool done = nothing_fd >= 0;

    for (int i = 0; i < 3; i++) {
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, HIGH_FD);
        done = done && high[i] >= 0 && dup2(nothing_fd, STDIN_FILENO + i) >= 0;
    }
    for (int i = 0; i < 3; i++) {
        done = done && dup2(high[i], QUESTIONS_FD + i) >= 0;
    }
    return done && close_range(COPY_FD + 1, ~0U, 0) == 0;
}

/* The new process's whole life. */
__attribute__((noreturn)) static void live(int questions_fd, int answers_fd, pid_t parent) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && keep_only(questions_fd, answers_fd)) {
        serve(QUESTIONS_FD, ANSWERS_FD, COPY_FD);
    }
    _exit(0);
}

/* Before this process is gone: nobody else waits for it. */
static void stop(void) {
    if (helper.pid > 0) {
        close(helper.to_fd);
        close(helper.from_fd);
        (void)waitpid(helper.pid, NULL, 0);
        helper.pid = 0;
    }
}

static bool pipes_open(int questions[2], int answers[2]) {
    if (pipe2(questions, O_CLOEXEC) != 0) {
        return false;
    }
    if (pipe2(answers, O_CLOEXEC) != 0) {
        close(questions[0]);
        close(questions[1]);
        return false;
    }
    return true;
}

void ml_process_files_start(void) {
    pid_t parent = getpid();
    int questions[2];
    int answers[2];

    if (helper.pid != 0 || !pipes_open(questions, answers)) {
        return;
    }
    helper.copy_fd = memfd_create("memlog-process-file", MFD_CLOEXEC);
    if (helper.copy_fd >= 0) {
        helper.pid = fork();
    }
    if (helper.copy_fd >= 0 && helper.pid == 0) {
        live(questions[0], answers[1], parent);
    }
    close(questions[0]);
    close(answers[1]);
    helper.to_fd = questions[1];
    helper.from_fd = answers[0];
    if (helper.copy_fd < 0 || helper.pid < 0) {
        helper.pid = -1; /* not to be tried again */
        close(helper.to_fd);
        close(helper.from_fd);
    } else {
        (void)atexit(stop);
    }
}

bool ml_process_files_get(
    const struct ml_symbol_wanted *wanted,
    enum ml_process_way way,
    char *out_path,
    unsigned long path_bytes
) {
    struct question question = {
        .pid = wanted->pid, .way = way, .start = wanted->start, .end = wanted->end};
    char answer = 0;

    if (helper.pid <= 0 || strlen(wanted->path) >= sizeof question.path) {
        return false;
    }
    memcpy(question.path, wanted->path, strlen(wanted->path));
    if (!write_all(helper.to_fd, &question, sizeof question) ||
        !read_all(helper.from_fd, &answer, 1) || answer == 0) {
        return false;
    }
    return (size_t)snprintf(out_path, path_bytes, "/proc/self/fd/%d", helper.copy_fd) < path_bytes;
}

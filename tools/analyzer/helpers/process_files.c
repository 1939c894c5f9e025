#include "tools/analyzer/helpers/process_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/analyzer/helpers/helper.h"

/* Larger than any program; the copy is in memory. */
static const off_t copy_max_bytes = (off_t)1 << 30;

struct question {
    uint32_t pid;
    uint32_t way; /* enum ml_process_way */
    uint64_t start, end;
    char path[PATH_MAX];
};

/* The helper, and the memory that it copies to. */
static struct ml_helper helper = {
    .lost = "names may be missing whose files only running processes have"};
static int helper_copy_fd;

/* Open the file as O_PATH by the link of a piece of its mapping. Only CAP_SYS_ADMIN may follow that
 * link. */
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

/* Open the file for reading if it is a regular one, since opening a device may have effects. -1: it
 * is none. */
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

/* Whether the file's own path leads to the same file. Then no copy is needed. */
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

static void serve(int questions_fd, int answers_fd, int copy_fd) {
    struct question question;
    bool goes_on = true;

    while (goes_on && ml_helper_read(questions_fd, &question, sizeof question)) {
        question.path[sizeof question.path - 1] = '\0';
        goes_on = ml_helper_answer(answers_fd, copy_asked(&question, copy_fd), NULL, 0);
    }
}

void ml_process_files_start(void) {
    if (helper.was_tried) {
        return;
    }
    helper_copy_fd = memfd_create("memlog-process-file", MFD_CLOEXEC);
    if (helper_copy_fd >= 0) {
        ml_helper_start(&helper, serve, helper_copy_fd);
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

    if (strlen(wanted->path) >= sizeof question.path) {
        return false;
    }
    memcpy(question.path, wanted->path, strlen(wanted->path));
    return ml_helper_ask(&helper, &question, sizeof question, NULL, 0) &&
           (size_t)snprintf(out_path, path_bytes, "/proc/self/fd/%d", helper_copy_fd) < path_bytes;
}

#include "host/process/code_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Each keeps a mount namespace alive, and a descriptor of ours. */
enum { FOREIGN_FOLDERS_MAX = 256 };

/* The kernel's clock for files stands still for up to 10 ms. */
static const uint64_t file_clock_ns = 20000000;

static unsigned foreign_folders; /* open in all */

bool ml_code_files_parse(const char *status, pid_t *out_inner_pid, uid_t *out_user) {
    const char *users = strstr(status, "\nUid:");
    const char *numbers = strstr(status, "\nNSpid:");
    unsigned user = 0;
    if (users == NULL || sscanf(users, "\nUid: %*u %u", &user) != 1 || numbers == NULL) {
        return false;
    }
    numbers += sizeof("\nNSpid:") - 1;
    pid_t inner = 0;
    for (;;) {
        char *end = NULL;
        const long number = strtol(numbers, &end, 10);
        if (end == numbers || number <= 0 || number > INT32_MAX) {
            break;
        }
        inner = (pid_t)number;
        numbers = *end == '\t' ? end : "";
    }
    *out_inner_pid = inner;
    *out_user = user;
    return inner != 0;
}

static void look_at_status(struct ml_code_files *files, pid_t pid) {
    enum { STATUS_BYTES = 4096 };
    char path[64];
    char text[STATUS_BYTES];
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (count <= 0) {
        return;
    }
    text[count] = '\0';
    const bool is_first = files->inner_pid == 0;
    if (ml_code_files_parse(text, &files->inner_pid, &files->user) && is_first) {
        files->user_at_start = files->user;
    }
}

static bool is_same_file(const char *one, const char *other) {
    struct stat a;
    struct stat b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

/* Its /tmp where that is another one than ours. */
static void look_at_folder(struct ml_code_files *files, pid_t pid) {
    char root[64];
    char space[64];
    (void)snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    (void)snprintf(space, sizeof(space), "/proc/%d/ns/mnt", (int)pid);
    if (files->tmp_fd_plus_1 != 0 || foreign_folders >= FOREIGN_FOLDERS_MAX ||
        (is_same_file(root, "/") && is_same_file(space, "/proc/self/ns/mnt"))) {
        return;
    }
    const int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        return;
    }
    /* A link there would be followed in our namespace, not in its. */
    const int fd = openat(root_fd, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)close(root_fd);
    if (fd >= 0) {
        files->tmp_fd_plus_1 = fd + 1;
        foreign_folders++;
    }
}

static void keep_path(struct ml_code_files *files, const char *path) {
    char *copy = strdup(path);
    if (copy != NULL) {
        free(files->jit_dump_path);
        files->jit_dump_path = copy;
    }
}

/* node writes it where it stands, Java's agent elsewhere: once it is mapped, its path is known. */
static void guess_jit_dump(struct ml_code_files *files, pid_t pid) {
    char link[64];
    char folder[PATH_MAX];
    char path[PATH_MAX + 64];
    (void)snprintf(link, sizeof(link), "/proc/%d/cwd", (int)pid);
    const ssize_t count = readlink(link, folder, sizeof(folder) - 1);
    if (files->jit_dump_path != NULL || count <= 0) {
        return;
    }
    folder[count] = '\0';
    (void)snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, (int)files->inner_pid);
    keep_path(files, path);
}

void ml_code_files_look(struct ml_code_files *files, pid_t pid) {
    look_at_status(files, pid);
    if (files->inner_pid != 0) {
        look_at_folder(files, pid);
        guess_jit_dump(files, pid);
    }
}

void ml_code_files_fini(struct ml_code_files *files) {
    if (files->tmp_fd_plus_1 != 0) {
        (void)close(files->tmp_fd_plus_1 - 1);
        foreign_folders--;
    }
    free(files->jit_dump_path);
    *files = (struct ml_code_files){.inner_pid = 0};
}

void ml_code_files_mapped(struct ml_code_files *files, const char *path) {
    char name[64];
    const char *slash = strrchr(path, '/');
    (void)snprintf(name, sizeof(name), "jit-%d.dump", (int)files->inner_pid);
    if (files->inner_pid != 0 && path[0] == '/' && strcmp(slash + 1, name) == 0 &&
        (files->jit_dump_path == NULL || strcmp(files->jit_dump_path, path) != 0)) {
        keep_path(files, path);
    }
}

/* The process's own, or -1. O_NONBLOCK: it may be anything, a FIFO too. */
static int
open_own(const struct ml_code_files *files, int folder_fd, const char *name, uint64_t since_ns) {
    const int fd =
        openat(folder_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat about;
    if (fd < 0) {
        return -1;
    }
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode) &&
        (about.st_uid == files->user || about.st_uid == files->user_at_start)) {
        const uint64_t written_ns =
            (uint64_t)about.st_mtim.tv_sec * 1000000000 + (uint64_t)about.st_mtim.tv_nsec;
        if (written_ns + file_clock_ns >= since_ns) {
            return fd;
        }
    }
    (void)close(fd);
    return -1;
}

int ml_code_files_perf_map(const struct ml_code_files *files, uint64_t since_ns) {
    char name[64];
    if (files->inner_pid == 0) {
        return -1;
    }
    if (files->tmp_fd_plus_1 != 0) {
        (void)snprintf(name, sizeof(name), "perf-%d.map", (int)files->inner_pid);
        return open_own(files, files->tmp_fd_plus_1 - 1, name, since_ns);
    }
    (void)snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)files->inner_pid);
    return open_own(files, AT_FDCWD, name, since_ns);
}

int ml_code_files_jit_dump(const struct ml_code_files *files, uint64_t since_ns) {
    /* A path of another mount namespace names another file here. */
    if (files->jit_dump_path == NULL || files->tmp_fd_plus_1 != 0) {
        return -1;
    }
    return open_own(files, AT_FDCWD, files->jit_dump_path, since_ns);
}

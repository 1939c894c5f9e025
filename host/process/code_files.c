#include "host/process/code_files.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/kernel/mounts.h"

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

static int open_folder(const char *root) {
    const int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        return -1;
    }
    /* A link there would be followed in our namespace, not in its. */
    const int fd = openat(root_fd, "tmp", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    (void)close(root_fd);
    return fd;
}

/* Its /tmp where that is another one than ours. */
static void look_at_folder(struct ml_code_files *files, pid_t pid) {
    char root[64];
    (void)snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    if (!ml_mounts_are_foreign(pid)) {
        return;
    }
    files->is_foreign = true;
    if (files->tmp_fd_plus_1 != 0 || foreign_folders >= FOREIGN_FOLDERS_MAX ||
        ml_mounts_are_in_user_space(pid, "/tmp")) {
        return;
    }
    const int fd = open_folder(root);
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

static bool is_own(const struct ml_code_files *files, int place_fd, uint64_t since_ns) {
    struct stat about;
    if (fstat(place_fd, &about) != 0 || !S_ISREG(about.st_mode) ||
        (about.st_uid != files->user && about.st_uid != files->user_at_start)) {
        return false;
    }
    const uint64_t written_ns =
        (uint64_t)about.st_mtim.tv_sec * 1000000000 + (uint64_t)about.st_mtim.tv_nsec;
    return written_ns + file_clock_ns >= since_ns;
}

/* The process's own, or -1. It may be anything, a FIFO or a device too, which is not opened then.
 */
static int
open_own(const struct ml_code_files *files, int folder_fd, const char *name, uint64_t since_ns) {
    char path[sizeof "/proc/self/fd/2147483647"];
    const int place_fd = openat(folder_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int fd = -1;
    if (place_fd >= 0 && is_own(files, place_fd, since_ns)) {
        (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", place_fd);
        fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    }
    if (place_fd >= 0) {
        (void)close(place_fd);
    }
    return fd;
}

int ml_code_files_perf_map(const struct ml_code_files *files, uint64_t since_ns) {
    char name[64];
    /* Without its folder: another process has its number here. */
    if (files->inner_pid == 0 || (files->is_foreign && files->tmp_fd_plus_1 == 0)) {
        return -1;
    }
    if (files->is_foreign) {
        (void)snprintf(name, sizeof(name), "perf-%d.map", (int)files->inner_pid);
        return open_own(files, files->tmp_fd_plus_1 - 1, name, since_ns);
    }
    (void)snprintf(name, sizeof(name), "/tmp/perf-%d.map", (int)files->inner_pid);
    return open_own(files, AT_FDCWD, name, since_ns);
}

int ml_code_files_jit_dump(const struct ml_code_files *files, uint64_t since_ns) {
    /* A path of another mount namespace names another file here. */
    if (files->jit_dump_path == NULL || files->is_foreign) {
        return -1;
    }
    return open_own(files, AT_FDCWD, files->jit_dump_path, since_ns);
}

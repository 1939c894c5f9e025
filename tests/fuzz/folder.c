#include "tests/fuzz/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

enum { DEPTH_MAX = 8 };

static char folder[] = "/dev/shm/memlog-fuzz.XXXXXX";

static void remove_all(int parent_fd, const char *name, int depth) {
    const int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *entry = NULL;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (unlinkat(fd, entry->d_name, 0) != 0 && depth < DEPTH_MAX) {
            remove_all(fd, entry->d_name, depth + 1);
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    (void)unlinkat(parent_fd, name, AT_REMOVEDIR);
}

/* Until nobody has the other end of the pipe any more. */
static void keep(int fd) {
    char byte = 0;
    for (int i = 0; i < fd; i++) {
        (void)close(i); /* whoever reads what the fuzzer says waits for its end */
    }
    (void)setsid(); /* nor does a signal to all of them end it */
    while (read(fd, &byte, 1) > 0) {
    }
    remove_all(AT_FDCWD, folder, 0);
    _exit(0);
}

const char *fuzz_folder(void) {
    int ends[2] = {-1, -1};
    REQUIRE(mkdtemp(folder) != NULL && pipe2(ends, O_CLOEXEC) == 0);
    /* By two steps, so that it is nobody's child that the fuzzer would have to wait for. */
    const pid_t between = fork();
    REQUIRE(between >= 0);
    if (between == 0) {
        (void)close(ends[1]);
        if (fork() == 0) {
            keep(ends[0]);
        }
        _exit(0);
    }
    REQUIRE(waitpid(between, NULL, 0) == between);
    (void)close(ends[0]);
    return folder;
}

void fuzz_write(const char *path, const uint8_t *bytes, size_t count_bytes) {
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
    REQUIRE(fd >= 0 && write(fd, bytes, count_bytes) == (ssize_t)count_bytes && close(fd) == 0);
}

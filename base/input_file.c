#include "base/input_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why a file of that kind cannot be read, as an errno; 0: it can. */
static int refusal(const struct stat *status) {
    switch (status->st_mode & S_IFMT) {
    case S_IFREG:
    case S_IFIFO:
        return 0;
    case S_IFDIR:
        return EISDIR;
    case S_IFSOCK:
        return ENXIO;
    default:
        return ENODEV;
    }
}

/* Checked before the open, and again after it, since the file may have been replaced meanwhile. */
static int open_input(const char *path, bool *out_is_pipe) {
    struct stat status;
    int fd = -1;
    int error = 0;

    if (stat(path, &status) != 0) {
        return -1;
    }
    error = refusal(&status);
    if (error == 0) {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0) {
            return -1;
        }
        error = fstat(fd, &status) != 0 ? errno : refusal(&status);
    }
    if (error != 0) {
        if (fd >= 0) {
            (void)close(fd);
        }
        errno = error;
        return -1;
    }
    *out_is_pipe = S_ISFIFO(status.st_mode);
    return fd;
}

int ml_input_regular(const char *path) {
    bool is_pipe = false;
    const int fd = open_input(path, &is_pipe);

    if (fd >= 0 && is_pipe) {
        (void)close(fd);
        errno = ESPIPE;
        return -1;
    }
    return fd;
}

/* Wait for the pipe from now on. `byte` gets the first byte if there is one: only reading tells
 * whether a pipe has a writer. EOF: no byte yet. False: the pipe has no writer. */
static bool settle_pipe(int fd, int *byte) {
    unsigned char first = 0;
    const ssize_t count = read(fd, &first, 1);

    *byte = count == 1 ? first : EOF;
    if (count == 0) {
        errno = ENXIO;
        return false;
    }
    return (count == 1 || errno == EAGAIN) && fcntl(fd, F_SETFL, O_RDONLY) == 0;
}

FILE *ml_input_open(const char *path, bool *out_is_stream) {
    FILE *file = NULL;
    int byte = EOF;
    const int fd = open_input(path, out_is_stream);

    if (fd < 0) {
        return NULL;
    }
    if (!*out_is_stream || settle_pipe(fd, &byte)) {
        file = fdopen(fd, "r");
    }
    if (!file) {
        const int error = errno;
        (void)close(fd);
        errno = error;
        return NULL;
    }
    if (byte != EOF) {
        (void)ungetc(byte, file);
    }
    return file;
}

const char *ml_input_trouble(int error) {
    switch (error) {
    case ENXIO:
        return "nobody writes to this pipe or socket; name a file";
    case ENODEV:
        return "this is a device; name a file";
    case ESPIPE:
        return "this is a pipe, which can be read once; name a file";
    default:
        return strerror(error);
    }
}

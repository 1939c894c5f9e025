#include "tracer/process/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int ml_memory_open(pid_t pid, struct ml_error_message *error) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        ml_error_set(error, "its memory cannot be opened: %s", strerror(errno));
    }
    return fd;
}

/* Of this file: nobody can open it who may not trace the process. A kernel that knows no locks of
 * it has no turns. */
bool ml_memory_take_turn(int memory_fd) {
    return flock(memory_fd, LOCK_EX | LOCK_NB) == 0 || (errno != EWOULDBLOCK && errno != EINTR);
}

bool ml_memory_read(int memory_fd, uint64_t address, void *out_bytes, size_t count_bytes) {
    size_t done = 0;
    while (done < count_bytes) {
        const ssize_t got = pread(
            memory_fd, (uint8_t *)out_bytes + done, count_bytes - done, (off_t)(address + done)
        );
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

bool ml_memory_write(int memory_fd, uint64_t address, const void *bytes, size_t count_bytes) {
    size_t done = 0;
    while (done < count_bytes) {
        const ssize_t put = pwrite(
            memory_fd, (const uint8_t *)bytes + done, count_bytes - done, (off_t)(address + done)
        );
        if (put <= 0) {
            return false;
        }
        done += (size_t)put;
    }
    return true;
}

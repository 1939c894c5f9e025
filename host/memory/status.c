#include "host/memory/status.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A thread's stack in the kernel: THREAD_SIZE of x86-64. */
enum { KERNEL_STACK_KB = 16 };

/* The file has some 1.5 KiB, and more with thousands of groups. */
enum { STATUS_BYTES = 16 << 10, STATM_BYTES = 256, DECIMAL = 10 };

/* The number behind "\nKEY:"; 0: there is no such line. */
static uint64_t number_of(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at != NULL ? strtoull(at + strlen(key), NULL, DECIMAL) : 0;
}

struct ml_memory_status ml_memory_status_parse(const char *text) {
    return (struct ml_memory_status){
        .is_known = strstr(text, "\nVmRSS:") != NULL, /* a zombie has none */
        .anonymous_kb = number_of(text, "\nRssAnon:"),
        .file_kb = number_of(text, "\nRssFile:"),
        .shared_kb = number_of(text, "\nRssShmem:"),
        .swap_kb = number_of(text, "\nVmSwap:"),
        .page_tables_kb = number_of(text, "\nVmPTE:"),
        .kernel_stacks_kb = number_of(text, "\nThreads:") * KERNEL_STACK_KB,
        .tracer_pid = (int)number_of(text, "\nTracerPid:"),
        .seccomp_mode = (int)number_of(text, "\nSeccomp:"),
    };
}

/* The file /proc/PID/NAME, cut, NUL-terminated. False: there is none. */
static bool read_file(pid_t pid, const char *name, char *out_text, size_t room) {
    char path[64];
    size_t used = 0;
    ssize_t got = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    do {
        got = read(fd, out_text + used, room - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    out_text[used] = '\0';
    (void)close(fd);
    return true;
}

struct ml_memory_status ml_memory_status_read(pid_t pid) {
    char text[STATUS_BYTES];
    return read_file(pid, "status", text, sizeof(text))
               ? ml_memory_status_parse(text)
               : (struct ml_memory_status){.is_known = false};
}

uint64_t ml_memory_private_parse(const char *text, uint64_t page_bytes) {
    char *end = NULL;
    (void)strtoull(text, &end, DECIMAL); /* mapped */
    const uint64_t resident = strtoull(end, &end, DECIMAL);
    const uint64_t shared = strtoull(end, &end, DECIMAL); /* of files, and shared memory */
    return resident > shared ? (resident - shared) * page_bytes : 0;
}

uint64_t ml_memory_private_bytes(pid_t pid) {
    char text[STATM_BYTES];
    return read_file(pid, "statm", text, sizeof(text))
               ? ml_memory_private_parse(text, (uint64_t)sysconf(_SC_PAGESIZE))
               : 0;
}

int ml_memory_file_error(pid_t pid, const char *name) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const int error = errno;
    if (fd >= 0) {
        (void)close(fd);
        return 0;
    }
    (void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return error == ESRCH || access(path, F_OK) != 0 ? 0 : error;
}

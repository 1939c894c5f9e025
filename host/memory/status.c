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
enum { STATUS_BYTES = 16 << 10, DECIMAL = 10 };

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
    };
}

struct ml_memory_status ml_memory_status_read(pid_t pid) {
    char path[64];
    char text[STATUS_BYTES];
    size_t used = 0;
    ssize_t got = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return (struct ml_memory_status){.is_known = false};
    }
    do {
        got = read(fd, text + used, sizeof(text) - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    text[used] = '\0';
    (void)close(fd);
    return ml_memory_status_parse(text);
}

bool ml_memory_may_be_read(pid_t pid) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno != EACCES && errno != EPERM;
    }
    (void)close(fd);
    return true;
}

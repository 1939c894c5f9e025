#include "base/threads/thread_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { LISTING_BYTES = 8192, STAT_BYTES = 512, DECIMAL = 10, COUNT_FIELD = 17 };

/* As getdents64 tells it. */
struct entry {
    uint64_t inode;
    int64_t offset;
    uint16_t length_bytes;
    uint8_t kind;
    char name[];
};

/* What follows its name in /proc/PID/task/ID/stat: the state, and so on; NULL: it is gone. */
static const char *read_stat(pid_t pid, pid_t id, char out_text[STAT_BYTES]) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)id);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, out_text, STAT_BYTES - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (count <= 0) {
        return NULL;
    }
    out_text[count] = '\0';
    const char *name_end = strrchr(out_text, ')');
    return name_end != NULL && name_end[1] == ' ' ? name_end + 2 : NULL;
}

/* How many there are, of those that have ended the ones too that nobody has waited for. */
static size_t count_of(pid_t pid) {
    char text[STAT_BYTES];
    const char *at = read_stat(pid, pid, text);
    for (int field = 0; at != NULL && field < COUNT_FIELD; field++) {
        at = strchr(at, ' ');
        at = at != NULL ? at + 1 : NULL;
    }
    return at != NULL ? (size_t)strtoul(at, NULL, DECIMAL) : 0;
}

enum ml_thread_pass ml_thread_list_pass(pid_t pid, ml_thread_take *take, void *context) {
    _Alignas(struct entry) char listing[LISTING_BYTES];
    char path[64];
    long bytes = 0;
    size_t listed = 0;
    bool is_settled = true;
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && (bytes = syscall(SYS_getdents64, fd, listing, sizeof(listing))) > 0) {
        for (long at = 0; at < bytes;) {
            const struct entry *entry = (const void *)(listing + at);
            const pid_t id = (pid_t)strtol(entry->name, NULL, DECIMAL); /* 0: "." and ".." */
            at += entry->length_bytes;
            if (id <= 0) {
                continue;
            }
            const enum ml_thread_taken taken = take(context, id);
            if (taken == ML_THREAD_FORBIDDEN) {
                (void)close(fd);
                return ML_THREAD_PASS_FORBIDDEN;
            }
            is_settled = is_settled && taken == ML_THREAD_HAD;
            listed++;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_settled && count_of(pid) == listed ? ML_THREAD_PASS_SETTLED
                                                 : ML_THREAD_PASS_UNSETTLED;
}

enum ml_thread_taken ml_thread_not_seized(pid_t pid, pid_t id, int error) {
    char text[STAT_BYTES];
    if (error == ESRCH) {
        return ML_THREAD_ENDED;
    }
    const char *state = read_stat(pid, id, text);
    if (state == NULL) {
        return ML_THREAD_ENDED;
    }
    if (state[0] != 'Z' && state[0] != 'X') {
        return ML_THREAD_FORBIDDEN;
    }
    return id == pid ? ML_THREAD_HAD : ML_THREAD_ENDED;
}

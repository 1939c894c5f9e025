#include "tracer/process/target.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_BYTES = 4096, STATUS_BYTES = 8192 };

/* All of a small file of /proc; false: it is not there. */
static bool read_small(const char *path, char *out_text, size_t room) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    size_t used = 0;
    ssize_t got = 1;
    while (got > 0 && used + 1 < room) {
        got = read(fd, out_text + used, room - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    (void)close(fd);
    out_text[used] = '\0';
    return used > 0;
}

/* Field `wanted` of a stat file, counted from 1. The name in brackets may hold any byte: the last
 * bracket ends it. NULL: it is not there. */
static const char *stat_field(const char *text, int wanted) {
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < wanted; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL && at[0] != '\0' ? at + 1 : NULL;
}

static uint64_t stat_number(pid_t pid, int wanted) {
    char path[64];
    char text[STAT_BYTES];
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    const char *field = read_small(path, text, sizeof(text)) ? stat_field(text, wanted) : NULL;
    return field != NULL ? strtoull(field, NULL, 10) : 0;
}

uint64_t ml_target_start_ticks(pid_t pid) {
    enum { START_TIME = 22 };
    return stat_number(pid, START_TIME);
}

bool ml_target_is(pid_t pid, uint64_t start_ticks) {
    return start_ticks != 0 && ml_target_start_ticks(pid) == start_ticks;
}

uint64_t ml_target_stack_start(pid_t pid) {
    enum { START_STACK = 28 };
    return stat_number(pid, START_STACK);
}

uint32_t ml_target_auxv(pid_t pid, struct ml_attach_auxv out_auxv[ML_ATTACH_AUX_MAX]) {
    char path[64];
    uint32_t count = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    const ssize_t got = read(fd, out_auxv, ML_ATTACH_AUX_MAX * sizeof(out_auxv[0]));
    (void)close(fd);
    const uint32_t all = got > 0 ? (uint32_t)((size_t)got / sizeof(out_auxv[0])) : 0;
    while (count < all && out_auxv[count].kind != 0) {
        count++;
    }
    return count;
}

/* The last number of a line of a status file. */
static bool status_number(const char *path, const char *key, uint64_t *out_number) {
    char text[STATUS_BYTES];
    if (!read_small(path, text, sizeof(text))) {
        return false;
    }
    const char *line = strstr(text, key);
    if (line == NULL) {
        return false;
    }
    const char *end = strchr(line + 1, '\n'); /* the key begins with the end of a line */
    const char *last = line + strlen(key);
    for (const char *at = last; at[0] != '\0' && at != end; at++) {
        last = at[0] == '\t' || at[0] == ' ' ? at + 1 : last;
    }
    *out_number = strtoull(last, NULL, 10);
    return true;
}

uint32_t ml_target_own_id(pid_t pid, pid_t thread) {
    char path[64];
    uint64_t number = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)thread);
    return status_number(path, "\nNSpid:", &number) ? (uint32_t)number : 0;
}

int ml_target_seccomp(pid_t pid, pid_t thread) {
    char path[64];
    uint64_t number = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)thread);
    return status_number(path, "\nSeccomp:", &number) ? (int)number : 0;
}

pid_t ml_target_tracer(pid_t pid, pid_t thread) {
    char path[64];
    uint64_t number = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)pid, (int)thread);
    return status_number(path, "\nTracerPid:", &number) ? (pid_t)number : 0;
}

static char state_of(pid_t pid, pid_t thread) {
    char path[64];
    char text[STAT_BYTES];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)pid, (int)thread);
    const char *state = read_small(path, text, sizeof(text)) ? stat_field(text, 3) : NULL;
    return state != NULL ? state[0] : '\0';
}

bool ml_target_sleeps(pid_t pid, pid_t thread) {
    return state_of(pid, thread) == 'S';
}

bool ml_target_sleeps_deep(pid_t pid, pid_t thread) {
    return state_of(pid, thread) == 'D';
}

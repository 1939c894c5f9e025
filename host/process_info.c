#include "host/process_info.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Room for any of the small files of /proc/PID. */
enum { SMALL_FILE_BYTES = 4096 };

/* What shells add to the number of the signal. */
enum { EXIT_SIGNAL_BASE = 128 };

struct ml_ending ml_ending_from_wait(int status) {
    if (WIFSIGNALED(status)) {
        return (struct ml_ending){.known = true, .signal = WTERMSIG(status)};
    }
    return (struct ml_ending){.known = true, .exit_code = WEXITSTATUS(status)};
}

int ml_ending_exit_code(const struct ml_ending *ending) {
    return ending->signal != 0 ? EXIT_SIGNAL_BASE + ending->signal : ending->exit_code;
}

/* The file /proc/PID/NAME, cut at size_bytes - 1, NUL-terminated. -1: unreadable. */
static ssize_t read_proc(pid_t pid, const char *name, char *out_text, size_t size_bytes) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    size_t count = 0;
    while (count + 1 < size_bytes) {
        ssize_t got = read(fd, out_text + count, size_bytes - 1 - count);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        count += (size_t)got;
    }
    out_text[count] = '\0';
    (void)close(fd);
    return (ssize_t)count;
}

void ml_process_name(pid_t pid, char out_name[ML_PROCESS_NAME_BYTES]) {
    char text[SMALL_FILE_BYTES];
    ssize_t count = read_proc(pid, "comm", text, sizeof(text));
    if (count > 0 && text[count - 1] == '\n') {
        text[count - 1] = '\0';
    }
    (void)snprintf(out_name, ML_PROCESS_NAME_BYTES, "%.15s", count > 0 ? text : "?");
}

enum ml_status ml_process_command_line(pid_t pid, struct ml_command_line *out_line) {
    char *bytes = malloc(ML_COMMAND_LINE_MAX_BYTES + 1);
    if (bytes == NULL) {
        return ML_ENV_MEMORY;
    }
    ssize_t count = read_proc(pid, "cmdline", bytes, ML_COMMAND_LINE_MAX_BYTES + 1);
    enum ml_status status =
        count > 0 ? ml_command_line_from_bytes(out_line, bytes, (size_t)count) : ML_ENV_MISSING;
    free(bytes);
    return status;
}

void ml_process_executable(pid_t pid, char *out_path, size_t size_bytes) {
    char link[64];
    (void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)pid);
    ssize_t count = readlink(link, out_path, size_bytes - 1);
    out_path[count > 0 ? count : 0] = '\0';
}

/* The fields of /proc/PID/stat behind the name, from the state on. NULL: unreadable. */
static const char *stat_fields(pid_t pid, char text[SMALL_FILE_BYTES]) {
    if (read_proc(pid, "stat", text, SMALL_FILE_BYTES) <= 0) {
        return NULL;
    }
    /* The name stands in brackets and may hold any byte: the last bracket ends it. */
    const char *after = strrchr(text, ')');
    return after != NULL && after[1] == ' ' ? after + 2 : NULL;
}

pid_t ml_process_parent(pid_t pid) {
    char text[SMALL_FILE_BYTES];
    const char *fields = stat_fields(pid, text);
    long parent = 0;
    if (fields == NULL || sscanf(fields, "%*c %ld", &parent) != 1) {
        return 0;
    }
    return (pid_t)parent;
}

void ml_process_footprint_parse(
    const char *text, uint64_t *out_footprint_bytes, uint64_t *out_resident_bytes
) {
    *out_footprint_bytes = 0;
    *out_resident_bytes = 0;
    while (*text != '\0') {
        char key[32];
        unsigned long long kib = 0;
        if (sscanf(text, "%31[^:]: %llu kB", key, &kib) == 2) {
            if (strcmp(key, "Private_Clean") == 0 || strcmp(key, "Private_Dirty") == 0 ||
                strcmp(key, "Swap") == 0) {
                *out_footprint_bytes += (uint64_t)kib * 1024;
            } else if (strcmp(key, "Rss") == 0) {
                *out_resident_bytes += (uint64_t)kib * 1024;
            }
        }
        text += strcspn(text, "\n");
        text += strspn(text, "\n");
    }
}

void ml_process_footprint(pid_t pid, uint64_t *out_footprint_bytes, uint64_t *out_resident_bytes) {
    char text[SMALL_FILE_BYTES];
    if (read_proc(pid, "smaps_rollup", text, sizeof(text)) < 0) {
        text[0] = '\0';
    }
    ml_process_footprint_parse(text, out_footprint_bytes, out_resident_bytes);
}

pid_t ml_process_inner_pid(pid_t pid) {
    char text[SMALL_FILE_BYTES];
    if (read_proc(pid, "status", text, sizeof(text)) <= 0) {
        return pid;
    }
    const char *line = strstr(text, "\nNSpid:");
    if (line == NULL) {
        return pid;
    }
    line += strlen("\nNSpid:");
    long inner = pid;
    size_t end = strcspn(line, "\n");
    for (const char *pos = line; pos < line + end;) {
        char *next = NULL;
        long value = strtol(pos, &next, 10);
        if (next == pos) {
            break;
        }
        inner = value;
        pos = next;
    }
    return (pid_t)inner;
}

/* The kernel's struct pidfd_info, first version (Linux 6.13; the exit code since 6.15). Written out
 * here because the distribution's headers are older than the kernels it runs on. */
struct pidfd_info {
    uint64_t mask;
    uint64_t cgroup_id;
    uint32_t pid, tgid, ppid;
    uint32_t ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid;
    int32_t exit_code;
};
enum { PIDFD_INFO_EXIT_BIT = 1 << 3 };
#define PIDFD_GET_INFO_REQUEST _IOWR(0xFF, 11, struct pidfd_info)

static struct ml_ending ending_by_pidfd(int pidfd) {
    struct pidfd_info info = {.mask = PIDFD_INFO_EXIT_BIT};
    if (pidfd < 0 || ioctl(pidfd, PIDFD_GET_INFO_REQUEST, &info) != 0 ||
        (info.mask & PIDFD_INFO_EXIT_BIT) == 0) {
        return (struct ml_ending){.known = false};
    }
    return ml_ending_from_wait(info.exit_code);
}

/* Field 52 of stat, shown while it is a zombie and to whom may look. */
static struct ml_ending ending_by_stat(pid_t pid) {
    char text[SMALL_FILE_BYTES];
    const char *fields = stat_fields(pid, text);
    if (fields == NULL || (fields[0] != 'Z' && fields[0] != 'X')) {
        return (struct ml_ending){.known = false};
    }
    const char *last = strrchr(fields, ' ');
    int status = 0;
    if (last == NULL || sscanf(last, " %d", &status) != 1) {
        return (struct ml_ending){.known = false};
    }
    /* To whom may not look the field is 0, as to others a clean exit: root and owner may. */
    return ml_ending_from_wait(status);
}

struct ml_ending ml_process_ending(pid_t pid, int pidfd) {
    siginfo_t info = {.si_pid = 0};
    if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == pid) {
        if (info.si_code == CLD_EXITED) {
            return (struct ml_ending){.known = true, .exit_code = info.si_status};
        }
        return (struct ml_ending){.known = true, .signal = info.si_status};
    }
    struct ml_ending ending = ending_by_stat(pid);
    return ending.known ? ending : ending_by_pidfd(pidfd);
}

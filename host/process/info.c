#include "host/process/info.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/kernel/mounts.h"

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

bool ml_users_are_all(const char *uid_map) {
    /* (uid_t)-1 is nobody's number. */
    const unsigned long long every_user = UINT32_MAX;
    unsigned long long users = 0;
    unsigned long long count = 0;
    int used = 0;
    while (sscanf(uid_map, "%*u %*u %llu%n", &count, &used) == 1) {
        users += count;
        uid_map += used;
    }
    return users >= every_user;
}

bool ml_process_has_all_users(void) {
    /* The kernel takes up to 340 lines of up to 33 bytes. */
    enum { MAP_BYTES = 16 << 10 };
    char text[MAP_BYTES];
    return read_proc(getpid(), "uid_map", text, sizeof(text)) > 0 && ml_users_are_all(text);
}

bool ml_process_maps(pid_t pid, const char *file_name) {
    char path[64];
    char line[PATH_MAX + 128];
    const size_t count = strlen(file_name);
    bool found = false;
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && !found && fgets(line, sizeof(line), file) != NULL) {
        const char *slash = strrchr(line, '/');
        found =
            slash != NULL && strncmp(slash + 1, file_name, count) == 0 && slash[1 + count] == '\n';
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return found;
}

bool ml_process_misses(pid_t pid, const char *path) {
    char root[64];
    struct open_how how = {
        .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS};
    (void)snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    if (ml_mounts_are_foreign(pid) && ml_mounts_are_in_user_space(pid, path)) {
        return false;
    }
    /* Its root itself is looked at first: it may be gone, or another user's. */
    const int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const long fd = root_fd >= 0 ? syscall(SYS_openat2, root_fd, path, &how, sizeof(how)) : -1;
    const bool misses = root_fd >= 0 && fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    if (fd >= 0) {
        (void)close((int)fd);
    }
    if (root_fd >= 0) {
        (void)close(root_fd);
    }
    return misses;
}

static bool is_any_main_thread(const char *name) {
    return strcmp(name, "MainThread") == 0 || strcmp(name, "node-MainThread") == 0;
}

void ml_process_name(pid_t pid, char out_name[ML_PROCESS_NAME_BYTES]) {
    char path[PATH_MAX];
    char text[SMALL_FILE_BYTES];
    ssize_t count = read_proc(pid, "comm", text, sizeof(text));
    if (count > 0 && text[count - 1] == '\n') {
        text[count - 1] = '\0';
    }
    (void)snprintf(out_name, ML_PROCESS_NAME_BYTES, "%.15s", count > 0 ? text : "?");
    if (is_any_main_thread(out_name)) {
        ml_process_executable(pid, path, sizeof(path));
        const char *name = strrchr(path, '/');
        if (name != NULL && name[1] != '\0') {
            (void)snprintf(out_name, ML_PROCESS_NAME_BYTES, "%.15s", name + 1);
        }
    }
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

/* The fields of /proc/PID/stat behind the name, from the state on. NULL: none. */
static const char *stat_fields(const char *text) {
    /* The name stands in brackets and may hold any byte: the last bracket ends it. */
    const char *after = strrchr(text, ')');
    return after != NULL && after[1] == ' ' ? after + 2 : NULL;
}

/* A decimal number that stands at *text, and what is behind it. False: there is none that fits. */
static bool take_int(const char **text, int *out_value) {
    char *end = NULL;
    errno = 0;
    const long value = strtol(*text, &end, 10);
    if (end == *text || errno != 0 || value < INT_MIN || value > INT_MAX) {
        return false;
    }
    *text = end;
    *out_value = (int)value;
    return true;
}

pid_t ml_process_parent_parse(const char *text) {
    const char *fields = stat_fields(text);
    int parent = 0;
    if (fields == NULL || fields[0] == '\0' || fields[1] != ' ') {
        return 0;
    }
    fields += 2;
    return take_int(&fields, &parent) && parent > 0 ? parent : 0;
}

pid_t ml_process_parent(pid_t pid) {
    char text[SMALL_FILE_BYTES];
    return read_proc(pid, "stat", text, sizeof(text)) > 0 ? ml_process_parent_parse(text) : 0;
}

/* Number `wanted` of the file's fields, counted from the state, which is 3. 0: it is not there. */
static uint64_t stat_number(const char *fields, int wanted) {
    enum { STATE_FIELD = 3 };
    for (int field = STATE_FIELD; field < wanted; field++) {
        fields += strcspn(fields, " ");
        fields += strspn(fields, " ");
    }
    return strtoull(fields, NULL, 10);
}

struct ml_process_facts ml_process_facts_parse(const char *text) {
    enum {
        FLAGS = 9,
        FLAG_EXITING = 4,
        THREADS = 20,
        START = 22,
        START_CODE = 26,
        START_STACK = 28
    };
    const char *fields = stat_fields(text);
    if (fields == NULL || fields[0] == '\0') {
        return (struct ml_process_facts){.has_ended = true};
    }
    const char state = fields[0];
    struct ml_process_facts facts = {
        .state = state,
        /* A zombie whose other threads run on is a process that does. */
        .has_ended = (state == 'Z' || state == 'X') && stat_number(fields, THREADS) <= 1,
        .is_ending = (stat_number(fields, FLAGS) & FLAG_EXITING) != 0,
        .parent = ml_process_parent_parse(text),
        .start_ticks = stat_number(fields, START),
        .image =
            {.start_code = stat_number(fields, START_CODE),
             .start_stack = stat_number(fields, START_STACK)},
    };
    if (facts.image.start_code == 0 || facts.image.start_stack == 0) {
        facts.image = (struct ml_image_mark){.start_code = 0};
    }
    return facts;
}

struct ml_process_facts ml_process_facts(pid_t pid) {
    char text[SMALL_FILE_BYTES];
    return ml_process_facts_parse(read_proc(pid, "stat", text, sizeof(text)) > 0 ? text : "");
}

bool ml_image_mark_is_known(const struct ml_image_mark *mark) {
    return mark->start_stack != 0;
}

bool ml_image_mark_differs(const struct ml_image_mark *one, const struct ml_image_mark *other) {
    return ml_image_mark_is_known(one) && ml_image_mark_is_known(other) &&
           (one->start_code != other->start_code || one->start_stack != other->start_stack);
}

/* Bytes of the line "KEY: N kB"; 0: there is none. */
static uint64_t rollup_bytes(const char *text, const char *key) {
    const size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            return strtoull(line + length + 1, NULL, 10) * 1024;
        }
        line = strchr(line, '\n');
        line += line != NULL ? 1 : 0;
    }
    return 0;
}

struct ml_footprint ml_process_footprint_parse(const char *text) {
    const uint64_t pages_bytes =
        rollup_bytes(text, "Private_Clean") + rollup_bytes(text, "Private_Dirty");
    /* What it shares with its forks is anonymous, too, and the share of others in shared memory is
     * not its own: so the files have at least the rest. */
    const uint64_t others_bytes = rollup_bytes(text, "Anonymous") + rollup_bytes(text, "Pss_Shmem");
    const bool knows_kinds = strstr(text, "\nPss_Shmem:") != NULL;
    return (struct ml_footprint
    ){.private_bytes = pages_bytes + rollup_bytes(text, "Swap"),
      .resident_bytes = rollup_bytes(text, "Rss"),
      .files_bytes = knows_kinds && pages_bytes > others_bytes ? pages_bytes - others_bytes : 0};
}

struct ml_footprint ml_process_footprint(pid_t pid) {
    char text[SMALL_FILE_BYTES];
    return ml_process_footprint_parse(
        read_proc(pid, "smaps_rollup", text, sizeof(text)) > 0 ? text : ""
    );
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

struct ml_ending ml_process_ending_parse(const char *text) {
    const char *fields = stat_fields(text);
    if (fields == NULL || (fields[0] != 'Z' && fields[0] != 'X')) {
        return (struct ml_ending){.known = false};
    }
    const char *last = strrchr(fields, ' ');
    int status = 0;
    if (last == NULL || !take_int(&last, &status)) {
        return (struct ml_ending){.known = false};
    }
    /* To whom may not look the field is 0, as to others a clean exit: root and owner may. */
    return ml_ending_from_wait(status);
}

static struct ml_ending ending_by_stat(pid_t pid) {
    char text[SMALL_FILE_BYTES];
    return read_proc(pid, "stat", text, sizeof(text)) > 0 ? ml_process_ending_parse(text)
                                                          : (struct ml_ending){.known = false};
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

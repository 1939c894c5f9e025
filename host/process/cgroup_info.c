#include "host/process/cgroup_info.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The largest of the files, memory.stat and vmstat, have a few thousand bytes. */
enum { FILE_BYTES = 16384 };

/* A limit of version 1 above this is none: the kernel says 2^63 less a page. */
static const uint64_t no_limit_bytes = UINT64_C(1) << 62;

static bool read_file(const char *path, char *out_text, size_t text_bytes) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    const ssize_t count = read(fd, out_text, text_bytes - 1);
    (void)close(fd);
    out_text[count > 0 ? count : 0] = '\0';
    return count >= 0;
}

static bool read_in(const char *folder, const char *name, char *out_text, size_t text_bytes) {
    char path[PATH_MAX + NAME_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return read_file(path, out_text, text_bytes);
}

/* The number behind "KEY " at a line's beginning; 0: there is none. */
static uint64_t number_of(const char *text, const char *key) {
    const size_t key_count = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';
         line = strchr(line, '\n'), line = line != NULL ? line + 1 : NULL) {
        if (strncmp(line, key, key_count) == 0) {
            return strtoull(line + key_count, NULL, 10);
        }
    }
    return 0;
}

/* "max" and what is as good as it are no limit. */
static uint64_t limit_in(const char *folder, const char *name) {
    char text[64];
    if (!read_in(folder, name, text, sizeof(text)) || text[0] == 'm') {
        return 0;
    }
    const uint64_t bytes = strtoull(text, NULL, 10);
    return bytes < no_limit_bytes ? bytes : 0;
}

uint64_t ml_cgroup_limit_bytes(const struct ml_cgroup *group) {
    if (!group->unified) {
        return limit_in(group->folder, "memory.limit_in_bytes");
    }
    const uint64_t max = limit_in(group->folder, "memory.max");
    const uint64_t high = limit_in(group->folder, "memory.high");
    return max == 0 || (high != 0 && high < max) ? high : max;
}

uint64_t ml_cgroup_least_limit_bytes(const struct ml_cgroup *group) {
    struct ml_cgroup at = *group;
    uint64_t least = 0;
    do {
        const uint64_t limit = ml_cgroup_limit_bytes(&at);
        least = limit != 0 && (least == 0 || limit < least) ? limit : least;
    } while (ml_cgroup_up(&at));
    return least;
}

static bool has_figures(const struct ml_cgroup *group) {
    char path[PATH_MAX + NAME_MAX];
    const char *used = group->unified ? "memory.current" : "memory.usage_in_bytes";
    (void)snprintf(path, sizeof(path), "%s/%s", group->folder, used);
    return access(path, R_OK) == 0;
}

/* Groups are told apart by their names, and paths of containers agree in their first hundreds of
 * bytes. */
static void set_name(struct ml_cgroup *group) {
    enum { PATH_BYTES = ML_MEMORY_NAME_BYTES - sizeof("cgroup ...") };
    const char *path = group->folder + group->mount_count;
    const size_t count = strlen(path);
    const char *tail = count > PATH_BYTES ? path + count - PATH_BYTES : path;
    while (tail != path && ((unsigned char)*tail & 0xC0) == 0x80) {
        tail++; /* no half of a character */
    }
    const int tail_count = (int)(count > 0 ? strlen(tail) : 1); /* at most PATH_BYTES */
    (void)snprintf(
        group->name,
        sizeof(group->name),
        "cgroup %s%.*s",
        tail != path ? "..." : "",
        tail_count,
        count > 0 ? tail : "/"
    );
}

bool ml_cgroup_up(struct ml_cgroup *group) {
    struct ml_cgroup up = *group;
    while (up.folder[up.mount_count] != '\0') {
        *strrchr(up.folder + up.mount_count, '/') = '\0';
        if (has_figures(&up)) {
            set_name(&up);
            *group = up;
            return true;
        }
    }
    return false;
}

/* `path` below `mount`, or the nearest around it: some are not seen from inside of a container. */
static bool settle(const char *mount, const char *path, bool unified, struct ml_cgroup *out_group) {
    *out_group = (struct ml_cgroup){.mount_count = strlen(mount), .unified = unified};
    if (path[0] != '/' || strncmp(path, "/..", 3) == 0) {
        return false; /* outside of the namespace that we see */
    }
    const int count = snprintf(
        out_group->folder, sizeof(out_group->folder), "%s%s", mount, path[1] != '\0' ? path : ""
    );
    set_name(out_group);
    return (count < (int)sizeof(out_group->folder) && has_figures(out_group)) ||
           ml_cgroup_up(out_group);
}

bool ml_cgroup_find(const char *root, const char *cgroups, struct ml_cgroup *out_group) {
    bool found = false;
    for (const char *line = cgroups; line != NULL && *line != '\0' && !found;
         line = strchr(line, '\n'), line = line != NULL ? line + 1 : NULL) {
        char controllers[256] = "";
        char path[PATH_MAX];
        char mount[PATH_MAX];
        const char *first = strchr(line, ':');
        const char *second = first != NULL ? strchr(first + 1, ':') : NULL;
        if (second == NULL) {
            continue;
        }
        (void
        )snprintf(controllers, sizeof(controllers), ",%.*s,", (int)(second - first - 1), first + 1);
        (void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(second + 1, "\n"), second + 1);
        if (strcmp(controllers, ",,") == 0) {
            (void)snprintf(mount, sizeof(mount), "%.4000s/unified", root);
            found = settle(root, path, true, out_group) || settle(mount, path, true, out_group);
        } else if (strstr(controllers, ",memory,") != NULL) {
            (void)snprintf(mount, sizeof(mount), "%.4000s/memory", root);
            found = settle(mount, path, false, out_group);
        }
    }
    return found;
}

bool ml_cgroup_holds(const struct ml_cgroup *group, const char *own) {
    const size_t count = strlen(group->folder);
    return strncmp(own, group->folder, count) == 0 && (own[count] == '\0' || own[count] == '/');
}

bool ml_cgroup_of(pid_t pid, struct ml_cgroup *out_group) {
    char path[64];
    char text[FILE_BYTES];
    (void)snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
    return read_file(path, text, sizeof(text)) && ml_cgroup_find(ML_CGROUP_ROOT, text, out_group);
}

/* What is no share of the time is none, or all of it. */
static uint32_t percent_100(const char *text) {
    const double percent = strtod(text, NULL);
    if (percent >= 100.) {
        return 100 * 100;
    }
    return percent > 0. ? (uint32_t)(percent * 100. + .5) : 0;
}

void ml_pressure_parse(const char *text, uint32_t *out_some_100, uint32_t *out_full_100) {
    const char *const some = strstr(text, "some avg10=");
    const char *const full = strstr(text, "full avg10=");
    const size_t key_count = strlen("some avg10=");
    *out_some_100 = some != NULL ? percent_100(some + key_count) : 0;
    *out_full_100 = full != NULL ? percent_100(full + key_count) : 0;
}

bool ml_cgroup_read(
    const struct ml_cgroup *group, struct memlog_service_observed_memory *out_info
) {
    char text[FILE_BYTES];
    *out_info =
        (struct memlog_service_observed_memory){.limit_bytes = ml_cgroup_limit_bytes(group)};
    const char *used = group->unified ? "memory.current" : "memory.usage_in_bytes";
    if (!read_in(group->folder, used, text, sizeof(text))) {
        return false;
    }
    out_info->used_bytes = strtoull(text, NULL, 10);
    if (read_in(group->folder, "memory.stat", text, sizeof(text))) {
        const uint64_t cache =
            number_of(text, group->unified ? "inactive_file " : "total_inactive_file ");
        out_info->used_bytes -= cache < out_info->used_bytes ? cache : out_info->used_bytes;
    }
    if (!group->unified) {
        /* Where memory with swap has the same limit, as containers mostly have it, that one counts.
         */
        static const char *const counts[] = {"memory.failcnt", "memory.memsw.failcnt"};
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            if (read_in(group->folder, counts[i], text, sizeof(text))) {
                out_info->max_events += strtoull(text, NULL, 10);
            }
        }
        return true;
    }
    if (read_in(group->folder, "memory.events", text, sizeof(text))) {
        out_info->high_events = number_of(text, "high ");
        out_info->max_events = number_of(text, "max ");
    }
    if (read_in(group->folder, "memory.pressure", text, sizeof(text))) {
        ml_pressure_parse(text, &out_info->some_percent_100, &out_info->full_percent_100);
    }
    return true;
}

bool ml_machine_read(struct memlog_service_observed_memory *out_info) {
    char text[FILE_BYTES];
    *out_info = (struct memlog_service_observed_memory){.used_bytes = 0};
    if (!read_file("/proc/meminfo", text, sizeof(text))) {
        return false;
    }
    const uint64_t total = number_of(text, "MemTotal:") * 1024;
    const uint64_t available = number_of(text, "MemAvailable:") * 1024;
    out_info->limit_bytes = total;
    out_info->used_bytes = available < total ? total - available : 0;
    if (read_file(ML_PRESSURE_FILE, text, sizeof(text))) {
        ml_pressure_parse(text, &out_info->some_percent_100, &out_info->full_percent_100);
    }
    return true;
}

uint64_t ml_oom_kills(void) {
    char text[FILE_BYTES];
    return read_file("/proc/vmstat", text, sizeof(text)) ? number_of(text, "oom_kill ") : 0;
}

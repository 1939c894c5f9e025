#include "host/kernel/mounts.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whether two links of the kernel's say the same. */
static bool is_same_link(const char *one, const char *other) {
    char a[PATH_MAX];
    char b[PATH_MAX];
    const ssize_t a_count = readlink(one, a, sizeof(a));
    const ssize_t b_count = readlink(other, b, sizeof(b));
    return a_count > 0 && a_count == b_count && memcmp(a, b, (size_t)a_count) == 0;
}

bool ml_mounts_are_foreign(pid_t pid) {
    char root[64];
    char space[64];
    (void)snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
    (void)snprintf(space, sizeof(space), "/proc/%d/ns/mnt", (int)pid);
    return !is_same_link(root, "/proc/self/root") || !is_same_link(space, "/proc/self/ns/mnt");
}

/* The kernel writes a blank, a tab, a line's end and a backslash as \ooo. */
static void unescape(char *text) {
    enum { DIGITS = 3, OCTAL = 8 };
    char *to = text;
    for (const char *from = text; *from != '\0'; to++) {
        char digits[DIGITS + 1] = "";
        if (*from == '\\' && strlen(from) > DIGITS) {
            memcpy(digits, from + 1, DIGITS);
            *to = (char)strtoul(digits, NULL, OCTAL);
            from += DIGITS + 1;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* Whether the line of mountinfo, which is cut up, is of a mount that lies on the path or above. */
static bool covers(char *line, const char *path, const char **out_type) {
    enum { POINT_WORD = 4 };
    char *rest = line;
    char *point = NULL;
    for (int i = 0; i <= POINT_WORD; i++) {
        point = strsep(&rest, " ");
    }
    const char *behind = rest != NULL ? strstr(rest, " - ") : NULL;
    *out_type = behind != NULL ? behind + strlen(" - ") : "";
    if (behind == NULL || point == NULL) {
        return false;
    }
    unescape(point);
    const size_t count = strcmp(point, "/") == 0 ? 0 : strlen(point);
    return strncmp(path, point, count) == 0 && (path[count] == '/' || path[count] == '\0');
}

bool ml_mounts_are_in_user_space(pid_t pid, const char *path) {
    char place[64];
    char *line = NULL;
    size_t room = 0;
    bool is_fuse = false;
    (void)snprintf(place, sizeof(place), "/proc/%d/mountinfo", (int)pid);
    FILE *mounts = fopen(place, "re");
    while (mounts != NULL && getline(&line, &room, mounts) > 0) {
        const char *type = "";
        if (covers(line, path, &type)) {
            is_fuse = is_fuse || strncmp(type, "fuse", strlen("fuse")) == 0;
        }
    }
    free(line);
    if (mounts != NULL) {
        (void)fclose(mounts);
    }
    return is_fuse || mounts == NULL;
}

#include "host/process/image.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Looks, and the time between two. An exec maps its image in far less time. */
enum { LOOKS_MAX = 20, LOOK_PAUSE_NS = 200000 };

const char *ml_image_text(enum ml_image_kind kind) {
    static const char *const texts[] = {
        [ML_IMAGE_PRELOADABLE] = "it started but never reached memlog",
        [ML_IMAGE_GONE] = "it ended before memlog could look at it",
        [ML_IMAGE_STATIC] = "statically linked: there is no dynamic loader that could load memlog",
        [ML_IMAGE_OTHER_LOADER] = ("its dynamic loader is not glibc's, which libmemlog.so needs; "
                                   "'memlog attach' can take it while it runs"),
        [ML_IMAGE_32_BIT] = "a 32-bit program",
        [ML_IMAGE_SETUID] = "setuid or setgid: its loader drops the preload",
        [ML_IMAGE_UNREADABLE] = "it may not be looked at",
    };
    return texts[kind];
}

/* glibc's loaders: ld-linux-ARCH.so.N, before 2.34 as a link to ld-2.N.so. musl's begin with
 * ld-musl, which is a link to its libc.so. */
static bool is_glibc_loader(const char *path) {
    const char *name = basename(path);
    return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-2.", 5) == 0 ||
           strncmp(name, "ld64.so", 7) == 0;
}

/* What the lines tell so far. The executable is the first file, and the loader is the first other
 * one with code. With an unlimited stack the two change places, which changes no judgement. */
struct scan {
    char executable[512];
    char loader[512];
    bool has_glibc_loader;
    bool is_complete; /* the kernel maps [vdso] after image and loader */
    bool is_32_bit;
};

static void scan_line(struct scan *scan, const char *line) {
    char path[512] = "";
    char permissions[8] = "";
    unsigned long long start = 0;
    if (sscanf(line, "%llx-%*s %7s %*s %*s %*s %511[^\n]", &start, permissions, path) != 3) {
        return;
    }
    if (strcmp(path, "[vdso]") == 0) {
        scan->is_complete = true;
        scan->is_32_bit = start >> 32 == 0;
        return;
    }
    const bool is_code = path[0] == '/' && permissions[2] == 'x';
    scan->has_glibc_loader = scan->has_glibc_loader || (is_code && is_glibc_loader(path));
    if (path[0] == '/' && scan->executable[0] == '\0') {
        (void)snprintf(scan->executable, sizeof(scan->executable), "%s", path);
    } else if (is_code && scan->loader[0] == '\0' && strcmp(path, scan->executable) != 0) {
        (void)snprintf(scan->loader, sizeof(scan->loader), "%s", path);
    }
}

static enum ml_image_kind judge(const struct scan *scan) {
    if (scan->executable[0] == '\0') {
        return ML_IMAGE_GONE;
    }
    if (scan->is_complete && scan->is_32_bit) {
        return ML_IMAGE_32_BIT;
    }
    if (scan->has_glibc_loader) { /* it may also be the program itself */
        return ML_IMAGE_PRELOADABLE;
    }
    if (scan->loader[0] != '\0') {
        return ML_IMAGE_OTHER_LOADER;
    }
    return scan->is_complete ? ML_IMAGE_STATIC : ML_IMAGE_GONE;
}

enum ml_image_kind ml_image_from_maps(FILE *maps) {
    char line[PATH_MAX + 128];
    struct scan scan = {.is_complete = false};
    while (fgets(line, sizeof(line), maps) != NULL) {
        scan_line(&scan, line);
    }
    return judge(&scan);
}

/* Whether the program got another identity than the host's at its exec. */
static bool is_setuid(pid_t pid) {
    char path[64];
    struct stat facts;
    (void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    if (stat(path, &facts) != 0) {
        return false;
    }
    return ((facts.st_mode & S_ISUID) != 0 && facts.st_uid != geteuid()) ||
           ((facts.st_mode & S_ISGID) != 0 && facts.st_gid != getegid());
}

static bool is_forbidden(int error) {
    return error == EACCES || error == EPERM;
}

/* Judge what it maps now. The kernel gives a page at a time, which holds all dozen lines of a new
 * image. */
static enum ml_image_kind look_once(pid_t pid) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return is_forbidden(errno) ? ML_IMAGE_UNREADABLE : ML_IMAGE_GONE;
    }
    errno = 0;
    const enum ml_image_kind kind = ml_image_from_maps(file);
    const bool forbidden = ferror(file) != 0 && is_forbidden(errno);
    (void)fclose(file);
    return forbidden ? ML_IMAGE_UNREADABLE : kind;
}

enum ml_image_kind ml_image_peek(pid_t pid) {
    return is_setuid(pid) ? ML_IMAGE_SETUID : look_once(pid);
}

enum ml_image_kind ml_image_look(pid_t pid) {
    if (is_setuid(pid)) {
        return ML_IMAGE_SETUID;
    }
    enum ml_image_kind kind = ML_IMAGE_GONE;
    for (int i = 0; i < LOOKS_MAX && kind == ML_IMAGE_GONE; i++) {
        kind = look_once(pid);
        if (kind == ML_IMAGE_GONE && kill(pid, 0) != 0 && errno == ESRCH) {
            return ML_IMAGE_GONE;
        }
        if (kind == ML_IMAGE_GONE) {
            const struct timespec pause = {.tv_nsec = LOOK_PAUSE_NS};
            (void)nanosleep(&pause, NULL);
        }
    }
    return kind;
}

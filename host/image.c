#include "host/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Looks, and the time between two: an exec maps its image within far less. */
enum { LOOKS_MAX = 20, LOOK_PAUSE_NS = 200000 };

const char *ml_image_text(enum ml_image_kind kind) {
    switch (kind) {
    case ML_IMAGE_GONE:
        return "it ended before memlog could look at it";
    case ML_IMAGE_STATIC:
        return "statically linked: there is no dynamic loader that could load memlog";
    case ML_IMAGE_OTHER_LOADER:
        return "its dynamic loader is not glibc's";
    case ML_IMAGE_32_BIT:
        return "a 32-bit program";
    case ML_IMAGE_SETUID:
        return "setuid or setgid: its loader drops the preload";
    case ML_IMAGE_UNREADABLE:
        return "it may not be looked at";
    case ML_IMAGE_PRELOADABLE:
        break;
    }
    return "it started but never reached memlog";
}

/* glibc's 64-bit loaders are ld-linux-ARCH.so.N; the 32-bit one of x86 has no architecture in its
 * name, musl's begin with ld-musl. */
static enum ml_image_kind judge_loader(const char *path) {
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    if (strncmp(name, "ld-linux.so", 11) == 0 || strncmp(name, "ld-linux-armhf", 14) == 0) {
        return ML_IMAGE_32_BIT;
    }
    if (strncmp(name, "ld-linux-", 9) == 0 || strncmp(name, "ld64.so", 7) == 0) {
        return ML_IMAGE_PRELOADABLE;
    }
    return ML_IMAGE_OTHER_LOADER;
}

enum ml_image_kind ml_image_from_maps(const char *maps) {
    char executable[512] = "";
    char loader[512] = "";
    bool complete = false;
    while (*maps != '\0') {
        size_t count = strcspn(maps, "\n");
        char path[512] = "";
        char line[640];
        (void)snprintf(line, sizeof(line), "%.*s", (int)(count < 639 ? count : 639), maps);
        if (sscanf(line, "%*s %*s %*s %*s %*s %511[^\n]", path) == 1 && path[0] != '\0') {
            if (strcmp(path, "[vdso]") == 0) {
                complete = true; /* the kernel maps it after image and loader */
            } else if (path[0] == '/' && executable[0] == '\0') {
                (void)snprintf(executable, sizeof(executable), "%s", path);
            } else if (path[0] == '/' && strcmp(path, executable) != 0 && loader[0] == '\0') {
                const char *slash = strrchr(path, '/');
                if (slash != NULL && strncmp(slash + 1, "ld", 2) == 0) {
                    (void)snprintf(loader, sizeof(loader), "%s", path);
                }
            }
        }
        maps += count;
        maps += *maps == '\n' ? 1 : 0;
    }
    if (loader[0] != '\0') {
        return judge_loader(loader);
    }
    return complete && executable[0] != '\0' ? ML_IMAGE_STATIC : ML_IMAGE_GONE;
}

/* Whether the kernel has given the program another identity than ours at its exec. */
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

enum ml_image_kind ml_image_look(pid_t pid) {
    if (is_setuid(pid)) {
        return ML_IMAGE_SETUID;
    }
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    enum ml_image_kind kind = ML_IMAGE_GONE;
    for (int i = 0; i < LOOKS_MAX && kind == ML_IMAGE_GONE; i++) {
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) {
            return errno == EACCES || errno == EPERM ? ML_IMAGE_UNREADABLE : ML_IMAGE_GONE;
        }
        /* A page is what the kernel gives in one piece: one moment's truth. A fresh image has a
         * dozen lines. */
        char maps[4096];
        ssize_t count = read(fd, maps, sizeof(maps) - 1);
        (void)close(fd);
        if (count <= 0) {
            return count < 0 && (errno == EACCES || errno == EPERM) ? ML_IMAGE_UNREADABLE
                                                                    : ML_IMAGE_GONE;
        }
        maps[count] = '\0';
        kind = ml_image_from_maps(maps);
        if (kind == ML_IMAGE_GONE) {
            const struct timespec pause = {.tv_nsec = LOOK_PAUSE_NS};
            (void)nanosleep(&pause, NULL);
        }
    }
    return kind;
}

#include "host/process/image.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
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
        [ML_IMAGE_OTHER_LOADER] = ("its dynamic loader is not glibc's by its name, which "
                                   "libmemlog.so needs; 'memlog attach' can take it while it "
                                   "runs"),
        [ML_IMAGE_32_BIT] = "a 32-bit program",
        [ML_IMAGE_SETUID] = ("a setuid or setgid program, or one with capabilities of its file: "
                             "memlog is not loaded into it"),
        [ML_IMAGE_UNREADABLE] = "reason not known: the kernel does not let memlog look at it",
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

static void scan_all(struct scan *scan, FILE *maps) {
    char line[PATH_MAX + 128];
    while (fgets(line, sizeof(line), maps) != NULL) {
        scan_line(scan, line);
    }
}

enum ml_image_kind ml_image_from_maps(FILE *maps) {
    struct scan scan = {.is_complete = false};
    scan_all(&scan, maps);
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

/* What the kernel has told the image itself at its start. */
struct start {
    bool is_known;
    bool is_privileged; /* by setuid, setgid, its file's capabilities, a security module: as said to
                           the loader, which then drops the preload */
    bool has_loader;
};

/* Of a 64-bit program; of a 32-bit one the text has other words, and is not known. */
static struct start start_of(pid_t pid) {
    enum { ENTRIES_MAX = 64, NONE = 0, LOADER = 7, PRIVILEGED = 23 };
    struct {
        uint64_t kind, value;
    } entries[ENTRIES_MAX];
    char path[64];
    struct start start = {.is_known = false};
    (void)snprintf(path, sizeof(path), "/proc/%d/auxv", (int)pid);
    FILE *file = fopen(path, "re");
    const size_t count = file != NULL ? fread(entries, sizeof(entries[0]), ENTRIES_MAX, file) : 0;
    bool is_whole = false;
    for (size_t i = 0; i < count && !is_whole && entries[i].kind <= UINT32_MAX; i++) {
        is_whole = entries[i].kind == NONE;
        start.has_loader = start.has_loader || (entries[i].kind == LOADER && entries[i].value != 0);
        start.is_privileged =
            start.is_privileged || (entries[i].kind == PRIVILEGED && entries[i].value != 0);
    }
    start.is_known = is_whole && count > 1;
    if (file != NULL) {
        (void)fclose(file);
    }
    return start;
}

static bool is_forbidden(int error) {
    return error == EACCES || error == EPERM;
}

/* A loader that was started as a program has no other one. */
static bool is_loader(const char *executable) {
    const char *name = basename(executable);
    return strncmp(name, "ld-", 3) == 0 || strncmp(name, "ld64", 4) == 0 ||
           strstr(name, ".so") != NULL;
}

/* Judge what it maps now. The kernel gives a page at a time, which holds all dozen lines of a new
 * image. */
static enum ml_image_kind look_once(pid_t pid, const struct start *start) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return is_forbidden(errno) ? ML_IMAGE_UNREADABLE : ML_IMAGE_GONE;
    }
    errno = 0;
    struct scan scan = {.is_complete = false};
    scan_all(&scan, file);
    enum ml_image_kind kind = judge(&scan);
    /* Files with code that it has mapped since are no loader of its own. An exec may have come in
     * between. */
    const struct start after = start_of(pid);
    const bool is_alone =
        start->is_known && after.is_known && !start->has_loader && !after.has_loader;
    if (is_alone && kind != ML_IMAGE_32_BIT && scan.executable[0] != '\0' &&
        !is_loader(scan.executable)) {
        kind = ML_IMAGE_STATIC;
    }
    const bool forbidden = ferror(file) != 0 && is_forbidden(errno);
    (void)fclose(file);
    return forbidden ? ML_IMAGE_UNREADABLE : kind;
}

enum ml_image_kind ml_image_peek(pid_t pid) {
    const struct start start = start_of(pid);
    return start.is_privileged ? ML_IMAGE_SETUID : look_once(pid, &start);
}

enum ml_image_kind ml_image_look(pid_t pid) {
    if (is_setuid(pid)) {
        return ML_IMAGE_SETUID;
    }
    enum ml_image_kind kind = ML_IMAGE_GONE;
    for (int i = 0; i < LOOKS_MAX && kind == ML_IMAGE_GONE; i++) {
        const struct start start = start_of(pid);
        kind = look_once(pid, &start);
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

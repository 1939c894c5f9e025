/* bin/memlog of the archive: becomes lib/memlog/memlog, or says which libc that needs. Room: tools.
 *
 * The loader would say it in a line for each library and version. So this one program has nothing
 * that glibc 2.14 does not have: no start files, and few calls. The version stands in
 * lib/memlog/glibc, as bundle.py found it. */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_FAILED = 125, PLACE_MAX = 64, VERSION_BYTES = 32 };

__attribute__((noreturn)) void ml_starter(char **stack);

__asm__(".globl _start\n"
        "_start:\n"
        "xor %ebp, %ebp\n"
        "mov %rsp, %rdi\n"
        "and $-16, %rsp\n"
        "call ml_starter\n"
        "hlt\n");

static void say(const char *text) {
    /* Nobody is left to hear that this cannot be written. */
    if (write(STDERR_FILENO, text, strlen(text)) < 0) {
        _exit(EXIT_FAILED);
    }
}

__attribute__((noreturn)) static void fail(const char *name, const char *what) {
    say("memlog: ");
    say(name);
    say(what);
    _exit(EXIT_FAILED);
}

/* "2.36" as 2036; 0: it is no such text. */
static long version_of(const char *text) {
    char *end = NULL;
    const long major = strtol(text, &end, 10);
    return *end == '.' ? major * 1000 + strtol(end + 1, NULL, 10) : 0;
}

/* Put a name behind the folder of bin/memlog. */
static bool place_of(const char *name, char out_path[PATH_MAX + PLACE_MAX]) {
    const ssize_t count = readlink("/proc/self/exe", out_path, PATH_MAX - 1);
    if (count <= 0) {
        return false;
    }
    out_path[count] = '\0';
    char *slash = strrchr(out_path, '/');
    if (slash == NULL) {
        return false;
    }
    memcpy(slash, name, strlen(name) + 1); /* shorter than PLACE_MAX */
    return true;
}

static void refuse_old_libc(void) {
    char path[PATH_MAX + PLACE_MAX], needed[VERSION_BYTES] = "";
    if (!place_of("/../lib/memlog/glibc", path)) {
        fail("/proc/self/exe", " cannot be read: is /proc mounted?\n");
    }
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, needed, sizeof(needed) - 1) : -1;
    if (count <= 0) {
        fail(path, " cannot be read: unpack the whole archive\n");
    }
    needed[strcspn(needed, "\n")] = '\0';
    (void)close(fd);
    if (version_of(gnu_get_libc_version()) < version_of(needed)) {
        say("memlog: this archive needs glibc ");
        say(needed);
        say(" or later, as Debian 12 and Ubuntu 24.04 have it; this system has ");
        say(gnu_get_libc_version());
        say("\n");
        _exit(EXIT_FAILED);
    }
}

void ml_starter(char **stack) {
    char path[PATH_MAX + PLACE_MAX];
    const long arguments = (long)(intptr_t)stack[0];
    char **argv = stack + 1;
    refuse_old_libc();
    if (place_of("/../lib/memlog/memlog", path)) {
        (void)execve(path, argv, argv + arguments + 1);
    }
    fail(path, " cannot be run: unpack the whole archive\n");
}

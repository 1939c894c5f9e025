#include "client/startup/aside.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "client/startup/handshake.h"
#include "client/state/sys.h"
#include "client/symbols/symbols.h"

enum {
    PATH_BYTES = 4096,
    LOADER_WORDS_MAX = 1024, /* of a loader's command line */
    SCRIPT_WORDS_MAX = 8 /* in front of a script's name: at most four interpreters, one word each */
};

static const char own_file[] = "/proc/self/exe";

bool ml_aside_is_needed(void) {
    static const char *const starts[] = {
        "__asan_init",
        "__tsan_init",
        "__lsan_init",
        "__hwasan_init",
        "__msan_init",
        "__memprof_init",
    };
    if (!ml_symbol_is_defined("__sanitizer_print_stack_trace")) { /* all of them have it */
        return false;
    }
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (ml_symbol_is_defined(starts[i])) {
            return true;
        }
    }
    return false;
}

static void tell(const char *socket_path, int left_fd, const char *path) {
    int socket_fd = -1;
    if ((left_fd >= 0 && ml_handshake_connect_by(left_fd, &socket_fd)) ||
        ml_handshake_connect(socket_path, &socket_fd)) {
        (void)ml_handshake_not_profiled(
            socket_fd, true, MEMLOG_CLIENT_NOT_PROFILED_REASON_SANITIZER, path
        );
        ml_handshake_finish(socket_fd);
    }
}

static bool is_own_file(const char *path) {
    struct stat own;
    struct stat other;
    return ml_sys4(SYS_newfstatat, AT_FDCWD, (long)own_file, (long)&own, 0) == 0 &&
           ml_sys4(SYS_newfstatat, AT_FDCWD, (long)path, (long)&other, 0) == 0 &&
           own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static bool is_script(const char *path) {
    char head[2] = {0, 0};
    const long fd = ml_sys4(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    const long count = ml_sys3(SYS_read, fd, (long)head, sizeof(head));
    ml_sys_close((int)fd);
    return count == (long)sizeof(head) && head[0] == '#' && head[1] == '!';
}

/* A loader that was started as a program removes its own arguments. The kernel's original ones lie
 * one behind the other. False: no room for them. */
static bool words_of_loader(char **out_words, size_t most) {
    const struct ml_bytes title = ml_handshake_title();
    size_t count = 0;
    size_t at = 0;
    while (at < title.count_bytes && count + 1 < most) {
        out_words[count++] = (char *)(uintptr_t)title.data + at;
        at += strlen(out_words[count - 1]) + 1;
    }
    out_words[count] = NULL;
    return count > 0 && at == title.count_bytes &&
           title.count_bytes < MEMLOG_CLIENT_MAX_TITLE_BYTES;
}

void ml_aside_step(
    const char *socket_path, int take_left_fd, char **arguments, char **environment
) {
    /* The name that was executed: the process is called by it. */
    const char *name = (const char *)getauxval(AT_EXECFN);
    const char *path = own_file;
    char **words = arguments;
    char *all_words[LOADER_WORDS_MAX];
    char executable[PATH_BYTES];
    const bool is_loader = getauxval(AT_BASE) == 0;
    if (arguments == NULL || arguments[0] == NULL ||
        (is_loader && !words_of_loader(all_words, LOADER_WORDS_MAX))) {
        ml_sys_close(take_left_fd);
        return;
    }
    if (is_loader) {
        words = all_words;
    }
    const long count =
        ml_sys3(SYS_readlink, (long)own_file, (long)executable, (long)(sizeof(executable) - 1));
    executable[count > 0 ? count : 0] = 0;
    if (name != NULL && is_own_file(name)) {
        path = name;
    }
    /* For a script the kernel has put the interpreter in front, and will do so again. */
    for (size_t i = 1; path == own_file && name != NULL && i <= SCRIPT_WORDS_MAX; i++) {
        if (arguments[i] == NULL) {
            break;
        }
        if (strcmp(arguments[i], name) == 0 && is_script(name)) {
            path = name;
            words = arguments + i;
        }
    }
    if (path == own_file && is_own_file(executable)) {
        path = executable;
    }
    if (socket_path != NULL) {
        tell(socket_path, take_left_fd, executable);
    }
    ml_sys_close(take_left_fd);
    (void)ml_sys3(SYS_execve, (long)path, (long)words, (long)environment);
}

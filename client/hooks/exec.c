/* Starting other programs: adds the preload to the new environment where it can work. Room: client.
 * Context: any, between vfork and exec too: stack memory alone.
 *
 * One rule: the new program gets exactly the intended environment, plus our variables; the real
 * call decides everything else. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/startup/exec_preload.h"
#include "client/startup/lending.h"
#include "client/startup/libc.h"
#include "client/state/process.h"
#include "client/state/sys.h"
#include "client/state/visible.h"
#include "client/unwind/foreign.h"

/* `preloaded` is the environment to pass: with our variables added when `can` says so, and
 * `lent_fd` what must stay open in the program at `path`. Invalid pointers are passed on unchanged,
 * for the kernel to refuse. It fits the smallest stack, PTHREAD_STACK_MIN. */
#define WITH_PRELOAD(environment, path, can, is_free)                                              \
    (environment) = ml_exec_preload_without_shells(environment);                                   \
    char socket_space[ML_EXEC_PRELOAD_SOCKET_MAX_BYTES];                                           \
    char *const *preloaded = (environment);                                                        \
    size_t entries = 0;                                                                            \
    size_t preload_bytes = 0;                                                                      \
    const int lent_fd = ml_exec_preload_is_on() &&                                                 \
                                ml_exec_preload_count((environment), &entries, &preload_bytes) &&  \
                                (can)                                                              \
                            ? ml_exec_preload_lend(path, is_free)                                  \
                            : ML_LENDING_IMPOSSIBLE;                                               \
    if (lent_fd != ML_LENDING_IMPOSSIBLE) {                                                        \
        char **space = __builtin_alloca((entries + ML_EXEC_PRELOAD_EXTRA) * sizeof(char *));       \
        char *preload = __builtin_alloca(preload_bytes);                                           \
        ml_exec_preload_environment(                                                               \
            (environment), entries, space, preload, preload_bytes, socket_space, lent_fd           \
        );                                                                                         \
        preloaded = space;                                                                         \
    }

/* The program may fill the kernel's limit on arguments and environment: then it is started without
 * our variables. */
static bool goes_without(int result, char *const *preloaded, char *const *environment) {
    const bool goes = result < 0 && errno == E2BIG && preloaded != environment;
    if (goes) {
        ml_exec_preload_has_no_room();
    }
    return goes;
}

static int exec_file(const char *path, char *const arguments[], char *const environment[]) {
    ML_LIBC_READY(execve);
    WITH_PRELOAD(environment, path, ml_exec_preload_program(AT_FDCWD, path, 0), true);
    ml_lifecycle_end(ML_END_EXEC);
    ml_lending_begin(lent_fd);
    const int result = ml_libc.execve(path, arguments, preloaded);
    ml_lending_end(lent_fd);
    return goes_without(result, preloaded, environment)
               ? ml_libc.execve(path, arguments, environment)
               : result;
}

/* As libc has it since 2.34. */
static int call_execveat(
    int fd, const char *path, char *const arguments[], char *const environment[], int flags
) {
    if (ml_libc.execveat != NULL) {
        return ml_libc.execveat(fd, path, arguments, environment, flags);
    }
    const long result =
        ml_sys6(SYS_execveat, fd, (long)path, (long)arguments, (long)environment, flags, 0);
    errno = (int)-result;
    return -1;
}

static int
exec_at(int fd, const char *path, char *const arguments[], char *const environment[], int flags) {
    ML_LIBC_READY(execve);
    WITH_PRELOAD(environment, path, ml_exec_preload_program(fd, path, flags), true);
    ml_lifecycle_end(ML_END_EXEC);
    ml_lending_begin(lent_fd);
    const int result = call_execveat(fd, path, arguments, preloaded, flags);
    ml_lending_end(lent_fd);
    return goes_without(result, preloaded, environment)
               ? call_execveat(fd, path, arguments, environment, flags)
               : result;
}

ML_VISIBLE int execve(const char *path, char *const arguments[], char *const environment[]) {
    return exec_file(path, arguments, environment);
}

ML_VISIBLE int execv(const char *path, char *const arguments[]) {
    return execve(path, arguments, environ);
}

ML_VISIBLE int execvpe(const char *file, char *const arguments[], char *const environment[]) {
    ML_LIBC_READY(execve);
    WITH_PRELOAD(environment, file, ml_exec_preload_program_in_path(AT_FDCWD, file), true);
    ml_lifecycle_end(ML_END_EXEC);
    ml_lending_begin(lent_fd);
    const int result = ml_libc.execvpe(file, arguments, preloaded);
    ml_lending_end(lent_fd);
    return goes_without(result, preloaded, environment)
               ? ml_libc.execvpe(file, arguments, environment)
               : result;
}

ML_VISIBLE int execvp(const char *file, char *const arguments[]) {
    return execvpe(file, arguments, environ);
}

ML_VISIBLE int fexecve(int fd, char *const arguments[], char *const environment[]) {
    ML_LIBC_READY(execve);
    WITH_PRELOAD(environment, "", ml_exec_preload_program(fd, "", AT_EMPTY_PATH), true);
    ml_lifecycle_end(ML_END_EXEC);
    ml_lending_begin(lent_fd);
    const int result = ml_libc.fexecve(fd, arguments, preloaded);
    ml_lending_end(lent_fd);
    return goes_without(result, preloaded, environment)
               ? ml_libc.fexecve(fd, arguments, environment)
               : result;
}

ML_VISIBLE int
execveat(int fd, const char *path, char *const arguments[], char *const environment[], int flags) {
    return exec_at(fd, path, arguments, environment, flags);
}

/* Not by execve's own name: a program that has a function of that name may be the caller. */
long ml_exec_preload_syscall(long number, long a, long b, long c, long d, long e) {
    return number == SYS_execve
               ? exec_file((const char *)a, (char *const *)b, (char *const *)c)
               : exec_at((int)a, (const char *)b, (char *const *)c, (char *const *)d, (int)e);
}

/* The variadic forms: gather what is on the stack, then as above. */
#define GATHER(first)                                                                              \
    va_list rest;                                                                                  \
    size_t count = 1;                                                                              \
    va_start(rest, first);                                                                         \
    while (va_arg(rest, char *) != NULL) {                                                         \
        count++;                                                                                   \
    }                                                                                              \
    va_end(rest);                                                                                  \
    char **arguments = __builtin_alloca((count + 1) * sizeof(char *));                             \
    va_start(rest, first);                                                                         \
    memcpy(&arguments[0], &first, sizeof(char *));                                                 \
    for (size_t i = 1; i <= count; i++) {                                                          \
        arguments[i] = va_arg(rest, char *);                                                       \
    }

ML_VISIBLE int execl(const char *path, const char *first, ...) {
    GATHER(first)
    va_end(rest);
    return execve(path, arguments, environ);
}

ML_VISIBLE int execlp(const char *file, const char *first, ...) {
    GATHER(first)
    va_end(rest);
    return execvpe(file, arguments, environ);
}

ML_VISIBLE int execle(const char *path, const char *first, ...) {
    GATHER(first)
    char *const *environment = va_arg(rest, char *const *);
    va_end(rest);
    return execve(path, arguments, environment);
}

/* ---- posix_spawn: its file actions may change the directory before the program is looked up */

/* glibc's private layout of one action of posix_spawn_file_actions_t, since 2.29 with
 * directories. */
enum action_kind {
    ACTION_CLOSE,
    ACTION_DUP2,
    ACTION_OPEN,
    ACTION_CHDIR,
    ACTION_FCHDIR,
    ACTION_CLOSEFROM
};
struct action {
    int kind;
    union {
        struct {
            int fd, new_fd;
        } numbers; /* of all but CHDIR; the second of DUP2 alone */
        char *path;
        struct {
            int fd;
            char *path;
            int flags;
            mode_t mode;
        } open; /* the longest */
    } of;
};

enum { NOT_KNOWN = -1 };

static bool closes_from(const struct action *action, int fd) {
    return action->kind == ACTION_CLOSEFROM && action->of.numbers.fd <= fd;
}

/* Whether an action before number `end` replaces that very descriptor. */
static bool is_replaced(const struct action *actions, int end, int fd) {
    bool found = false;
    for (int i = 0; i < end && !found; i++) {
        found = actions[i].kind <= ACTION_OPEN &&
                (actions[i].kind == ACTION_DUP2 ? actions[i].of.numbers.new_fd
                                                : actions[i].of.numbers.fd) == fd;
    }
    return found;
}

/* The same, or one closes it with those behind it. */
static bool is_changed(const struct action *actions, int end, int fd) {
    bool found = is_replaced(actions, end, fd);
    for (int i = 0; i < end && !found; i++) {
        found = closes_from(&actions[i], fd);
    }
    return found;
}

/* The directory that the child is in when it starts the program: a new descriptor, AT_FDCWD for
 * that of the caller, or NOT_KNOWN. */
static int directory_behind(const posix_spawn_file_actions_t *given) {
    const struct action *actions = (const struct action *)(const void *)given->__actions;
    int directory = AT_FDCWD;
    for (int i = 0; i < given->__used && directory != NOT_KNOWN; i++) {
        const int kind = actions[i].kind;
        if (kind != ACTION_CHDIR && kind != ACTION_FCHDIR) {
            continue;
        }
        const int from = directory;
        long next = NOT_KNOWN;
        if (kind == ACTION_CHDIR) {
            const long path = (long)actions[i].of.path;
            next = ml_sys4(SYS_openat, from, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
        } else if (!is_changed(actions, i, actions[i].of.numbers.fd)) {
            next = ml_sys3(SYS_fcntl, actions[i].of.numbers.fd, F_DUPFD_CLOEXEC, 0);
        }
        ml_sys_close(from);
        directory = next >= 0 ? (int)next : NOT_KNOWN;
    }
    return directory;
}

/* `can` for the file where the child looks for it. A file that is not found here is not reported as
 * one that cannot be preloaded. */
static bool can_spawn(
    const posix_spawn_file_actions_t *actions, const char *file, bool (*can)(int, const char *)
) {
    const int directory = actions != NULL ? directory_behind(actions) : AT_FDCWD;
    const bool answer = directory == NOT_KNOWN || can(directory, file);
    ml_sys_close(directory);
    return answer;
}

/* Whether the connection has its number in the child still, where it starts the program. */
static bool is_free(const posix_spawn_file_actions_t *given) {
    const int fd = atomic_load(&ml_process.socket_fd);
    return given == NULL ||
           !is_replaced((const struct action *)(const void *)given->__actions, given->__used, fd);
}

enum { ACTIONS_MOST_FOR_ONE = 4 };

static struct action dup2_action(int fd, int new_fd) {
    return (struct action){.kind = ACTION_DUP2, .of.numbers = {.fd = fd, .new_fd = new_fd}};
}

/* One that closes the connection with all from an open one on: it waits at the first number of
 * these, which is closed last. */
static int close_around(const struct action *action, int lent_fd, struct action *out_list) {
    const int first = action->of.numbers.fd;
    int count = 0;
    out_list[count++] = dup2_action(lent_fd, first);
    out_list[count] = *action;
    out_list[count++].of.numbers.fd = first + 1;
    if (first != lent_fd) {
        out_list[count++] = dup2_action(first, lent_fd);
        out_list[count++] = (struct action){.kind = ACTION_CLOSE, .of.numbers = {.fd = first}};
    }
    return count;
}

/* The program's own actions, and behind them one that leaves the connection open in the child
 * alone. A duplicate of the same number loses close-on-exec there. Returns their number. */
static int
lending_actions(const posix_spawn_file_actions_t *given, int lent_fd, struct action *out_list) {
    int count = 0;
    for (int i = 0; given != NULL && i < given->__used; i++) {
        const struct action *action = (const struct action *)(const void *)given->__actions + i;
        if (closes_from(action, lent_fd)) {
            count += close_around(action, lent_fd, out_list + count);
        } else {
            out_list[count++] = *action;
        }
    }
    out_list[count++] = dup2_action(lent_fd, lent_fd);
    return count;
}

/* `lending` is the file actions to pass. */
#define WITH_LENDING(given, lent_fd)                                                               \
    const posix_spawn_file_actions_t *lending = (given);                                           \
    posix_spawn_file_actions_t own_actions = {.__used = 0};                                        \
    if ((lent_fd) >= 0) {                                                                          \
        const size_t most = (given) != NULL ? (size_t)(given)->__used * ACTIONS_MOST_FOR_ONE : 0;  \
        struct action *list = __builtin_alloca((most + 1) * sizeof(*list));                        \
        own_actions.__used = lending_actions((given), (lent_fd), list);                            \
        own_actions.__allocated = own_actions.__used;                                              \
        own_actions.__actions = (struct __spawn_action *)(void *)list;                             \
        lending = &own_actions;                                                                    \
    }

ML_VISIBLE int posix_spawn(
    pid_t *out_pid,
    const char *path,
    const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attributes,
    char *const arguments[],
    char *const environment[]
) {
    ML_LIBC_READY(execve);
    WITH_PRELOAD(
        environment, path, can_spawn(actions, path, ml_exec_preload_program_there), is_free(actions)
    );
    WITH_LENDING(actions, lent_fd);
    const int error = ml_libc.posix_spawn(out_pid, path, lending, attributes, arguments, preloaded);
    return error == E2BIG && preloaded != environment
               ? ml_libc.posix_spawn(out_pid, path, actions, attributes, arguments, environment)
               : error;
}

ML_VISIBLE int posix_spawnp(
    pid_t *out_pid,
    const char *file,
    const posix_spawn_file_actions_t *actions,
    const posix_spawnattr_t *attributes,
    char *const arguments[],
    char *const environment[]
) {
    ML_LIBC_READY(execve);
    WITH_PRELOAD(
        environment,
        file,
        can_spawn(actions, file, ml_exec_preload_program_in_path),
        is_free(actions)
    );
    WITH_LENDING(actions, lent_fd);
    const int error =
        ml_libc.posix_spawnp(out_pid, file, lending, attributes, arguments, preloaded);
    return error == E2BIG && preloaded != environment
               ? ml_libc.posix_spawnp(out_pid, file, actions, attributes, arguments, environment)
               : error;
}

/* Passes the preload on to programs that the profiled one starts, without its notice. Room: client
 * (private). Context: the constructor; then any thread, also between vfork and exec: stack memory
 * and system calls alone.
 *
 * One rule: the program's own environment shows nothing of memlog. What a new program needs is
 * added at the exec, to the environment that is passed to it. */
#ifndef MEMLOG_CLIENT_STARTUP_EXEC_PRELOAD_H
#define MEMLOG_CLIENT_STARTUP_EXEC_PRELOAD_H

#include <stdbool.h>
#include <stddef.h>

enum {
    ML_EXEC_PRELOAD_MAX_BYTES = 8192,
    /* The key, the word of client/startup/lending.h and a path of sockaddr_un's length. */
    ML_EXEC_PRELOAD_SOCKET_MAX_BYTES = 272,
    ML_EXEC_PRELOAD_EXTRA = 3,        /* LD_PRELOAD, MEMLOG_SOCKET, NULL */
    ML_EXEC_PRELOAD_COUNT_MAX = 32768 /* 256 KiB of pointers on the stack; more goes without it */
};

/* Take MEMLOG_SOCKET and our own entry of LD_PRELOAD out of the environment, in place, and remember
 * them. Returns the host's socket path, NULL when there is none. */
const char *ml_exec_preload_take(char **environment);

/* What else they say where no environment says it: the library as LD_PRELOAD names it, and the
 * host's socket. Too long ones, and "", are none: then programs are started as they are. */
void ml_exec_preload_tell(const char *library_path, const char *socket_path);

/* The connection that was left to this image, once; -1: there is none. Owner: the caller closes
 * it. */
int ml_exec_preload_take_left(void);

/* Whether it found that entry: without it the program's next image has no memlog. */
bool ml_exec_preload_was_found(void);

/* Whether programs that this one starts are to be recorded too. For one that is about to start: if
 * a filter forbids it, the host can read that. */
bool ml_exec_preload_is_on(void);

/* How many entries that environment has, and how long LD_PRELOAD will be with ours in it, at most
 * ML_EXEC_PRELOAD_MAX_BYTES. False: it cannot be extended, since it is too long or not readable;
 * the kernel then decides about the exec. */
bool ml_exec_preload_count(char *const *environment, size_t *out_count, size_t *out_preload_bytes);

/* The kernel has found that environment, or the arguments, too long with ours. */
void ml_exec_preload_has_no_room(void);

/* The environment for a program that can take the preload: the `count` entries of `environment` and
 * ours. out_environment has count + ML_EXEC_PRELOAD_EXTRA pointers, the spaces preload_bytes and
 * ML_EXEC_PRELOAD_SOCKET_MAX_BYTES; all three live until the exec. `lent_fd` from
 * ml_exec_preload_lend. */
void ml_exec_preload_environment(
    char *const *environment,
    size_t count,
    char **out_environment,
    char *preload_space,
    size_t preload_bytes,
    char *socket_space,
    int lent_fd
);

/* What of ours stays open for a program that can take the preload: as ml_lending_find says.
 * ML_LENDING_IMPOSSIBLE: it does not find the host, who is told. `path` is for that; `is_free`: the
 * connection's number is not the program's to be. */
int ml_exec_preload_lend(const char *path, bool is_free);

/* Whether the program file can take the preload. If not, the host is told why. False also for a
 * file that cannot be executed at all: the exec itself reports that. */
bool ml_exec_preload_program(int directory_fd, const char *path, int flags);

/* The same for a program that starts in that folder: relative names are looked up there, also that
 * of a script's interpreter. */
bool ml_exec_preload_program_there(int working_fd, const char *path);

/* The same for a name that is looked up in PATH, as execvp does. */
bool ml_exec_preload_program_in_path(int working_fd, const char *name);

/* The program's own value of that variable, from the value in our copy: the part behind our library
 * in LD_PRELOAD, or NULL; for MEMLOG_SOCKET NULL. Other values are returned unchanged. */
char *ml_exec_preload_own_value(const char *name, char *value);

/* That environment; or the program's own if it is the copy made for another thread's shell
 * (client/hooks/shell.c). */
char *const *ml_exec_preload_without_shells(char *const *environment);

/* syscall(2) with the numbers of execve and execveat (client/hooks/exec.c): same behaviour, same
 * errors. */
long ml_exec_preload_syscall(long number, long a, long b, long c, long d, long e);

#endif

/* What of memlog a program was given at its start, and what may be in its way. Room: host.
 *
 * One rule: it is what the kernel shows now. A program may have changed it since. */
#ifndef MEMLOG_HOST_ENGINE_LIST_PASSED_ON_H
#define MEMLOG_HOST_ENGINE_LIST_PASSED_ON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Its environment at the exec. */
struct ml_passed_on {
    bool is_known;       /* it can be read, to its end; else the rest is what was seen of it */
    bool has_socket;     /* the host's */
    bool has_connection; /* and one that was left open for it (client/startup/lending.h) */
    bool has_another;    /* the socket of another memlog */
    bool has_library;    /* LD_PRELOAD names libmemlog.so */
};

struct ml_passed_on ml_passed_on_look(pid_t pid, const char *socket_path);

/* The same from the text of /proc/PID/environ: count_bytes, and a NUL behind them. */
struct ml_passed_on
ml_passed_on_parse(const char *text, size_t count_bytes, const char *socket_path);

/* Whether it does not see that library, as LD_PRELOAD names it, and has not loaded it. */
bool ml_passed_on_misses(pid_t pid, const char *preload_path);

/* The system call filters that it has beyond those of the host, which come from where both run.
 * Without a number (before Linux 5.9) 1 stands for any. 0: none, or it is not known. */
unsigned ml_passed_on_filters(pid_t pid);

/* The number that it has in its own pid namespace; 0: not known. */
unsigned ml_passed_on_own_pid(pid_t pid);

#endif

/* What the kernel says of a process in /proc. Room: host. Context: any; reads only.
 *
 * One rule: the process may be gone, changed or replaced at any moment. What cannot be read is
 * unknown, and never an error of the run. */
#ifndef MEMLOG_HOST_PROCESS_INFO_H
#define MEMLOG_HOST_PROCESS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "host/policy/command_line.h"
#include "ipc/wire/ml_status.h"

/* TASK_COMM_LEN with its NUL; "?" is written where there is none. */
enum { ML_PROCESS_NAME_BYTES = 16 };

/* How a process ended. */
struct ml_ending {
    bool known;    /* false: not known, and the rest is 0 */
    int exit_code; /* when signal is 0 */
    int signal;    /* that killed it, 0 if none */
};

/* From a wait status. */
struct ml_ending ml_ending_from_wait(int status);

/* The exit code that a shell gives it: N, or 128 + signal. */
int ml_ending_exit_code(const struct ml_ending *ending);

/* Its name, /proc/PID/comm. Where that is what a run-time calls its first thread and says nothing
 * of the program (Node.js from 23 on), the executable's. */
void ml_process_name(pid_t pid, char out_name[ML_PROCESS_NAME_BYTES]);

/* Its command line. Errors: ML_ENV_MISSING it is gone or has none; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_process_command_line(pid_t pid, struct ml_command_line *out_line);

/* The path of its executable, NUL-terminated, cut at size_bytes; "": unknown. */
void ml_process_executable(pid_t pid, char *out_path, size_t size_bytes);

/* Whether every user of the machine has a number in our user namespace: only then the overflow
 * uid is one user, not any of those without. False if that cannot be seen. The other reads it from
 * the text of /proc/PID/uid_map. */
bool ml_process_has_all_users(void);
bool ml_users_are_all(const char *uid_map);

/* Whether a file of that name is mapped by it; false if that cannot be seen. */
bool ml_process_maps(pid_t pid, const char *file_name);

/* Whether it sees no file of that name: it has another root, or other mounts; false if that cannot
 * be seen: not behind a link, nor in a file system in user space, which is not asked. */
bool ml_process_misses(pid_t pid, const char *path);

/* Its parent; 0: unknown. */
pid_t ml_process_parent(pid_t pid);

/* The same from the text of /proc/PID/stat. */
pid_t ml_process_parent_parse(const char *text);

/* What an exec changes: where code and stack begin. All 0: it cannot be read, or there is no image
 * (a zombie, the middle of an exec). */
struct ml_image_mark {
    uint64_t start_code, start_stack;
};

/* Which process it is, and which image it runs. */
struct ml_process_facts {
    char state;           /* as the kernel's: 'R', 'S', 'Z', ...; 0: there is no such process */
    bool has_ended;       /* it is gone, or a zombie all of whose threads have ended */
    bool is_ending;       /* its first thread ends, and may have no image any more */
    pid_t parent;         /* 0: unknown */
    uint64_t start_ticks; /* since boot: with the pid, one process; an exec does not change it */
    struct ml_image_mark image;
};

/* Source: /proc/PID/stat. The same file made by another exec has another mark: the kernel draws
 * the stack's place anew. Without address randomization it depends on arguments and environment. */
struct ml_process_facts ml_process_facts(pid_t pid);

/* The same from the file's text. */
struct ml_process_facts ml_process_facts_parse(const char *text);

bool ml_image_mark_is_known(const struct ml_image_mark *mark);

/* Both are known, and of two images. */
bool ml_image_mark_differs(const struct ml_image_mark *one, const struct ml_image_mark *other);

/* All 0: unknown. Units: bytes. */
struct ml_footprint {
    uint64_t private_bytes; /* memory of its own: Private_Clean + Private_Dirty + swap */
    uint64_t resident_bytes;
    uint64_t files_bytes; /* of the private: at least so much is pages of files as they are on the
                             disk, code for the most part; 0 where the kernel does not tell kinds
                             apart */
};

/* Source: /proc/PID/smaps_rollup. */
struct ml_footprint ml_process_footprint(pid_t pid);

/* The same from smaps_rollup's text. */
struct ml_footprint ml_process_footprint_parse(const char *text);

/* How a process ended. Asks the kernel in every way (as a child, by the zombie's stat, by the
 * pidfd's info since Linux 6.15). `pidfd` may be -1. */
struct ml_ending ml_process_ending(pid_t pid, int pidfd);

/* What the text of /proc/PID/stat says of it: field 52, shown while it is a zombie and to whom may
 * look. */
struct ml_ending ml_process_ending_parse(const char *text);

#endif

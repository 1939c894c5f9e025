/* The files in which a process's run-time tells of the code that it makes: /tmp/perf-PID.map and
 * jit-PID.dump. Room: host. Context: the host's one thread; opens, and reads nothing of them.
 *
 * One rule: a file is taken only if it is the process's own. It is a regular file, not reached by a
 * link, its owner is the process's user by the kernel's word, and it was written since the process
 * began: an older one is of an earlier process with the same number.
 *
 * No file system in user space is asked of another mount namespace or root (host/kernel/mounts.h).
 */
#ifndef MEMLOG_HOST_PROCESS_CODE_FILES_H
#define MEMLOG_HOST_PROCESS_CODE_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Where they are. What is needed after the process's end is learnt while it runs: then neither its
 * number in its own pid namespace nor its /tmp can be found any more. */
struct ml_code_files {
    pid_t inner_pid; /* as the process itself knows it; 0: not known, there are no files */
    uid_t user, user_at_start;
    bool is_foreign;     /* its root or mount namespace is another one: our paths are not its */
    int tmp_fd_plus_1;   /* /tmp of such a one, O_PATH; 0: it cannot be had */
    char *jit_dump_path; /* that it has mapped, or where it would be; NULL: not known */
};

/* Look at the process: when it reports itself, and again before its files are opened. What cannot
 * be seen stays as it was. All zero to begin with. */
void ml_code_files_look(struct ml_code_files *files, pid_t pid);
void ml_code_files_fini(struct ml_code_files *files);

/* A mapping of the process is of that file. */
void ml_code_files_mapped(struct ml_code_files *files, const char *path);

/* Open one for reading; the process may have ended. `since_ns` is when it began, CLOCK_REALTIME.
 * -1: there is none that may be taken. Owner: the caller. */
int ml_code_files_perf_map(const struct ml_code_files *files, uint64_t since_ns);
int ml_code_files_jit_dump(const struct ml_code_files *files, uint64_t since_ns);

/* The process's number in the innermost pid namespace and its user, from the text of
 * /proc/PID/status. False: they are not there. */
bool ml_code_files_parse(const char *status, pid_t *out_inner_pid, uid_t *out_user);

#endif

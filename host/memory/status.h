/* What the kernel tells of a process's memory as a whole. Room: host. Context: any; reads /proc
 * only.
 *
 * One rule: it is readable where mappings are not: of other users' processes, and of those that
 * have made themselves undumpable. */
#ifndef MEMLOG_HOST_MEMORY_STATUS_H
#define MEMLOG_HOST_MEMORY_STATUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Units: KiB. */
struct ml_memory_status {
    bool is_known; /* false: the process is gone, or has no memory left */
    uint64_t anonymous_kb, file_kb, shared_kb; /* resident, by kind */
    uint64_t swap_kb;
    uint64_t page_tables_kb, kernel_stacks_kb; /* beside its mappings */
    int tracer_pid;                            /* 0: nobody traces it */
    int seccomp_mode; /* of the thread; 0: no filter watches it, or the kernel has none */
};

/* Why a process has no mappings in a dump. */
#define ML_MEMORY_UNREADABLE "unreadable: only its user, or root, may read its mappings"

struct ml_memory_status ml_memory_status_read(pid_t pid);

/* The same from the text of /proc/PID/status. */
struct ml_memory_status ml_memory_status_parse(const char *text);

/* Its resident memory that neither a file backs nor others may map, by the cheapest of the kernel's
 * files (10 us); 0: it is gone. Pages that it shares with its forks count. Units: bytes. */
uint64_t ml_memory_private_bytes(pid_t pid);

/* The same from the text of /proc/PID/statm. */
uint64_t ml_memory_private_parse(const char *text, uint64_t page_bytes);

/* Why /proc/PID/NAME cannot be opened, as an errno; 0: it can, or the process is gone. */
int ml_memory_file_error(pid_t pid, const char *name);

#endif

/* How a child becomes memlog-analyzer, which reads what somebody else made: without files, network
 * or descendants, within bounds of time and memory. Room: host. Context: a child between fork and
 * exec.
 *
 * One rule: async-signal-safe calls alone. */
#ifndef MEMLOG_HOST_COLLECT_ANALYZER_BECOME_H
#define MEMLOG_HOST_COLLECT_ANALYZER_BECOME_H

#include <stdint.h>

/* What it may take: seconds of the processor, and address space. */
enum { ML_ANALYZER_CPU_S = 60 };
#define ML_ANALYZER_MEMORY_BYTES ((uint64_t)3 << 30)

/* With what it ends that could not be started. */
enum { ML_ANALYZER_NOT_STARTED = 127 };

/* `command` of it, of at most 15 letters: `file_fd` is its stdin, `socket_fd` its descriptor 3. It
 * ends with the thread that forked it, and does not return. */
void ml_analyzer_become(const char *path, const char *command, int file_fd, int socket_fd);

#endif

/* What kind of image a program is, before it runs. Room: host. Context: the host's one thread,
 * before the program is started.
 *
 * One rule: the host parses no ELF; the kernel does. A child makes the exec under ptrace and is
 * killed at its first instruction, of which it has run none. */
#ifndef MEMLOG_HOST_PROCESS_PROBE_H
#define MEMLOG_HOST_PROCESS_PROBE_H

#include "host/process/image.h"

/* argv as for execvp. ML_IMAGE_GONE: nobody can tell (no such program, or this system permits no
 * ptrace). Waits for the exec, well under a millisecond.
 *
 * Owner: *out_executable_fd, the file that runs (a script's interpreter), to read from, is the
 *        caller's; -1: it cannot be read. NULL: it is not wanted. */
enum ml_image_kind ml_probe_program(char *const *argv, int *out_executable_fd);

#endif

/* The program's own files, and its code. Room: client (private). Context: the constructor: one
 * thread.
 *
 * One rule: the program's memory keeps its protection. Code is written by /proc/self/mem, since a
 * program that may not gain executable memory (PR_SET_MDWE, a seccomp filter of systemd's) could
 * not be given back what a change of protection takes. */
#ifndef MEMLOG_CLIENT_STARTUP_PROGRAM_FILE_H
#define MEMLOG_CLIENT_STARTUP_PROGRAM_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Map a file, read only; `path` NULL: the executable's. NULL: it cannot be read, or is empty. */
const uint8_t *ml_program_file_map(const char *path, size_t *out_bytes);

void ml_program_file_unmap(const uint8_t *file, size_t count_bytes);

/* /proc/self/mem, to write to; -1: none. Closed by ml_sys_close. */
int ml_program_code_open(void);

/* Write `bytes` over the code at `at`. False: the kernel refuses, and nothing is changed. */
bool ml_program_code_write(int fd, uintptr_t at, const uint8_t *bytes, size_t count_bytes);

#endif

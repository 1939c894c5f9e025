/* Opens files that a user names, for reading. Room: base. Context: any.
 *
 * One rule: opening never blocks, whatever the name leads to. Devices are not opened at all, since
 * that may have effects. A pipe is accepted when it has a writer. */
#ifndef MEMLOG_BASE_INPUT_FILE_H
#define MEMLOG_BASE_INPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* A descriptor of a regular file, close-on-exec; -1: errno says why, as below and ESPIPE for a
 * pipe.
 */
int ml_input_regular(const char *path);

/* A regular file, or a pipe that has a writer (`<(program)` of a shell, /dev/stdin).
 * *out_is_stream: it can be read only once. NULL: errno says why; ENXIO for a pipe without a writer
 * and for a socket; ENODEV for a device, EISDIR for a folder. Owner: fclose. */
FILE *ml_input_open(const char *path, bool *out_is_stream);

/* The errno of either as a message for people, better than strerror()'s. */
const char *ml_input_trouble(int error);

#endif

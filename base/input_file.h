/* Files that somebody names, opened for reading. Room: base. Context: any.
 *
 * One rule: nothing that a name leads to holds who opens it up, and a device is not even touched
 * (opening one may start something). A pipe is taken where somebody writes to it. */
#ifndef MEMLOG_BASE_INPUT_FILE_H
#define MEMLOG_BASE_INPUT_FILE_H

#include <stdbool.h>
#include <stdio.h>

/* A descriptor of a regular file, close-on-exec; -1: errno says why, as below and ESPIPE for a
 * pipe.
 */
int ml_input_regular(const char *path);

/* A regular file, or a pipe that somebody writes to (`<(program)` of a shell, /dev/stdin):
 * *out_is_stream, it can be read once. NULL: errno says why; ENXIO where nobody writes to the pipe,
 * and of a socket; ENODEV for a device, EISDIR for a folder. Owner: fclose. */
FILE *ml_input_open(const char *path, bool *out_is_stream);

/* errno of either in words, where strerror() is none for a person. */
const char *ml_input_trouble(int error);

#endif

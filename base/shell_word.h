/* A word of a command line that a person copies. Room: base. Context: any; pure. */
#ifndef MEMLOG_BASE_SHELL_WORD_H
#define MEMLOG_BASE_SHELL_WORD_H

#include <stdbool.h>
#include <stddef.h>

/* Write the text so that a shell takes it as one word: as it is where nothing in it means anything
 * to one, else in quotes; with escapes ($'\x1b', as bash and others have it) for what is not
 * printable (base/printable.h). NUL-terminated. False: it does not fit, and `out` is "".
 * `out_bytes` is at least 1. */
bool ml_shell_word(const char *text, char *out, size_t out_bytes);

#endif

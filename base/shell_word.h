/* Quotes a word of a command line that a person may copy. Room: base. Context: any; pure. */
#ifndef MEMLOG_BASE_SHELL_WORD_H
#define MEMLOG_BASE_SHELL_WORD_H

#include <stdbool.h>
#include <stddef.h>

/* Write the text so that a shell reads it as one word: unchanged if a shell gives nothing in it a
 * meaning, else in quotes. Unprintable characters (base/printable.h) are escaped as bash does
 * ($'\x1b'). NUL-terminated. False: it does not fit, and `out` is "". `out_bytes` is at least 1. */
bool ml_shell_word(const char *text, char *out, size_t out_bytes);

#endif

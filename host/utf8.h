/* Words of others that people will read. Room: host. Context: any; pure.
 *
 * One rule: what comes out is UTF-8 of one line that no terminal and no page acts upon. */
#ifndef MEMLOG_HOST_UTF8_H
#define MEMLOG_HOST_UTF8_H

#include <stddef.h>

/* Length of the UTF-8 sequence at `bytes`, of which `left` are there; 0: it is none. Overlong forms
 * and surrogates are none. */
size_t ml_utf8_count(const unsigned char *bytes, size_t left);

/* Copy with a question mark for each byte that is no UTF-8 and each character that is no plain one:
 * controls, line and paragraph ends, those that turn the direction of writing. Cut between two
 * characters where `out` is too small. `out_bytes` is at least 1. Answers the length. */
size_t ml_utf8_clean(const char *bytes, size_t count_bytes, char *out, size_t out_bytes);

#endif

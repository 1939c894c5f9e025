/* UTF-8, one character at a time. Room: base. Context: any; pure. */
#ifndef MEMLOG_BASE_UTF8_H
#define MEMLOG_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length of the well-formed sequence at `bytes`, of which `left` are there; 0: there is none.
 * Overlong forms, surrogates and values above U+10FFFF are none. A NUL is a character like others.
 */
size_t ml_utf8_length(const char *bytes, size_t left);

/* The character of a sequence of that length, as ml_utf8_length() found it (1 to 4). */
uint32_t ml_utf8_character(const char *bytes, size_t length);

#endif

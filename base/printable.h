/* Words of others that people read: on a terminal, in a log line, in a page. Room: base. Context:
 * any; the same bytes give the same answer in every locale.
 *
 * One rule: what comes out is UTF-8 of one line that no terminal and no page acts upon. Each byte
 * that is no UTF-8, and each character that is a control (C0, DEL, C1), ends a line or a paragraph,
 * turns the direction of writing, or shows nothing at all, becomes one question mark. */
#ifndef MEMLOG_BASE_PRINTABLE_H
#define MEMLOG_BASE_PRINTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Whether the character is visible in its place and has no other effect. */
bool ml_printable(uint32_t character);

/* Copy into `out`, of at least one byte, NUL-terminated; cut between two characters if too long.
 * Returns the length. */
size_t ml_printable_copy(const char *bytes, size_t count_bytes, char *out, size_t out_bytes);

/* The same in place: the text gets no longer. */
void ml_printable_clean(char *text);

/* Write to a file. Errors stay with the file: look at ferror() at the end. */
void ml_printable_put(FILE *out, const char *bytes, size_t count_bytes);
void ml_printable_put_text(FILE *out, const char *text);

/* Columns of a terminal that the written text takes: two for a wide character, none for a combining
 * one. */
size_t ml_printable_columns(const char *text);

/* Bytes of the longest prefix, or the start of the longest suffix, that takes at most so many
 * columns. Neither separates a character from its combining ones. */
size_t ml_printable_head(const char *text, size_t columns);
size_t ml_printable_tail(const char *text, size_t columns);

#endif

/* Foreign text made safe to show on a terminal, in a log line or in a page. Room: base. Context:
 * any; the same bytes give the same answer in every locale.
 *
 * One rule: the output is one line of UTF-8 that no terminal and no page acts upon. One question
 * mark replaces each byte that is not UTF-8, and each character that is a control (C0, DEL, C1),
 * breaks a line or a paragraph, changes the direction of writing, or is invisible. */
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

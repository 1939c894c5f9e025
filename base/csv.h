/* Comma-separated values for spreadsheets (RFC 4180). Room: base. Context: any.
 *
 * One rule: a cell is shown, never computed. To a spreadsheet, text that begins with `=`, `+`, `-`,
 * `@` (or their full-width forms) is a formula. Some also start a cell at each `;`. An apostrophe
 * before such a character, which spreadsheets hide, prevents that. An unprintable character
 * (base/printable.h) becomes a question mark, so a cell is one line. */
#ifndef MEMLOG_BASE_CSV_H
#define MEMLOG_BASE_CSV_H

#include <stdbool.h>
#include <stdio.h>

/* Write a cell, in quotes. Errors stay with the file. */
void ml_csv_text(FILE *out, const char *text);

/* A cell of several texts with a separator such as `;`: open, put each, close. Within a text the
 * separator becomes `:`. */
void ml_csv_open(FILE *out);
void ml_csv_put(FILE *out, const char *text, char sign, bool is_first);
void ml_csv_close(FILE *out);

#endif

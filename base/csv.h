/* Comma-separated values for spreadsheets (RFC 4180). Room: base. Context: any.
 *
 * One rule: a cell is shown, never computed. Spreadsheets take a cell for a formula that begins
 * with `=`, `+`, `-`, `@` (or their full-width forms), and some start a cell at each `;`: there an
 * apostrophe is put before it, which spreadsheets do not show. What is not printable
 * (base/printable.h) becomes a question mark, so a cell is one line. */
#ifndef MEMLOG_BASE_CSV_H
#define MEMLOG_BASE_CSV_H

#include <stdbool.h>
#include <stdio.h>

/* Write a cell, in quotes. Errors stay with the file. */
void ml_csv_text(FILE *out, const char *text);

/* A cell of several texts with a sign between them, `;` for instance: open, put each, close. The
 * sign becomes `:` where it stands within a text. */
void ml_csv_open(FILE *out);
void ml_csv_put(FILE *out, const char *text, char sign, bool is_first);
void ml_csv_close(FILE *out);

#endif

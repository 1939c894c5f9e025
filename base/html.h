/* Foreign text in a page of HTML. Room: base. Context: any. */
#ifndef MEMLOG_BASE_HTML_H
#define MEMLOG_BASE_HTML_H

#include <stdio.h>

/* Write a text between tags, or into an attribute in quotes: unprintable characters replaced
 * (base/printable.h), markup escaped. Errors stay with the file. */
void ml_html_text(FILE *out, const char *text);

#endif

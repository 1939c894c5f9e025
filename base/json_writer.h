/* JSON, written as it comes. Room: base. Context: one thread.
 *
 * One rule: the output is valid UTF-8 for any input. Invalid bytes become U+FFFD. Characters that a
 * terminal or an editor would act upon (base/printable.h) are escaped, which JSON parsers undo.
 * Errors of the file stay with the file: look at ferror() at the end.
 */
#ifndef MEMLOG_BASE_JSON_WRITER_H
#define MEMLOG_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ml_json {
    FILE *out;
    bool needs_comma;
    bool in_html; /* '<' is escaped, so no text can end the enclosing script element */
};

struct ml_json ml_json_over(FILE *out);

/* '{' or '[', and '}' or ']'. */
void ml_json_open(struct ml_json *json, char bracket);
void ml_json_close(struct ml_json *json, char bracket);

/* A member's name; its value comes next. */
void ml_json_key(struct ml_json *json, const char *name);

/* A line break between values, for people who look at the file. */
void ml_json_line(struct ml_json *json);

void ml_json_text(struct ml_json *json, const char *bytes, size_t count_bytes);
void ml_json_string(struct ml_json *json, const char *text);
void ml_json_number(struct ml_json *json, uint64_t value);
void ml_json_integer(struct ml_json *json, int64_t value);
/* With fifteen digits; null for what is no number. */
void ml_json_double(struct ml_json *json, double value);
void ml_json_bool(struct ml_json *json, bool value);
void ml_json_null(struct ml_json *json);

/* Name and value in one; or a name and the bracket that its value begins with. */
void ml_json_open_member(struct ml_json *json, const char *name, char bracket);
void ml_json_text_member(
    struct ml_json *json, const char *name, const char *bytes, size_t count_bytes
);
void ml_json_string_member(struct ml_json *json, const char *name, const char *text);
void ml_json_number_member(struct ml_json *json, const char *name, uint64_t value);
void ml_json_double_member(struct ml_json *json, const char *name, double value);
void ml_json_bool_member(struct ml_json *json, const char *name, bool value);

#endif

#include "tools/function_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

size_t ml_text_columns(const char *text) {
    size_t columns = 0;

    for (; *text; text++) {
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    }
    return columns;
}

/* Copy without what stands between `open` and `close`. The operators <, <<, <=, ->, () keep theirs.
 */
static void
drop_between(const char *name, char open, char close, char *out_name, size_t out_bytes) {
    size_t at = 0;
    int depth = 0;

    for (const char *in = name; *in && at + 6 < out_bytes; in++) {
        bool is_operator = in - name >= 8 && strncmp(in - 8, "operator", 8) == 0;
        if (*in == open && !is_operator && !(in > name && in[-1] == open && depth == 0)) {
            if (depth++ == 0 && in[1] != close) {
                out_name[at++] = open;
                memcpy(out_name + at, "...", 3);
                at += 3;
            } else if (depth == 1) {
                out_name[at++] = open;
            }
            continue;
        }
        if (*in == close && depth > 0 && in[-1] != '-') {
            if (--depth == 0) {
                out_name[at++] = close;
            }
            continue;
        }
        if (depth == 0) {
            out_name[at++] = *in;
        }
    }
    out_name[at] = '\0';
}

static const char *behind_return_type_of_operator(const char *name, const char *start) {
    while (start > name && start[-1] != ' ') {
        start--;
    }
    return start;
}

/* Where the name begins behind a return type; at the start if there is none. Nothing but "<...>"
 * and
 * "(...)" holds a blank that is no separator, and those are gone. */
static const char *behind_return_type(const char *name) {
    const char *end = name + strcspn(name, "(");
    const char *start = end;

    while (start > name && start[-1] != ' ') {
        start--;
    }
    if (start - name >= 9 && strncmp(start - 9, "operator ", 9) == 0) {
        return behind_return_type_of_operator(name, start - 9);
    }
    return start;
}

/* Where the column begins, counted from 0. */
static const char *column_at(const char *text, size_t column) {
    for (; *text; text++) {
        if (((unsigned char)*text & 0xc0) != 0x80 && column-- == 0) {
            break;
        }
    }
    return text;
}

static void drop_middle(const char *name, size_t columns, char *out_name, size_t out_bytes) {
    size_t all = ml_text_columns(name);
    size_t kept = columns > 3 ? columns - 3 : 0;
    size_t head = kept / 3;
    const char *tail = column_at(name, all - (kept - head));
    int head_bytes = (int)(column_at(name, head) - name);

    snprintf(out_name, out_bytes, "%.*s...%s", head_bytes, name, tail);
}

void ml_function_name_fit(const char *name, size_t columns, char *out_name, size_t out_bytes) {
    char shorter[1024];

    snprintf(out_name, out_bytes, "%s", name);
    if (ml_text_columns(out_name) <= columns) {
        return;
    }
    drop_between(name, '<', '>', shorter, sizeof shorter);
    snprintf(out_name, out_bytes, "%s", behind_return_type(shorter));
    if (ml_text_columns(out_name) <= columns) {
        return;
    }
    snprintf(shorter, sizeof shorter, "%s", out_name);
    drop_between(shorter, '(', ')', out_name, out_bytes);
    if (ml_text_columns(out_name) <= columns) {
        return;
    }
    snprintf(shorter, sizeof shorter, "%s", out_name);
    drop_middle(shorter, columns, out_name, out_bytes);
}

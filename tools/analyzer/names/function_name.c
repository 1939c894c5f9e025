#include "tools/analyzer/names/function_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"

/* The length of a word at `at` that contains brackets or signs; 0: there is none. */
static size_t word_bytes(const char *at) {
    static const char *const words[] = {
        "(anonymous namespace)",
        "operator()",
        "operator<<",
        "operator<=",
        "operator<",
        "operator->"};

    if (*at != '(' && *at != 'o') {
        return 0; /* it is asked of every byte of every name */
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t count = strlen(words[i]);
        if (strncmp(at, words[i], count) == 0) {
            return count;
        }
    }
    return 0;
}

/* Copy with "..." for what stands between `open` and `close`. */
static void
drop_between(const char *name, char open, char close, char *out_name, size_t out_bytes) {
    size_t at = 0;
    int depth = 0;

    for (const char *in = name; *in && at + 32 < out_bytes; in++) {
        size_t word = word_bytes(in);
        if (word > 0) {
            if (depth == 0) {
                memcpy(out_name + at, in, word);
                at += word;
            }
            in += word - 1;
            continue;
        }
        if (*in == open && depth++ == 0) {
            out_name[at++] = open;
            if (in[1] != close) {
                memcpy(out_name + at, "...", 3);
                at += 3;
            }
        }
        if (*in == close && depth > 0 && in[-1] != '-') {
            depth--;
        }
        if (depth == 0) {
            out_name[at++] = *in;
        }
    }
    out_name[at] = '\0';
}

/* The name without its return type. Template arguments are "<...>" already. Without a return type
 * it is the whole text. */
static const char *behind_return_type(const char *name) {
    const char *start = name;

    for (const char *at = name; *at && *at != '('; at++) {
        size_t word = word_bytes(at);
        if (word > 0) {
            at += word - 1;
        } else if (strncmp(at, "operator ", 9) == 0) {
            break; /* "operator new", "operator bool" */
        } else if (*at == ' ') {
            start = at + 1;
        }
    }
    return start;
}

static void drop_middle(const char *name, size_t columns, char *out_name, size_t out_bytes) {
    const size_t kept = columns > 3 ? columns - 3 : 0;
    const size_t head = kept / 3;
    const char *tail = name + ml_printable_tail(name, kept - head);
    const int head_bytes = (int)ml_printable_head(name, head);

    snprintf(out_name, out_bytes, "%.*s...%s", head_bytes, name, tail);
}

void ml_function_name_fit(const char *name, size_t columns, char *out_name, size_t out_bytes) {
    char shorter[1024];

    snprintf(out_name, out_bytes, "%s", name);
    if (ml_printable_columns(out_name) <= columns) {
        return;
    }
    drop_between(name, '<', '>', shorter, sizeof shorter);
    snprintf(out_name, out_bytes, "%s", behind_return_type(shorter));
    if (ml_printable_columns(out_name) <= columns) {
        return;
    }
    snprintf(shorter, sizeof shorter, "%s", out_name);
    drop_between(shorter, '(', ')', out_name, out_bytes);
    if (ml_printable_columns(out_name) <= columns) {
        return;
    }
    snprintf(shorter, sizeof shorter, "%s", out_name);
    drop_middle(shorter, columns, out_name, out_bytes);
}

void ml_file_name_fit(const char *name, size_t columns, char *out_name, size_t out_bytes) {
    if (ml_printable_columns(name) <= columns) {
        snprintf(out_name, out_bytes, "%s", name);
    } else {
        drop_middle(name, columns, out_name, out_bytes);
    }
}

void ml_function_name_bare(const char *name, char *out_name, size_t out_bytes) {
    char shorter[1024];

    drop_between(name, '<', '>', shorter, sizeof shorter);
    snprintf(out_name, out_bytes, "%s", behind_return_type(shorter));
}

/* Leave out what stands between two marks, and the marks, too, unless they are kept. */
static void drop_marked(char *name, const char *first, char last, bool is_kept) {
    for (char *mark = strstr(name, first); mark; mark = strstr(mark + 1, first)) {
        char *from = mark + (is_kept ? strlen(first) : 0);
        const char *end = strchr(from, last);
        if (!end) {
            return;
        }
        end += is_kept ? 0 : 1;
        memmove(from, end, strlen(end) + 1);
        if (!*mark) {
            return;
        }
    }
}

/* Leave out the operator of a lambda, which has no other one. */
static void drop_lambda_operator(char *name) {
    static const char operator_of_lambda[] = "}::operator()";
    const size_t count = sizeof operator_of_lambda - 1;
    const size_t all = strlen(name);

    if (all > count && strcmp(name + all - count, operator_of_lambda) == 0) {
        name[all - count + 1] = '\0';
    }
}

void ml_function_name_brief(const char *name, char *out_name, size_t out_bytes) {
    char bare[1024];
    char shorter[1024];
    const char *last = NULL;
    const char *last_but_one = NULL;

    drop_between(name, '<', '>', shorter, sizeof shorter);
    drop_between(behind_return_type(shorter), '(', ')', bare, sizeof bare);
    drop_marked(bare, "[abi:", ']', false);  /* marks of the compiler's, not the program's */
    drop_marked(bare, "{lambda", '}', true); /* "{lambda(...)#1}" */
    for (char *at = bare; *at; at++) {
        size_t word = word_bytes(at);
        if (word > 0) {
            at += word - 1;
        } else if (*at == '(') {
            *at = '\0'; /* parameters, and what follows them */
            break;
        }
    }
    drop_lambda_operator(bare);
    for (char *at = bare; *at; at++) {
        size_t word = word_bytes(at);
        if (word > 0) {
            at += word - 1;
        } else if (at[0] == ':' && at[1] == ':') {
            last_but_one = last;
            last = ++at + 1;
        }
    }
    snprintf(out_name, out_bytes, "%s", last_but_one ? last_but_one : bare);
}

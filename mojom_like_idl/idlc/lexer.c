#include "mojom_like_idl/idlc/lexer.h"

#include <ctype.h>
#include <string.h>

struct lexer {
    struct source *source;
    const char *at;
    const char *line_start;
    int line;
    bool is_line_begun; /* a token stands on this line */
    struct words words;
};

static struct place here(const struct lexer *l) {
    return (struct place){.line = l->line, .column = (int)(l->at - l->line_start) + 1};
}

static bool is_name_char(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static void add_comment(struct lexer *l) {
    const char *start = l->at + 2;
    if (*start == ' ') {
        start++;
    }
    const char *end = start + strcspn(start, "\n");
    l->at = end;
    while (end > start && isspace((unsigned char)end[-1])) {
        end--;
    }
    l->words.comments[l->words.comment_count++] = (struct comment
    ){.line = l->line,
      .follows_code = l->is_line_begun,
      .text = pool_copy(l->source->pool, start, (size_t)(end - start))};
}

static void skip_blank(struct lexer *l) {
    for (;;) {
        if (*l->at == '\n') {
            l->at++;
            l->line++;
            l->line_start = l->at;
            l->is_line_begun = false;
        } else if (*l->at == ' ' || *l->at == '\t' || *l->at == '\r') {
            l->at++;
        } else if (l->at[0] == '/' && l->at[1] == '/') {
            add_comment(l);
        } else {
            return;
        }
    }
}

static void cut_integer(struct lexer *l, struct token *token) {
    const char *start = l->at;
    unsigned base = 10;
    if (l->at[0] == '0' && (l->at[1] == 'x' || l->at[1] == 'X')) {
        base = 16;
        l->at += 2;
    }
    const char *digits = l->at;
    for (; isxdigit((unsigned char)*l->at); l->at++) {
        const char c = (char)tolower((unsigned char)*l->at);
        const unsigned digit = (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
        if (digit >= base) {
            break;
        }
        if (token->number > (UINT64_MAX - digit) / base) {
            source_error(l->source, token->place, "expected a number below 2^64");
        }
        token->number = token->number * base + digit;
    }
    if (l->at == digits || is_name_char(*l->at)) {
        source_error(l->source, here(l), "expected a digit, found '%.*s'", *l->at != 0, l->at);
    }
    token->kind = TOKEN_INTEGER;
    token->text = pool_copy(l->source->pool, start, (size_t)(l->at - start));
}

static void cut_string(struct lexer *l, struct token *token) {
    const char *start = ++l->at;
    while (*l->at != '"') {
        if (*l->at == '\n' || *l->at == 0) {
            source_error(l->source, token->place, "expected '\"' before the end of the line");
            return;
        }
        if (*l->at == '\\') {
            source_error(l->source, here(l), "expected a string without '\\'");
            return;
        }
        l->at++;
    }
    token->kind = TOKEN_STRING;
    token->text = pool_copy(l->source->pool, start, (size_t)(l->at - start));
    l->at++;
}

static void cut_token(struct lexer *l, struct token *token) {
    const char *start = l->at;
    if (isalpha((unsigned char)*l->at) || *l->at == '_') {
        while (is_name_char(*l->at)) {
            l->at++;
        }
        token->kind = TOKEN_NAME;
    } else if (isdigit((unsigned char)*l->at)) {
        cut_integer(l, token);
        return;
    } else if (*l->at == '"') {
        cut_string(l, token);
        return;
    } else if (l->at[0] == '=' && l->at[1] == '>') {
        l->at += 2;
        token->kind = TOKEN_SIGN;
    } else if (strchr(";,{}()<>[]=?@.-", *l->at) != NULL) {
        l->at++;
        token->kind = TOKEN_SIGN;
    } else {
        const unsigned char c = (unsigned char)*l->at;
        if (isprint(c)) {
            source_error(l->source, token->place, "unexpected character '%c'", c);
        } else {
            source_error(l->source, token->place, "unexpected byte 0x%02x", c);
        }
        return;
    }
    token->text = pool_copy(l->source->pool, start, (size_t)(l->at - start));
}

struct words lexer_cut(struct source *source) {
    /* Each token and each comment takes a byte of the text at least, and the end is one more. */
    const size_t most = strlen(source->text) + 1;
    struct lexer l = {
        .source = source,
        .at = source->text,
        .line_start = source->text,
        .line = 1,
        .words = {
            .tokens = pool_take(source->pool, most * sizeof(struct token)),
            .comments = pool_take(source->pool, most * sizeof(struct comment))}};
    for (;;) {
        skip_blank(&l);
        struct token *token = &l.words.tokens[l.words.token_count++];
        *token = (struct token){.kind = TOKEN_END, .place = here(&l)};
        if (*l.at == 0) {
            if ((size_t)(l.at - source->text) < source->text_bytes) {
                source_error(source, token->place, "unexpected byte 0x00");
            }
            return l.words;
        }
        l.is_line_begun = true;
        cut_token(&l, token);
        if (source->failed) {
            *token = (struct token){.kind = TOKEN_END, .place = token->place};
            return l.words;
        }
    }
}

const char *lexer_describe(struct source *source, const struct token *token) {
    if (token->kind == TOKEN_END) {
        return "the end of the file";
    }
    const char *quote = token->kind == TOKEN_STRING ? "\"" : "'";
    return pool_print(source->pool, "%s%s%s", quote, token->text, quote);
}

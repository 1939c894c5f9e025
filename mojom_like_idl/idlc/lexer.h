/* Text into words. Room: mojom_like_idl (idlc).
 *
 * One rule: comments are not words; they are kept by line, so that the emitter can find them. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_IDLC_LEXER_H
#define MEMLOG_MOJOM_LIKE_IDL_IDLC_LEXER_H

#include <stdbool.h>
#include <stdint.h>

#include "mojom_like_idl/idlc/source.h"

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_INTEGER, /* decimal or 0x; never signed: '-' is a word of its own */
    TOKEN_STRING,
    TOKEN_SIGN, /* one of ; , { } ( ) < > [ ] = ? @ . - or the pair => */
};

struct token {
    enum token_kind kind;
    struct place place;
    char *text;      /* as written; of a string what is between the quotes */
    uint64_t number; /* of an integer */
};

struct comment {
    int line;
    bool follows_code; /* something stands before it on its line */
    char *text;        /* behind the slashes and one blank */
};

struct words {
    struct token *tokens; /* the last one is TOKEN_END */
    int token_count;
    struct comment *comments; /* by line */
    int comment_count;
};

/* Cut the whole text. On an error source->failed is set and the words end there. */
struct words lexer_cut(struct source *source);

/* How an error names a token: "';'", "the end of the file". Owner: the pool's. */
const char *lexer_describe(struct source *source, const struct token *token);

#endif

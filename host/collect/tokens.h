/* Who may send reports and who may ask: tokens of teams. Room: host. Context: one thread.
 *
 * One rule: a token is worth what its line says, for its team alone. It is compared in a time that
 * does not depend on it, and is in no message.
 *
 * Shape of the file: a line a token, `TEAM RIGHT TOKEN`: TEAM is a word of small letters, digits,
 * '-' and '_'; RIGHT is write (send reports), read (ask) or admin (delete, too); TOKEN has 16 to
 * 128 letters, digits, '-' and '_'. Empty lines and those with '#' in front count for nothing. A
 * write token is also the secret of an S3 access key whose id is the team. */
#ifndef MEMLOG_HOST_COLLECT_TOKENS_H
#define MEMLOG_HOST_COLLECT_TOKENS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

enum { ML_TEAM_BYTES = 33, ML_TOKEN_BYTES = 129, ML_TOKENS_MAX = 1024 };

enum ml_right { ML_RIGHT_NONE, ML_RIGHT_WRITE, ML_RIGHT_READ, ML_RIGHT_ADMIN };

struct ml_token {
    char team[ML_TEAM_BYTES];
    enum ml_right right;
    char token[ML_TOKEN_BYTES];
};

struct ml_tokens {
    struct ml_token *list;
    size_t count;
};

/* Read the file. Errors: ML_ENV_SYSTEM; ML_ENV_REFUSED: others may read it, or it is another
 * user's; ML_PEER_FORM with the line's number. Owner: ml_tokens_fini, which wipes them. */
ML_NODISCARD enum ml_status
ml_tokens_read(const char *path, struct ml_tokens *out_tokens, struct ml_error_message *error);

/* The same of a text, for tests. */
ML_NODISCARD enum ml_status
ml_tokens_parse(const char *text, struct ml_tokens *out_tokens, struct ml_error_message *error);

/* Make a file with new tokens of the team "default": one to write, one to read. Nothing happens
 * where there is one. Errors: ML_ENV_SYSTEM, with an error message. */
ML_NODISCARD enum ml_status ml_tokens_make(const char *path, struct ml_error_message *error);

void ml_tokens_fini(struct ml_tokens *tokens);

/* The token that a request brings, "Authorization: Bearer TOKEN" or the bare word. NULL: it brings
 * none, or one that nobody has. */
const struct ml_token *ml_tokens_find(const struct ml_tokens *tokens, const char *brought);

/* Whether the right includes the other one: admin includes read. */
bool ml_right_includes(enum ml_right right, enum ml_right wanted);

#endif

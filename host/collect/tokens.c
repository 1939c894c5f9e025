#include "host/collect/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 256 << 10, TOKEN_LEAST = 16, FIELDS = 3, NEW_TOKEN_BYTES = 24 };

static const char team_letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
static const char token_letters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

static const char *const rights[] = {
    [ML_RIGHT_WRITE] = "write", [ML_RIGHT_READ] = "read", [ML_RIGHT_ADMIN] = "admin"};

static enum ml_right right_of(const char *word) {
    for (enum ml_right i = ML_RIGHT_WRITE; i <= ML_RIGHT_ADMIN; i++) {
        if (strcmp(word, rights[i]) == 0) {
            return i;
        }
    }
    return ML_RIGHT_NONE;
}

static bool is_of(const char *word, const char *letters, size_t least, size_t most) {
    const size_t count = strlen(word);
    return count >= least && count <= most && strspn(word, letters) == count;
}

/* NULL: the line is one; else what is wrong with it. */
static const char *line_read(char *line, struct ml_token *out_token) {
    char *rest = NULL;
    char *fields[FIELDS + 1];
    for (size_t i = 0; i <= FIELDS; i++) {
        fields[i] = strtok_r(i == 0 ? line : NULL, " \t", &rest);
    }
    if (fields[FIELDS - 1] == NULL || fields[FIELDS] != NULL) {
        return "a line is TEAM RIGHT TOKEN";
    }
    if (!is_of(fields[0], team_letters, 1, ML_TEAM_BYTES - 1)) {
        return "a team is a word of at most 32 small letters, digits, '-' and '_'";
    }
    out_token->right = right_of(fields[1]);
    if (out_token->right == ML_RIGHT_NONE) {
        return "a right is write, read or admin";
    }
    if (!is_of(fields[2], token_letters, TOKEN_LEAST, ML_TOKEN_BYTES - 1)) {
        return "a token has 16 to 128 letters, digits, '-' and '_'";
    }
    (void)snprintf(out_token->team, sizeof(out_token->team), "%s", fields[0]);
    (void)snprintf(out_token->token, sizeof(out_token->token), "%s", fields[2]);
    return NULL;
}

static enum ml_status
lines_read(char *text, struct ml_tokens *tokens, struct ml_error_message *error) {
    unsigned number = 0;
    for (char *line = text, *next = NULL; line != NULL; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) {
            *next++ = '\0';
        }
        number++;
        if (line[strspn(line, " \t")] == '\0' || line[0] == '#') {
            continue;
        }
        const char *wrong = tokens->count < ML_TOKENS_MAX
                                ? line_read(line, &tokens->list[tokens->count])
                                : "there are too many tokens";
        if (wrong != NULL) {
            ml_error_set(error, "line %u: %s", number, wrong);
            return ML_PEER_FORM;
        }
        tokens->count++;
    }
    return ML_OK;
}

enum ml_status
ml_tokens_parse(const char *text, struct ml_tokens *out_tokens, struct ml_error_message *error) {
    char *copy = strdup(text);
    *out_tokens = (struct ml_tokens){.list = calloc(ML_TOKENS_MAX, sizeof(*out_tokens->list))};
    enum ml_status status = ML_ENV_MEMORY;
    if (copy != NULL && out_tokens->list != NULL) {
        status = lines_read(copy, out_tokens, error);
    }
    if (copy != NULL) {
        explicit_bzero(copy, strlen(text));
        free(copy);
    }
    if (status != ML_OK) {
        ml_tokens_fini(out_tokens);
    }
    return status;
}

/* Whether systemd keeps it for this service alone (LoadCredential=): there it is root's, and the
 * service may read it by an entry of its own, which shows as the group's right. */
static bool is_credential(const char *path) {
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    const size_t count = folder != NULL ? strlen(folder) : 0;
    return count > 0 && strncmp(path, folder, count) == 0 && path[count] == '/' &&
           strchr(path + count + 1, '/') == NULL;
}

static bool is_secret(const struct stat *facts, bool by_manager) {
    const mode_t others = by_manager ? (S_IWGRP | S_IXGRP | S_IRWXO) : (S_IRWXG | S_IRWXO);
    return (facts->st_mode & others) == 0 &&
           (facts->st_uid == geteuid() || (by_manager && facts->st_uid == 0));
}

static enum ml_status
fd_read(int fd, bool by_manager, struct ml_tokens *out_tokens, struct ml_error_message *error) {
    struct stat facts;
    if (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        ml_error_set(error, "it is no file");
        return ML_ENV_REFUSED;
    }
    if (!is_secret(&facts, by_manager)) {
        ml_error_set(error, "others may read it, or it is another user's: 'chmod 600' it");
        return ML_ENV_REFUSED;
    }
    char *text = calloc(1, FILE_BYTES_MAX + 1);
    const ssize_t count = text != NULL ? read(fd, text, FILE_BYTES_MAX) : -1;
    enum ml_status status = ML_ENV_SYSTEM;
    if (count >= 0 && memchr(text, 0, (size_t)count) == NULL) {
        status = ml_tokens_parse(text, out_tokens, error);
    } else {
        ml_error_set(error, "it cannot be read");
    }
    if (text != NULL) {
        explicit_bzero(text, FILE_BYTES_MAX);
        free(text);
    }
    return status;
}

enum ml_status
ml_tokens_read(const char *path, struct ml_tokens *out_tokens, struct ml_error_message *error) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    *out_tokens = (struct ml_tokens){.list = NULL};
    if (fd < 0) {
        ml_error_set(error, "%s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    const enum ml_status status = fd_read(fd, is_credential(path), out_tokens, error);
    (void)close(fd);
    return status;
}

void ml_tokens_fini(struct ml_tokens *tokens) {
    if (tokens->list != NULL) {
        explicit_bzero(tokens->list, ML_TOKENS_MAX * sizeof(*tokens->list));
    }
    free(tokens->list);
    *tokens = (struct ml_tokens){.list = NULL};
}

/* ---- new ones */

static bool token_make(char out_token[2 * NEW_TOKEN_BYTES + 1]) {
    unsigned char bytes[NEW_TOKEN_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)snprintf(out_token + 2 * i, 3, "%02x", bytes[i]);
    }
    return true;
}

enum ml_status ml_tokens_make(const char *path, struct ml_error_message *error) {
    char tokens[2][2 * NEW_TOKEN_BYTES + 1];
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == EEXIST) {
        return ML_OK;
    }
    bool done =
        fd >= 0 && token_make(tokens[0]) && token_make(tokens[1]) &&
        dprintf(
            fd,
            "# TEAM RIGHT TOKEN: rights are write (send reports), read (ask), admin (delete, "
            "too).\ndefault write %s\ndefault read %s\n",
            tokens[0],
            tokens[1]
        ) > 0 &&
        fsync(fd) == 0;
    if (!done) {
        ml_error_set(error, "%s", strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    explicit_bzero(tokens, sizeof(tokens));
    return done ? ML_OK : ML_ENV_SYSTEM;
}

/* ---- whose it is */

/* All bytes of both are looked at, whatever the first differing one is. */
static bool is_equal(const char *token, const char *brought) {
    char padded[ML_TOKEN_BYTES] = "";
    unsigned differing = strlen(brought) >= sizeof(padded);
    (void)snprintf(padded, sizeof(padded), "%s", brought);
    for (size_t i = 0; i < sizeof(padded); i++) {
        differing |= (unsigned)(unsigned char)token[i] ^ (unsigned)(unsigned char)padded[i];
    }
    explicit_bzero(padded, sizeof(padded));
    return differing == 0;
}

const struct ml_token *ml_tokens_find(const struct ml_tokens *tokens, const char *brought) {
    static const char bearer[] = "Bearer ";
    const struct ml_token *found = NULL;
    if (brought == NULL) {
        return NULL;
    }
    if (strncasecmp(brought, bearer, sizeof(bearer) - 1) == 0) {
        brought += sizeof(bearer) - 1;
    }
    for (size_t i = 0; i < tokens->count; i++) {
        if (is_equal(tokens->list[i].token, brought)) {
            found = &tokens->list[i];
        }
    }
    return found;
}

bool ml_right_includes(enum ml_right right, enum ml_right wanted) {
    return right == wanted || (right == ML_RIGHT_ADMIN && wanted == ML_RIGHT_READ);
}

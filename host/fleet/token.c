/* A token out of a file: a line with nothing else, or a collector's own tokens. Room: host. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "host/fleet/client.h"

enum { FILE_BYTES = 64 << 10, WORDS = 4 };

static bool file_read(const char *path, char out_text[FILE_BYTES], struct ml_error_message *error) {
    struct stat facts;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 || fstat(fd, &facts) != 0) {
        ml_error_set(error, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(facts.st_mode)) {
        ml_error_set(error, "%s: it is no file", path);
    } else if ((facts.st_mode & (S_IRWXG | S_IRWXO)) != 0 || facts.st_uid != geteuid()) {
        ml_error_set(
            error, "%s: others may read it, or it is another user's: 'chmod 600' it", path
        );
    } else {
        const ssize_t count = read(fd, out_text, FILE_BYTES - 1);
        out_text[count > 0 ? count : 0] = '\0';
        ml_descriptor_close(&fd);
        if (count <= 0) {
            ml_error_set(error, "%s: there is no token in it", path);
        }
        return count > 0;
    }
    ml_descriptor_close(&fd);
    return false;
}

/* The words of a line, which is changed. Returns their number, WORDS if there are more. */
static size_t split(char *line, char *out_words[WORDS]) {
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " \t\r", &rest); word != NULL && count < WORDS;
         word = strtok_r(NULL, " \t\r", &rest)) {
        out_words[count++] = word;
    }
    return count;
}

static bool is_token(const char *text) {
    for (const char *at = text; *at != '\0'; at++) {
        if (!isgraph((unsigned char)*at)) {
            return false;
        }
    }
    return text[0] != '\0' && strlen(text) < ML_FLEET_TOKEN_BYTES;
}

/* Of a collector's own file the one that may read, of a team: the only one. */
struct found {
    const char *token, *team;
    bool is_for_reading, are_several;
};

static void consider(struct found *found, char *const words[WORDS]) {
    const bool reads = strcmp(words[1], "read") == 0;
    if (!reads && strcmp(words[1], "admin") != 0) {
        return;
    }
    if (found->team != NULL && strcmp(found->team, words[0]) != 0) {
        found->are_several = true;
    }
    if (found->token == NULL || (reads && !found->is_for_reading)) {
        found->token = words[2];
        found->is_for_reading = reads;
    }
    found->team = words[0];
}

static const char *find(const char *path, char *text, struct ml_error_message *error) {
    struct found found = {.token = NULL};
    char *rest = NULL;
    char *words[WORDS];
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        const size_t count = split(line, words);
        if (count == 1 && words[0][0] != '#') {
            return words[0];
        }
        if (count == 3) {
            consider(&found, words);
        }
    }
    if (found.are_several) {
        ml_error_set(
            error, "%s: it has tokens of several teams: write the one to use into a file", path
        );
        return NULL;
    }
    if (found.token == NULL) {
        ml_error_set(error, "%s: there is no token in it that may read", path);
    }
    return found.token;
}

enum ml_status ml_fleet_token_read(
    const char *path, char out_token[ML_FLEET_TOKEN_BYTES], struct ml_error_message *error
) {
    char text[FILE_BYTES];
    out_token[0] = '\0';
    if (!file_read(path, text, error)) {
        return ML_ENV_REFUSED;
    }
    const char *token = find(path, text, error);
    const bool fine = token != NULL && is_token(token);
    if (fine) {
        (void)snprintf(out_token, ML_FLEET_TOKEN_BYTES, "%s", token);
    } else {
        ml_error_set(error, "%s: its token has other characters than a header may have", path);
    }
    explicit_bzero(text, sizeof(text));
    return fine ? ML_OK : ML_ENV_MISSING;
}

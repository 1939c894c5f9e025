#include "host/process/never_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

static const char blanks[] = " \t\r";

/* Another user who can write it could remove what its owner forbids. */
static bool is_trusted(const struct stat *about, uid_t other_owner) {
    return (about->st_uid == 0 || about->st_uid == other_owner) &&
           (about->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static enum ml_status refuse(const char *path, uid_t other_owner, struct ml_error_message *error) {
    ml_error_set(
        error,
        "%s: it must belong to root%s and be written by nobody else (chmod go-w); until then "
        "nothing "
        "is recorded",
        path,
        other_owner != 0 ? " or to you" : ""
    );
    return ML_ENV_REFUSED;
}

static enum ml_status put_error(const char *path, struct ml_error_message *error) {
    ml_error_set(
        error,
        "%s: %s; it may name programs that are not to be recorded, so nothing is",
        path,
        strerror(errno)
    );
    return ML_ENV_SYSTEM;
}

/* One line without its end. */
static enum ml_status
add_line(struct ml_never_list *list, char *line, int number, struct ml_error_message *error) {
    char *text = line + strspn(line, blanks);
    size_t count = strlen(text);
    while (count > 0 && strchr(blanks, text[count - 1]) != NULL) {
        text[--count] = '\0';
    }
    if (count == 0 || text[0] == '#') {
        return ML_OK;
    }
    struct ml_error_message why = {.text = ""};
    const enum ml_status status = ml_patterns_add(list->patterns, text, number, &why);
    if (status != ML_OK) {
        ml_error_set(error, "%s, line %d: %s", list->path, number, why.text);
    }
    return status;
}

static enum ml_status
add_lines(struct ml_never_list *list, char *text, struct ml_error_message *error) {
    int number = 0;
    enum ml_status status = ML_OK;
    for (char *rest = text; rest != NULL && status == ML_OK;) {
        char *line = strsep(&rest, "\n");
        if (++number > ML_NEVER_LIST_MAX_LINES) {
            ml_error_set(error, "%s: more than %d lines", list->path, ML_NEVER_LIST_MAX_LINES);
            return ML_PEER_LIMIT;
        }
        status = add_line(list, line, number, error);
    }
    return status;
}

static enum ml_status
read_open(struct ml_never_list *list, int fd, uid_t other_owner, struct ml_error_message *error) {
    struct stat about;
    if (fstat(fd, &about) != 0) {
        return put_error(list->path, error);
    }
    if (!S_ISREG(about.st_mode) || !is_trusted(&about, other_owner)) {
        return refuse(list->path, other_owner, error);
    }
    char *text = calloc(1, ML_NEVER_LIST_MAX_BYTES + 2);
    if (text == NULL) {
        return ML_ENV_MEMORY;
    }
    size_t count = 0;
    ssize_t got = 0;
    do {
        got = read(fd, text + count, ML_NEVER_LIST_MAX_BYTES + 1 - count);
        count += got > 0 ? (size_t)got : 0;
    } while (got > 0 || (got < 0 && errno == EINTR));
    enum ml_status status = ML_OK;
    if (got < 0) {
        status = put_error(list->path, error);
    } else if (count > ML_NEVER_LIST_MAX_BYTES || memchr(text, 0, count) != NULL) {
        ml_error_set(
            error, "%s: at most %d bytes of text are wanted", list->path, ML_NEVER_LIST_MAX_BYTES
        );
        status = ML_PEER_LIMIT;
    } else {
        status = add_lines(list, text, error);
    }
    free(text);
    return status;
}

static enum ml_status load(
    struct ml_never_list *out_list,
    int folder_fd,
    const char *name,
    const char *path,
    uid_t other_owner,
    struct ml_error_message *error
) {
    *out_list = (struct ml_never_list){.patterns = ml_patterns_new()};
    (void)snprintf(out_list->path, sizeof(out_list->path), "%s", path);
    if (out_list->patterns == NULL) {
        return ML_ENV_MEMORY;
    }
    int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    const enum ml_status status =
        fd < 0 ? put_error(path, error) : read_open(out_list, fd, other_owner, error);
    ml_descriptor_close(&fd);
    if (status != ML_OK) {
        ml_never_list_fini(out_list);
    }
    return status;
}

enum ml_status ml_never_list_load(
    struct ml_never_list *out_list,
    const char *folder,
    const char *name,
    uid_t other_owner,
    struct ml_error_message *error
) {
    char path[PATH_MAX];
    struct stat about;
    *out_list = (struct ml_never_list){.patterns = NULL};
    const int folder_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (folder_fd < 0) {
        return errno == ENOENT ? ML_OK : put_error(folder, error);
    }
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    enum ml_status status = ML_OK;
    if (fstat(folder_fd, &about) != 0) {
        status = put_error(folder, error);
    } else if (!is_trusted(&about, other_owner)) {
        status = refuse(folder, other_owner, error);
    } else if (fstatat(folder_fd, name, &about, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT) {
        status = load(out_list, folder_fd, name, path, other_owner, error);
    }
    (void)close(folder_fd);
    return status;
}

enum ml_status ml_never_list_load_file(
    struct ml_never_list *out_list,
    const char *path,
    uid_t other_owner,
    struct ml_error_message *error
) {
    return load(out_list, AT_FDCWD, path, path, other_owner, error);
}

void ml_never_list_fini(struct ml_never_list *list) {
    ml_patterns_free(list->patterns);
    *list = (struct ml_never_list){.patterns = NULL};
}

size_t ml_never_list_count(const struct ml_never_list *list) {
    return list->patterns != NULL ? ml_patterns_count(list->patterns) : 0;
}

int ml_never_list_match(
    const struct ml_never_list *list, const char *command_line, const char *executable
) {
    int line = -1;
    if (list->patterns != NULL && executable != NULL && executable[0] != '\0') {
        line = ml_patterns_match(list->patterns, executable);
    }
    if (list->patterns != NULL && command_line != NULL && line < 0) {
        line = ml_patterns_match(list->patterns, command_line);
    }
    return line > 0 ? line : 0;
}

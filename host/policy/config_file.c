#include "host/policy/config_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/input_file.h"

/* A file while it is read. */
struct reading {
    struct ml_config *config;
    bool (*is_command)(const char *name);
    struct ml_error_message *error;
    const char *sections; /* of the line; NULL: none yet */
    unsigned line;
};

static bool fail(const struct reading *reading, const char *why, const char *what) {
    ml_error_set(
        reading->error, "%s:%u: %s%.100s", reading->config->path, reading->line, why, what
    );
    return false;
}

/* By the XDG base directory specification: relative paths do not count. */
static void find_path(char out_path[PATH_MAX]) {
    const char *config = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    int count = 0;
    out_path[0] = '\0';
    if (config != NULL && config[0] == '/') {
        count = snprintf(out_path, PATH_MAX, "%s/memlog/config", config);
    } else if (home != NULL && home[0] == '/') {
        count = snprintf(out_path, PATH_MAX, "%s/.config/memlog/config", home);
    }
    if (count >= PATH_MAX) {
        out_path[0] = '\0';
    }
}

/* Why the open file is not this user's alone; NULL: it is. */
static const char *distrust(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return "it cannot be looked at";
    }
    if (status.st_uid != geteuid()) {
        return "it belongs to another user";
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return "others may write it (chmod go-w)";
    }
    return status.st_size > ML_CONFIG_MAX_BYTES ? "it is larger than 64 KiB" : NULL;
}

/* The text of the file. NULL: config->unread says why not. Owner: the caller. */
static char *read_text(struct ml_config *config) {
    if (getauxval(AT_SECURE) != 0) {
        config->unread = "memlog has rights that its user lacks";
        return NULL;
    }
    find_path(config->path);
    if (config->path[0] == '\0') {
        config->unread = "neither XDG_CONFIG_HOME nor HOME says where";
        return NULL;
    }
    int fd = ml_input_regular(config->path);
    if (fd < 0) {
        config->unread =
            errno == ENOENT || errno == ENOTDIR ? "there is none" : ml_input_trouble(errno);
        return NULL;
    }
    config->unread = distrust(fd);
    config->is_refused = config->unread != NULL;
    char *text = config->is_refused ? NULL : calloc(1, ML_CONFIG_MAX_BYTES + 1);
    const ssize_t count = text != NULL ? read(fd, text, ML_CONFIG_MAX_BYTES) : 0;
    ml_descriptor_close(&fd);
    if (count < 0 || (text == NULL && !config->is_refused)) {
        config->unread = "it cannot be read";
        free(text);
        return NULL;
    }
    return text;
}

/* Without blanks around it, in place. */
static char *trim(char *text) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t count = strlen(text);
    while (count > 0 && isspace((unsigned char)text[count - 1])) {
        text[--count] = '\0';
    }
    return text;
}

/* "[run attach]" */
static bool take_section(struct reading *reading, char *text) {
    const size_t count = strlen(text);
    if (text[count - 1] != ']') {
        return fail(reading, "a section ends with ]: ", text);
    }
    text[count - 1] = '\0';
    reading->sections = trim(text + 1);
    char *names = strdup(reading->sections);
    char *rest = names;
    bool fine = names != NULL && names[0] != '\0';
    for (char *name = NULL; fine && (name = strsep(&rest, " \t")) != NULL;) {
        fine = name[0] == '\0' || reading->is_command(name) ||
               fail(reading, "no such command; 'memlog help' lists them: ", name);
    }
    free(names);
    return fine || fail(reading, "a section names a command, such as [run]", "");
}

/* "limit = 10", "json" */
static bool take_option(struct reading *reading, char *text) {
    struct ml_config *config = reading->config;
    char *equals = strchr(text, '=');
    const char *value = NULL;
    char *word = NULL;
    char *origin = NULL;
    if (equals != NULL) {
        *equals = '\0';
        value = trim(equals + 1);
    }
    const char *name = trim(text);
    if (reading->sections == NULL) {
        return fail(reading, "in front of the first section, such as [run], is no option: ", name);
    }
    if (name[0] == '-') {
        return fail(reading, "options stand here without dashes in front: ", name);
    }
    if (name[0] == '\0' || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(name)) {
        return fail(reading, "NAME = VALUE is wanted, with a long option's name, not ", name);
    }
    if (strcmp(name, "help") == 0) {
        return fail(reading, "--help is no default", "");
    }
    if (config->count == ML_CONFIG_LINES_MAX) {
        return fail(reading, "there are too many lines", "");
    }
    if (asprintf(&word, "--%s%s%s", name, value != NULL ? "=" : "", value != NULL ? value : "") <
        0) {
        word = NULL;
    }
    if (asprintf(&origin, "%s:%u", config->path, reading->line) < 0) {
        origin = NULL;
    }
    char *sections = strdup(reading->sections);
    config->lines[config->count++] =
        (struct ml_config_line){.sections = sections, .origin = origin, .word = word};
    return (word != NULL && origin != NULL && sections != NULL) || fail(reading, "no memory", "");
}

static bool take_line(struct reading *reading, char *text) {
    text = trim(text);
    if (text[0] == '\0' || text[0] == '#') {
        return true;
    }
    return text[0] == '[' ? take_section(reading, text) : take_option(reading, text);
}

bool ml_config_load(
    struct ml_config *config, bool (*is_command)(const char *name), struct ml_error_message *error
) {
    struct reading reading = {.config = config, .is_command = is_command, .error = error};
    *config = (struct ml_config){.lines = NULL};
    char *text = read_text(config);
    char *rest = text;
    bool fine = true;
    if (text == NULL) {
        return true;
    }
    config->lines = calloc(ML_CONFIG_LINES_MAX, sizeof(*config->lines));
    if (config->lines == NULL) {
        ml_error_set(error, "no memory");
        fine = false;
    }
    for (char *line = NULL; fine && (line = strsep(&rest, "\n")) != NULL;) {
        reading.line++;
        fine = take_line(&reading, line);
    }
    free(text);
    return fine;
}

void ml_config_fini(struct ml_config *config) {
    for (size_t i = 0; i < config->count; i++) {
        free(config->lines[i].sections);
        free(config->lines[i].origin);
        free(config->lines[i].word);
    }
    free(config->lines);
    *config = (struct ml_config){.lines = NULL};
}

/* Whether it is one of the names in the list. */
static bool is_listed(const char *list, const char *name) {
    const size_t count = strlen(name);
    while (*list != '\0') {
        list += strspn(list, " \t");
        const size_t next = strcspn(list, " \t");
        if (next == count && strncmp(list, name, count) == 0) {
            return true;
        }
        list += next;
    }
    return false;
}

size_t ml_config_of(
    const struct ml_config *config,
    const char *command,
    struct ml_option_default out_defaults[ML_OPTION_DEFAULTS_MAX]
) {
    size_t count = 0;
    for (size_t i = 0; i < config->count && count < ML_OPTION_DEFAULTS_MAX; i++) {
        if (is_listed(config->lines[i].sections, command)) {
            out_defaults[count++] = (struct ml_option_default
            ){.origin = config->lines[i].origin, .word = config->lines[i].word};
        }
    }
    return count;
}

#include "host/engine/list/passed_on.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/process/info.h"
#include "host/process/paths.h"

static const char socket_key[] = "MEMLOG_SOCKET=";
static const char preload_key[] = "LD_PRELOAD=";

/* The connection's numbers may stand in front of the path. */
static void take_socket(struct ml_passed_on *passed, const char *value, const char *socket_path) {
    const size_t value_bytes = strlen(value);
    const size_t path_bytes = strlen(socket_path);
    const size_t before = value_bytes >= path_bytes ? value_bytes - path_bytes : 0;
    const bool is_path =
        path_bytes > 0 && value_bytes >= path_bytes && strcmp(value + before, socket_path) == 0;
    if (is_path && (before == 0 || value[before - 1] == ':')) {
        passed->has_socket = true;
        passed->has_connection = before > 0;
    } else {
        passed->has_another = true;
    }
}

struct ml_passed_on
ml_passed_on_parse(const char *text, size_t count_bytes, const char *socket_path) {
    struct ml_passed_on passed = {.is_known = true};
    for (size_t at = 0; at < count_bytes; at += strlen(text + at) + 1) {
        const char *entry = text + at;
        if (strncmp(entry, socket_key, sizeof(socket_key) - 1) == 0) {
            take_socket(&passed, entry + sizeof(socket_key) - 1, socket_path);
        } else if (strncmp(entry, preload_key, sizeof(preload_key) - 1) == 0) {
            passed.has_library = passed.has_library || strstr(entry, ML_PRELOAD_FILE) != NULL;
        }
    }
    return passed;
}

static FILE *open_file(pid_t pid, const char *name) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return fopen(path, "re");
}

struct ml_passed_on ml_passed_on_look(pid_t pid, const char *socket_path) {
    enum { ENVIRONMENT_BYTES = 256 << 10 };
    struct ml_passed_on passed = {.is_known = false};
    char *text = malloc(ENVIRONMENT_BYTES + 1);
    FILE *file = text != NULL ? open_file(pid, "environ") : NULL;
    if (file != NULL) {
        const size_t count = fread(text, 1, ENVIRONMENT_BYTES, file);
        const bool is_whole = ferror(file) == 0 && count < ENVIRONMENT_BYTES;
        text[count] = '\0';
        passed = ml_passed_on_parse(text, count, socket_path);
        passed.is_known = is_whole;
        (void)fclose(file);
    }
    free(text);
    return passed;
}

bool ml_passed_on_misses(pid_t pid, const char *preload_path) {
    char path[PATH_MAX];
    const char *place = strstr(preload_path, ML_PRELOAD_PLATFORM);
    if (place == NULL) {
        (void)snprintf(path, sizeof(path), "%s", preload_path);
    } else { /* the library is also there under the kernel's name of the platform */
        (void)snprintf(
            path,
            sizeof(path),
            "%.*sx86_64%s",
            (int)(place - preload_path),
            preload_path,
            place + sizeof(ML_PRELOAD_PLATFORM) - 1
        );
    }
    return path[0] == '/' && ml_process_misses(pid, path) && !ml_process_maps(pid, ML_PRELOAD_FILE);
}

/* The last number in the line of that name of its status; 0: there is none. */
static unsigned status_number(pid_t pid, const char *name) {
    char line[1024];
    unsigned number = 0;
    const size_t name_bytes = strlen(name);
    FILE *file = open_file(pid, "status");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, name_bytes) == 0) {
            const char *last = strrchr(line, '\t');
            number = last != NULL ? (unsigned)strtoul(last + 1, NULL, 10) : 0;
            break;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return number;
}

unsigned ml_passed_on_filters(pid_t pid) {
    enum { FILTERED = 2 };
    const unsigned count = status_number(pid, "Seccomp_filters:");
    const unsigned own = status_number(getpid(), "Seccomp_filters:");
    if (count > 0) {
        return count > own ? count - own : 0;
    }
    return status_number(pid, "Seccomp:") == FILTERED &&
                   status_number(getpid(), "Seccomp:") != FILTERED
               ? 1
               : 0;
}

unsigned ml_passed_on_own_pid(pid_t pid) {
    return status_number(pid, "NSpid:");
}

#include "host/collect/analyzer/naming.h"

#include <endian.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "host/collect/analyzer/become.h"
#include "mojom_like_idl/contracts/fleet_report_mojom.h"

enum {
    WAIT_S = 120,
    BUILD_ID_BYTES = MEMLOG_FLEET_FRAME_BUILD_ID_LIMIT + 1,
    NAME_BYTES = MEMLOG_FLEET_FRAME_FUNCTION_LIMIT + 1
};

struct ml_naming {
    pid_t pid;
    int fd;
    char build_id[BUILD_ID_BYTES];
    char **names; /* that were told */
    size_t names_count;
};

/* ---- its stream */

static bool write_all(int fd, const void *bytes, size_t count) {
    const uint8_t *at = bytes;
    while (count > 0) {
        const ssize_t written = send(fd, at, count, MSG_NOSIGNAL);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        at += written > 0 ? written : 0;
        count -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static bool read_all(int fd, void *bytes, size_t count) {
    uint8_t *at = bytes;
    while (count > 0) {
        const ssize_t got = recv(fd, at, count, 0);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        count -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* A line of lower-case hex. */
static bool read_build_id(struct ml_naming *naming) {
    for (size_t i = 0; i < sizeof(naming->build_id); i++) {
        char letter = '\0';
        if (!read_all(naming->fd, &letter, 1)) {
            return false;
        }
        if (letter == '\n') {
            return i > 0;
        }
        if (strchr("0123456789abcdef", letter) == NULL || letter == '\0') {
            return false;
        }
        naming->build_id[i] = letter;
    }
    return false;
}

/* ---- its process */

static bool begin(struct ml_naming *naming, const char *analyzer_path, int file_fd) {
    const struct timeval most = {.tv_sec = WAIT_S};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return false;
    }
    naming->pid = fork();
    if (naming->pid == 0) {
        ml_analyzer_become(analyzer_path, "place-names", file_fd, ends[1]);
    }
    (void)close(ends[1]);
    naming->fd = ends[0];
    return naming->pid > 0 &&
           setsockopt(naming->fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0 &&
           setsockopt(naming->fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) == 0;
}

struct ml_naming *
ml_naming_start(const char *analyzer_path, int file_fd, struct ml_error_message *error) {
    struct ml_naming *naming = calloc(1, sizeof(*naming));
    if (naming == NULL) {
        ml_error_set(error, "memory ran out");
        return NULL;
    }
    naming->fd = -1;
    if (!begin(naming, analyzer_path, file_fd)) {
        ml_error_set(error, "no process to read it: %s", strerror(errno));
    } else if (!read_build_id(naming)) {
        ml_error_set(error, "it is no ELF file with a build id and names of functions");
    } else {
        return naming;
    }
    ml_naming_free(naming);
    return NULL;
}

void ml_naming_free(struct ml_naming *take_naming) {
    struct ml_naming *naming = take_naming;
    if (naming == NULL) {
        return;
    }
    if (naming->pid > 0) {
        (void)kill(naming->pid, SIGKILL);
        (void)waitpid(naming->pid, NULL, 0);
    }
    if (naming->fd >= 0) {
        (void)close(naming->fd);
    }
    for (size_t i = 0; i < naming->names_count; i++) {
        free(naming->names[i]);
    }
    free(naming->names);
    free(naming);
}

const char *ml_naming_build_id(const struct ml_naming *naming) {
    return naming->build_id;
}

/* ---- names */

/* What a store takes of a report's names, too: letters alone. The end of one that was cut may be a
 * part of a letter. */
static bool is_name(char *name, size_t count) {
    for (size_t at = 0; at < count;) {
        const size_t length = ml_utf8_length(name + at, count - at);
        if (length == 0) {
            name[at] = '\0';
            return at > 0 && count == NAME_BYTES - 1 && count - at < 4;
        }
        if (!ml_printable(ml_utf8_character(name + at, length))) {
            return false;
        }
        at += length;
    }
    return count > 0;
}

/* False: the stream ended, or memory ran out. */
static bool read_name(struct ml_naming *naming, const char **out_name) {
    uint8_t head[2];
    char name[NAME_BYTES];
    *out_name = NULL;
    if (!read_all(naming->fd, head, sizeof(head))) {
        return false;
    }
    const size_t count = head[0] + 256U * head[1];
    if (count >= sizeof(name) || !read_all(naming->fd, name, count)) {
        return false;
    }
    name[count] = '\0';
    if (is_name(name, count)) {
        char *copy = strdup(name);
        *out_name = naming->names[naming->names_count] = copy;
        naming->names_count += copy != NULL;
        return copy != NULL;
    }
    return true;
}

enum ml_status ml_naming_ask(
    struct ml_naming *naming,
    const uint64_t *addresses,
    size_t count,
    const char **out_names,
    struct ml_error_message *error
) {
    naming->names = calloc(count + 1, sizeof(*naming->names));
    bool done = naming->names != NULL;
    for (size_t i = 0; done && i < count; i++) {
        const uint64_t address = htole64(addresses[i]);
        done = write_all(naming->fd, &address, sizeof(address));
    }
    (void)shutdown(naming->fd, SHUT_WR);
    for (size_t i = 0; done && i < count; i++) {
        done = read_name(naming, &out_names[i]);
    }
    if (naming->names == NULL) {
        ml_error_set(error, "memory ran out");
        return ML_ENV_MEMORY;
    }
    if (!done) {
        ml_error_set(error, "the process that read it has died of it");
        return ML_PEER_SHORT;
    }
    return ML_OK;
}

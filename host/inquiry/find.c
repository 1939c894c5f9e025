#include "host/inquiry/find.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ipc/channel/channel.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

/* One that stands still must not hide the others for long. */
enum { ANSWER_MS = 5000 };

static bool
is_folder_of(struct ml_channel *channel, const struct stat *wanted, bool *out_answered) {
    const struct memlog_host_ps_request request = {.version = MEMLOG_HOST_HOST_VERSION};
    struct memlog_host_ps_reply reply;
    struct stat facts;
    char path[MEMLOG_HOST_PS_REPLY_FOLDER_LIMIT + 1];
    *out_answered =
        memlog_host_ps_wait(ml_channel_port(channel), &request, ANSWER_MS, &reply) == ML_OK;
    if (!*out_answered) {
        return false;
    }
    ml_string_copy(path, sizeof(path), reply.folder);
    return path[0] != '\0' && stat(path, &facts) == 0 && facts.st_dev == wanted->st_dev &&
           facts.st_ino == wanted->st_ino;
}

/* Whether the run at that socket has it. One that cannot be asked is counted. */
static bool has_folder(const char *path, const struct stat *wanted, size_t *silent) {
    const struct ml_channel_options options = {.loop = NULL};
    struct ml_error_message unused = {.text = ""};
    struct ml_channel *channel = NULL;
    bool has_answered = true;
    int fd = -1;
    const enum ml_status status = ml_socket_directory_connect(path, &fd, &unused);
    if (status == ML_ENV_MISSING) {
        return false;
    }
    const bool is_open = status == ML_OK && ml_channel_new(fd, &options, &channel) == ML_OK;
    const bool found = is_open && is_folder_of(channel, wanted, &has_answered);
    *silent += is_open && has_answered ? 0 : 1;
    ml_channel_free(channel);
    return found;
}

enum ml_status ml_inquiry_find(
    const char *folder,
    const char *host,
    struct ml_command_socket *out_socket,
    struct ml_error_message *error
) {
    struct ml_command_socket *sockets = NULL;
    struct stat wanted;
    size_t silent = 0;
    bool found = false;
    errno = ENOTDIR;
    if (stat(folder, &wanted) != 0 || !S_ISDIR(wanted.st_mode)) {
        ml_error_set(
            error, "%s: %s; a process id or the folder of a run is wanted", folder, strerror(errno)
        );
        return ML_ENV_SYSTEM;
    }
    size_t count = host == NULL ? ml_socket_directory_list(&sockets) : 1;
    if (host != NULL) {
        sockets = calloc(1, sizeof(*sockets));
        count = sockets != NULL && strlen(host) < sizeof(sockets->path) ? 1 : 0;
        for (size_t i = 0; i < count; i++) {
            (void)snprintf(sockets[i].path, sizeof(sockets[i].path), "%s", host);
        }
    }
    for (size_t i = 0; i < count && !found; i++) {
        found = has_folder(sockets[i].path, &wanted, &silent);
        if (found) {
            *out_socket = sockets[i];
        }
    }
    free(sockets);
    if (!found && silent > 0) {
        ml_error_set(
            error, "%s: no memlog that answers writes its dumps there; %zu did not", folder, silent
        );
    } else if (!found) {
        ml_error_set(
            error,
            "%s: no memlog that runs writes its dumps there; 'memlog report DIR' shows those of an "
            "ended run",
            folder
        );
    }
    return found ? ML_OK : ML_ENV_MISSING;
}

#include "host/fleet/watch_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

enum { FORM_VERSION = 1, SUFFIX_BYTES = 8, FLAGS = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC };

static const char version_member[] = "memlog_fleet_watch";

static void
path_with(const struct ml_fleet_watch_state *state, const char *suffix, char out_path[PATH_MAX]) {
    (void)snprintf(out_path, PATH_MAX, "%.*s%s", PATH_MAX - SUFFIX_BYTES, state->path, suffix);
}

static enum ml_status lock(struct ml_fleet_watch_state *state, struct ml_error_message *error) {
    char path[PATH_MAX];
    path_with(state, ".lock", path);
    state->lock_fd = open(path, FLAGS, S_IRUSR | S_IWUSR);
    if (state->lock_fd < 0) {
        ml_error_set(error, "%s: %s", path, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    if (flock(state->lock_fd, LOCK_EX | LOCK_NB) != 0) {
        ml_error_set(
            error, "%s: another watch works with it: --state=FILE gives each its own", state->path
        );
        return ML_ENV_REFUSED;
    }
    return ML_OK;
}

static bool is_whole(const json_t *all) {
    const json_t *version = json_object_get(all, version_member);
    return json_is_integer(version) && json_integer_value(version) == FORM_VERSION &&
           json_is_object(json_object_get(all, "told")) &&
           json_is_array(json_object_get(all, "pending"));
}

static enum ml_status load(struct ml_fleet_watch_state *state, struct ml_error_message *error) {
    FILE *file = fopen(state->path, "re");
    if (file == NULL && errno == ENOENT) {
        state->told = json_object();
        state->pending = json_array();
        return ML_OK;
    }
    if (file == NULL) {
        ml_error_set(error, "%s: %s", state->path, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    json_t *all = json_loadf(file, 0, NULL);
    (void)fclose(file);
    if (!is_whole(all)) {
        ml_error_set(
            error,
            "%s: it is no state of 'memlog fleet watch'; without it all that grew is told again",
            state->path
        );
        json_decref(all);
        return ML_PEER_FORM;
    }
    state->told = json_incref(json_object_get(all, "told"));
    state->pending = json_incref(json_object_get(all, "pending"));
    json_decref(all);
    return ML_OK;
}

enum ml_status ml_fleet_watch_state_open(
    struct ml_fleet_watch_state *state, const char *path, struct ml_error_message *error
) {
    *state = (struct ml_fleet_watch_state){.lock_fd = -1};
    if (strlen(path) >= PATH_MAX - SUFFIX_BYTES) {
        ml_error_set(error, "the path of the state is too long");
        return ML_ENV_SYSTEM;
    }
    (void)snprintf(state->path, sizeof(state->path), "%s", path);
    const enum ml_status status = lock(state, error);
    return status == ML_OK ? load(state, error) : status;
}

void ml_fleet_watch_state_close(struct ml_fleet_watch_state *state) {
    json_decref(state->told);
    json_decref(state->pending);
    ml_descriptor_close(&state->lock_fd);
}

/* So that the name is there after the machine's death, too. Not every file system can. */
static void sync_folder(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    (void
    )snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - path) + 1 : 0, path);
    int fd = open(folder[0] != '\0' ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        ml_descriptor_close(&fd);
    }
}

static bool write_all(int fd, const json_t *all) {
    FILE *file = fdopen(fd, "w");
    if (file == NULL) {
        return false;
    }
    const bool fine = json_dumpf(all, file, JSON_INDENT(1) | JSON_ENSURE_ASCII) == 0 &&
                      fputc('\n', file) != EOF && fflush(file) == 0 && fsync(fd) == 0;
    return fclose(file) == 0 && fine;
}

bool ml_fleet_watch_state_save(
    const struct ml_fleet_watch_state *state, struct ml_error_message *error
) {
    char part[PATH_MAX];
    path_with(state, ".part", part);
    json_t *all = json_pack(
        "{s:i, s:O, s:O}",
        version_member,
        FORM_VERSION,
        "told",
        state->told,
        "pending",
        state->pending
    );
    const int fd = all != NULL ? open(part, FLAGS | O_TRUNC, S_IRUSR | S_IWUSR) : -1;
    const bool fine = fd >= 0 && write_all(fd, all) && rename(part, state->path) == 0;
    if (fine) {
        sync_folder(state->path);
    } else {
        ml_error_set(error, "%s: it cannot be written: %s", state->path, strerror(errno));
    }
    json_decref(all);
    return fine;
}

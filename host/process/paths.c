#include "host/process/paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Where the other parts are said to be: the folder, without its last slash. "": nowhere. */
static char given[PATH_MAX];

/* Cut off the last part of a path. */
static void cut(char *path) {
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
}

void ml_paths_beside(const char *part_path) {
    if (realpath(part_path, given) == NULL) {
        given[0] = '\0';
    }
    cut(given);
}

/* The folder of this binary, without its last slash. */
static enum ml_status own_folder(char out_folder[PATH_MAX], struct ml_error_message *error) {
    ssize_t count = readlink("/proc/self/exe", out_folder, PATH_MAX - 1);
    if (count <= 0) {
        ml_error_set(error, "cannot read /proc/self/exe: %s", strerror(errno));
        return ML_ENV_SYSTEM;
    }
    out_folder[count] = '\0';
    cut(out_folder);
    return ML_OK;
}

enum ml_status
ml_paths_find(const char *file, char out_path[PATH_MAX], struct ml_error_message *error) {
    char folder[PATH_MAX];
    enum ml_status status = own_folder(folder, error);
    if (status != ML_OK) {
        return status;
    }
    static const char installed[] = "/../lib/memlog";
    const struct {
        const char *folder, *below;
    } places[] = {{given, ""}, {folder, ""}, {folder, installed}};
    for (size_t i = given[0] != '\0' ? 0 : 1; i < sizeof(places) / sizeof(places[0]); i++) {
        char candidate[2 * PATH_MAX];
        int count = snprintf(
            candidate, sizeof(candidate), "%s%s/%s", places[i].folder, places[i].below, file
        );
        if (count < 0 || (size_t)count >= sizeof(candidate)) {
            continue;
        }
        if (access(candidate, F_OK) == 0 && realpath(candidate, out_path) != NULL) {
            return ML_OK;
        }
    }
    ml_error_set(
        error,
        "%s is neither in %s nor in %s%s",
        file,
        given[0] != '\0' ? given : folder,
        folder,
        given[0] != '\0' ? "" : installed
    );
    return ML_ENV_MISSING;
}

bool ml_paths_preload_folder(const char *library_path, char out_path[PATH_MAX]) {
    char inside[PATH_MAX + 64];
    const char *slash = strrchr(library_path, '/');
    if (slash == NULL) {
        return false;
    }
    const int count =
        snprintf(out_path, PATH_MAX, "%.*s/preload", (int)(slash - library_path), library_path);
    (void)snprintf(inside, sizeof(inside), "%s/x86_64/%s", out_path, ML_PRELOAD_FILE);
    return count > 0 && count < PATH_MAX && access(inside, R_OK) == 0;
}

/* The check of `memlog doctor` for the symbol cache. Room: host. Context: its own process.
 *
 * The analyzer reads and writes the cache; here its folder is only inspected.
 * tools/analyzer/helpers/cache_keeper.h has the rule that says where the folder is. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"
#include "host/cli/doctor_internal.h"

/* The suffix of a cache file, from tools/analyzer/symbols/cache.h. */
static const char suffix[] = ".names";

static const char otherwise[] = "names are looked up anew each time";

struct place {
    char folder[PATH_MAX];
    const char *from; /* the environment variable that names the folder */
};

/* False: the cache is turned off, or no variable names a usable folder. */
static bool find_place(struct place *place) {
    static const struct {
        const char *name, *below;
    } variables[] = {
        {"MEMLOG_SYMBOL_CACHE", ""}, {"XDG_CACHE_HOME", "/memlog"}, {"HOME", "/.cache/memlog"}};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i].name);
        if (value == NULL || value[0] == '\0' || (i > 0 && value[0] != '/')) {
            continue;
        }
        const int count =
            snprintf(place->folder, sizeof(place->folder), "%s%s", value, variables[i].below);
        place->from = variables[i].name;
        return (i > 0 || strcmp(value, "off") != 0) && count < (int)sizeof(place->folder);
    }
    return false;
}

/* The nearest ancestor that exists, in which the folder would be created. */
static void find_above(const char *folder, char out_above[PATH_MAX]) {
    (void)snprintf(out_above, PATH_MAX, "%s", folder);
    while (access(out_above, F_OK) != 0 && errno == ENOENT) {
        char *slash = strrchr(out_above, '/');
        if (slash == NULL || slash == out_above) {
            (void)snprintf(out_above, PATH_MAX, "%s", slash == NULL ? "." : "/");
            return;
        }
        *slash = '\0';
    }
}

/* Why the folder cannot serve as the cache; NULL: it can. */
static const char *trouble_of(const char *folder, const struct stat *status) {
    if (!S_ISDIR(status->st_mode)) {
        return strerror(ENOTDIR);
    }
    if (status->st_uid != geteuid()) {
        return "it is another user's";
    }
    if ((status->st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return "others may write there";
    }
    return access(folder, W_OK | X_OK) == 0 ? NULL : strerror(errno);
}

static void tell_of_contents(struct ml_findings *findings, const char *folder) {
    char size[ML_SIZE_TEXT_BYTES];
    uint64_t bytes = 0;
    uint32_t files = 0;
    DIR *entries = opendir(folder);
    const struct dirent *entry = NULL;
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        const size_t count = strlen(entry->d_name);
        char path[PATH_MAX + NAME_MAX + 2];
        struct stat status;
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (count > sizeof(suffix) - 1 &&
            strcmp(entry->d_name + count - (sizeof(suffix) - 1), suffix) == 0 &&
            lstat(path, &status) == 0) {
            bytes += (uint64_t)status.st_size;
            files++;
        }
    }
    if (entries != NULL) {
        (void)closedir(entries);
    }
    ml_doctor_find(
        findings,
        ML_DOCTOR_OK,
        "symbol cache",
        "%s: names of %" PRIu32 " files in %s",
        folder,
        files,
        ml_size_text(bytes, size)
    );
}

void ml_doctor_cache(struct ml_findings *findings) {
    struct place place = {.from = NULL};
    char above[PATH_MAX];
    struct stat status;
    if (!find_place(&place)) {
        const bool off = place.from != NULL;
        ml_doctor_find(
            findings,
            ML_DOCTOR_NOTE,
            "symbol cache",
            "%s; %s: set MEMLOG_SYMBOL_CACHE to a folder",
            off ? "off, as MEMLOG_SYMBOL_CACHE says" : "there is no home to keep it in",
            otherwise
        );
        return;
    }
    const bool is_there = stat(place.folder, &status) == 0;
    find_above(place.folder, above);
    const char *trouble = is_there                          ? trouble_of(place.folder, &status)
                          : access(above, W_OK | X_OK) == 0 ? NULL
                                                            : strerror(errno);
    if (trouble != NULL) {
        ml_doctor_find(
            findings,
            ML_DOCTOR_NOTE,
            "symbol cache",
            "%s: %s; %s: mend it, or set MEMLOG_SYMBOL_CACHE to a folder of your own (it is from "
            "%s now)",
            is_there ? place.folder : above,
            trouble,
            otherwise,
            place.from
        );
    } else if (is_there) {
        tell_of_contents(findings, place.folder);
    } else {
        ml_doctor_find(
            findings,
            ML_DOCTOR_OK,
            "symbol cache",
            "%s, made when the first names are looked up (from %s)",
            place.folder,
            place.from
        );
    }
}

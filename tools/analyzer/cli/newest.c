#include "tools/analyzer/cli/newest.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FOLDERS_MAX = 10000 }; /* that are looked into, so that the answer comes at once */

static const char ending[] = ".pftrace";

bool ml_newest_is_folder(const char *path) {
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

/* "0001.exit.pftrace": its number; 0: it is no dump's name. */
static unsigned long number_of(const char *name) {
    const size_t count = strlen(name);
    char *end = NULL;
    if (name[0] < '0' || name[0] > '9' || count < sizeof(ending) ||
        strcmp(name + count - (sizeof(ending) - 1), ending) != 0) {
        return 0;
    }
    const unsigned long number = strtoul(name, &end, 10);
    return *end == '.' ? number : 0;
}

bool ml_newest_in(const char *folder, char out_path[PATH_MAX]) {
    DIR *entries = opendir(folder);
    const struct dirent *entry = NULL;
    unsigned long highest = 0;
    if (entries == NULL) {
        return false;
    }
    while ((entry = readdir(entries)) != NULL) {
        const unsigned long number = number_of(entry->d_name);
        if (number > highest &&
            snprintf(out_path, PATH_MAX, "%s/%s", folder, entry->d_name) < PATH_MAX) {
            highest = number;
        }
    }
    (void)closedir(entries);
    return highest > 0;
}

/* Take the folder's newest dump if it is newer than what there is. */
static void
consider(const char *folder, struct timespec *newest, char out_path[PATH_MAX], bool *found) {
    char path[PATH_MAX];
    struct stat about;
    if (!ml_newest_in(folder, path) || stat(path, &about) != 0 ||
        (*found &&
         (about.st_mtim.tv_sec < newest->tv_sec ||
          (about.st_mtim.tv_sec == newest->tv_sec && about.st_mtim.tv_nsec <= newest->tv_nsec)))) {
        return;
    }
    *newest = about.st_mtim;
    *found = true;
    (void)snprintf(out_path, PATH_MAX, "%s", strncmp(path, "./", 2) == 0 ? path + 2 : path);
}

bool ml_newest_here(char out_path[PATH_MAX]) {
    struct timespec newest = {0};
    bool found = false;
    DIR *entries = opendir(".");
    const struct dirent *entry = NULL;
    consider(".", &newest, out_path, &found);
    if (entries == NULL) {
        return found;
    }
    for (uint32_t i = 0; i < FOLDERS_MAX && (entry = readdir(entries)) != NULL;) {
        const bool may_be = entry->d_type == DT_DIR || entry->d_type == DT_UNKNOWN;
        if (may_be && strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            ml_newest_is_folder(entry->d_name)) {
            consider(entry->d_name, &newest, out_path, &found);
            i++;
        }
    }
    (void)closedir(entries);
    return found;
}

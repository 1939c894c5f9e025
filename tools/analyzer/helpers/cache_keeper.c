#include "tools/analyzer/helpers/cache_keeper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/analyzer/helpers/helper.h"
#include "tools/analyzer/model/memory.h"
#include "tools/analyzer/symbols/cache.h"
#include "tools/analyzer/symbols/search.h"

struct question {
    char hex[ML_BUILD_ID_HEX_BYTES];
    uint64_t count_bytes; /* so many bytes follow */
};

static struct ml_helper helper = {.lost = "names are not kept for the next view"};
static char folder[PATH_MAX - ML_BUILD_ID_HEX_BYTES - 32]; /* "": none */

/* A file of the cache. */
struct kept {
    char *name;
    int64_t written_ns;
    uint64_t bytes;
};

static bool find_folder(void) {
    const char *chosen = getenv("MEMLOG_SYMBOL_CACHE");
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int count = 0;

    if (chosen && chosen[0]) {
        count = strcmp(chosen, "off") == 0 ? 0 : snprintf(folder, sizeof folder, "%s", chosen);
    } else if (cache && cache[0] == '/') {
        count = snprintf(folder, sizeof folder, "%s/memlog", cache);
    } else if (home && home[0] == '/') {
        count = snprintf(folder, sizeof folder, "%s/.cache/memlog", home);
    }
    if (count <= 0 || count >= (int)sizeof folder) {
        folder[0] = '\0';
    }
    return folder[0] != '\0';
}

/* Create and open the folder, with its parents. -1: that fails, another user owns it, or others may
 * write to it. */
static int open_folder(void) {
    struct stat status;
    int fd = -1;

    for (char *at = strchr(folder + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(folder, S_IRWXU);
        *at = '/';
    }
    (void)mkdir(folder, S_IRWXU);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &status) != 0 || status.st_uid != geteuid() ||
                    (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool is_kept_name(const char *name) {
    size_t count = strspn(name, "0123456789abcdef");

    return count > 0 &&
           (strcmp(name + count, ML_SYMBOL_CACHE_SUFFIX) == 0 ||
            strncmp(name + count, ML_SYMBOL_CACHE_SUFFIX ".", sizeof ML_SYMBOL_CACHE_SUFFIX) == 0);
}

static int order_kept(const void *left, const void *right) {
    const struct kept *a = left;
    const struct kept *b = right;

    return (a->written_ns > b->written_ns) - (a->written_ns < b->written_ns);
}

/* List the files of the cache, also temporary ones that dead writers left. */
static size_t list_kept(int folder_fd, struct kept **out_kept, uint64_t *out_bytes) {
    int list_fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = list_fd >= 0 ? fdopendir(list_fd) : NULL;
    const struct dirent *entry = NULL;
    size_t capacity = 0;
    size_t count = 0;

    *out_kept = NULL;
    *out_bytes = 0;
    while (entries && (entry = readdir(entries)) != NULL) {
        struct stat status;
        if (!is_kept_name(entry->d_name) ||
            fstatat(folder_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !ML_GROW(*out_kept, capacity, count + 1)) {
            continue;
        }
        (*out_kept)[count++] = (struct kept){
            .name = strdup(entry->d_name),
            .written_ns = status.st_mtim.tv_sec * 1000000000 + status.st_mtim.tv_nsec,
            .bytes = (uint64_t)status.st_size,
        };
        *out_bytes += (uint64_t)status.st_size;
    }
    if (entries) {
        closedir(entries);
    }
    return count;
}

/* If the files take too much, remove the oldest until a quarter is free. Returns what they take. */
static uint64_t make_room(int folder_fd) {
    struct kept *kept = NULL;
    uint64_t bytes = 0;
    size_t count = list_kept(folder_fd, &kept, &bytes);
    bool is_full = bytes > ML_CACHE_MAX_BYTES;

    ML_SORT(kept, count, order_kept);
    for (size_t i = 0; i < count; i++) {
        if (is_full && bytes > ML_CACHE_MAX_BYTES / 4 * 3 && kept[i].name &&
            unlinkat(folder_fd, kept[i].name, 0) == 0) {
            bytes -= kept[i].bytes;
        }
        free(kept[i].name);
    }
    free(kept);
    return bytes;
}

/* Write to a temporary name, then rename: a file is whole or absent. */
static bool write_file(int folder_fd, const struct question *question, const uint8_t *bytes) {
    char name[ML_BUILD_ID_HEX_BYTES + sizeof ML_SYMBOL_CACHE_SUFFIX];
    char temporary[sizeof name + sizeof ".2147483647"];
    uint64_t at = 0;
    int fd = -1;

    snprintf(name, sizeof name, "%s" ML_SYMBOL_CACHE_SUFFIX, question->hex);
    snprintf(temporary, sizeof temporary, "%s.%d", name, (int)getpid());
    (void)unlinkat(folder_fd, temporary, 0);
    fd = openat(
        folder_fd,
        temporary,
        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
        S_IRUSR | S_IWUSR
    );
    while (fd >= 0 && at < question->count_bytes) {
        ssize_t put = write(fd, bytes + at, question->count_bytes - at);
        if (put <= 0 && errno != EINTR) {
            break;
        }
        at += put > 0 ? (uint64_t)put : 0;
    }
    if (fd >= 0 && (close(fd) != 0 || at < question->count_bytes ||
                    renameat(folder_fd, temporary, folder_fd, name) != 0)) {
        (void)unlinkat(folder_fd, temporary, 0);
        return false;
    }
    return fd >= 0;
}

/* Whether the build id is hex, and the size is allowed: both are from the sandbox. */
static bool is_sound(const struct question *question) {
    size_t count = strnlen(question->hex, sizeof question->hex);

    return count > 0 && count < sizeof question->hex &&
           strspn(question->hex, "0123456789abcdef") == count &&
           question->count_bytes <= ML_SYMBOL_CACHE_FILE_MAX_BYTES;
}

void ml_cache_keeper_serve(int questions_fd, int answers_fd, int own_fd) {
    struct question question;
    int folder_fd = -1;
    uint64_t total_bytes = 0;
    bool goes_on = true;

    (void)own_fd;
    while (goes_on && ml_helper_read(questions_fd, &question, sizeof question) &&
           is_sound(&question)) {
        uint8_t *bytes = malloc(question.count_bytes + 1);
        bool done = false;
        if (!bytes || !ml_helper_read(questions_fd, bytes, question.count_bytes)) {
            free(bytes);
            break;
        }
        if (folder_fd < 0) {
            folder_fd = open_folder();
            total_bytes = folder_fd >= 0 ? make_room(folder_fd) : 0;
        }
        done = folder_fd >= 0 && write_file(folder_fd, &question, bytes);
        total_bytes += done ? question.count_bytes : 0;
        if (total_bytes > ML_CACHE_MAX_BYTES) {
            total_bytes = make_room(folder_fd);
        }
        free(bytes);
        goes_on = ml_helper_answer(answers_fd, done, NULL, 0);
    }
    if (folder_fd >= 0) {
        (void)close(folder_fd);
    }
}

const char *ml_cache_keeper_start(void) {
    if (!helper.was_tried && find_folder()) {
        ml_helper_start(&helper, ml_cache_keeper_serve, -1);
    }
    return folder[0] ? folder : NULL;
}

bool ml_cache_keeper_keep(const char *build_id_hex, const void *bytes, size_t count_bytes) {
    struct question question = {.count_bytes = count_bytes};

    if (strlen(build_id_hex) >= sizeof question.hex) {
        return false;
    }
    memcpy(question.hex, build_id_hex, strlen(build_id_hex));
    return ml_helper_ask(&helper, &question, sizeof question, bytes, count_bytes);
}

#include "host/collect/forms/parts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "host/collect/forms/sigv4.h"

enum { OWNER_BYTES = 2048, ID_RANDOM_BYTES = 16 };

static const char owner_name[] = "owner";

static bool is_id(const char *id) {
    return strlen(id) == ML_PARTS_ID_BYTES - 1 &&
           strspn(id, "0123456789abcdef") == ML_PARTS_ID_BYTES - 1;
}

static void folder_of(const struct ml_parts *parts, const char *id, char out_path[PATH_MAX]) {
    (void)snprintf(out_path, PATH_MAX, "%s/%s", parts->folder, id);
}

void ml_parts_path(
    const struct ml_parts *parts, const char *id, unsigned number, char out_path[PATH_MAX]
) {
    (void)snprintf(out_path, PATH_MAX, "%s/%s/%05u", parts->folder, id, number);
}

/* Each name in a folder but those with a dot in front. */
static void each(
    const char *path, void (*take)(void *context, int folder_fd, const char *name), void *context
) {
    DIR *folder = opendir(path);
    for (const struct dirent *one = folder != NULL ? readdir(folder) : NULL; one != NULL;
         one = readdir(folder)) {
        if (one->d_name[0] != '.') {
            take(context, dirfd(folder), one->d_name);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

static void remove_file(void *context, int folder_fd, const char *name) {
    (void)context;
    (void)unlinkat(folder_fd, name, 0);
}

void ml_parts_remove(const struct ml_parts *parts, const char *id) {
    char path[PATH_MAX];
    if (is_id(id)) {
        folder_of(parts, id, path);
        each(path, remove_file, NULL);
        (void)rmdir(path);
    }
}

/* ---- those that nobody has ended */

struct sweep {
    const struct ml_parts *parts;
    const char *team;
    unsigned count;
};

/* Its team and its key, a line each. "": there is no such upload. */
static void owner_of(const struct ml_parts *parts, const char *id, char out_owner[OWNER_BYTES]) {
    char folder[PATH_MAX];
    char path[PATH_MAX + sizeof(owner_name)];
    folder_of(parts, id, folder);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, owner_name);
    const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    const ssize_t count = fd >= 0 ? read(fd, out_owner, OWNER_BYTES - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    out_owner[count > 0 ? count : 0] = '\0';
}

static void sweep_one(void *context, int folder_fd, const char *name) {
    struct sweep *sweep = context;
    char owner[OWNER_BYTES];
    struct stat facts;
    if (fstatat(folder_fd, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 &&
        facts.st_mtime + ML_PARTS_LIFE_S < time(NULL)) {
        ml_parts_remove(sweep->parts, name);
    } else {
        owner_of(sweep->parts, name, owner);
        const size_t count = strcspn(owner, "\n");
        sweep->count += strlen(sweep->team) == count && memcmp(owner, sweep->team, count) == 0;
    }
}

/* How many the team has, once the old ones of all are gone. */
static unsigned sweep(const struct ml_parts *parts, const char *team) {
    struct sweep sweep = {.parts = parts, .team = team};
    each(parts->folder, sweep_one, &sweep);
    return sweep.count;
}

bool ml_parts_open(struct ml_parts *parts, const char *folder) {
    (void)snprintf(parts->folder, sizeof(parts->folder), "%s", folder);
    if (mkdir(folder, S_IRWXU) != 0 && errno != EEXIST) {
        return false;
    }
    (void)sweep(parts, "");
    return true;
}

/* ---- one upload */

static bool file_write(const char *path, const char *text) {
    const size_t count = strlen(text);
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    bool done = fd >= 0 && write(fd, text, count) == (ssize_t)count && fsync(fd) == 0;
    if (fd >= 0) {
        done = close(fd) == 0 && done;
    }
    return done;
}

bool ml_parts_begin(
    const struct ml_parts *parts, const char *team, const char *key, char out_id[ML_PARTS_ID_BYTES]
) {
    uint8_t bytes[ID_RANDOM_BYTES];
    char owner[OWNER_BYTES];
    char folder[PATH_MAX];
    char path[PATH_MAX + sizeof(owner_name)];
    if (sweep(parts, team) >= ML_PARTS_UPLOADS_MAX) {
        errno = EDQUOT;
        return false;
    }
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes) ||
        snprintf(owner, sizeof(owner), "%s\n%s", team, key) >= (int)sizeof(owner)) {
        errno = EINVAL;
        return false;
    }
    ml_sigv4_hex(bytes, sizeof(bytes), out_id);
    folder_of(parts, out_id, folder);
    (void)snprintf(path, sizeof(path), "%s/%s", folder, owner_name);
    if (mkdir(folder, S_IRWXU) != 0 || !file_write(path, owner)) {
        ml_parts_remove(parts, out_id);
        return false;
    }
    return true;
}

bool ml_parts_is(const struct ml_parts *parts, const char *id, const char *team, const char *key) {
    char owner[OWNER_BYTES];
    char wanted[OWNER_BYTES];
    if (!is_id(id)) {
        return false;
    }
    owner_of(parts, id, owner);
    (void)snprintf(wanted, sizeof(wanted), "%s\n%s", team, key);
    return strcmp(owner, wanted) == 0;
}

struct sizes {
    uint64_t bytes;
    unsigned but_number;
};

static void add_size(void *context, int folder_fd, const char *name) {
    struct sizes *sizes = context;
    struct stat facts;
    if (strcmp(name, owner_name) != 0 && strtoul(name, NULL, 10) != sizes->but_number &&
        fstatat(folder_fd, name, &facts, AT_SYMLINK_NOFOLLOW) == 0) {
        sizes->bytes += (uint64_t)facts.st_size;
    }
}

uint64_t ml_parts_bytes(const struct ml_parts *parts, const char *id, unsigned but_number) {
    struct sizes sizes = {.but_number = but_number};
    char path[PATH_MAX];
    folder_of(parts, id, path);
    each(path, add_size, &sizes);
    return sizes.bytes;
}

struct counting {
    const struct ml_parts *parts;
    void (*take)(void *context, const char *team, uint64_t bytes);
    void *context;
};

static void count_one(void *context, int folder_fd, const char *name) {
    const struct counting *counting = context;
    char owner[OWNER_BYTES];
    (void)folder_fd;
    owner_of(counting->parts, name, owner);
    owner[strcspn(owner, "\n")] = '\0';
    counting->take(counting->context, owner, ml_parts_bytes(counting->parts, name, 0));
}

void ml_parts_count(
    const struct ml_parts *parts,
    void (*take)(void *context, const char *team, uint64_t bytes),
    void *context
) {
    struct counting counting = {.parts = parts, .take = take, .context = context};
    (void)sweep(parts, "");
    each(parts->folder, count_one, &counting);
}

int ml_parts_fd(const struct ml_parts *parts, const char *id, unsigned number) {
    char path[PATH_MAX];
    ml_parts_path(parts, id, number, path);
    return open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
}

/* ---- the list of them */

/* What stands in an element between *from and `to`. False: there is none, or it is too long. */
static bool element(
    const char *from, const char *to, const char *open, const char *close, char *out, size_t room
) {
    const char *begin = strstr(from, open);
    if (begin == NULL || begin >= to) {
        return false;
    }
    begin += strlen(open);
    const char *end = strstr(begin, close);
    if (end == NULL || end > to || (size_t)(end - begin) >= room) {
        return false;
    }
    memcpy(out, begin, (size_t)(end - begin));
    out[end - begin] = '\0';
    return true;
}

/* Without the quotes around it, however XML has them. */
static void unquote(char *text) {
    static const char *const quotes[] = {"&quot;", "&#34;", "\""};
    for (size_t i = 0; i < sizeof(quotes) / sizeof(quotes[0]); i++) {
        const size_t count = strlen(quotes[i]);
        for (char *at = strstr(text, quotes[i]); at != NULL; at = strstr(at, quotes[i])) {
            memmove(at, at + count, strlen(at + count) + 1);
        }
    }
}

bool ml_parts_next(const char **at, unsigned *out_number, char *out_etag, size_t etag_bytes) {
    char number[8];
    const char *from = strstr(*at, "<Part>");
    const char *to = from != NULL ? strstr(from, "</Part>") : NULL;
    if (to == NULL || !element(from, to, "<PartNumber>", "</PartNumber>", number, sizeof(number)) ||
        !element(from, to, "<ETag>", "</ETag>", out_etag, etag_bytes) || number[0] == '\0' ||
        number[strspn(number, "0123456789")] != '\0') {
        return false;
    }
    unquote(out_etag);
    *out_number = (unsigned)strtoul(number, NULL, 10);
    *at = to + strlen("</Part>");
    return *out_number > 0 && *out_number <= ML_PARTS_NUMBER_MAX;
}

#include "host/upload/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

enum { VERSION = 1, LINE_BYTES = PATH_MAX + 64 };

/* An analyzer that is still at work has touched its file since. */
static const uint64_t orphan_s = 3600;

static void
path_of(const struct ml_spool *spool, const char *id, const char *suffix, char out_path[PATH_MAX]) {
    (void)snprintf(out_path, PATH_MAX, "%.4000s/%.32s%s", spool->folder, id, suffix);
}

void ml_spool_body(const struct ml_spool *spool, const char *id, char out_path[PATH_MAX]) {
    path_of(spool, id, ".body", out_path);
}

void ml_spool_cut(const struct ml_spool *spool, const char *id, char out_path[PATH_MAX]) {
    path_of(spool, id, ".cut", out_path);
}

/* mkdir -p, new folders for their user alone. */
static bool make_folders(char *path) {
    for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const bool fine = mkdir(path, 0700) == 0 || errno == EEXIST;
        *slash = '/';
        if (!fine) {
            return false;
        }
    }
    return mkdir(path, 0700) == 0 || errno == EEXIST;
}

enum ml_status
ml_spool_open(struct ml_spool *spool, const char *folder, struct ml_error_message *error) {
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    *spool = (struct ml_spool){.lock_fd = -1};
    if (folder != NULL) {
        (void)snprintf(spool->folder, sizeof(spool->folder), "%s", folder);
    } else if (state != NULL && state[0] == '/') {
        (void)snprintf(spool->folder, sizeof(spool->folder), "%s/memlog/upload", state);
    } else if (home != NULL && home[0] == '/') {
        (void)snprintf(spool->folder, sizeof(spool->folder), "%s/.local/state/memlog/upload", home);
    } else {
        ml_error_set(error, "there is no HOME for the spool; name a folder by --upload-spool=");
        return ML_ENV_SYSTEM;
    }
    char lock[PATH_MAX];
    struct stat facts;
    path_of(spool, "lock", "", lock);
    const bool is_made = make_folders(spool->folder);
    if (is_made && stat(spool->folder, &facts) == 0 &&
        (facts.st_uid != geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0)) {
        ml_error_set(
            error,
            "the spool %s is not this user's alone to write in; name another one by "
            "--upload-spool=",
            spool->folder
        );
        return ML_ENV_REFUSED;
    }
    if (!is_made || (spool->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) < 0) {
        ml_error_set(error, "the spool %s: %s", spool->folder, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

/* "ID.SUFFIX" of something that a report consists of; then the id. */
static bool is_piece(const char *name, char out_id[ML_SPOOL_ID_BYTES]) {
    const size_t digits = ML_SPOOL_ID_BYTES - 1;
    if (strspn(name, "0123456789abcdef") != digits || name[digits] != '.') {
        return false;
    }
    memcpy(out_id, name, digits);
    out_id[digits] = '\0';
    return true;
}

void ml_spool_sweep(const struct ml_spool *spool, uint64_t now_s) {
    DIR *directory = opendir(spool->folder);
    for (struct dirent *entry = directory != NULL ? readdir(directory) : NULL; entry != NULL;
         entry = readdir(directory)) {
        char id[ML_SPOOL_ID_BYTES];
        char path[PATH_MAX];
        struct stat facts;
        if (!is_piece(entry->d_name, id)) {
            continue;
        }
        path_of(spool, id, ".job", path);
        const bool promised = access(path, F_OK) == 0;
        path_of(spool, id, entry->d_name + ML_SPOOL_ID_BYTES - 1, path);
        if (!promised && stat(path, &facts) == 0 && (uint64_t)facts.st_mtime + orphan_s < now_s) {
            (void)unlink(path);
        }
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
}

void ml_spool_close(struct ml_spool *spool) {
    ml_descriptor_close(&spool->lock_fd);
}

bool ml_spool_lock(struct ml_spool *spool) {
    return flock(spool->lock_fd, LOCK_EX | LOCK_NB) == 0;
}

void ml_spool_unlock(struct ml_spool *spool) {
    (void)flock(spool->lock_fd, LOCK_UN);
}

bool ml_spool_new_id(char out_id[ML_SPOOL_ID_BYTES]) {
    unsigned char bytes[(ML_SPOOL_ID_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        (void)snprintf(out_id + 2 * i, 3, "%02x", bytes[i]);
    }
    return true;
}

/* Whether it is "ID.job"; then the id. */
static bool is_job(const char *name, char out_id[ML_SPOOL_ID_BYTES]) {
    return is_piece(name, out_id) && strcmp(name + ML_SPOOL_ID_BYTES - 1, ".job") == 0;
}

bool ml_spool_has_room(const struct ml_spool *spool, uint64_t bytes) {
    DIR *directory = opendir(spool->folder);
    unsigned count = 0;
    for (struct dirent *entry = directory != NULL ? readdir(directory) : NULL; entry != NULL;
         entry = readdir(directory)) {
        char id[ML_SPOOL_ID_BYTES];
        char path[PATH_MAX];
        struct stat facts;
        if (is_job(entry->d_name, id)) {
            ml_spool_body(spool, id, path);
            bytes += stat(path, &facts) == 0 ? (uint64_t)facts.st_size : 0;
            count++;
        }
    }
    if (directory == NULL) {
        return false;
    }
    (void)closedir(directory);
    return count < ML_SPOOL_ITEMS_MAX && bytes <= ML_SPOOL_MAX_BYTES;
}

/* Whether it is on the disk, and not on its way there. */
static bool sync_path(const char *path, int flags) {
    int fd = open(path, O_RDONLY | O_CLOEXEC | flags);
    const bool fine = fd >= 0 && fsync(fd) == 0;
    ml_descriptor_close(&fd);
    return fine;
}

static void write_item(FILE *file, const struct ml_spool_item *item) {
    (void)fprintf(
        file,
        "memlog-upload %d\ntarget %s\ndump %s\nprogram %s\nmade_ms %" PRIu64
        "\ntries %u\nharder %d\nnext_ms %" PRIu64 "\n",
        (int)VERSION,
        item->target,
        item->dump,
        item->program,
        item->made_ms,
        item->tries,
        (int)item->harder,
        item->next_ms
    );
    if (item->upload_id[0] != '\0') {
        (void)fprintf(file, "upload_id %s\n", item->upload_id);
    }
    for (unsigned i = 0; i < item->parts; i++) {
        (void)fprintf(file, "part %s\n", item->etags[i]);
    }
}

enum ml_status ml_spool_keep(const struct ml_spool *spool, const struct ml_spool_item *item) {
    char path[PATH_MAX];
    char part[PATH_MAX];
    char body[PATH_MAX];
    path_of(spool, item->id, ".job", path);
    path_of(spool, item->id, ".part", part);
    ml_spool_body(spool, item->id, body);
    int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL) {
        ml_descriptor_close(&fd);
        return ML_ENV_SYSTEM;
    }
    write_item(file, item);
    bool fine = sync_path(body, 0);
    fine = fflush(file) == 0 && fsync(fileno(file)) == 0 && fine;
    fine = fclose(file) == 0 && fine && rename(part, path) == 0;
    if (!fine) {
        (void)unlink(part);
        return ML_ENV_SYSTEM;
    }
    return sync_path(spool->folder, O_DIRECTORY) ? ML_OK : ML_ENV_SYSTEM;
}

void ml_spool_hold(struct ml_spool *spool, const char *id, uint64_t until_ms) {
    struct ml_spool_hold *hold = &spool->holds[spool->holds_count++ % ML_SPOOL_ITEMS_MAX];
    (void)snprintf(hold->id, sizeof(hold->id), "%.32s", id);
    hold->until_ms = until_ms;
}

/* 0: it is not. */
static uint64_t held_until_ms(const struct ml_spool *spool, const char *id) {
    uint64_t until_ms = 0;
    for (unsigned i = 0; i < ML_SPOOL_ITEMS_MAX && i < spool->holds_count; i++) {
        const struct ml_spool_hold *hold = &spool->holds[i];
        if (strcmp(hold->id, id) == 0 && hold->until_ms > until_ms) {
            until_ms = hold->until_ms;
        }
    }
    return until_ms;
}

void ml_spool_remove(struct ml_spool *spool, const char *id) {
    static const char *const suffixes[] = {".job", ".body", ".body.part", ".cut", ".part"};
    char path[PATH_MAX];
    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
        path_of(spool, id, suffixes[i], path);
        if (unlink(path) != 0 && errno != ENOENT && i == 0) {
            ml_spool_hold(spool, id, UINT64_MAX);
        }
    }
}

/* Take what a line says, "KEY VALUE"; of keys that are not known nothing. */
static void read_line(const char *key, const char *value, struct ml_spool_item *item) {
    const struct {
        const char *key;
        char *text;
        size_t bytes;
    } texts[] = {
        {"target", item->target, sizeof(item->target)},
        {"dump", item->dump, sizeof(item->dump)},
        {"program", item->program, sizeof(item->program)},
        {"upload_id", item->upload_id, sizeof(item->upload_id)},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(key, texts[i].key) == 0) {
            (void)snprintf(texts[i].text, texts[i].bytes, "%s", value);
        }
    }
    const uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(key, "made_ms") == 0) {
        item->made_ms = number;
    } else if (strcmp(key, "tries") == 0) {
        item->tries = (unsigned)number;
    } else if (strcmp(key, "harder") == 0 && number <= ML_SPOOL_HARDER_WANTED) {
        item->harder = (enum ml_spool_harder)number;
    } else if (strcmp(key, "next_ms") == 0) {
        item->next_ms = number;
    } else if (strcmp(key, "part") == 0 && item->parts < ML_SPOOL_PARTS_MAX) {
        (void)snprintf(item->etags[item->parts++], sizeof(item->etags[0]), "%s", value);
    }
}

static bool
read_item(const struct ml_spool *spool, const char *id, struct ml_spool_item *out_item) {
    char path[PATH_MAX];
    char line[LINE_BYTES];
    path_of(spool, id, ".job", path);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    *out_item = (struct ml_spool_item){.tries = 0};
    memcpy(out_item->id, id, sizeof(out_item->id));
    bool known = false;
    while (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *value = line;
        const char *key = strsep(&value, " ");
        if (value != NULL && strcmp(key, "memlog-upload") == 0) {
            known = atoi(value) == VERSION;
        } else if (value != NULL) {
            read_line(key, value, out_item);
        }
    }
    (void)fclose(file);
    ml_spool_body(spool, id, path);
    return known && access(path, R_OK) == 0;
}

bool ml_spool_next(
    const struct ml_spool *spool,
    const char *target,
    struct ml_spool_item *out_item,
    unsigned *out_count
) {
    DIR *directory = opendir(spool->folder);
    struct ml_spool_item item;
    *out_count = 0;
    for (struct dirent *entry = directory != NULL ? readdir(directory) : NULL; entry != NULL;
         entry = readdir(directory)) {
        char id[ML_SPOOL_ID_BYTES];
        const bool ours = is_job(entry->d_name, id) && read_item(spool, id, &item) &&
                          strcmp(item.target, target) == 0;
        const uint64_t held_ms = ours ? held_until_ms(spool, id) : UINT64_MAX;
        if (held_ms != UINT64_MAX) {
            item.next_ms = item.next_ms > held_ms ? item.next_ms : held_ms;
            if (*out_count == 0 || item.next_ms < out_item->next_ms) {
                *out_item = item;
            }
            (*out_count)++;
        }
    }
    if (directory != NULL) {
        (void)closedir(directory);
    }
    return *out_count > 0;
}

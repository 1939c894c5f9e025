#include "host/engine/dump/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptor.h"

enum { PRIVATE_MODE = 0600 };

const char *ml_dump_reason_name(enum memlog_service_dump_reason reason) {
    static const char *const names[] = {
        [MEMLOG_SERVICE_DUMP_REASON_EXIT] = "exit",
        [MEMLOG_SERVICE_DUMP_REASON_SIGNAL] = "signal",
        [MEMLOG_SERVICE_DUMP_REASON_INTERVAL] = "interval",
        [MEMLOG_SERVICE_DUMP_REASON_PEAK] = "peak",
        [MEMLOG_SERVICE_DUMP_REASON_THRESHOLD] = "threshold",
        [MEMLOG_SERVICE_DUMP_REASON_MANUAL] = "manual",
        [MEMLOG_SERVICE_DUMP_REASON_PAGE] = "page",
    };
    return (size_t)reason < sizeof(names) / sizeof(names[0]) ? names[reason] : "other";
}

static bool ends_with(const char *text, const char *suffix) {
    size_t text_count = strlen(text);
    size_t suffix_count = strlen(suffix);
    return text_count >= suffix_count && strcmp(text + text_count - suffix_count, suffix) == 0;
}

/* ML_ENV_REFUSED when dumps are in it already. */
static enum ml_status look_for_dumps(const struct ml_dumps *dumps, struct ml_error_message *error) {
    const char *folder = dumps->folder;
    int fd = openat(dumps->folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (directory == NULL) {
        ml_error_set(error, "%s: %s; choose another folder by -o", folder, strerror(errno));
        ml_descriptor_close(&fd);
        return ML_ENV_SYSTEM;
    }
    enum ml_status status = ML_OK;
    for (struct dirent *entry = readdir(directory); entry != NULL && status == ML_OK;
         entry = readdir(directory)) {
        if (ends_with(entry->d_name, ML_DUMP_SUFFIX) ||
            ends_with(entry->d_name, ML_DUMP_SUFFIX ML_DUMP_CUT_SUFFIX)) {
            ml_error_set(
                error,
                "%s holds dumps already (%s) and is not overwritten; choose another folder by -o",
                folder,
                entry->d_name
            );
            status = ML_ENV_REFUSED;
        }
    }
    (void)closedir(directory);
    if (status == ML_OK && faccessat(dumps->folder_fd, ".", W_OK | X_OK, 0) != 0) {
        ml_error_set(error, "%s: %s; choose another folder by -o", folder, strerror(errno));
        status = ML_ENV_SYSTEM;
    }
    return status;
}

/* A new file in it, for this user alone whatever the umask. -1: errno says why. */
static int make_file(int folder_fd, const char *name, int flags) {
    const int fd =
        openat(folder_fd, name, flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PRIVATE_MODE);
    if (fd >= 0) {
        (void)fchmod(fd, PRIVATE_MODE); /* of a file system without modes it is not */
    }
    return fd;
}

/* Whether the file system gives all files to one user, whoever makes them (vfat, NFS of another
 * machine's root): then an owner says nothing. */
static bool gives_all_to(int folder_fd, uid_t uid) {
    static const char name[] = ".memlog.owner";
    struct stat facts;
    const int fd = make_file(folder_fd, name, O_WRONLY);
    if (fd < 0) {
        return false;
    }
    const bool gives = fstat(fd, &facts) == 0 && facts.st_uid == uid;
    (void)close(fd);
    (void)unlinkat(folder_fd, name, 0);
    return gives;
}

/* The folder, once and for all: what is made from now on is made in it, wherever its name leads. */
static enum ml_status open_folder(struct ml_dumps *dumps, struct ml_error_message *error) {
    char path[PATH_MAX];
    struct stat facts;
    /* Behind a slash even O_NOFOLLOW follows. */
    size_t count = strlen(dumps->folder);
    while (count > 1 && dumps->folder[count - 1] == '/') {
        count--;
    }
    (void)snprintf(path, sizeof(path), "%.*s", (int)count, dumps->folder);
    dumps->folder_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dumps->folder_fd < 0) {
        const int error_number = errno;
        if (lstat(path, &facts) == 0 && S_ISLNK(facts.st_mode)) {
            ml_error_set(
                error,
                "%s is a link, and memlog writes through none; name the folder itself, or another "
                "one, by -o",
                path
            );
            return ML_ENV_REFUSED;
        }
        ml_error_set(error, "%s: %s; choose another folder by -o", path, strerror(error_number));
        return ML_ENV_SYSTEM;
    }
    if (fstat(dumps->folder_fd, &facts) != 0 ||
        (facts.st_uid != geteuid() && !gives_all_to(dumps->folder_fd, facts.st_uid))) {
        ml_error_set(
            error,
            "%s belongs to another user (%u), who could read or replace what is written there; "
            "choose another folder by -o",
            path,
            (unsigned)facts.st_uid
        );
        return ML_ENV_REFUSED;
    }
    return ML_OK;
}

enum ml_status ml_dumps_open(
    struct ml_dumps *dumps,
    const char *output,
    const char *program,
    pid_t pid,
    struct ml_error_message *error
) {
    *dumps = (struct ml_dumps){.folder_fd = -1};
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL && slash[1] != '\0' ? slash + 1 : program;
    int count =
        output != NULL
            ? snprintf(dumps->folder, sizeof(dumps->folder), "%s", output)
            : snprintf(dumps->folder, sizeof(dumps->folder), "memlog.%.200s.%d", name, (int)pid);
    if (count < 0 || (size_t)count >= sizeof(dumps->folder)) {
        ml_error_set(error, "the name of the output folder is too long");
        return ML_ENV_REFUSED;
    }
    if (mkdir(dumps->folder, 0700) == 0) {
        dumps->made_folder = true;
    } else if (errno != EEXIST) {
        ml_error_set(
            error,
            "cannot make the folder %s: %s; choose another by -o",
            dumps->folder,
            strerror(errno)
        );
        return ML_ENV_SYSTEM;
    }
    enum ml_status status = open_folder(dumps, error);
    if (status == ML_OK) {
        status = look_for_dumps(dumps, error);
    }
    if (status != ML_OK) {
        ml_dumps_close(dumps);
        dumps->folder[0] = '\0';
    }
    return status;
}

enum ml_status ml_dumps_begin(
    struct ml_dumps *dumps,
    enum memlog_service_dump_reason reason,
    struct ml_dump_file *out_file,
    struct ml_error_message *error
) {
    dumps->last_number++;
    *out_file = (struct ml_dump_file){.fd = -1, .folder_fd = dumps->folder_fd};
    const char *name = ml_dump_reason_name(reason);
    int whole = snprintf(
        out_file->path,
        sizeof(out_file->path),
        "%s/%04u.%s" ML_DUMP_SUFFIX,
        dumps->folder,
        dumps->last_number,
        name
    );
    (void)snprintf(
        out_file->temporary,
        sizeof(out_file->temporary),
        ".%04u.%s" ML_DUMP_SUFFIX ".part",
        dumps->last_number,
        name
    );
    if (whole < 0 || (size_t)whole + sizeof(ML_DUMP_CUT_SUFFIX) > sizeof(out_file->path)) {
        ml_error_set(error, "%s: the name is too long", dumps->folder);
        return ML_ENV_SYSTEM;
    }
    out_file->fd = make_file(dumps->folder_fd, out_file->temporary, O_RDWR);
    if (out_file->fd < 0) {
        ml_error_set(error, "%s/%s: %s", dumps->folder, out_file->temporary, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

int ml_dumps_log(const struct ml_dumps *dumps, const char *name) {
    int fd = make_file(dumps->folder_fd, name, O_WRONLY | O_APPEND);
    struct stat facts;
    if (fd >= 0 || errno != EEXIST) {
        return fd;
    }
    /* An earlier run's, whose dumps were moved away: a file of ours, and under no other name. */
    fd = openat(
        dumps->folder_fd, name, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC
    );
    if (fd >= 0 && (fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode) ||
                    facts.st_uid != geteuid() || facts.st_nlink != 1)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Close it and give it the name file->path. */
static enum ml_status settle(struct ml_dump_file *file, struct ml_error_message *error) {
    const char *name = strrchr(file->path, '/') + 1;
    const int folder_fd = file->folder_fd;
    /* Another program may have made a file of this name meanwhile: linkat(2) does not overwrite. */
    bool fine = close(file->fd) == 0 && linkat(folder_fd, file->temporary, folder_fd, name, 0) == 0;
    file->fd = -1;
    if (!fine && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)) {
        /* A file system without hard links. */
        fine = faccessat(folder_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) != 0 &&
               renameat(folder_fd, file->temporary, folder_fd, name) == 0;
    }
    if (!fine) {
        ml_error_set(error, "%s: %s", file->path, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    (void)unlinkat(folder_fd, file->temporary, 0);
    return ML_OK;
}

enum ml_status ml_dumps_commit(struct ml_dump_file *file, struct ml_error_message *error) {
    return settle(file, error);
}

enum ml_status ml_dumps_keep_cut(struct ml_dump_file *file, struct ml_error_message *error) {
    const size_t count = strlen(file->path);
    (void)snprintf(file->path + count, sizeof(file->path) - count, "%s", ML_DUMP_CUT_SUFFIX);
    return settle(file, error);
}

void ml_dumps_discard(struct ml_dump_file *file) {
    ml_descriptor_close(&file->fd);
    (void)unlinkat(file->folder_fd, file->temporary, 0);
}

void ml_dumps_close(struct ml_dumps *dumps) {
    ml_descriptor_close(&dumps->folder_fd);
    if (dumps->made_folder && dumps->folder[0] != '\0') {
        (void)rmdir(dumps->folder); /* refuses when something is in it */
    }
    dumps->made_folder = false;
}

#include "host/dumps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
static enum ml_status look_for_dumps(const char *folder, struct ml_complaint *complaint) {
    DIR *directory = opendir(folder);
    if (directory == NULL) {
        ml_complain(complaint, "%s: %s; choose another folder by -o", folder, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    enum ml_status status = ML_OK;
    for (struct dirent *entry = readdir(directory); entry != NULL && status == ML_OK;
         entry = readdir(directory)) {
        if (ends_with(entry->d_name, ML_DUMP_SUFFIX) ||
            ends_with(entry->d_name, ML_DUMP_SUFFIX ML_DUMP_CUT_SUFFIX)) {
            ml_complain(
                complaint,
                "%s holds dumps already (%s) and is not overwritten; choose another folder by -o",
                folder,
                entry->d_name
            );
            status = ML_ENV_REFUSED;
        }
    }
    (void)closedir(directory);
    if (status == ML_OK && access(folder, W_OK | X_OK) != 0) {
        ml_complain(complaint, "%s: %s; choose another folder by -o", folder, strerror(errno));
        status = ML_ENV_SYSTEM;
    }
    return status;
}

enum ml_status ml_dumps_open(
    struct ml_dumps *dumps,
    const char *output,
    const char *program,
    pid_t pid,
    struct ml_complaint *complaint
) {
    *dumps = (struct ml_dumps){.last_number = 0};
    const char *slash = strrchr(program, '/');
    const char *name = slash != NULL && slash[1] != '\0' ? slash + 1 : program;
    int count =
        output != NULL
            ? snprintf(dumps->folder, sizeof(dumps->folder), "%s", output)
            : snprintf(dumps->folder, sizeof(dumps->folder), "memlog.%.200s.%d", name, (int)pid);
    if (count < 0 || (size_t)count >= sizeof(dumps->folder)) {
        ml_complain(complaint, "the name of the output folder is too long");
        return ML_ENV_REFUSED;
    }
    if (mkdir(dumps->folder, 0777) == 0) {
        dumps->made_folder = true;
    } else if (errno != EEXIST) {
        ml_complain(
            complaint,
            "cannot make the folder %s: %s; choose another by -o",
            dumps->folder,
            strerror(errno)
        );
        return ML_ENV_SYSTEM;
    }
    enum ml_status status = look_for_dumps(dumps->folder, complaint);
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
    struct ml_complaint *complaint
) {
    dumps->last_number++;
    *out_file = (struct ml_dump_file){.fd = -1};
    const char *name = ml_dump_reason_name(reason);
    int whole = snprintf(
        out_file->path,
        sizeof(out_file->path),
        "%s/%04u.%s" ML_DUMP_SUFFIX,
        dumps->folder,
        dumps->last_number,
        name
    );
    int temporary = snprintf(
        out_file->temporary,
        sizeof(out_file->temporary),
        "%s/.%04u.%s" ML_DUMP_SUFFIX ".part",
        dumps->folder,
        dumps->last_number,
        name
    );
    if (whole < 0 || temporary < 0 || (size_t)whole >= sizeof(out_file->path) ||
        (size_t)temporary >= sizeof(out_file->temporary)) {
        ml_complain(complaint, "%s: the name is too long", dumps->folder);
        return ML_ENV_SYSTEM;
    }
    out_file->fd = open(out_file->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out_file->fd < 0) {
        ml_complain(complaint, "%s: %s", out_file->temporary, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

/* Close it and give it the name file->path. */
static enum ml_status settle(struct ml_dump_file *file, struct ml_complaint *complaint) {
    /* Another program may have made a file of this name meanwhile: link(2) does not overwrite. */
    bool fine = close(file->fd) == 0 && link(file->temporary, file->path) == 0;
    file->fd = -1;
    if (!fine && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS)) {
        /* A file system without hard links. */
        fine = access(file->path, F_OK) != 0 && rename(file->temporary, file->path) == 0;
    }
    if (!fine) {
        ml_complain(complaint, "%s: %s", file->path, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    (void)unlink(file->temporary);
    return ML_OK;
}

enum ml_status ml_dumps_commit(struct ml_dump_file *file, struct ml_complaint *complaint) {
    return settle(file, complaint);
}

enum ml_status ml_dumps_keep_cut(struct ml_dump_file *file, struct ml_complaint *complaint) {
    const size_t count = strlen(file->path);
    (void)snprintf(file->path + count, sizeof(file->path) - count, "%s", ML_DUMP_CUT_SUFFIX);
    return settle(file, complaint);
}

void ml_dumps_discard(struct ml_dump_file *file) {
    if (file->fd >= 0) {
        (void)close(file->fd);
        file->fd = -1;
    }
    (void)unlink(file->temporary);
}

void ml_dumps_close(struct ml_dumps *dumps) {
    if (dumps->made_folder && dumps->folder[0] != '\0') {
        (void)rmdir(dumps->folder); /* refuses when something is in it */
    }
    dumps->made_folder = false;
}

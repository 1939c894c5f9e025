/* The analyzer writes the body of each upload, in its sandbox. Room: host. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/process/loop.h"
#include "host/process/orphan.h"
#include "base/upload.h"
#include "host/upload/internal.h"

enum {
    /* What 413 asks for. */
    HARDER = 4,
    WORDS_MAX = 16,
};

struct pack {
    const char *analyzer_path;
    char *const *argv;
    const char *cut_path;
};

/* The child's side. */
static void run_pack(void *context) {
    const struct pack *pack = context;
    static char *const no_environment[] = {NULL};
    const int null_fd = open("/dev/null", O_RDWR);
    const int cut_fd = open(pack->cut_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    (void)dup2(null_fd, STDIN_FILENO);
    (void)dup2(null_fd, STDOUT_FILENO);
    (void)dup2(cut_fd >= 0 ? cut_fd : null_fd, STDERR_FILENO);
    (void)execve(pack->analyzer_path, pack->argv, no_environment);
    _exit(127);
}

struct ml_upload_job *ml_uploader_unpacked(const struct ml_uploader *uploader) {
    struct ml_upload_job *job = TAILQ_FIRST(&uploader->jobs);
    while (job != NULL && job->packed) {
        job = TAILQ_NEXT(job, links);
    }
    return job;
}

/* Whether nothing can be written there any more. */
static bool is_full(const char *folder) {
    struct statvfs facts;
    return statvfs(folder, &facts) == 0 && facts.f_bavail == 0;
}

/* The analyzer's last words, for people. */
static void last_words(
    const struct ml_uploader *uploader, const char *path, char out_text[ML_UPLOAD_WORD_BYTES]
) {
    char text[4096];
    FILE *file = fopen(path, "re");
    const size_t count = file != NULL ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    text[count] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (text[0] != '\0') {
        (void)snprintf(out_text, ML_UPLOAD_WORD_BYTES, "%.250s", text);
    } else if (is_full(uploader->spool.folder)) {
        (void)snprintf(
            out_text,
            ML_UPLOAD_WORD_BYTES,
            "the spool's disk is full (%.200s)",
            uploader->spool.folder
        );
    } else {
        (void)snprintf(out_text, ML_UPLOAD_WORD_BYTES, "memlog-analyzer could not prune it");
    }
}

static void refuse(struct ml_uploader *uploader, const char *why) {
    struct ml_upload_job *job = uploader->packing;
    char id[ML_SPOOL_ID_BYTES];
    memcpy(id, job->item.id, sizeof(id));
    uploader->packing = NULL;
    if (job->item.harder == ML_SPOOL_AS_IT_IS) {
        uploader->figures.refused++;
        ml_uploader_note(uploader, true, "no upload of %s: %s", job->item.dump, why);
    } else {
        uploader->figures.given_up++;
        ml_uploader_note(uploader, true, "upload of %s given up: %s", job->item.dump, why);
    }
    ml_spool_remove(&uploader->spool, id);
    ml_uploader_end(uploader, id, why);
}

/* What the analyzer was told: a body that is larger is none of its. */
static uint64_t most_bytes(const struct ml_uploader *uploader, const struct ml_upload_job *job) {
    const uint64_t most = uploader->options->max_bytes;
    const uint64_t harder =
        most / HARDER > ML_UPLOAD_LEAST_BYTES ? most / HARDER : ML_UPLOAD_LEAST_BYTES;
    return job->item.harder == ML_SPOOL_AS_IT_IS ? most : harder;
}

/* The body that is there, or is not. */
static void packed(struct ml_uploader *uploader) {
    struct ml_upload_job *job = uploader->packing;
    const bool promised = job->item.harder != ML_SPOOL_AS_IT_IS;
    struct stat facts;
    char body[PATH_MAX];
    char cut[PATH_MAX];
    char why[ML_UPLOAD_WORD_BYTES];
    ml_spool_body(&uploader->spool, job->item.id, body);
    ml_spool_cut(&uploader->spool, job->item.id, cut);
    if (stat(body, &facts) != 0 || facts.st_size == 0 ||
        (uint64_t)facts.st_size > most_bytes(uploader, job)) {
        last_words(uploader, cut, why);
        refuse(uploader, why);
        return;
    }
    if (!promised && !ml_spool_has_room(&uploader->spool, (uint64_t)facts.st_size)) {
        (void)snprintf(why, sizeof(why), "the spool is full (%.200s)", uploader->spool.folder);
        refuse(uploader, why);
        return;
    }
    job->item.next_ms = ml_uploader_now_ms();
    job->item.harder = promised ? ML_SPOOL_HARDER_DONE : ML_SPOOL_AS_IT_IS;
    if (ml_spool_keep(&uploader->spool, &job->item) != ML_OK && !promised) {
        refuse(uploader, "the spool cannot be written");
        return;
    }
    /* A promised one that the disk has not heard of comes again when its lease ends. */
    job->packed = true;
    uploader->packing = NULL;
}

static void on_packed(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)events;
    struct ml_uploader *uploader = watcher->data;
    ev_io_stop(loop, watcher);
    (void)close(uploader->pack_pidfd);
    uploader->pack_pidfd = -1;
    packed(uploader);
    ml_uploader_go_on(uploader);
}

/* One look in so many makes a dump by chance; 0: none does. */
static uint32_t control_one_in(const struct ml_uploader *uploader) {
    return uploader->setup.options->triggers.service.control_one_in;
}

static void start(struct ml_uploader *uploader, struct ml_upload_job *job) {
    char cut[PATH_MAX];
    char form[64];
    char max_bytes[64];
    char guid[64];
    char names[64];
    char prune[64];
    char host[ML_UPLOAD_WORD_MAX + sizeof("--upload-host=")];
    char version[ML_UPLOAD_WORD_MAX + sizeof("--upload-version=")];
    char weight[64];
    char body[PATH_MAX + 16] = "--output=";
    ml_spool_cut(&uploader->spool, job->item.id, cut);
    ml_spool_body(&uploader->spool, job->item.id, body + strlen(body));
    (void)snprintf(form, sizeof(form), "--form=%s", ml_upload_form(uploader->options->target.kind));
    (void)snprintf(
        max_bytes, sizeof(max_bytes), "--upload-max-bytes=%" PRIu64, most_bytes(uploader, job)
    );
    (void)snprintf(guid, sizeof(guid), "--guid=%s", job->item.id);
    (void
    )snprintf(names, sizeof(names), "--upload-names=%s", ml_upload_names[uploader->options->names]);
    static char program[] = "memlog";
    static char command[] = "upload";
    static char dry_run[] = "--dry-run";
    static char keep_small[] = "--memlog-keep-small-allocations";
    static char end[] = "--";
    char *argv[WORDS_MAX] = {program, command, dry_run, form, max_bytes, guid, names, body};
    size_t count = 8;
    if (uploader->setup.options->keep_small_allocations) {
        argv[count++] = keep_small;
    }
    if (uploader->options->host != NULL) {
        (void)snprintf(host, sizeof(host), "--upload-host=%s", uploader->options->host);
        argv[count++] = host;
    }
    if (uploader->options->version != NULL) {
        (void)snprintf(version, sizeof(version), "--upload-version=%s", uploader->options->version);
        argv[count++] = version;
    }
    if (control_one_in(uploader) > 0) {
        (void
        )snprintf(weight, sizeof(weight), "--upload-weight=%" PRIu32, control_one_in(uploader));
        argv[count++] = weight;
    }
    if (uploader->options->prune > 0) {
        (void)snprintf(prune, sizeof(prune), "--upload-prune=%" PRIu32, uploader->options->prune);
        argv[count++] = prune;
    }
    argv[count++] = end;
    argv[count++] = job->item.dump;
    struct pack pack = {
        .analyzer_path = uploader->analyzer_path,
        .argv = argv,
        .cut_path = cut,
    };
    uploader->packing = job;
    const pid_t pid =
        ml_orphan_start(uploader->setup.inherited, run_pack, &pack, &uploader->pack_pidfd);
    if (pid < 0 || uploader->pack_pidfd < 0) {
        refuse(uploader, "memlog-analyzer cannot be started");
        return;
    }
    if (uploader->setup.on_helper != NULL) {
        uploader->setup.on_helper(uploader->setup.context, pid);
    }
    ml_watch_readable(
        uploader->setup.loop, &uploader->pack_watcher, on_packed, uploader->pack_pidfd, uploader
    );
}

void ml_uploader_pack(struct ml_uploader *uploader) {
    while (uploader->packing == NULL) {
        struct ml_upload_job *job = ml_uploader_unpacked(uploader);
        if (job == NULL) {
            return;
        }
        start(uploader, job);
    }
}

void ml_uploader_pack_stop(struct ml_uploader *uploader) {
    if (uploader->pack_pidfd >= 0) {
        ev_io_stop(uploader->setup.loop, &uploader->pack_watcher);
        (void)syscall(SYS_pidfd_send_signal, uploader->pack_pidfd, SIGKILL, NULL, 0);
        (void)close(uploader->pack_pidfd);
        uploader->pack_pidfd = -1;
        if (uploader->packing != NULL && uploader->packing->item.harder == ML_SPOOL_AS_IT_IS) {
            ml_spool_remove(&uploader->spool, uploader->packing->item.id);
        }
    }
}

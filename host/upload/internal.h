/* What uploader.c, pack.c, send.c and s3.c share. Room: host (private).
 */
#ifndef MEMLOG_HOST_UPLOAD_INTERNAL_H
#define MEMLOG_HOST_UPLOAD_INTERNAL_H

#include <sys/queue.h>

#include <ev.h>

#include "host/upload/credentials.h"
#include "host/upload/curl_api.h"
#include "host/upload/instance_credentials.h"
#include "host/upload/spool.h"
#include "host/upload/uploader.h"
#include "host/upload/web_call.h"

enum {
    ML_UPLOAD_WORD_BYTES = 256,
    ML_UPLOAD_SECRET_BYTES = 4096,
    ML_UPLOAD_TEXT_BYTES = 512,
    ML_UPLOAD_HISTORY = 16
};

/* A dump that waits for the analyzer, or whose end somebody waits for. */
struct ml_upload_job {
    struct ml_spool_item item;
    bool packed; /* it stands in the spool */
    ml_upload_done *on_done;
    void *context;
    TAILQ_ENTRY(ml_upload_job) links;
};

struct ml_uploader {
    struct ml_uploader_setup setup;
    const struct ml_upload_options *options;
    char analyzer_path[PATH_MAX];
    struct ml_spool spool;
    TAILQ_HEAD(, ml_upload_job)
    jobs; /* in order; the first that is not packed is at the analyzer */
    /* The analyzer. */
    struct ml_upload_job *packing;
    int pack_pidfd;
    ev_io pack_watcher;
    /* Sending, one at a time. */
    struct ml_curl_api api;
    struct ml_web_call *web;
    bool busy; /* the spool is locked, and `sending` under way */
    struct ml_spool_item sending;
    int body_fd;
    uint64_t body_bytes;
    char retry_after[ML_WEB_VALUE_BYTES];
    struct ml_uploader_s3 *s3; /* NULL: another kind of target */
    ev_timer next_timer;       /* when the next of the spool is due */
    /* Settling. */
    ev_timer settle_timer;
    void (*on_settled)(void *context);
    void *settle_context;
    struct memlog_host_uploads figures;
    char last_error[ML_UPLOAD_TEXT_BYTES];
    char history[ML_UPLOAD_HISTORY][ML_UPLOAD_TEXT_BYTES]; /* a ring, oldest at history_count % */
    uint64_t history_count;
    struct ml_string lines[ML_UPLOAD_HISTORY]; /* the figures' history, oldest first */
};

__attribute__((format(printf, 3, 4))) void
ml_uploader_note(struct ml_uploader *uploader, bool is_error, const char *format, ...);

/* The item's end: tell who waits, forget its job. */
void ml_uploader_end(struct ml_uploader *uploader, const char *id, const char *trouble);

/* Something has changed: send what is due, or settle. */
void ml_uploader_go_on(struct ml_uploader *uploader);

/* pack.c: the first dump that is not packed yet, NULL: none; hand the next one to the analyzer. */
struct ml_upload_job *ml_uploader_unpacked(const struct ml_uploader *uploader);
void ml_uploader_pack(struct ml_uploader *uploader);
void ml_uploader_pack_stop(struct ml_uploader *uploader);

/* send.c */
ML_NODISCARD enum ml_status
ml_uploader_send_init(struct ml_uploader *uploader, struct ml_error_message *error);
void ml_uploader_send_fini(struct ml_uploader *uploader);

/* Begin to send that item, whose spool is locked. */
void ml_uploader_send(struct ml_uploader *uploader, const struct ml_spool_item *item);

/* What an answer means: its status, 0 if there is none, and words for people. */
unsigned
ml_uploader_explain(const struct ml_web_answer *answer, char out_why[ML_UPLOAD_WORD_BYTES]);

/* The try is over. */
void ml_uploader_sent(struct ml_uploader *uploader, unsigned http_status, const char *why);

/* s3.c: by one PUT, or in parts where it is large. Errors of init: no credentials. */
ML_NODISCARD enum ml_status
ml_uploader_s3_init(struct ml_uploader *uploader, struct ml_error_message *error);
void ml_uploader_s3_fini(struct ml_uploader *uploader);
void ml_uploader_s3_send(struct ml_uploader *uploader);

/* uploader.c: a try has ended. `http_status` 0: `why` says what went wrong. */
void ml_uploader_tried(struct ml_uploader *uploader, unsigned http_status, const char *why);

/* Time of day, ms. */
uint64_t ml_uploader_now_ms(void);

#endif

/* Where uploads go, by --upload=URL, and what to do after a server's answer. Room: host. Context:
 * any; pure.
 *
 * One rule: a URL never holds a secret. One with a user or a password is refused. */
#ifndef MEMLOG_HOST_POLICY_UPLOAD_TARGET_H
#define MEMLOG_HOST_POLICY_UPLOAD_TARGET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

enum ml_upload_kind {
    ML_UPLOAD_NOWHERE = 0,
    ML_UPLOAD_FOLDER,           /* file:///PATH, or a path with a slash */
    ML_UPLOAD_REPORT,           /* http(s)://...: multipart, as Chromium's slow reports */
    ML_UPLOAD_S3,               /* s3://BUCKET/PREFIX, s3+http(s)://ENDPOINT/BUCKET/PREFIX */
    ML_UPLOAD_PYROSCOPE,        /* pyroscope+http(s)://... */
    ML_UPLOAD_PYROSCOPE_INGEST, /* pyroscope-ingest+http(s)://... */
    ML_UPLOAD_OTLP,             /* otlp+http(s)://... */
    ML_UPLOAD_KIND_COUNT
};

enum { ML_UPLOAD_URL_BYTES = 4096, ML_UPLOAD_REGION_BYTES = 64 };

struct ml_upload_target {
    enum ml_upload_kind kind;
    char url[ML_UPLOAD_URL_BYTES]; /* the folder, or where the body is sent, without S3's key */
    char region[ML_UPLOAD_REGION_BYTES]; /* of S3; "": from the environment */
};

/* Read the value of --upload.
 *
 * Errors: ML_PEER_FORM; ML_ENV_REFUSED it holds a secret; with an error message that does not
 * repeat the secret. */
ML_NODISCARD enum ml_status ml_upload_target_parse(
    const char *text, struct ml_upload_target *out_target, struct ml_error_message *error
);

/* The analyzer's --form for a kind of target, and the Content-Type of what it then writes. The
 * boundary of a multipart form is not included. */
const char *ml_upload_form(enum ml_upload_kind kind);
const char *ml_upload_content_type(enum ml_upload_kind kind);

/* What to do after an attempt. */
enum ml_upload_verdict {
    ML_UPLOAD_DONE,
    ML_UPLOAD_AGAIN,  /* after a while */
    ML_UPLOAD_HARDER, /* prune harder, then once more */
    ML_UPLOAD_GIVE_UP,
};

/* Judge an attempt by its HTTP status. 0: the network failed and there is none. `harder_tried`: the
 * report was pruned harder already. */
enum ml_upload_verdict ml_upload_judge(unsigned http_status, unsigned tries, bool harder_tried);

/* How long to wait after so many attempts. `retry_after` is the header's value, NULL or "" without
 * one. `now_s` is the time of day, `random` any number. Units: milliseconds. */
uint64_t
ml_upload_delay_ms(unsigned tries, const char *retry_after, uint64_t now_s, uint32_t random);

/* How often a report is attempted: for half a week at the longest delay. */
enum { ML_UPLOAD_TRIES_MAX = 100 };

#endif

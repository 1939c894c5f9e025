/* Verifies AWS Signature Version 4, as S3's clients sign a request. Room: host. Context: any
 * thread.
 *
 * One rule: what decides is signed. Host, time and the body's hash must be among the signed
 * headers; a signature is compared in a time that does not depend on it. */
#ifndef MEMLOG_HOST_COLLECT_FORMS_SIGV4_H
#define MEMLOG_HOST_COLLECT_FORMS_SIGV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ML_SIGV4_KEY_BYTES = 129,
    ML_SIGV4_WORD_BYTES = 65,
    ML_SIGV4_HEADERS_BYTES = 1024,
    ML_SIGV4_HASH_BYTES = 32,
    ML_SIGV4_HEX_BYTES = 2 * ML_SIGV4_HASH_BYTES + 1,
    ML_SIGV4_SKEW_S = 900 /* S3's own: the clocks of both may differ so much */
};

/* The Authorization header. */
struct ml_sigv4 {
    char key_id[ML_SIGV4_KEY_BYTES];
    char day[9]; /* YYYYMMDD */
    char region[ML_SIGV4_WORD_BYTES];
    char headers[ML_SIGV4_HEADERS_BYTES]; /* the signed ones: small letters, ';' between */
    char signature[ML_SIGV4_HEX_BYTES];
};

/* The request as it came. */
struct ml_sigv4_request {
    const char *method;
    const char *path;                                       /* decoded */
    const char *query;                                      /* canonical: sorted, encoded */
    const char *(*header)(void *context, const char *name); /* NULL: there is none */
    void *context;
};

/* Whether a request is signed so at all. NULL is allowed. */
bool ml_sigv4_is(const char *authorization);

/* Read the header. NULL: done, else "Code: what is wrong" in S3's words. */
const char *ml_sigv4_read(const char *authorization, struct ml_sigv4 *out_signed);

/* Whether its time is that of `now_s` (since 1970), and what must be signed is. NULL: fine, else as
 * above. */
const char *
ml_sigv4_time(const struct ml_sigv4 *what, const struct ml_sigv4_request *request, int64_t now_s);

/* Whether this secret has made the signature. */
bool ml_sigv4_is_signed(
    const struct ml_sigv4 *what, const struct ml_sigv4_request *request, const char *secret
);

/* The text as a query or a path has it; '/' stays if `keeps_slash`. False: no room. */
bool ml_sigv4_encode(const char *text, bool keeps_slash, char *out_text, size_t text_bytes);

void ml_sigv4_hex(const uint8_t *bytes, size_t count, char *out_hex);

#endif

/* One HTTP request at a time, by libcurl on a libev loop. Room: host. Context: one thread.
 *
 * One rule: it never waits and follows no redirect. The caller is called back once, with an answer
 * or the reason why there is none. By then the request's secrets are wiped. */
#ifndef MEMLOG_HOST_UPLOAD_WEB_CALL_H
#define MEMLOG_HOST_UPLOAD_WEB_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/upload/curl_api.h"

struct ev_loop;
struct ml_web_call;

enum { ML_WEB_ANSWER_BYTES = 16384, ML_WEB_VALUE_BYTES = 256 };

/* Everything is borrowed until the callback. */
struct ml_web_request {
    const char *method; /* GET, POST, PUT, DELETE */
    const char *url;
    /* What is sent: `body` if it is not NULL, else that part of a file. */
    const char *body;
    int body_fd;
    uint64_t body_offset, body_bytes;
    /* Signed by Signature Version 4 for S3 in `region`; NULL: not signed. */
    const char *region, *key_id, *secret;
    const char *ca_file; /* NULL: the system's certificates */
    bool direct;         /* by no proxy */
    unsigned connect_timeout_s, whole_timeout_s;
    unsigned stall_timeout_s; /* how long nothing may come or go; 0: half a minute */
    /* Takes all of an answer's body, as it comes. False: no more is wanted, and the call fails.
     * NULL: its beginning in the answer is enough. `context` is that of the callback. */
    bool (*on_bytes)(void *context, const char *bytes, size_t count_bytes);
};

struct ml_web_answer {
    unsigned status; /* 0: none came */
    bool untrusted;  /* for the certificate: nobody known has signed it */
    char trouble[ML_WEB_VALUE_BYTES];
    char retry_after[ML_WEB_VALUE_BYTES], etag[ML_WEB_VALUE_BYTES];
    char body[ML_WEB_ANSWER_BYTES]; /* its beginning, ended by a NUL */
    size_t body_bytes;
};

typedef void ml_web_done(void *context, const struct ml_web_answer *answer);

/* NULL: no memory. `api` and `loop` outlive it. */
struct ml_web_call *ml_web_call_new(const struct ml_curl_api *api, struct ev_loop *loop);

/* A request in progress is dropped without its callback. NULL is allowed. */
void ml_web_call_free(struct ml_web_call *take_call);

/* A header of the next request, "Name: value" (copied). */
void ml_web_call_header(struct ml_web_call *call, const char *text);

/* Begin a request, when none is in progress. `on_done` is called from the loop and may begin the
 * next one. */
void ml_web_call_start(
    struct ml_web_call *call,
    const struct ml_web_request *request,
    ml_web_done *on_done,
    void *context
);

/* Take a line of an answer's head, as the server sent it, without a NUL. */
void ml_web_answer_line(struct ml_web_answer *answer, const char *line, size_t line_bytes);

/* Take the next bytes of its body, as far as there is room. */
void ml_web_answer_body(struct ml_web_answer *answer, const char *bytes, size_t count_bytes);

#endif

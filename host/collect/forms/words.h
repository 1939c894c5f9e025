/* In which form a request comes, and answers in that form's words. Room: host. Context: the loop's
 * thread.
 *
 * One rule: a status and a text say the same in every form; a sender reads them as its own server
 * would have said them. */
#ifndef MEMLOG_HOST_COLLECT_FORMS_WORDS_H
#define MEMLOG_HOST_COLLECT_FORMS_WORDS_H

#include "host/http/http.h"

enum ml_form {
    ML_FORM_PLAIN, /* Chromium's report, a bare body, Pyroscope's ingest, questions */
    ML_FORM_PUSH,  /* Pyroscope's push, by Connect */
    ML_FORM_OTLP,
    ML_FORM_S3
};

enum ml_form ml_form_of(const struct ml_http_request *request);

/* Answer with that status. `text` is a line for people; for S3 it may begin with a code of S3's:
 * "Code: line". */
void ml_form_answer(
    struct ml_http_request *request, unsigned status, const char *retry_after, const char *text
);

/* Answer S3 with a document, or with nothing (NULL), and an ETag (NULL: none). */
void ml_form_answer_s3(
    struct ml_http_request *request, unsigned status, const char *xml, const char *etag
);

#endif

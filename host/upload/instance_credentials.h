/* Credentials that a machine lends to what runs on it: a container's, by the address in its
 * environment, or an instance's, by the metadata service, version 2. Room: host. Context: one
 * thread; asked for on a libev loop, without waiting.
 *
 * One rule: they are asked for again before they expire, and valid ones are used meanwhile. */
#ifndef MEMLOG_HOST_UPLOAD_INSTANCE_CREDENTIALS_H
#define MEMLOG_HOST_UPLOAD_INSTANCE_CREDENTIALS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error_message.h"
#include "host/upload/credentials.h"
#include "host/upload/web_call.h"
#include "ipc/wire/ml_status.h"

struct ml_instance_credentials;

/* NULL: no memory. `api` and `loop` outlive it.
 *
 * Source: AWS_CONTAINER_CREDENTIALS_FULL_URI or _RELATIVE_URI with
 * AWS_CONTAINER_AUTHORIZATION_TOKEN or _TOKEN_FILE; else AWS_EC2_METADATA_SERVICE_ENDPOINT
 * (http://169.254.169.254), unless AWS_EC2_METADATA_DISABLED is "true". */
struct ml_instance_credentials *
ml_instance_credentials_new(const struct ml_curl_api *api, struct ev_loop *loop);

/* Wipes what it knows. NULL is allowed. */
void ml_instance_credentials_free(struct ml_instance_credentials *take_source);

/* NULL: there are none, `error message` says why. */
typedef void ml_instance_credentials_done(
    void *context, const struct ml_s3_credentials *credentials, const struct ml_error_message *error
);

/* Call back at once if they are still valid for a while, else when new ones are there. One at a
 * time. */
void ml_instance_credentials_get(
    struct ml_instance_credentials *source, ml_instance_credentials_done *on_done, void *context
);

/* The server says that they have expired: the next get asks again. */
void ml_instance_credentials_forget(struct ml_instance_credentials *source);

/* From what the service answers, the JSON object with AccessKeyId, SecretAccessKey, Token and
 * Expiration; *out_end_s: when they end, time of day. Errors: ML_PEER_FORM; the error message
 * repeats nothing of it. */
ML_NODISCARD enum ml_status ml_instance_credentials_parse(
    const char *text,
    struct ml_s3_credentials *out_credentials,
    uint64_t *out_end_s,
    struct ml_error_message *error
);

/* Whether a container's credentials may be asked for there: secrets come back. https anywhere, http
 * on loopback and at the two addresses that are for this. */
bool ml_instance_credentials_may_ask(const char *url);

#endif

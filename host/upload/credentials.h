/* Secrets for uploads. Room: host. Context: any; reads only.
 *
 * One rule: they come only from files and the environment, are never part of an error message, and
 * the caller wipes them. */
#ifndef MEMLOG_HOST_UPLOAD_CREDENTIALS_H
#define MEMLOG_HOST_UPLOAD_CREDENTIALS_H

#include <stddef.h>

#include "base/error_message.h"
#include "ipc/wire/ml_status.h"

/* A key of the environment; NULL: it is not there, or empty. */
const char *ml_secret_setting(const char *key);

struct ml_s3_credentials {
    char key_id[256];
    char secret[256];
    char token[4096]; /* "": none */
};

/* AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; else the section AWS_PROFILE
 * ("default") of AWS_SHARED_CREDENTIALS_FILE (~/.aws/credentials). Errors: ML_ENV_MISSING with a
 * error message. */
ML_NODISCARD enum ml_status
ml_s3_credentials_find(struct ml_s3_credentials *out, struct ml_error_message *error);

/* AWS_REGION, AWS_DEFAULT_REGION, else "us-east-1". */
const char *ml_s3_region(void);

/* AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else Amazon's for that region ("": ml_s3_region's). */
void ml_s3_endpoint(const char *region, char *out_url, size_t url_bytes);

/* The first line of a file. Errors: ML_ENV_SYSTEM, ML_ENV_MISSING, with an error message. */
ML_NODISCARD enum ml_status ml_secret_read(
    const char *path, char *out_secret, size_t secret_bytes, struct ml_error_message *error
);

#endif

#include "host/upload/credentials.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/input_file.h"

enum { LINE_BYTES = 4608 };

const char *ml_secret_setting(const char *key) {
    const char *value = getenv(key);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static bool keep(char *out, size_t out_bytes, const char *value) {
    const int count = snprintf(out, out_bytes, "%s", value);
    return count > 0 && (size_t)count < out_bytes;
}

/* "key = value" without the blanks; NULL: it is not that key. */
static char *value_of(char *line, const char *key) {
    const size_t count = strlen(key);
    if (strncmp(line, key, count) != 0) {
        return NULL;
    }
    line += count + strspn(line + count, " \t");
    if (*line != '=') {
        return NULL;
    }
    line++;
    line += strspn(line, " \t");
    size_t end = strlen(line);
    while (end > 0 && isspace((unsigned char)line[end - 1])) {
        line[--end] = '\0';
    }
    return line;
}

static void read_section(FILE *file, const char *profile, struct ml_s3_credentials *out) {
    char line[LINE_BYTES];
    char head[256];
    bool here = false;
    (void)snprintf(head, sizeof(head), "[%s]", profile);
    while (fgets(line, sizeof(line), file) != NULL) {
        char *text = line + strspn(line, " \t");
        const char *value = NULL;
        if (text[0] == '[') {
            here = strncmp(text, head, strlen(head)) == 0;
        } else if (!here) {
            continue;
        } else if ((value = value_of(text, "aws_access_key_id")) != NULL) {
            (void)!keep(out->key_id, sizeof(out->key_id), value);
        } else if ((value = value_of(text, "aws_secret_access_key")) != NULL) {
            (void)!keep(out->secret, sizeof(out->secret), value);
        } else if ((value = value_of(text, "aws_session_token")) != NULL) {
            (void)!keep(out->token, sizeof(out->token), value);
        }
    }
    explicit_bzero(line, sizeof(line));
}

enum ml_status
ml_s3_credentials_find(struct ml_s3_credentials *out, struct ml_error_message *error) {
    const char *key_id = ml_secret_setting("AWS_ACCESS_KEY_ID");
    const char *secret = ml_secret_setting("AWS_SECRET_ACCESS_KEY");
    const char *token = ml_secret_setting("AWS_SESSION_TOKEN");
    *out = (struct ml_s3_credentials){.key_id = ""};
    if (key_id != NULL && secret != NULL) {
        if (keep(out->key_id, sizeof(out->key_id), key_id) &&
            keep(out->secret, sizeof(out->secret), secret) &&
            (token == NULL || keep(out->token, sizeof(out->token), token))) {
            return ML_OK;
        }
        ml_error_set(error, "--upload: the AWS_* keys of the environment are too long");
        return ML_ENV_MISSING;
    }
    char path[PATH_MAX];
    const char *named = ml_secret_setting("AWS_SHARED_CREDENTIALS_FILE");
    const char *home = ml_secret_setting("HOME");
    if (named != NULL) {
        (void)snprintf(path, sizeof(path), "%s", named);
    } else {
        (void)snprintf(path, sizeof(path), "%s/.aws/credentials", home != NULL ? home : "");
    }
    const char *profile = ml_secret_setting("AWS_PROFILE");
    FILE *file = fopen(path, "re");
    if (file != NULL) {
        read_section(file, profile != NULL ? profile : "default", out);
        (void)fclose(file);
    }
    if (out->key_id[0] != '\0' && out->secret[0] != '\0') {
        return ML_OK;
    }
    ml_error_set(
        error,
        "--upload: no credentials for S3: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor "
        "[%s] in %s",
        profile != NULL ? profile : "default",
        path
    );
    return ML_ENV_MISSING;
}

const char *ml_s3_region(void) {
    const char *region = ml_secret_setting("AWS_REGION");
    region = region != NULL ? region : ml_secret_setting("AWS_DEFAULT_REGION");
    return region != NULL ? region : "us-east-1";
}

void ml_s3_endpoint(const char *region, char *out_url, size_t url_bytes) {
    const char *url = ml_secret_setting("AWS_ENDPOINT_URL_S3");
    url = url != NULL ? url : ml_secret_setting("AWS_ENDPOINT_URL");
    if (url != NULL) {
        size_t end = (size_t)snprintf(out_url, url_bytes, "%s", url);
        end = end < url_bytes ? end : url_bytes - 1;
        while (end > 0 && out_url[end - 1] == '/') {
            out_url[--end] = '\0';
        }
        return;
    }
    (void)snprintf(
        out_url,
        url_bytes,
        "https://s3.%s.amazonaws.com",
        region[0] != '\0' ? region : ml_s3_region()
    );
}

enum ml_status ml_secret_read(
    const char *path, char *out_secret, size_t secret_bytes, struct ml_error_message *error
) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        ml_error_set(error, "%s: %s", path, strerror(errno));
        return ML_ENV_SYSTEM;
    }
    const bool any = fgets(out_secret, (int)secret_bytes, file) != NULL;
    (void)fclose(file);
    if (any) {
        out_secret[strcspn(out_secret, "\r\n")] = '\0';
    }
    if (!any || out_secret[0] == '\0') {
        ml_error_set(error, "%s: there is no secret in its first line", path);
        return ML_ENV_MISSING;
    }
    return ML_OK;
}

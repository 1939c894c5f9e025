#include "host/collect/forms/sigv4.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

static const char scheme[] = "AWS4-HMAC-SHA256";
static const char hash_header[] = "x-amz-content-sha256";
static const char date_header[] = "x-amz-date";

bool ml_sigv4_is(const char *authorization) {
    return authorization != NULL && strncmp(authorization, scheme, sizeof(scheme) - 1) == 0 &&
           (authorization[sizeof(scheme) - 1] == ' ' || authorization[sizeof(scheme) - 1] == '\0');
}

/* ---- the header */

/* The value behind `name`= up to a comma. False: there is none, or it is too long. */
static bool field_of(const char *text, const char *name, char *out_value, size_t value_bytes) {
    const size_t name_bytes = strlen(name);
    const char *at = strstr(text, name);
    while (at != NULL && at[name_bytes] != '=') {
        at = strstr(at + 1, name);
    }
    if (at == NULL) {
        return false;
    }
    at += name_bytes + 1;
    const size_t count = strcspn(at, ", ");
    if (count == 0 || count >= value_bytes) {
        return false;
    }
    memcpy(out_value, at, count);
    out_value[count] = '\0';
    return true;
}

/* Take the last word behind a '/' off the text. NULL: there is none. */
static char *take_last(char *text) {
    char *slash = strrchr(text, '/');
    if (slash == NULL) {
        return NULL;
    }
    *slash = '\0';
    return slash + 1;
}

static bool is_of(const char *word, const char *letters, size_t least, size_t most) {
    const size_t count = strlen(word);
    return count >= least && count <= most && strspn(word, letters) == count;
}

/* KEY/DAY/REGION/s3/aws4_request. */
static bool scope_read(char *scope, struct ml_sigv4 *out_signed) {
    const char *end = take_last(scope);
    const char *service = end != NULL ? take_last(scope) : NULL;
    const char *region = service != NULL ? take_last(scope) : NULL;
    const char *day = region != NULL ? take_last(scope) : NULL;
    if (day == NULL || strcmp(end, "aws4_request") != 0 || strcmp(service, "s3") != 0 ||
        !is_of(day, "0123456789", 8, 8) || strlen(region) >= sizeof(out_signed->region) ||
        strlen(scope) >= sizeof(out_signed->key_id)) {
        return false;
    }
    (void)snprintf(out_signed->key_id, sizeof(out_signed->key_id), "%s", scope);
    (void)snprintf(out_signed->day, sizeof(out_signed->day), "%s", day);
    (void)snprintf(out_signed->region, sizeof(out_signed->region), "%s", region);
    return true;
}

const char *ml_sigv4_read(const char *authorization, struct ml_sigv4 *out_signed) {
    char scope[512];
    *out_signed = (struct ml_sigv4){.key_id = ""};
    if (!ml_sigv4_is(authorization) ||
        !field_of(authorization, "Credential", scope, sizeof(scope)) ||
        !scope_read(scope, out_signed) ||
        !field_of(
            authorization, "SignedHeaders", out_signed->headers, sizeof(out_signed->headers)
        ) ||
        !field_of(
            authorization, "Signature", out_signed->signature, sizeof(out_signed->signature)
        ) ||
        !is_of(out_signed->signature, "0123456789abcdef", 64, 64)) {
        return "AuthorizationHeaderMalformed: it is AWS4-HMAC-SHA256 with Credential, "
               "SignedHeaders "
               "and Signature, for s3";
    }
    return NULL;
}

/* ---- what must be signed */

static bool is_among(const char *headers, const char *name) {
    const size_t count = strlen(name);
    for (const char *at = headers; at != NULL; at = strchr(at, ';')) {
        at += *at == ';';
        if (strncmp(at, name, count) == 0 && (at[count] == ';' || at[count] == '\0')) {
            return true;
        }
    }
    return false;
}

static const char *header_of(const struct ml_sigv4_request *request, const char *name) {
    const char *value = request->header(request->context, name);
    return value != NULL ? value : "";
}

/* YYYYMMDDTHHMMSSZ. -1: it is no time. */
static int64_t time_of(const char *text) {
    struct tm when = {.tm_isdst = 0};
    const char *end = strptime(text, "%Y%m%dT%H%M%SZ", &when);
    return end != NULL && *end == '\0' && strlen(text) == 16 ? (int64_t)timegm(&when) : -1;
}

const char *
ml_sigv4_time(const struct ml_sigv4 *what, const struct ml_sigv4_request *request, int64_t now_s) {
    const char *stamp = header_of(request, date_header);
    const int64_t time_s = time_of(stamp);
    if (!is_among(what->headers, "host") || !is_among(what->headers, date_header) ||
        !is_among(what->headers, hash_header)) {
        return "AccessDenied: host, x-amz-date and x-amz-content-sha256 are to be signed";
    }
    if (time_s < 0 || strncmp(stamp, what->day, 8) != 0) {
        return "AccessDenied: x-amz-date is no time, or another day's than the credential's";
    }
    if (time_s < now_s - ML_SIGV4_SKEW_S || time_s > now_s + ML_SIGV4_SKEW_S) {
        return "RequestTimeTooSkewed: the clocks of both differ by more than 15 minutes";
    }
    return NULL;
}

/* ---- the signature */

void ml_sigv4_hex(const uint8_t *bytes, size_t count, char *out_hex) {
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(out_hex + 2 * i, 3, "%02x", bytes[i]);
    }
}

bool ml_sigv4_encode(const char *text, bool keeps_slash, char *out_text, size_t text_bytes) {
    enum { ENCODED = 3 };
    size_t at = 0;
    for (; *text != '\0'; text++) {
        const bool is_plain = isalnum((unsigned char)*text) || strchr("-._~", *text) != NULL ||
                              (keeps_slash && *text == '/');
        if (at + ENCODED >= text_bytes) {
            return false;
        }
        at += (size_t
        )snprintf(out_text + at, text_bytes - at, is_plain ? "%c" : "%%%02X", (unsigned char)*text);
    }
    out_text[at] = '\0';
    return true;
}

/* Without blanks around it; several of them within count as one. */
static void put_value(const char *value, FILE *out) {
    bool is_pending = false;
    bool is_begun = false;
    for (; *value != '\0'; value++) {
        if (*value == ' ' || *value == '\t') {
            is_pending = is_begun;
            continue;
        }
        if (is_pending) {
            (void)fputc(' ', out);
        }
        (void)fputc(*value, out);
        is_begun = true;
        is_pending = false;
    }
}

static void
put_headers(const struct ml_sigv4 *what, const struct ml_sigv4_request *request, FILE *out) {
    char names[ML_SIGV4_HEADERS_BYTES];
    char *rest = NULL;
    (void)snprintf(names, sizeof(names), "%s", what->headers);
    for (const char *name = strtok_r(names, ";", &rest); name != NULL;
         name = strtok_r(NULL, ";", &rest)) {
        (void)fprintf(out, "%s:", name);
        put_value(header_of(request, name), out);
        (void)fputc('\n', out);
    }
}

/* The hash of the canonical request. False: no memory, or the path is too long. */
static bool request_hash(
    const struct ml_sigv4 *what,
    const struct ml_sigv4_request *request,
    char out_hex[ML_SIGV4_HEX_BYTES]
) {
    char path[4096];
    uint8_t hash[ML_SIGV4_HASH_BYTES];
    char *text = NULL;
    size_t count = 0;
    if (!ml_sigv4_encode(request->path, true, path, sizeof(path))) {
        return false;
    }
    FILE *out = open_memstream(&text, &count);
    if (out == NULL) {
        return false;
    }
    (void)fprintf(out, "%s\n%s\n%s\n", request->method, path, request->query);
    put_headers(what, request, out);
    (void)fprintf(out, "\n%s\n%s", what->headers, header_of(request, hash_header));
    const bool is_made =
        fclose(out) == 0 && gnutls_hash_fast(GNUTLS_DIG_SHA256, text, count, hash) == 0;
    free(text);
    ml_sigv4_hex(hash, is_made ? sizeof(hash) : 0, out_hex);
    return is_made;
}

static bool hmac(uint8_t key[ML_SIGV4_HASH_BYTES], const char *text) {
    uint8_t made[ML_SIGV4_HASH_BYTES];
    const bool done =
        gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, ML_SIGV4_HASH_BYTES, text, strlen(text), made) ==
        0;
    memcpy(key, made, sizeof(made));
    explicit_bzero(made, sizeof(made));
    return done;
}

/* The key of that day, region and service. */
static bool
key_of(const struct ml_sigv4 *what, const char *secret, uint8_t out_key[ML_SIGV4_HASH_BYTES]) {
    char first[256];
    const int count = snprintf(first, sizeof(first), "AWS4%s", secret);
    const bool done =
        count > 0 && (size_t)count < sizeof(first) &&
        gnutls_hmac_fast(
            GNUTLS_MAC_SHA256, first, (size_t)count, what->day, strlen(what->day), out_key
        ) == 0 &&
        hmac(out_key, what->region) && hmac(out_key, "s3") && hmac(out_key, "aws4_request");
    explicit_bzero(first, sizeof(first));
    return done;
}

bool ml_sigv4_is_signed(
    const struct ml_sigv4 *what, const struct ml_sigv4_request *request, const char *secret
) {
    char text[512];
    char hash[ML_SIGV4_HEX_BYTES];
    char made[ML_SIGV4_HEX_BYTES];
    uint8_t key[ML_SIGV4_HASH_BYTES];
    unsigned differing = 0;
    if (!request_hash(what, request, hash) || !key_of(what, secret, key)) {
        return false;
    }
    (void)snprintf(
        text,
        sizeof(text),
        "%s\n%.16s\n%s/%s/s3/aws4_request\n%s",
        scheme,
        header_of(request, date_header),
        what->day,
        what->region,
        hash
    );
    const bool is_made = hmac(key, text);
    ml_sigv4_hex(key, sizeof(key), made);
    for (size_t i = 0; i < sizeof(made); i++) {
        differing |= (unsigned)(unsigned char)made[i] ^ (unsigned)(unsigned char)what->signature[i];
    }
    explicit_bzero(key, sizeof(key));
    explicit_bzero(made, sizeof(made));
    return is_made && differing == 0;
}

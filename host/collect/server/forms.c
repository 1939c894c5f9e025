#include "host/collect/server/forms.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "host/collect/forms/inbox.h"
#include "host/collect/forms/parts.h"
#include "host/collect/forms/sigv4.h"
#include "host/collect/forms/words.h"

enum {
    OK = 200,
    NO_CONTENT = 204,
    BAD = 400,
    UNKNOWN = 401,
    FORBIDDEN = 403,
    MISSING = 404,
    WRONG_METHOD = 405,
    TOO_LARGE = 413,
    WRONG_TYPE = 415,
    NOT_DONE = 501,
    DISK_FULL = 507
};

enum { QUERY_BYTES = 1024, LIST_BYTES_MAX = 1 << 20, PIECE_BYTES = 64 << 10, ETAG_HEX = 32 };

_Static_assert((int)ML_INBOX_GUID_BYTES == (int)ML_GUID_BYTES, "a name's guid is a report's");

struct ml_forms {
    struct ml_forms_setup setup;
    struct ml_parts parts;
    struct ml_team_list rooms; /* what each team's parts have */
    time_t counted;            /* when they were counted last */
};

/* What a request of S3's wants. */
enum step { STEP_WHOLE, STEP_BEGIN, STEP_PART, STEP_JOIN, STEP_ABANDON, STEP_OTHER };

static enum step step_of(const struct ml_http_request *request) {
    const char *method = ml_http_method(request);
    const bool has_id = ml_http_argument(request, "uploadId") != NULL;
    if (strcmp(method, "PUT") == 0) {
        return has_id ? STEP_PART : STEP_WHOLE;
    }
    if (strcmp(method, "POST") == 0) {
        return has_id ? STEP_JOIN : STEP_BEGIN;
    }
    return strcmp(method, "DELETE") == 0 && has_id ? STEP_ABANDON : STEP_OTHER;
}

static const char *argument(const struct ml_http_request *request, const char *name) {
    const char *value = ml_http_argument(request, name);
    return value != NULL ? value : "";
}

/* 0: it is none. */
static unsigned part_number(const struct ml_http_request *request) {
    const char *text = argument(request, "partNumber");
    const unsigned long number = strtoul(text, NULL, 10);
    return text[strspn(text, "0123456789")] == '\0' && strlen(text) < 6 &&
                   number <= ML_PARTS_NUMBER_MAX
               ? (unsigned)number
               : 0;
}

/* ---- who it is */

static const char *header(void *context, const char *name) {
    return ml_http_header(context, name);
}

/* All arguments that mean something here, in the order of their names. Where a client signs another
 * one, its signature is another. */
static bool query_of(const struct ml_http_request *request, char out_query[QUERY_BYTES]) {
    static const char *const names[] = {"partNumber", "uploadId", "uploads", "x-id"};
    size_t at = 0;
    out_query[0] = '\0';
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = ml_http_argument(request, names[i]);
        if (strcmp(names[i], "uploads") == 0 && step_of(request) == STEP_BEGIN) {
            value = ""; /* some send it without '=' */
        }
        if (value != NULL) {
            at += (size_t
            )snprintf(out_query + at, QUERY_BYTES - at, "%s%s=", at > 0 ? "&" : "", names[i]);
            if (!ml_sigv4_encode(value, false, out_query + at, QUERY_BYTES - at)) {
                return false;
            }
            at += strlen(out_query + at);
        }
        if (at + 64 > QUERY_BYTES) {
            return false;
        }
    }
    return true;
}

static const struct ml_token *
signer(const struct ml_forms *forms, const struct ml_http_request *request, const char **out_why) {
    const struct ml_tokens *tokens = forms->setup.tokens;
    struct ml_sigv4 what;
    char query[QUERY_BYTES];
    const struct ml_sigv4_request asked = {
        .method = ml_http_method(request),
        .path = ml_http_path(request),
        .query = query,
        .header = header,
        .context = (void *)(uintptr_t)request,
    };
    *out_why = ml_sigv4_read(ml_http_header(request, "Authorization"), &what);
    *out_why = *out_why != NULL ? *out_why : ml_sigv4_time(&what, &asked, (int64_t)time(NULL));
    if (*out_why != NULL) {
        return NULL;
    }
    *out_why = "InvalidAccessKeyId: the access key's id is the team";
    for (size_t i = 0; i < tokens->count; i++) {
        const struct ml_token *token = &tokens->list[i];
        if (strcmp(token->team, what.key_id) != 0 || token->right != ML_RIGHT_WRITE) {
            continue;
        }
        *out_why = "SignatureDoesNotMatch: the secret is a write token of the team's";
        if (query_of(request, query) && ml_sigv4_is_signed(&what, &asked, token->token)) {
            return token;
        }
    }
    return NULL;
}

/* The password of "Basic BASE64(USER:PASSWORD)". */
static const struct ml_token *by_password(const struct ml_tokens *tokens, const char *brought) {
    const gnutls_datum_t packed = {
        .data = (unsigned char *)(uintptr_t)brought, .size = (unsigned)strlen(brought)};
    const struct ml_token *found = NULL;
    char text[2 * ML_TOKEN_BYTES];
    gnutls_datum_t plain = {.data = NULL};
    if (gnutls_base64_decode2(&packed, &plain) != 0) {
        return NULL;
    }
    if (plain.size < sizeof(text)) {
        memcpy(text, plain.data, plain.size);
        text[plain.size] = '\0';
        const char *colon = strchr(text, ':');
        found = colon != NULL ? ml_tokens_find(tokens, colon + 1) : NULL;
        explicit_bzero(text, sizeof(text));
    }
    explicit_bzero(plain.data, plain.size);
    gnutls_free(plain.data);
    return found;
}

const struct ml_token *ml_forms_token(
    const struct ml_forms *forms, const struct ml_http_request *request, const char **out_why
) {
    static const char basic[] = "Basic ";
    const char *brought = ml_http_header(request, "Authorization");
    *out_why = "a token is wanted: Authorization: Bearer TOKEN\n";
    if (ml_form_of(request) == ML_FORM_S3) {
        return signer(forms, request, out_why);
    }
    if (brought != NULL && strncasecmp(brought, basic, sizeof(basic) - 1) == 0) {
        return by_password(forms->setup.tokens, brought + sizeof(basic) - 1);
    }
    return ml_tokens_find(forms->setup.tokens, brought);
}

/* ---- before the body */

static bool refuse(struct ml_http_request *request, unsigned status, const char *text) {
    ml_form_answer(request, status, NULL, text);
    return false;
}

static const char *told_hash(const struct ml_http_request *request) {
    const char *hash = ml_http_header(request, "x-amz-content-sha256");
    return hash != NULL ? hash : "";
}

static bool is_hash(const char *text) {
    return strlen(text) == 2 * (size_t)ML_HASH_BYTES &&
           strspn(text, "0123456789abcdef") == 2 * (size_t)ML_HASH_BYTES;
}

static bool begin_s3(
    const struct ml_forms *forms,
    struct ml_http_request *request,
    const struct ml_token *token,
    uint64_t length
) {
    const enum step step = step_of(request);
    const char *id = argument(request, "uploadId");
    const char *hash = told_hash(request);
    if (!is_hash(hash) && !(forms->setup.is_secret && strcmp(hash, "UNSIGNED-PAYLOAD") == 0)) {
        return refuse(
            request,
            NOT_DONE,
            "NotImplemented: x-amz-content-sha256 is the body's SHA-256, or by https "
            "UNSIGNED-PAYLOAD; a body in signed pieces is not taken"
        );
    }
    if (step != STEP_PART && step != STEP_JOIN) {
        return true;
    }
    if (!ml_parts_is(&forms->parts, id, token->team, ml_http_path(request))) {
        return refuse(request, MISSING, "NoSuchUpload: begin it anew");
    }
    if (step == STEP_PART && part_number(request) == 0) {
        return refuse(request, BAD, "InvalidArgument: partNumber is from 1 to 10000");
    }
    if (step == STEP_PART && ml_parts_bytes(&forms->parts, id, part_number(request)) + length >
                                 forms->setup.body_max_bytes) {
        return refuse(request, TOO_LARGE, "EntityTooLarge: the report is too large");
    }
    return true;
}

bool ml_forms_begin(
    const struct ml_forms *forms,
    struct ml_http_request *request,
    const struct ml_token *token,
    uint64_t length
) {
    const char *encoding = ml_http_header(request, "Content-Encoding");
    if (encoding != NULL && strcasecmp(encoding, "gzip") != 0 &&
        strcasecmp(encoding, "identity") != 0) {
        return refuse(request, WRONG_TYPE, "a body is gzipped or as it is: Content-Encoding\n");
    }
    return ml_form_of(request) != ML_FORM_S3 || begin_s3(forms, request, token, length);
}

/* ---- parts */

/* Parts are counted anew once a minute, as old uploads go by themselves; each change in between is
 * added. */
enum { COUNTED_EVERY_S = 60 };

static void count_upload(void *context, const char *team, uint64_t bytes) {
    ml_team_list_add(context, team, ML_ENTRY_ACCEPTED, 1, bytes);
}

static void count_parts(struct ml_forms *forms) {
    ml_team_list_clear(&forms->rooms);
    ml_parts_count(&forms->parts, count_upload, &forms->rooms);
    forms->counted = time(NULL);
}

uint64_t ml_forms_bytes(struct ml_forms *forms, const char *team) {
    const time_t now = time(NULL);
    if (now < forms->counted || now >= forms->counted + COUNTED_EVERY_S) {
        count_parts(forms);
    }
    return ml_team_list_of(&forms->rooms, team).bytes;
}

bool ml_forms_is_join(const struct ml_http_request *request) {
    return ml_form_of(request) == ML_FORM_S3 && step_of(request) == STEP_JOIN;
}

static void remove_parts(struct ml_forms *forms, const char *team, const char *id) {
    ml_team_list_take(
        &forms->rooms, team, ML_ENTRY_ACCEPTED, 1, ml_parts_bytes(&forms->parts, id, 0)
    );
    ml_parts_remove(&forms->parts, id);
}

static void drop(struct ml_body **body) {
    ml_body_drop(*body);
    *body = NULL;
}

static bool no_disk(struct ml_http_request *request) {
    ml_form_answer(request, DISK_FULL, "300", "the report cannot be written\n");
    return false;
}

static bool
end_begin(struct ml_forms *forms, struct ml_http_request *request, const struct ml_token *token) {
    char id[ML_PARTS_ID_BYTES];
    char xml[512];
    if (!ml_parts_begin(&forms->parts, token->team, ml_http_path(request), id)) {
        return no_disk(request);
    }
    count_upload(&forms->rooms, token->team, 0);
    (void)snprintf(
        xml,
        sizeof(xml),
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<InitiateMultipartUploadResult><UploadId>%s"
        "</UploadId></InitiateMultipartUploadResult>\n",
        id
    );
    ml_form_answer_s3(request, OK, xml, NULL);
    return false;
}

/* What a part is called: no client takes it for the MD5 of an object. */
static void etag_of(const uint8_t hash[ML_HASH_BYTES], char out_etag[ETAG_HEX + 3]) {
    ml_sigv4_hex(hash, ETAG_HEX / 2, out_etag);
    (void)snprintf(out_etag + ETAG_HEX, 3, "-1");
}

static bool end_part(
    struct ml_forms *forms,
    struct ml_http_request *request,
    const struct ml_token *token,
    struct ml_body **body
) {
    const char *id = argument(request, "uploadId");
    uint8_t hash[ML_HASH_BYTES];
    char path[PATH_MAX];
    char etag[ETAG_HEX + 3];
    char quoted[ETAG_HEX + 5];
    struct ml_body *part = *body;
    if (ml_parts_bytes(&forms->parts, id, part_number(request)) + ml_body_bytes(part) >
        forms->setup.body_max_bytes) {
        return refuse(request, TOO_LARGE, "EntityTooLarge: the report is too large");
    }
    ml_parts_path(&forms->parts, id, part_number(request), path);
    *body = NULL;
    const uint64_t before = ml_parts_bytes(&forms->parts, id, 0);
    const uint64_t bytes = ml_body_bytes(part);
    const uint64_t others = ml_parts_bytes(&forms->parts, id, part_number(request));
    if (!ml_body_hash(part, hash) || !ml_body_move(part, path)) {
        return no_disk(request);
    }
    ml_team_list_add(&forms->rooms, token->team, ML_ENTRY_ACCEPTED, 0, others + bytes);
    ml_team_list_take(&forms->rooms, token->team, ML_ENTRY_ACCEPTED, 0, before);
    etag_of(hash, etag);
    (void)snprintf(quoted, sizeof(quoted), "\"%s\"", etag);
    ml_form_answer_s3(request, OK, NULL, quoted);
    return false;
}

/* Add a part to the whole. NULL: done; else what is wrong. */
static const char *add_part(int fd, struct ml_body *whole, const char *told_etag) {
    uint8_t piece[PIECE_BYTES];
    uint8_t hash[ML_HASH_BYTES];
    char etag[ETAG_HEX + 3];
    gnutls_hash_hd_t hashing = NULL;
    ssize_t count = 1;
    if (gnutls_hash_init(&hashing, GNUTLS_DIG_SHA256) != 0) {
        return "InternalError: memory ran out";
    }
    while (count > 0) {
        count = read(fd, piece, sizeof(piece));
        if (count < 0 || gnutls_hash(hashing, piece, (size_t)count) != 0 ||
            !ml_body_add(whole, piece, (size_t)count)) {
            gnutls_hash_deinit(hashing, NULL);
            return "SlowDown: the report cannot be written";
        }
    }
    gnutls_hash_deinit(hashing, hash);
    etag_of(hash, etag);
    return strcmp(etag, told_etag) == 0 ? NULL : "InvalidPart: a part has another ETag";
}

static unsigned status_of(const char *why) {
    if (strncmp(why, "NoSuchUpload", strlen("NoSuchUpload")) == 0) {
        return MISSING;
    }
    return strncmp(why, "SlowDown", strlen("SlowDown")) == 0 ? DISK_FULL : BAD;
}

/* Add all parts of a list. NULL: done; else what is wrong. */
static const char *
join(const struct ml_forms *forms, const char *id, const char *list, struct ml_body *whole) {
    char etag[64];
    unsigned number = 0;
    unsigned last = 0;
    while (ml_parts_next(&list, &number, etag, sizeof(etag))) {
        if (number <= last) {
            return "InvalidPartOrder: parts rise";
        }
        const int fd = ml_parts_fd(&forms->parts, id, number);
        if (fd < 0) {
            return "NoSuchUpload: a part is not there; begin it anew";
        }
        const char *why = add_part(fd, whole, etag);
        (void)close(fd);
        if (why != NULL) {
            return why;
        }
        last = number;
    }
    return last > 0 && strstr(list, "<Part>") == NULL
               ? NULL
               : "MalformedXML: a list of parts is wanted: Part with PartNumber and ETag";
}

/* The whole body as a text. NULL: it is too large, or there is no memory. Owner: free. */
static char *text_of(const struct ml_body *body) {
    const uint64_t bytes = ml_body_bytes(body);
    char *text = bytes <= LIST_BYTES_MAX ? calloc(1, (size_t)bytes + 1) : NULL;
    if (text != NULL && pread(ml_body_fd(body), text, (size_t)bytes, 0) != (ssize_t)bytes) {
        free(text);
        return NULL;
    }
    return text;
}

static bool end_join(
    struct ml_forms *forms,
    struct ml_http_request *request,
    const struct ml_token *token,
    struct ml_body **body
) {
    const char *id = argument(request, "uploadId");
    char *list = text_of(*body);
    struct ml_body *whole = list != NULL ? ml_body_new(forms->setup.ledger) : NULL;
    const char *why =
        whole != NULL ? join(forms, id, list, whole) : "SlowDown: the report cannot be written";
    free(list);
    drop(body);
    if (why != NULL) {
        ml_body_drop(whole);
        ml_form_answer(request, status_of(why), status_of(why) == DISK_FULL ? "300" : NULL, why);
        return false;
    }
    /* From here on it is a body as any other. Where it cannot be kept, its sender begins anew. */
    remove_parts(forms, token->team, id);
    *body = whole;
    return true;
}

/* ---- the body has come */

static bool is_as_signed(const struct ml_http_request *request, const struct ml_body *body) {
    uint8_t hash[ML_HASH_BYTES];
    char hex[2 * ML_HASH_BYTES + 1];
    const char *told = told_hash(request);
    if (!is_hash(told)) {
        return true; /* by https, where nobody changes it */
    }
    if (!ml_body_hash(body, hash)) {
        return false;
    }
    ml_sigv4_hex(hash, sizeof(hash), hex);
    return strcmp(hex, told) == 0;
}

static bool end_s3(
    struct ml_forms *forms,
    struct ml_http_request *request,
    const struct ml_token *token,
    struct ml_body **body,
    char out_guid[ML_GUID_BYTES]
) {
    (void)ml_inbox_guid(ml_http_path(request), out_guid);
    if (!is_as_signed(request, *body)) {
        return refuse(request, BAD, "XAmzContentSHA256Mismatch: the body is another one");
    }
    switch (step_of(request)) {
    case STEP_BEGIN:
        return end_begin(forms, request, token);
    case STEP_PART:
        return end_part(forms, request, token, body);
    case STEP_JOIN:
        return end_join(forms, request, token, body);
    default:
        return true;
    }
}

bool ml_forms_end(
    struct ml_forms *forms,
    struct ml_http_request *request,
    const struct ml_token *token,
    struct ml_body **body,
    char out_guid[ML_GUID_BYTES]
) {
    if (ml_form_of(request) != ML_FORM_S3) {
        return true;
    }
    const bool is_report = end_s3(forms, request, token, body, out_guid);
    if (!is_report) {
        drop(body);
    }
    return is_report;
}

bool ml_forms_other(struct ml_forms *forms, struct ml_http_request *request) {
    const char *why = NULL;
    const enum step step = step_of(request);
    if (ml_form_of(request) != ML_FORM_S3 || (step != STEP_ABANDON && step != STEP_OTHER)) {
        return false;
    }
    const struct ml_token *token = ml_forms_token(forms, request, &why);
    const char *id = argument(request, "uploadId");
    if (token == NULL) {
        ml_form_answer(request, FORBIDDEN, NULL, why);
    } else if (step == STEP_OTHER) {
        ml_form_answer(request, WRONG_METHOD, NULL, "MethodNotAllowed: reports are put, no more");
    } else if (!ml_parts_is(&forms->parts, id, token->team, ml_http_path(request))) {
        ml_form_answer(request, MISSING, NULL, "NoSuchUpload: there is none");
    } else {
        remove_parts(forms, token->team, id);
        ml_form_answer_s3(request, NO_CONTENT, NULL, NULL);
    }
    return true;
}

/* ---- open and close */

enum ml_status ml_forms_open(
    const struct ml_forms_setup *setup, struct ml_forms **out_forms, struct ml_error_message *error
) {
    char path[PATH_MAX];
    struct ml_forms *forms = calloc(1, sizeof(*forms));
    if (forms == NULL) {
        return ML_ENV_MEMORY;
    }
    forms->setup = *setup;
    (void)snprintf(path, sizeof(path), "%s/parts", ml_ledger_folder(setup->ledger));
    if (!ml_parts_open(&forms->parts, path)) {
        ml_error_set(error, "%s: %s", path, strerror(errno));
        free(forms);
        return ML_ENV_SYSTEM;
    }
    count_parts(forms);
    *out_forms = forms;
    return ML_OK;
}

void ml_forms_close(struct ml_forms *take_forms) {
    if (take_forms != NULL) {
        ml_team_list_fini(&take_forms->rooms);
        free(take_forms);
    }
}

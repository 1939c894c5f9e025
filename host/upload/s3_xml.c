#include "host/upload/s3_xml.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Within XML it means nothing but itself. */
static bool is_plain(const char *text, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!isgraph((unsigned char)text[i]) || strchr("<>&", text[i]) != NULL) {
            return false;
        }
    }
    return count > 0;
}

bool ml_s3_element(const char *xml, const char *name, char *out_text, size_t text_bytes) {
    char open[32];
    char close[32];
    (void)snprintf(open, sizeof(open), "<%s>", name);
    (void)snprintf(close, sizeof(close), "</%s>", name);
    const char *from = strstr(xml, open);
    const char *to = from != NULL ? strstr(from, close) : NULL;
    if (to == NULL) {
        return false;
    }
    from += strlen(open);
    const size_t count = (size_t)(to - from);
    if (count >= text_bytes || !is_plain(from, count)) {
        return false;
    }
    memcpy(out_text, from, count);
    out_text[count] = '\0';
    return true;
}

bool ml_s3_is_error(const char *xml) {
    static const char tag[] = "<Error";
    for (const char *at = strstr(xml, tag); at != NULL; at = strstr(at + 1, tag)) {
        const char behind = at[sizeof(tag) - 1];
        if (behind == '>' || behind == '/' || isspace((unsigned char)behind)) {
            return true; /* others have attributes in it */
        }
    }
    return false;
}

bool ml_s3_etag(const char *header, char out_etag[ML_SPOOL_ETAG_BYTES]) {
    const size_t count = strlen(header);
    if (count >= ML_SPOOL_ETAG_BYTES || !is_plain(header, count)) {
        return false;
    }
    memcpy(out_etag, header, count + 1);
    return true;
}

size_t ml_s3_encode(const char *text, char *out_query, size_t query_bytes) {
    enum { ENCODED = 3 };
    size_t at = 0;
    for (; *text != '\0' && at + ENCODED < query_bytes; text++) {
        const bool plain = isalnum((unsigned char)*text) || strchr("-._~", *text) != NULL;
        at += (size_t
        )snprintf(out_query + at, query_bytes - at, plain ? "%c" : "%%%02X", (unsigned char)*text);
    }
    return at;
}

void ml_s3_join(const struct ml_spool_item *item, char out_xml[ML_S3_JOIN_BYTES]) {
    size_t at = (size_t)snprintf(out_xml, ML_S3_JOIN_BYTES, "<CompleteMultipartUpload>");
    for (unsigned i = 0; i < item->parts; i++) {
        at += (size_t)snprintf(
            out_xml + at,
            ML_S3_JOIN_BYTES - at,
            "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
            i + 1,
            item->etags[i]
        );
    }
    (void)snprintf(out_xml + at, ML_S3_JOIN_BYTES - at, "</CompleteMultipartUpload>");
}

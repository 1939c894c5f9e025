/* What an S3 server answers, which may be anybody: no byte of it gets into an address, into XML or
 * into a message but as the plain word that it is. The input is an answer's body, and, behind its
 * first NUL, a part's ETag. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "host/upload/s3_xml.h"
#include "tests/fuzz/fuzz.h"

static void check_plain(const char *word, size_t size_bytes) {
    REQUIRE(memchr(word, 0, size_bytes) != NULL && word[0] != '\0');
    for (; *word != '\0'; word++) {
        REQUIRE(isgraph((unsigned char)*word) && strchr("<>&", *word) == NULL);
    }
}

static int digit_of(char digit) {
    REQUIRE(isxdigit((unsigned char)digit) && !islower((unsigned char)digit));
    return isdigit((unsigned char)digit) ? digit - '0' : digit - 'A' + 10;
}

/* Read back, it is what it was; and it ends no part of an address. */
static void check_query(const char *text) {
    enum { ENCODED = 3 };
    char query[ENCODED * ML_SPOOL_UPLOAD_ID_BYTES + ENCODED];
    const size_t count = ml_s3_encode(text, query, sizeof(query));
    size_t at = 0;
    REQUIRE(count == strlen(query) || count == 0);
    for (; *text != '\0'; text++) {
        if (query[at] == '%') {
            const int byte = digit_of(query[at + 1]) * 16 + digit_of(query[at + 2]);
            REQUIRE(byte == (unsigned char)*text);
            at += ENCODED;
        } else {
            REQUIRE(query[at] == *text);
            REQUIRE(isalnum((unsigned char)*text) || strchr("-._~", *text) != NULL);
            at++;
        }
    }
    REQUIRE(at == count);
}

static size_t count_of(const char *text, const char *word) {
    size_t count = 0;
    for (const char *at = strstr(text, word); at != NULL; at = strstr(at + 1, word)) {
        count++;
    }
    return count;
}

/* Every part is there, and nothing that a part's name would have brought. */
static void check_join(const char *etag) {
    static struct ml_spool_item item;
    static char xml[ML_S3_JOIN_BYTES];
    item.parts = 0;
    while (item.parts < ML_SPOOL_PARTS_MAX && ml_s3_etag(etag, item.etags[item.parts])) {
        check_plain(item.etags[item.parts++], ML_SPOOL_ETAG_BYTES);
    }
    ml_s3_join(&item, xml);
    REQUIRE(strlen(xml) + 1 < sizeof(xml));
    REQUIRE(count_of(xml, "<ETag>") == item.parts && count_of(xml, "</ETag></Part>") == item.parts);
    REQUIRE(count_of(xml, "<") == 6 * (size_t)item.parts + 2);
    REQUIRE(strcmp(xml + strlen(xml) - 10, "artUpload>") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char id[ML_SPOOL_UPLOAD_ID_BYTES];
    char code[64];
    char *text = calloc(1, count_bytes + 2);
    REQUIRE(text != NULL);
    if (count_bytes > 0) {
        memcpy(text, data, count_bytes);
    }
    if (ml_s3_element(text, "UploadId", id, sizeof(id))) {
        check_plain(id, sizeof(id));
        REQUIRE(strstr(text, id) != NULL);
        check_query(id);
    }
    if (ml_s3_element(text, "Code", code, sizeof(code))) {
        check_plain(code, sizeof(code));
    }
    REQUIRE(!ml_s3_is_error(text) || strstr(text, "<Error") != NULL);
    REQUIRE(ml_s3_is_error(text) || strstr(text, "<Error>") == NULL);
    check_join(text + strlen(text) + 1);
    free(text);
    return 0;
}

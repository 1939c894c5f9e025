/* What a server, anybody's, answers over HTTP: the lines of its head and, behind the first empty
 * one, its body, in pieces as the network brings them. The input's first byte says how long those
 * are. */
#include <ctype.h>
#include <string.h>

#include "host/policy/upload_target.h"
#include "host/upload/s3_xml.h"
#include "host/upload/web_call.h"
#include "tests/fuzz/fuzz.h"

enum { DELAY_MAX_MS = 2 * 24 * 3600 * 1000 };

static void check_value(const char *value) {
    REQUIRE(memchr(value, '\0', ML_WEB_VALUE_BYTES) != NULL);
    REQUIRE(strchr(value, '\n') == NULL);
}

/* Each with memory of its own, so that who reads beyond it is seen. */
static char *copy_of(const uint8_t *bytes, size_t count_bytes) {
    char *copy = malloc(count_bytes + (count_bytes == 0 ? 1 : 0));
    REQUIRE(copy != NULL);
    memcpy(copy, bytes, count_bytes);
    return copy;
}

/* How many bytes the head has. */
static size_t take_head(struct ml_web_answer *answer, const uint8_t *data, size_t count_bytes) {
    size_t at = 0;
    while (at < count_bytes) {
        const uint8_t *end = memchr(data + at, '\n', count_bytes - at);
        const size_t line_bytes = end != NULL ? (size_t)(end - data) + 1 - at : count_bytes - at;
        char *line = copy_of(data + at, line_bytes);
        ml_web_answer_line(answer, line, line_bytes);
        free(line);
        check_value(answer->retry_after);
        check_value(answer->etag);
        at += line_bytes;
        if (line_bytes == 1) {
            break;
        }
    }
    return at;
}

static void take_body(
    struct ml_web_answer *answer, const uint8_t *data, size_t count_bytes, size_t piece_bytes
) {
    for (size_t at = 0; at < count_bytes; at += piece_bytes) {
        const size_t bytes = count_bytes - at < piece_bytes ? count_bytes - at : piece_bytes;
        char *piece = copy_of(data + at, bytes);
        ml_web_answer_body(answer, piece, bytes);
        free(piece);
    }
    const size_t kept = count_bytes < ML_WEB_ANSWER_BYTES ? count_bytes : ML_WEB_ANSWER_BYTES - 1;
    REQUIRE(answer->body_bytes == kept && answer->body[kept] == '\0');
    REQUIRE(memcmp(answer->body, data, kept) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    static struct ml_web_answer answer;
    char etag[ML_SPOOL_ETAG_BYTES];
    char code[64];
    if (count_bytes == 0) {
        return 0;
    }
    memset(&answer, 0, sizeof(answer));
    const size_t piece_bytes = (size_t)data[0] * 64 + 1;
    const size_t head_bytes = take_head(&answer, data + 1, count_bytes - 1);
    take_body(&answer, data + 1 + head_bytes, count_bytes - 1 - head_bytes, piece_bytes);
    if (ml_s3_etag(answer.etag, etag)) {
        REQUIRE(strcmp(etag, answer.etag) == 0);
        for (const char *at = etag; *at != '\0'; at++) {
            REQUIRE(isgraph((unsigned char)*at));
        }
    }
    REQUIRE(ml_upload_delay_ms(1, answer.retry_after, 0, 0) <= DELAY_MAX_MS);
    if (ml_s3_element(answer.body, "Code", code, sizeof(code))) {
        REQUIRE(strstr(answer.body, code) != NULL);
    }
    return 0;
}

/* Where uploads go, as a person writes it, and what a receiver answers: its status and how long it
 * wants to be left alone. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "host/policy/upload_target.h"
#include "tests/fuzz/fuzz.h"

/* The longest wait that a receiver may ask for, and then half of our own on top. */
enum { HEAD_BYTES = 8, DELAY_MAX_MS = 2 * 24 * 3600 * 1000 };

static void check_address(const char *text) {
    struct ml_upload_target target;
    struct ml_error_message error = {.text = ""};
    const enum ml_status status = ml_upload_target_parse(text, &target, &error);
    REQUIRE((status == ML_OK) == (error.text[0] == '\0'));
    if (status != ML_OK) {
        return;
    }
    REQUIRE(target.kind != ML_UPLOAD_NOWHERE && (unsigned)target.kind < ML_UPLOAD_KIND_COUNT);
    REQUIRE(strlen(target.url) < ML_UPLOAD_URL_BYTES && target.url[0] != '\0');
    REQUIRE(strlen(target.region) < ML_UPLOAD_REGION_BYTES);
    for (const char *at = target.url; target.kind != ML_UPLOAD_FOLDER && *at != '\0'; at++) {
        REQUIRE(isgraph((unsigned char)*at));
    }
    REQUIRE(ml_upload_form(target.kind)[0] != '\0');
}

static void check_answer(const uint8_t *head, const char *retry_after) {
    const unsigned status = head[0] | (unsigned)head[1] << 8;
    const unsigned tries = head[2] | (unsigned)head[3] << 8;
    const bool harder = (head[4] & 1) != 0;
    const uint64_t now_s = (uint64_t)head[5] << 24;
    const enum ml_upload_verdict verdict = ml_upload_judge(status, tries, harder);
    REQUIRE(tries < ML_UPLOAD_TRIES_MAX || verdict != ML_UPLOAD_AGAIN);
    REQUIRE(!harder || verdict != ML_UPLOAD_HARDER);
    const uint64_t delay_ms = ml_upload_delay_ms(tries, retry_after, now_s, head[6]);
    REQUIRE(delay_ms <= DELAY_MAX_MS);
    REQUIRE(delay_ms >= ml_upload_delay_ms(tries, NULL, now_s, head[6]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    if (count_bytes < HEAD_BYTES) {
        return 0;
    }
    char *text = malloc(count_bytes - HEAD_BYTES + 1);
    REQUIRE(text != NULL);
    memcpy(text, data + HEAD_BYTES, count_bytes - HEAD_BYTES);
    text[count_bytes - HEAD_BYTES] = '\0';
    check_address(text);
    check_answer(data, text);
    free(text);
    return 0;
}

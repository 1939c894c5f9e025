/* What anybody sends to a collector before he is known, or as a list of parts: an Authorization
 * header and its date, a list, and the name of an object; a NUL stands between them. */
#include <stdlib.h>
#include <string.h>

#include "host/collect/forms/inbox.h"
#include "host/collect/forms/parts.h"
#include "host/collect/forms/sigv4.h"
#include "tests/fuzz/fuzz.h"

static const char *date_of(void *context, const char *name) {
    return strcmp(name, "x-amz-date") == 0 ? context : strcmp(name, "host") == 0 ? "h" : NULL;
}

/* Nobody guesses a secret. */
static void check_signature(const char *authorization, const char *date, const char *path) {
    struct ml_sigv4 what;
    const struct ml_sigv4_request request = {
        .method = "PUT",
        .path = path,
        .query = "",
        .header = date_of,
        .context = (void *)(uintptr_t)date};
    if (ml_sigv4_read(authorization, &what) == NULL) {
        REQUIRE(strlen(what.signature) == ML_SIGV4_HEX_BYTES - 1 && strlen(what.day) == 8);
        (void)ml_sigv4_time(&what, &request, 0);
        REQUIRE(!ml_sigv4_is_signed(&what, &request, "a secret that is in no input"));
    }
}

static void check_list(const char *list) {
    char etag[64];
    unsigned number = 0;
    const char *at = list;
    while (ml_parts_next(&at, &number, etag, sizeof(etag))) {
        REQUIRE(number > 0 && number <= ML_PARTS_NUMBER_MAX && strchr(etag, '"') == NULL);
        REQUIRE(at > list && at <= list + strlen(list));
    }
}

static void check_name(const char *name) {
    char guid[ML_INBOX_GUID_BYTES];
    if (ml_inbox_guid(name, guid)) {
        REQUIRE(guid[0] != '\0' && strpbrk(guid, "./ \n") == NULL);
    } else {
        REQUIRE(guid[0] == '\0');
    }
}

/* The text behind the next NUL; "": there is none. */
static const char *next(const char *text, const char *end) {
    text += strlen(text);
    return text < end ? text + 1 : text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char *text = calloc(1, count_bytes + 1);
    REQUIRE(text != NULL);
    memcpy(text, data, count_bytes);
    const char *date = next(text, text + count_bytes);
    const char *list = next(date, text + count_bytes);
    const char *name = next(list, text + count_bytes);
    check_signature(text, date, name);
    check_list(list);
    check_name(name);
    free(text);
    return 0;
}

/* What a container's or instance's credentials service answers, and an address that the environment
 * names: nothing but plain words becomes part of a header, and no strange host is asked in clear.
 */
#include <ctype.h>
#include <string.h>

#include "host/upload/instance_credentials.h"
#include "tests/fuzz/fuzz.h"

static void check_plain(const char *word, size_t size_bytes) {
    REQUIRE(memchr(word, 0, size_bytes) != NULL);
    for (; *word != '\0'; word++) {
        REQUIRE(isgraph((unsigned char)*word));
    }
}

static void check_answer(const char *text) {
    struct ml_s3_credentials found;
    struct ml_error_message error = {.text = ""};
    uint64_t end_s = 0;
    if (ml_instance_credentials_parse(text, &found, &end_s, &error) == ML_OK) {
        check_plain(found.key_id, sizeof(found.key_id));
        check_plain(found.secret, sizeof(found.secret));
        check_plain(found.token, sizeof(found.token));
        REQUIRE(found.key_id[0] != '\0' && found.secret[0] != '\0' && end_s > 0);
    } else {
        REQUIRE(error.text[0] != '\0' && found.secret[0] == '\0' && found.token[0] == '\0');
    }
}

static void check_url(const char *url) {
    static const char http[] = "http://";
    if (!ml_instance_credentials_may_ask(url) || strncmp(url, http, sizeof(http) - 1) != 0) {
        return;
    }
    /* In clear: one of the few, with nothing in front of it that is no part of the host. */
    const char *host = url + sizeof(http) - 1;
    REQUIRE(memchr(host, '@', strcspn(host, "/?#")) == NULL);
    REQUIRE(
        strncmp(host, "localhost", 9) == 0 || strncmp(host, "127.0.0.1", 9) == 0 ||
        strncmp(host, "[::1]", 5) == 0 || strncmp(host, "169.254.170.2", 13) == 0 ||
        strncmp(host, "[fd00:ec2::23]", 14) == 0
    );
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char *text = malloc(count_bytes + 1);
    REQUIRE(text != NULL);
    memcpy(text, data, count_bytes);
    text[count_bytes] = '\0';
    check_answer(text);
    check_url(text);
    free(text);
    return 0;
}

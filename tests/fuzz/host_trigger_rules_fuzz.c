/* A file of triggers, and a threshold as a word. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "host/policy/trigger_rules.h"
#include "tests/fuzz/fuzz.h"

static void check_threshold(const uint8_t *data, size_t count_bytes) {
    char word[256];
    const size_t count = count_bytes < sizeof(word) - 1 ? count_bytes : sizeof(word) - 1;
    struct ml_trigger_rules rules = ml_trigger_rules_default();
    struct ml_error_message error = {.text = ""};
    memcpy(word, data, count);
    word[count] = '\0';
    const enum ml_status status = ml_trigger_rules_threshold(&rules, word, &error);
    REQUIRE((status == ML_OK) == (error.text[0] == '\0'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char path[64];
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, data, count_bytes) == (ssize_t)count_bytes);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    unsigned char before[sizeof(struct ml_trigger_rules)];
    struct ml_trigger_rules rules;
    struct ml_error_message error = {.text = ""};
    memset(&rules, 0, sizeof(rules)); /* its padding as well: a failure changes nothing */
    rules.service.limit_percent = 77;
    memcpy(before, &rules, sizeof(rules));
    const enum ml_status status = ml_trigger_rules_load(&rules, path, &error);
    if (status == ML_OK) {
        REQUIRE(error.text[0] == '\0');
        REQUIRE(rules.service.limit_percent <= 100);
        REQUIRE(
            rules.service.pressure_some_percent <= 100 && rules.service.pressure_full_percent <= 100
        );
    } else {
        REQUIRE(error.text[0] != '\0');
        REQUIRE(memcmp((const unsigned char *)&rules, before, sizeof(rules)) == 0);
    }
    check_threshold(data, count_bytes);
    (void)close(fd);
    return 0;
}

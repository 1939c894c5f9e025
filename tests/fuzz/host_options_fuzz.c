/* Words as a person or a script may give them to memlog: the input, split at its NULs, as a command
 * line, as an environment, as sizes, and as what /proc says of a process. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "host/policy/command_line.h"
#include "host/policy/mode.h"
#include "host/policy/options.h"
#include "host/policy/role.h"
#include "ipc/wire/staging.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 64, PATTERN_BYTES_MAX = 48 };

/* The C library's expressions may nest counts until memory ends; who types those types them for
 * himself. */
static bool is_costly(const char *word) {
    return strlen(word) > PATTERN_BYTES_MAX || strchr(word, '{') != NULL ||
           strchr(word, '\\') != NULL;
}

static void check_options(char *const *words) {
    struct ml_options options;
    struct ml_error_message error = {{0}};
    REQUIRE(ml_options_init(&options) == ML_OK);
    const enum ml_status status = ml_options_parse(&options, words, &error);
    /* Bad input ends in words about it. */
    REQUIRE((status == ML_OK) == (error.text[0] == '\0'));
    if (status == ML_OK && !options.help) {
        REQUIRE(options.program != NULL && options.program[0] != NULL);
        REQUIRE(options.sampling_bytes >= 1 && options.sampling_bytes <= ML_SAMPLING_MAX_BYTES);
        REQUIRE(options.staging_slots >= 1 && options.staging_slots <= 256);
    }
    ml_options_fini(&options);
}

static void check_attach_options(char *const *words) {
    struct ml_options options;
    struct ml_error_message error = {{0}};
    REQUIRE(ml_options_init(&options) == ML_OK);
    const enum ml_status status = ml_options_parse_attach(&options, words, &error);
    REQUIRE((status == ML_OK) == (error.text[0] == '\0'));
    if (status == ML_OK && !options.help) {
        REQUIRE(options.pids.count > 0 || options.name != NULL);
        REQUIRE(options.pids.count <= ML_PIDS_MAX && options.mode == ML_MODE_ALL);
    }
    ml_options_fini(&options);
}

static void check_word(const char *word) {
    uint64_t number = 0;
    if (ml_size_read(word, &number)) {
        char text[ML_SIZE_TEXT_BYTES];
        REQUIRE(number <= INT64_MAX && strlen(ml_size_text(number, text)) < sizeof(text));
    }
    if (ml_count_read(word, 1000, &number)) {
        REQUIRE(number <= 1000);
    }
    REQUIRE(ml_signal_parse(word) >= 0);
}

static void check_process(const uint8_t *data, size_t count_bytes) {
    struct ml_command_line line = {0};
    if (ml_command_line_from_bytes(&line, (const char *)data, count_bytes) == ML_OK) {
        REQUIRE(line.count <= ML_COMMAND_LINE_MAX_ARGUMENTS);
        for (size_t i = 0; i < line.count; i++) {
            REQUIRE(strlen(line.arguments[i]) <= ML_COMMAND_LINE_MAX_ARGUMENT_BYTES);
        }
        REQUIRE(line.arguments == NULL || line.arguments[line.count] == NULL);
        struct ml_patterns *none = ml_patterns_new();
        char why[ML_MODE_WHY_BYTES];
        REQUIRE(none != NULL && (unsigned)ml_role_of(none, &line, false) < ML_ROLE_COUNT);
        REQUIRE(!ml_mode_leaves_out(none, none, &line, why));
        ml_patterns_free(none);
    }
    ml_command_line_fini(&line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char *words[WORDS_MAX + 1];
    size_t count = 0;
    char *text = malloc(count_bytes + 1);
    REQUIRE(text != NULL);
    memcpy(text, data, count_bytes);
    text[count_bytes] = '\0';
    bool costly = false;
    for (size_t at = 0; at < count_bytes && count < WORDS_MAX; at += strlen(text + at) + 1) {
        words[count++] = text + at;
        costly = costly || is_costly(text + at);
        check_word(text + at);
    }
    words[count] = NULL;
    struct ml_error_message error = {{0}};
    const enum ml_status status = ml_options_check_environment(words, &error);
    REQUIRE((status == ML_OK) == (error.text[0] == '\0'));
    if (!costly) {
        check_options(words);
        check_attach_options(words);
    }
    check_process(data, count_bytes);
    free(text);
    return 0;
}

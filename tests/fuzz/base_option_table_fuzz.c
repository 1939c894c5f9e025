/* The words of a sub-command, one a line: as options of every kind, as sizes and as times. */
#include <stdlib.h>
#include <string.h>

#include "base/option_table.h"
#include "base/size.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS_MAX = 64, FILES_MAX = 4, LIMIT_MAX = 1000 };

struct request {
    const char *output, *focus;
    uint32_t limit, every_s;
    uint64_t bytes;
    unsigned colour, form;
    struct ml_time from;
    const char *files[FILES_MAX];
};

static const char *const colours[] = {"red", "green", NULL};

static const struct ml_option options[] = {
    {.name = "--output", .short_name = "-o", ML_PATH_TO(struct request, output)},
    {.name = "--limit", ML_COUNT_TO(struct request, limit), .most = LIMIT_MAX},
    {.name = "--every", ML_SECONDS_TO(struct request, every_s), .most = LIMIT_MAX},
    {.name = "--bytes", ML_SIZE_TO(struct request, bytes)},
    {.name = "--colour", ML_WORD_TO(struct request, colour), .words = colours},
    {.name = "--from", ML_TIME_TO(struct request, from)},
    {.name = "--json", ML_CHOICE_TO(struct request, form, 1)},
    {.name = "--csv", ML_CHOICE_TO(struct request, form, 2)},
};
static const struct ml_option_table table = {
    .program = "memlog",
    .name = "fuzz",
    .usage = "FILE...",
    ML_OPTIONS(options),
    .operands = ML_OPERANDS_FILES,
    .operands_offset = offsetof(struct request, files),
    .operands_most = FILES_MAX,
};

/* Whether it points into a word that was given. */
static bool is_of(const char *text, char *const *words) {
    for (size_t i = 0; words[i] != NULL; i++) {
        if (text >= words[i] && text <= words[i] + strlen(words[i])) {
            return true;
        }
    }
    return false;
}

static void check_words(char *const *words) {
    struct request request = {.limit = 0};
    struct ml_error_message error = {.text = ""};
    uint64_t given = 0;
    const enum ml_option_outcome outcome =
        ml_option_table_read(&table, words, &request, &given, &error);
    REQUIRE((outcome == ML_OPTIONS_WRONG) == (error.text[0] != '\0'));
    REQUIRE(request.limit <= LIMIT_MAX && request.every_s <= LIMIT_MAX);
    REQUIRE(request.bytes <= INT64_MAX && request.colour <= 1 && request.form <= 2);
    REQUIRE(request.output == NULL || is_of(request.output, words));
    REQUIRE(ml_option_given(&table, given, "--output") || request.output == NULL);
    for (size_t i = 0; i < FILES_MAX && request.files[i] != NULL; i++) {
        REQUIRE(is_of(request.files[i], words));
    }
}

static void check_word(const char *word) {
    uint64_t number = 0;
    struct ml_time time;
    REQUIRE(!ml_count_read(word, LIMIT_MAX, &number) || number <= LIMIT_MAX);
    REQUIRE(!ml_size_read(word, &number) || number <= INT64_MAX);
    (void)ml_duration_read(word, &number);
    REQUIRE(!ml_time_read(word, &time) || time.from != ML_TIME_NONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char *words[WORDS_MAX + 1];
    size_t count = 0;
    char *text = malloc(count_bytes + 1);
    REQUIRE(text != NULL);
    memcpy(text, data, count_bytes);
    text[count_bytes] = '\0';
    char *rest = text;
    for (char *word = NULL; count < WORDS_MAX && (word = strsep(&rest, "\n")) != NULL;) {
        check_word(word);
        words[count++] = word;
    }
    words[count] = NULL;
    check_words(words);
    free(text);
    return 0;
}

/* The words of a sub-command of the analyzer: one a line. */
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "tests/fuzz/fuzz.h"
#include "tools/arguments.h"

enum { WORDS_MAX = 64, FILES_MAX = 4 };

/* Whether it points into a word that was given. */
static bool is_of(const char *text, char *const *words, int count) {
    for (int i = 0; i < count; i++) {
        if (text >= words[i] && text <= words[i] + strlen(words[i])) {
            return true;
        }
    }
    return false;
}

static void check_words(int count, char **words) {
    const char *output = NULL;
    const char *limit = NULL;
    bool json = false;
    const struct ml_option options[] = {
        {.name = "--output", .short_name = "-o", .out_value = &output},
        {.name = "--limit", .out_value = &limit},
        {.name = "--json", .out_given = &json}};
    const char *files[FILES_MAX];
    size_t files_count = 0;
    char complaint[ML_COMPLAINT_BYTES] = "";
    const char *said =
        ml_arguments_read(count, words, options, 3, files, FILES_MAX, &files_count, complaint);
    REQUIRE(files_count <= FILES_MAX);
    REQUIRE(said == NULL || (said[0] != '\0' && strlen(said) < ML_COMPLAINT_BYTES));
    for (size_t i = 0; said == NULL && i < files_count; i++) {
        REQUIRE(is_of(files[i], words, count));
    }
    REQUIRE(said != NULL || output == NULL || is_of(output, words, count));
    REQUIRE(said != NULL || limit == NULL || is_of(limit, words, count));
}

static void check_number(const char *word) {
    uint64_t number = 0;
    uint64_t bytes = 0;
    REQUIRE(!ml_count_read(word, 1000, &number) || number <= 1000);
    (void)ml_size_read(word, &bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char *words[WORDS_MAX];
    int count = 0;
    char *text = malloc(count_bytes + 1);
    REQUIRE(text != NULL);
    memcpy(text, data, count_bytes);
    text[count_bytes] = '\0';
    char *rest = text;
    for (char *word = NULL; count < WORDS_MAX && (word = strsep(&rest, "\n")) != NULL;) {
        check_number(word);
        words[count++] = word;
    }
    check_words(count, words);
    free(text);
    return 0;
}

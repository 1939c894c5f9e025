/* A budget from a file, and the verdicts on a profile in which nothing is. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tools/analyzer/budget/verdict.h"

static void judge(const struct ml_budget_rules *budget) {
    const struct ml_profile profile = {.complete = true};
    const struct ml_stacks stacks = {.profile = &profile};
    const size_t count = ml_budget_limits(budget);
    struct ml_budget_value *values = calloc(count + 1, sizeof *values);
    struct ml_budget_dump dump = {.file = "0001.exit.pftrace", .values = values};
    const struct ml_budget_side side = {.dumps = &dump, .count = 1};
    struct ml_budget_verdicts verdicts;
    char text[ML_BUDGET_SENTENCE_BYTES];

    REQUIRE(values && ml_budget_measure(budget, &stacks, values));
    REQUIRE(ml_budget_judge(budget, "my.json", &side, &side, &verdicts));
    REQUIRE(verdicts.count == count);
    for (size_t i = 0; i < count; i++) {
        REQUIRE(strlen(ml_budget_sentence(&verdicts.results[i], text)) > 0);
    }
    ml_budget_verdicts_fini(&verdicts);
    ml_budget_values_clear(values, count);
    free(values);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_budget_rules budget;
    struct ml_error_message error = {.text = ""};
    const bool done = ml_budget_read(&budget, (const char *)data, count_bytes, "my.json", &error);

    REQUIRE(done == (error.text[0] == '\0'));
    if (done) {
        judge(&budget);
    } else {
        REQUIRE(strncmp(error.text, "my.json:", 8) == 0);
    }
    ml_budget_fini(&budget);
    return 0;
}

#include "tools/analyzer/budget/budget.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/analyzer/formats/units.h"

const char *ml_budget_figure_name(enum ml_budget_figure figure) {
    static const char *const names[ML_BUDGET_FIGURES] = {
        [ML_BUDGET_PEAK_BYTES] = "peak",
        [ML_BUDGET_LEFT_BYTES] = "left",
        [ML_BUDGET_TOTAL_BYTES] = "total",
        [ML_BUDGET_PRIVATE_BYTES] = "private",
        [ML_BUDGET_PEAK_BLOCKS] = "peak_blocks",
        [ML_BUDGET_LEFT_BLOCKS] = "left_blocks",
        [ML_BUDGET_TOTAL_BLOCKS] = "total_blocks"};

    return names[figure];
}

void ml_budget_fini(struct ml_budget_rules *budget) {
    for (size_t i = 0; i < budget->rules_count; i++) {
        struct ml_budget_rule *rule = &budget->rules[i];
        for (size_t key = 0; key < ML_BUDGET_KEYS; key++) {
            if (rule->has[key]) {
                ml_pattern_fini(&rule->patterns[key]);
            }
        }
        free(rule->name);
    }
    free(budget->rules);
    *budget = (struct ml_budget_rules){0};
}

size_t ml_budget_limits(const struct ml_budget_rules *budget) {
    size_t count = 0;

    for (size_t i = 0; i < budget->rules_count; i++) {
        count += budget->rules[i].limits_count;
    }
    return count;
}

const char *ml_budget_value_text(
    enum ml_budget_figure figure, double value, char out_text[ML_BUDGET_TEXT_BYTES]
) {
    const bool is_less = value < 0;
    const uint64_t number = (uint64_t)((is_less ? -value : value) + 0.5);

    snprintf(
        out_text,
        ML_BUDGET_TEXT_BYTES,
        "%s%s%s",
        is_less ? "-" : "",
        ml_budget_is_of_blocks(figure) ? ml_units_count(number).text : ml_units_size(number).text,
        ml_budget_is_of_blocks(figure) ? number == 1 ? " block" : " blocks" : ""
    );
    return out_text;
}

const char *
ml_budget_limit_text(const struct ml_budget_limit *limit, char out_text[ML_BUDGET_TEXT_BYTES]) {
    if (limit->is_percent) {
        snprintf(out_text, ML_BUDGET_TEXT_BYTES, "%" PRIu64 " %%", limit->most);
        return out_text;
    }
    return ml_budget_value_text(limit->figure, (double)limit->most, out_text);
}

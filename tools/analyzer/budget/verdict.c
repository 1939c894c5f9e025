#include "tools/analyzer/budget/verdict.h"

#include <math.h>
#include <stdlib.h>

#include "tools/analyzer/model/memory.h"

static int order_doubles(const void *left, const void *right) {
    const double a = *(const double *)left;
    const double b = *(const double *)right;

    return (a > b) - (a < b);
}

/* Of an even number the mean of the two in the middle. */
static double middle(double *numbers, size_t count) {
    ML_SORT(numbers, count, order_doubles);
    return count % 2 == 1 ? numbers[count / 2]
                          : numbers[count / 2 - 1] / 2 + numbers[count / 2] / 2;
}

static double nearest_first(const struct ml_budget_value *value, double to) {
    return fabs(value->value - to);
}

/* A number of each dump that knows the limit. */
static double median_of(
    const struct ml_budget_side *side,
    size_t limit,
    double (*pick)(const struct ml_budget_value *value),
    double *scratch
) {
    size_t count = 0;

    for (size_t i = 0; i < side->count; i++) {
        const struct ml_budget_value *value = &side->dumps[i].values[limit];
        if (value->is_known) {
            scratch[count++] = pick(value);
        }
    }
    return middle(scratch, count);
}

static double pick_value(const struct ml_budget_value *value) {
    return value->value;
}

static double pick_low(const struct ml_budget_value *value) {
    return value->low;
}

static double pick_high(const struct ml_budget_value *value) {
    return value->high;
}

static void find_median(
    const struct ml_budget_side *side,
    size_t limit,
    double *scratch,
    struct ml_budget_median *median
) {
    *median = (struct ml_budget_median){.why = ""};
    for (size_t i = 0; i < side->count; i++) {
        const struct ml_budget_value *value = &side->dumps[i].values[limit];
        if (median->why[0] == '\0') {
            median->why = value->why;
        }
        median->has_matched = median->has_matched || value->has_matched;
        if (value->is_known) {
            const bool is_first = median->known == 0;
            median->least = is_first || value->value < median->least ? value->value : median->least;
            median->most = is_first || value->value > median->most ? value->value : median->most;
            median->known++;
        }
    }
    if (median->known == 0) {
        return;
    }
    median->value = median_of(side, limit, pick_value, scratch);
    median->low = median_of(side, limit, pick_low, scratch);
    median->high = median_of(side, limit, pick_high, scratch);
    for (size_t i = 0; i < side->count; i++) {
        const struct ml_budget_value *value = &side->dumps[i].values[limit];
        if (value->is_known &&
            (!median->shown ||
             nearest_first(value, median->value) < nearest_first(median->shown, median->value))) {
            median->nearest = &side->dumps[i];
            median->shown = value;
        }
    }
}

/* What the figure may be, between two bounds for growth: the base may be off, too. */
static void judge_one(struct ml_budget_result *result) {
    const struct ml_budget_limit *limit = result->limit;
    const struct ml_budget_median *now = &result->now, *base = &result->base;
    const double most = (double)limit->most;
    double may_low = most, may_high = most;

    result->verdict = ML_VERDICT_UNSURE;
    result->why = now->known == 0 ? now->why : base->why;
    if (now->known == 0 || (limit->is_growth && base->known == 0)) {
        return;
    }
    result->figure = now->value;
    result->most = most;
    if (limit->is_growth) {
        const double factor = limit->is_percent ? 1 + most / 100 : 1;
        const double more = limit->is_percent ? 0 : most;
        may_low = base->low * factor + more;
        may_high = base->high * factor + more;
        result->figure = now->value - base->value;
        result->most = base->value * factor + more - base->value;
    }
    if (!now->has_matched && !base->has_matched && may_low > 0 && now->high <= may_low) {
        result->why = "nothing in the dump is what the rule names: it is misspelt, or gone";
    } else if (now->low > may_high) {
        result->verdict = ML_VERDICT_BROKEN;
    } else if (now->high <= may_low) {
        result->verdict = ML_VERDICT_HELD;
    } else {
        result->why = now->why[0] ? now->why : base->why;
    }
}

bool ml_budget_judge(
    const struct ml_budget_rules *budget,
    const char *file,
    const struct ml_budget_side *now,
    const struct ml_budget_side *base,
    struct ml_budget_verdicts *out_verdicts
) {
    const size_t most = now->count > base->count ? now->count : base->count;
    double *scratch = calloc(most + 1, sizeof *scratch);
    size_t at = 0;

    *out_verdicts = (struct ml_budget_verdicts){.budget = budget, .file = file, .now = *now};
    out_verdicts->results = calloc(ml_budget_limits(budget) + 1, sizeof *out_verdicts->results);
    if (!scratch || !out_verdicts->results) {
        free(scratch);
        return false;
    }
    for (size_t i = 0; i < budget->rules_count; i++) {
        const struct ml_budget_rule *rule = &budget->rules[i];
        for (size_t limit = 0; limit < rule->limits_count; limit++, at++) {
            struct ml_budget_result *result = &out_verdicts->results[at];
            *result =
                (struct ml_budget_result){.rule = rule, .limit = &rule->limits[limit], .why = ""};
            find_median(now, at, scratch, &result->now);
            result->base.why =
                "no dump to compare with was named (--base=DUMP, of memlog run --budget-base=DUMP)";
            if (result->limit->is_growth && base->count > 0) {
                find_median(base, at, scratch, &result->base);
            }
            judge_one(result);
            out_verdicts->of[result->verdict]++;
        }
    }
    out_verdicts->count = at;
    free(scratch);
    return true;
}

void ml_budget_verdicts_fini(struct ml_budget_verdicts *verdicts) {
    free(verdicts->results);
    verdicts->results = NULL;
}

#include "tools/analyzer/budget/measure.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/analyzer/budget/match.h"
#include "tools/analyzer/memory/components.h"

/* Of a normal distribution 95 % lie within so many standard errors. */
static const double errors_either_way = 2.0;

/* Of so many intervals' bytes one in twenty leaves no sample: e^-3. */
static const double intervals_unseen = 3.0;

void ml_budget_values_clear(struct ml_budget_value *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (size_t holder = 0; holder < ML_BUDGET_HOLDERS; holder++) {
            free(values[i].holders[holder].callers);
        }
        free(values[i].source);
        free(values[i].function);
        values[i] = (struct ml_budget_value){0};
    }
}

__attribute__((format(printf, 2, 3))) static void
add_why(struct ml_budget_value *value, const char *format, ...) {
    const size_t at = strlen(value->why);
    va_list arguments;

    if (at > 0) {
        return; /* the first reason is the gravest */
    }
    va_start(arguments, format);
    (void)vsnprintf(value->why, sizeof value->why, format, arguments);
    va_end(arguments);
}

struct ml_budget_value ml_budget_value_of(double value, double variance, uint64_t sampling_bytes) {
    struct ml_budget_value made = {.is_known = true, .value = value, .low = value, .high = value};
    char error_text[ML_BUDGET_TEXT_BYTES];

    if (sampling_bytes <= 1) {
        return made;
    }
    const struct ml_profile_totals totals = {.variances = {.live_bytes = variance}};
    struct ml_profile_spread errors = {.live_bytes = 0};
    (void)ml_profile_standard_errors(&totals, &errors);
    const double error = errors_either_way * errors.live_bytes;
    made.low = value > error ? value - error : 0;
    made.high = value > 0 ? value + error : intervals_unseen * (double)sampling_bytes;
    snprintf(error_text, sizeof error_text, "%.0f", made.high - value);
    add_why(
        &made, "the profile is sampled: the figure is right to +-%s in 19 of 20 cases", error_text
    );
    return made;
}

/* Frees may be among what was lost: only what was ever allocated is at least what is known. */
static void doubt_lost(struct ml_budget_value *value, enum ml_budget_figure figure) {
    const bool is_total = figure == ML_BUDGET_TOTAL_BYTES || figure == ML_BUDGET_TOTAL_BLOCKS;

    value->low = is_total ? value->low : 0;
    value->high = HUGE_VAL;
    value->why[0] = '\0';
}

void ml_budget_doubt_tree(
    const struct ml_profile *profile, enum ml_budget_figure figure, struct ml_budget_value *value
) {
    char uncovered[ML_UNCOVERED_BYTES];

    if (!ml_profile_is_complete(profile)) {
        doubt_lost(value, figure);
        add_why(value, "events are missing from the dump; memlog report says which");
    }
    if (!ml_profile_is_covered(profile)) {
        value->high = HUGE_VAL;
        add_why(
            value,
            "more may be held than was seen: %.240s",
            ml_profile_uncovered(profile, uncovered)
        );
    }
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (!profile->processes[i].from_startup) {
            value->high = HUGE_VAL;
            add_why(
                value,
                "process %" PRIu32
                " was not recorded from its start: what it held before is not known",
                profile->processes[i].pid
            );
        }
    }
}

static void doubt_process(
    const struct ml_profile_process *process,
    enum ml_budget_figure figure,
    struct ml_budget_value *value
) {
    if (!process->complete || process->partial || process->lost_events > 0) {
        doubt_lost(value, figure);
        add_why(value, "events of process %" PRIu32 " are missing", process->pid);
    }
    if (process->folded_processes > 0) {
        value->low = 0;
        add_why(
            value,
            "%" PRIu32 " processes stand together as one (memlog run --keep-processes)",
            process->folded_processes
        );
    }
    if (process->unseen.count_bytes > 0) {
        value->high = HUGE_VAL;
        add_why(value, "more may be held than was seen: %.240s", process->unseen.bytes);
    }
    if (!process->from_startup) {
        value->high = HUGE_VAL;
        add_why(
            value,
            "process %" PRIu32 " was not recorded from its start: what it held before is not known",
            process->pid
        );
    }
}

/* Of whole processes: their own totals. */
static struct ml_budget_value
value_of_process(const struct ml_profile_process *process, enum ml_budget_figure figure) {
    double variance = 0;
    const double value = ml_budget_pick(&process->totals, figure, &variance);
    struct ml_budget_value made = ml_budget_value_of(value, variance, process->sampling_bytes);

    doubt_process(process, figure, &made);
    return made;
}

/* Of all processes together. What is live is what each holds or has left. */
static struct ml_budget_value
value_of_tree(const struct ml_profile *profile, enum ml_budget_figure figure) {
    const bool is_left = figure == ML_BUDGET_LEFT_BYTES || figure == ML_BUDGET_LEFT_BLOCKS;
    double variance = 0, value = 0;

    for (size_t i = 0; is_left && i < profile->processes_count; i++) {
        double one = 0;
        value += ml_budget_pick(&profile->processes[i].totals, figure, &one);
        variance += one;
    }
    if (!is_left) {
        value = ml_budget_pick(&profile->tree, figure, &variance);
    }
    return ml_budget_value_of(value, variance, ml_profile_sampling_bytes(profile));
}

bool ml_budget_is_meant(
    const struct ml_budget_rule *rule, const struct ml_profile_process *process
) {
    return (!rule->has_role || rule->role == process->role) &&
           (!rule->has[ML_BUDGET_PROCESS] ||
            ml_pattern_matches(&rule->patterns[ML_BUDGET_PROCESS], process->name.bytes));
}

/* Private memory of one process: as it is, or as it was when all together had most. */
static bool private_of(
    const struct ml_budget_rule *rule,
    const struct ml_profile_process *process,
    struct ml_budget_value *out_value
) {
    struct ml_components components;

    if (process->regions_count == 0) {
        return false;
    }
    ml_components_of(process, &components);
    const struct ml_component_figures *figures =
        rule->has_component ? &components.of[rule->component] : &components.all;
    *out_value = ml_budget_value_of((double)(figures->private + figures->swapped), 0, 1);
    return true;
}

/* The larger of the two, between the bounds of the larger. */
static void take_larger(
    struct ml_budget_value *value,
    struct ml_budget_value one,
    const struct ml_profile *profile,
    size_t index
) {
    const struct ml_profile_process *process =
        index < profile->processes_count ? &profile->processes[index]
                                         : &profile->others[index - profile->processes_count];
    const struct ml_budget_value before = *value;

    if (!before.is_known || one.value > before.value) {
        *value = one;
        value->process = index + 1;
        value->pid = process->pid;
        snprintf(value->who, sizeof value->who, "%s", process->name.bytes);
    }
    if (!before.is_known) {
        return;
    }
    value->low = before.low > one.low ? before.low : one.low;
    value->high = before.high > one.high ? before.high : one.high;
    memcpy(value->why, before.high > one.high ? before.why : one.why, sizeof value->why);
}

/* Of the rule's process that has most, or the sum. */
static void measure_private(
    const struct ml_budget_rule *rule,
    const struct ml_profile *profile,
    struct ml_budget_value *value
) {
    const bool is_each = ml_budget_is_of_processes(rule);
    const bool is_peak =
        !is_each && !ml_profile_anyone_runs(profile) && ml_profile_tree_peak_ns(profile) != 0;

    for (size_t i = 0; i < profile->processes_count + profile->others_count; i++) {
        const struct ml_profile_process *process =
            i < profile->processes_count ? &profile->processes[i]
                                         : &profile->others[i - profile->processes_count];
        struct ml_profile_process then;
        struct ml_budget_value one;
        if (!ml_budget_is_meant(rule, process) ||
            (is_peak && !ml_profile_at_tree_peak(process, &then)) ||
            !private_of(rule, is_peak ? &then : process, &one)) {
            continue;
        }
        if (is_each) {
            take_larger(value, one, profile, i);
        } else {
            *value = ml_budget_value_of(value->value + one.value, 0, 1);
        }
    }
    value->has_matched = value->is_known;
    if (!value->is_known) {
        add_why(
            value,
            "the memory of no such process was read: it ended too soon, or memlog run --whole=off"
        );
    }
}

/* Processes that are meant and were not recorded make any figure a lower bound. */
static void doubt_unrecorded(
    const struct ml_budget_rule *rule,
    const struct ml_profile *profile,
    struct ml_budget_value *value
) {
    for (size_t i = 0; i < profile->others_count; i++) {
        const struct ml_profile_process *other = &profile->others[i];
        if (ml_budget_is_meant(rule, other) && ml_profile_hides(other)) {
            value->high = HUGE_VAL;
            add_why(
                value,
                "process %" PRIu32 " (%.40s) was not recorded: %.160s",
                other->pid,
                other->name.bytes,
                other->not_recorded_reason.bytes
            );
        }
    }
}

/* A function that is not found may be one of those without names. */
static void doubt_nameless(
    const struct ml_budget_rule *rule,
    const struct ml_budget_sum *sum,
    struct ml_budget_value *value
) {
    if (rule->has[ML_BUDGET_FUNCTION] && !sum->has_matched && sum->nameless > 0) {
        value->high = value->high > sum->nameless ? value->high : sum->nameless;
        add_why(
            value,
            "no function has that name, and stacks have frames without names (docs/symbols.md)"
        );
    }
}

/* Of the stacks that the rule is about: of the process that has most, or of all together. */
static void measure_stacks(
    const struct ml_budget_matcher *matcher,
    enum ml_budget_figure figure,
    struct ml_budget_value *value
) {
    const struct ml_budget_rule *rule = matcher->rule;
    const struct ml_profile *profile = matcher->stacks->profile;
    const bool is_each = ml_budget_is_of_processes(rule);
    struct ml_budget_sum all = {.value = 0};
    bool has_matched = false;

    for (size_t i = 0; i < profile->processes_count; i++) {
        const struct ml_profile_process *process = &profile->processes[i];
        struct ml_budget_sum sum = {.value = 0};
        if (!ml_budget_is_meant(rule, process)) {
            continue;
        }
        ml_budget_sum_process(matcher, i, figure, is_each ? &sum : &all);
        if (is_each) {
            struct ml_budget_value one =
                ml_budget_value_of(sum.value, sum.variance, process->sampling_bytes);
            doubt_process(process, figure, &one);
            doubt_nameless(rule, &sum, &one);
            has_matched = has_matched || sum.has_matched;
            take_larger(value, one, profile, i);
        }
    }
    if (!is_each) {
        *value = ml_budget_value_of(all.value, all.variance, ml_profile_sampling_bytes(profile));
        doubt_nameless(rule, &all, value);
        has_matched = all.has_matched;
    }
    value->has_matched = has_matched;
}

static void measure_processes(
    const struct ml_budget_rule *rule,
    const struct ml_profile *profile,
    enum ml_budget_figure figure,
    struct ml_budget_value *value
) {
    for (size_t i = 0; i < profile->processes_count; i++) {
        if (ml_budget_is_meant(rule, &profile->processes[i])) {
            take_larger(value, value_of_process(&profile->processes[i], figure), profile, i);
        }
    }
}

static bool measure_limit(
    const struct ml_budget_matcher *matcher,
    enum ml_budget_figure figure,
    struct ml_budget_value *value
) {
    const struct ml_budget_rule *rule = matcher->rule;
    const struct ml_profile *profile = matcher->stacks->profile;

    if (figure == ML_BUDGET_PRIVATE_BYTES) {
        measure_private(rule, profile, value);
        return true;
    }
    if (ml_budget_is_of_stacks(rule)) {
        measure_stacks(matcher, figure, value);
    } else if (ml_budget_is_of_processes(rule)) {
        measure_processes(rule, profile, figure, value);
        value->has_matched = value->is_known;
    } else {
        *value = value_of_tree(profile, figure);
        value->has_matched = true;
    }
    if (!ml_budget_is_of_processes(rule)) {
        ml_budget_doubt_tree(profile, figure, value);
    }
    doubt_unrecorded(rule, profile, value);
    if (!value->is_known) {
        add_why(value, "no process of that rule was recorded; memlog report lists all");
    }
    return ml_budget_tell_holders(matcher, figure, value);
}

bool ml_budget_measure(
    const struct ml_budget_rules *budget,
    const struct ml_stacks *stacks,
    struct ml_budget_value *out_values
) {
    bool done = true;
    size_t at = 0;

    for (size_t i = 0; done && i < budget->rules_count; i++) {
        const struct ml_budget_rule *rule = &budget->rules[i];
        struct ml_budget_matcher matcher;
        done = ml_budget_matcher_init(&matcher, rule, stacks);
        for (size_t limit = 0; done && limit < rule->limits_count; limit++, at++) {
            done = measure_limit(&matcher, rule->limits[limit].figure, &out_values[at]);
        }
        ml_budget_matcher_fini(&matcher);
    }
    return done;
}

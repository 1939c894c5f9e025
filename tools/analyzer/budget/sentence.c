/* What is said of one limit, in every form of output. Room: tools. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "base/shell_word.h"
#include "tools/analyzer/budget/verdict.h"

enum { SUBJECT_BYTES = 256, DUMP_BYTES = 900 };

const char *ml_verdict_name(enum ml_verdict verdict) {
    static const char *const names[ML_VERDICTS] = {
        [ML_VERDICT_HELD] = "held",
        [ML_VERDICT_UNSURE] = "not sure",
        [ML_VERDICT_BROKEN] = "BROKEN"};

    return names[verdict];
}

/* "peak of server (1234)" */
static void put_subject(const struct ml_budget_result *result, char out_text[SUBJECT_BYTES]) {
    const struct ml_budget_value *shown = result->now.shown;
    const enum ml_budget_figure figure = result->limit->figure;
    const char *name = ml_budget_figure_name(figure);

    snprintf(
        out_text,
        SUBJECT_BYTES,
        "%.*s%s",
        (int)strcspn(name, "_"),
        name,
        figure == ML_BUDGET_PRIVATE_BYTES ? " memory" : ""
    );
    if (shown && shown->pid != 0) {
        const size_t used = strlen(out_text);
        snprintf(
            out_text + used, SUBJECT_BYTES - used, " in %.60s (%" PRIu32 ")", shown->who, shown->pid
        );
    }
}

static void put_spread(const struct ml_budget_result *result, char *text, size_t room) {
    const enum ml_budget_figure figure = result->limit->figure;
    char least[ML_BUDGET_TEXT_BYTES];
    char most[ML_BUDGET_TEXT_BYTES];

    if (result->now.known > 1) {
        snprintf(
            text,
            room,
            "; median of %zu dumps, %s to %s",
            result->now.known,
            ml_budget_value_text(figure, result->now.least, least),
            ml_budget_value_text(figure, result->now.most, most)
        );
    }
}

static void put_growth(const struct ml_budget_result *result, char text[SUBJECT_BYTES]) {
    const enum ml_budget_figure figure = result->limit->figure;
    char by[ML_BUDGET_TEXT_BYTES];
    char from[ML_BUDGET_TEXT_BYTES];
    char share[32] = "";

    if (result->base.value > 0) {
        snprintf(share, sizeof share, " (%+.1f %%)", 100 * result->figure / result->base.value);
    }
    snprintf(
        text,
        SUBJECT_BYTES,
        "grew by %s%s from %s",
        ml_budget_value_text(figure, result->figure, by),
        share,
        ml_budget_value_text(figure, result->base.value, from)
    );
}

const char *
ml_budget_sentence(const struct ml_budget_result *result, char out_text[ML_BUDGET_SENTENCE_BYTES]) {
    const enum ml_budget_figure figure = result->limit->figure;
    const bool is_above = result->figure > result->most;
    char subject[SUBJECT_BYTES];
    char is[SUBJECT_BYTES];
    char number[ML_BUDGET_TEXT_BYTES];
    char limit[ML_BUDGET_TEXT_BYTES];
    char difference[ML_BUDGET_TEXT_BYTES];
    size_t used = 0;

    put_subject(result, subject);
    ml_budget_limit_text(result->limit, limit);
    if (result->now.known == 0 || (result->limit->is_growth && result->base.known == 0)) {
        snprintf(
            out_text,
            ML_BUDGET_SENTENCE_BYTES,
            "%s is not known, %s%s is the limit: %s",
            subject,
            limit,
            result->limit->is_growth ? " of growth" : "",
            result->why
        );
        ml_printable_clean(out_text);
        return out_text;
    }
    if (result->limit->is_growth) {
        put_growth(result, is);
    } else {
        snprintf(is, sizeof is, "is %s", ml_budget_value_text(figure, result->now.value, number));
    }
    snprintf(
        out_text,
        ML_BUDGET_SENTENCE_BYTES,
        "%s %s, the limit is %s: %s %s",
        subject,
        is,
        limit,
        ml_budget_value_text(figure, fabs(result->figure - result->most), difference),
        is_above ? "above" : "below"
    );
    used = strlen(out_text);
    put_spread(result, out_text + used, ML_BUDGET_SENTENCE_BYTES - used);
    if (result->verdict == ML_VERDICT_UNSURE) {
        used = strlen(out_text);
        snprintf(out_text + used, ML_BUDGET_SENTENCE_BYTES - used, "; %s", result->why);
    }
    ml_printable_clean(out_text);
    return out_text;
}

const char *
ml_budget_next(const struct ml_budget_result *result, char out_text[ML_BUDGET_SENTENCE_BYTES]) {
    const struct ml_budget_median *now = &result->now;
    char pid[24] = "";
    char dump[DUMP_BYTES];

    out_text[0] = '\0';
    if (!now->nearest || !ml_shell_word(now->nearest->file, dump, sizeof dump)) {
        return out_text;
    }
    if (now->shown->pid != 0) {
        snprintf(pid, sizeof pid, " --pid=%" PRIu32, now->shown->pid);
    }
    if (result->limit->figure == ML_BUDGET_PRIVATE_BYTES) {
        snprintf(out_text, ML_BUDGET_SENTENCE_BYTES, "memlog components%s %s", pid, dump);
        return out_text;
    }
    snprintf(
        out_text,
        ML_BUDGET_SENTENCE_BYTES,
        "memlog report --metric=%s%s %s",
        result->limit->figure == ML_BUDGET_PEAK_BYTES ||
                result->limit->figure == ML_BUDGET_PEAK_BLOCKS
            ? "peak"
        : result->limit->figure == ML_BUDGET_LEFT_BYTES ||
                result->limit->figure == ML_BUDGET_LEFT_BLOCKS
            ? "live"
            : "total",
        pid,
        dump
    );
    return out_text;
}

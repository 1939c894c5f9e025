/* Verdicts for people. Room: tools. */
#include "base/printable.h"
#include "tools/analyzer/budget/output.h"

static void put_holders(const struct ml_budget_result *result, FILE *out) {
    const struct ml_budget_value *shown = result->now.shown;

    for (size_t i = 0; i < ML_BUDGET_HOLDERS && shown->holders[i].callers; i++) {
        const struct ml_budget_holder *holder = &shown->holders[i];
        const double share = shown->value > 0 ? 100 * (double)holder->value / shown->value : 0;
        char value[ML_BUDGET_TEXT_BYTES];
        fprintf(
            out,
            "          %5.1f %%  %10s   ",
            share,
            ml_budget_value_text(result->limit->figure, (double)holder->value, value)
        );
        ml_printable_put_text(out, holder->callers);
        (void)putc('\n', out);
    }
}

static void put_result(const struct ml_budget_result *result, FILE *out) {
    char text[ML_BUDGET_SENTENCE_BYTES];

    fprintf(out, "%-8s  ", ml_verdict_name(result->verdict));
    ml_printable_put_text(out, result->rule->name);
    fprintf(out, ": %s\n", ml_budget_sentence(result, text));
    if (result->verdict == ML_VERDICT_HELD || !result->now.shown) {
        return;
    }
    put_holders(result, out);
    if (ml_budget_next(result, text)[0]) {
        fprintf(out, "          next: ");
        ml_printable_put_text(out, text);
        (void)putc('\n', out);
    }
}

void ml_budget_text(const struct ml_budget_verdicts *verdicts, FILE *out) {
    static const enum ml_verdict order[] = {ML_VERDICT_BROKEN, ML_VERDICT_UNSURE, ML_VERDICT_HELD};

    for (size_t verdict = 0; verdict < sizeof order / sizeof order[0]; verdict++) {
        for (size_t i = 0; i < verdicts->count; i++) {
            if (verdicts->results[i].verdict == order[verdict]) {
                put_result(&verdicts->results[i], out);
            }
        }
    }
    fprintf(
        out,
        "%zu held, %zu broken, %zu not sure\n",
        verdicts->of[ML_VERDICT_HELD],
        verdicts->of[ML_VERDICT_BROKEN],
        verdicts->of[ML_VERDICT_UNSURE]
    );
}

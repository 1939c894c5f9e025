/* Verdicts as JUnit's XML. Room: tools. */
#include "base/html.h"
#include "tools/analyzer/budget/output.h"

static void put_case(const struct ml_budget_result *result, FILE *out) {
    const struct ml_budget_value *shown = result->now.shown;
    const char *element = result->verdict == ML_VERDICT_BROKEN ? "failure" : "error";
    char text[ML_BUDGET_SENTENCE_BYTES];

    fprintf(out, "    <testcase classname=\"memlog.budget\" name=\"");
    ml_html_text(out, result->rule->name);
    fprintf(
        out,
        ": %s%s\"",
        ml_budget_figure_name(result->limit->figure),
        result->limit->is_growth ? "_growth" : ""
    );
    if (result->verdict == ML_VERDICT_HELD) {
        fprintf(out, "><system-out>");
        ml_html_text(out, ml_budget_sentence(result, text));
        fprintf(out, "</system-out></testcase>\n");
        return;
    }
    fprintf(
        out,
        "><%s type=\"%s\" message=\"",
        element,
        result->verdict == ML_VERDICT_BROKEN ? "broken" : "not sure"
    );
    ml_html_text(out, ml_budget_sentence(result, text));
    fprintf(out, "\">");
    for (size_t i = 0; shown && i < ML_BUDGET_HOLDERS && shown->holders[i].callers; i++) {
        char value[ML_BUDGET_TEXT_BYTES];
        fprintf(
            out,
            "%s  ",
            ml_budget_value_text(result->limit->figure, (double)shown->holders[i].value, value)
        );
        ml_html_text(out, shown->holders[i].callers);
        (void)putc('\n', out);
    }
    ml_html_text(out, ml_budget_next(result, text));
    fprintf(out, "</%s></testcase>\n", element);
}

void ml_budget_junit(const struct ml_budget_verdicts *verdicts, FILE *out) {
    fprintf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
        "<testsuites>\n"
        "  <testsuite name=\"memlog budget\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
        "skipped=\"0\">\n",
        verdicts->count,
        verdicts->of[ML_VERDICT_BROKEN],
        verdicts->of[ML_VERDICT_UNSURE]
    );
    for (size_t i = 0; i < verdicts->count; i++) {
        put_case(&verdicts->results[i], out);
    }
    fprintf(out, "  </testsuite>\n</testsuites>\n");
}

/* Stacks for people: who holds most, what differs between two builds, one report. Room: host. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/fleet/ask.h"
#include "host/fleet/table.h"

enum { LINE_BYTES = 8192 };

static void put_table(struct ml_fleet_table *table, FILE *out) {
    if (!ml_fleet_table_put(table, out)) {
        (void)fputs("INCOMPLETE: memory ran out\n", out);
    }
    ml_fleet_table_fini(table);
}

/* The innermost function in the row, its callers and the stack's number below. */
static void add_stack(struct ml_fleet_table *table, const json_t *stack, const char *number) {
    char line[LINE_BYTES];
    char callers[LINE_BYTES - ML_FLEET_CELL_BYTES];
    char name[ML_FLEET_NAME_BYTES];
    const size_t count = ml_fleet_count(stack, "frames");
    const json_t *innermost = count > 0 ? ml_fleet_element(stack, "frames", count - 1) : NULL;
    ml_fleet_table_add(table, ml_fleet_frame(innermost, name));
    ml_fleet_put_callers(stack, 1, callers, sizeof(callers));
    (void)snprintf(
        line,
        sizeof(line),
        "%s%.24s%s%s",
        number[0] != '\0' ? "stack " : "",
        number,
        number[0] != '\0' && callers[0] != '\0' ? "  " : "",
        callers
    );
    if (line[0] != '\0') {
        ml_fleet_table_below(table, line);
    }
}

/* The id of a stack is digits: it becomes a word of a command. */
static const char *number_of(const json_t *stack) {
    const char *number = ml_fleet_text(stack, "stack");
    return strspn(number, "0123456789") == strlen(number) && strlen(number) < 24 ? number : "";
}

static void put_next_hosts(const struct ml_fleet_asked *asked, const json_t *stack, FILE *out) {
    char words[ML_FLEET_CELL_BYTES];
    if (number_of(stack)[0] != '\0') {
        (void)snprintf(words, sizeof(words), "hosts --stack=%.24s", number_of(stack));
        ml_fleet_put_next(asked, words, asked->options->program, out);
    }
}

static void put_whose(const struct ml_fleet_asked *asked, FILE *out) {
    char name[ML_FLEET_NAME_BYTES];
    char build[ML_FLEET_CELL_BYTES];
    if (asked->options->program != NULL) {
        (void)fprintf(out, " of %s", ml_fleet_name(asked->options->program, name));
    }
    if (asked->build[0] != '\0') {
        (void)fprintf(out, " build %s", ml_fleet_build(asked->build, build));
    }
    (void)fputs(asked->options->control ? ", by chance alone" : "", out);
}

static double each(double sum, double dumps) {
    return dumps > 0 ? sum / dumps : 0;
}

void ml_fleet_show_top(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    static const char *const headings[] = {
        "SHARE", "MEAN", "LARGEST LIVE", "DUMPS", "HOSTS", "<FUNCTION", NULL};
    const enum ml_fleet_metric metric = asked->options->metric;
    const double all = ml_fleet_number(answer, ml_fleet_figures[metric]);
    const double dumps = ml_fleet_number(answer, "dumps");
    const double with = ml_fleet_dumps_with(answer, metric);
    struct ml_fleet_table table = ml_fleet_table_of(headings);
    char cell[ML_FLEET_CELL_BYTES];
    char sum[ML_FLEET_CELL_BYTES];
    (void)fprintf(out, "%s dump%s", ml_fleet_many(dumps, cell), dumps == 1 ? "" : "s");
    put_whose(asked, out);
    (void)fprintf(
        out, ": %s %s a dump\n", ml_fleet_metrics[metric], ml_fleet_bytes(each(all, with), sum)
    );
    ml_fleet_put_without_metric(out, answer, metric);
    for (size_t i = 0; i < ml_fleet_count(answer, "stacks"); i++) {
        const json_t *one = ml_fleet_element(answer, "stacks", i);
        const double bytes = ml_fleet_number(one, ml_fleet_figures[metric]);
        ml_fleet_table_add(&table, ml_fleet_share(each(bytes, all), cell));
        ml_fleet_table_add(&table, ml_fleet_bytes(each(bytes, with), cell));
        ml_fleet_table_add(&table, ml_fleet_bytes(ml_fleet_number(one, "most_live_bytes"), cell));
        ml_fleet_table_add(&table, ml_fleet_share(ml_fleet_number(one, "share_of_dumps"), cell));
        ml_fleet_table_add(&table, ml_fleet_many(ml_fleet_number(one, "hosts"), cell));
        add_stack(&table, one, number_of(one));
    }
    put_table(&table, out);
    put_next_hosts(asked, ml_fleet_element(answer, "stacks", 0), out);
}

/* ---- two builds */

static double change_of(const json_t *one) {
    return ml_fleet_number(one, "share_after") - ml_fleet_number(one, "share_before");
}

/* What grew most first, what shrank most last. */
static int by_change(const void *a, const void *b) {
    const double one = change_of(*(const json_t *const *)a);
    const double other = change_of(*(const json_t *const *)b);
    return one > other ? -1 : one < other;
}

static void put_sides(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    const char *const ids[] = {asked->build, asked->other};
    static const char *const counts[] = {"dumps_before", "dumps_after"};
    static const char *const untold[] = {"untold_before", "untold_after"};
    char name[ML_FLEET_NAME_BYTES];
    for (size_t i = 0; i < 2; i++) {
        char build[ML_FLEET_CELL_BYTES];
        char many[ML_FLEET_CELL_BYTES];
        (void)fprintf(out, "%s %s", i == 0 ? "before" : "after ", ml_fleet_build(ids[i], build));
        if (asked->versions[i][0] != '\0') {
            (void)fprintf(out, " (%s)", ml_fleet_name(asked->versions[i], name));
        }
        (void)fprintf(
            out, ": %s dumps by chance\n", ml_fleet_many(ml_fleet_number(answer, counts[i]), many)
        );
        ml_fleet_put_without(
            out,
            ml_fleet_metrics[asked->options->metric],
            ml_fleet_number(answer, untold[i]),
            ml_fleet_number(answer, untold[i]) + ml_fleet_number(answer, counts[i])
        );
    }
}

static void add_difference(struct ml_fleet_table *table, const json_t *one) {
    char cell[ML_FLEET_CELL_BYTES];
    ml_fleet_table_add(table, ml_fleet_share(ml_fleet_number(one, "share_before"), cell));
    ml_fleet_table_add(table, ml_fleet_share(ml_fleet_number(one, "share_after"), cell));
    (void)snprintf(cell, sizeof(cell), "%+.1f", 100 * change_of(one));
    ml_fleet_table_add(table, cell);
    (void)snprintf(cell, sizeof(cell), "%.1f", ml_fleet_signed(one, "z"));
    ml_fleet_table_add(table, cell);
    (void)snprintf(cell, sizeof(cell), "%.2g", ml_fleet_number(one, "q"));
    ml_fleet_table_add(table, cell);
    add_stack(table, one, number_of(one));
}

/* Those that differ. Owner: free. NULL: no memory. */
static const json_t **differing(const json_t *answer, size_t *out_count) {
    const size_t all = ml_fleet_count(answer, "stacks");
    const json_t **list = calloc(all + 1, sizeof(*list));
    *out_count = 0;
    for (size_t i = 0; list != NULL && i < all; i++) {
        const json_t *one = ml_fleet_element(answer, "stacks", i);
        if (ml_fleet_is(one, "differs")) {
            list[(*out_count)++] = one;
        }
    }
    if (list != NULL) {
        qsort(list, *out_count, sizeof(*list), by_change);
    }
    return list;
}

void ml_fleet_show_diff(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    static const char *const headings[] = {
        "BEFORE", "AFTER", "POINTS", "Z", "Q", "<FUNCTION", NULL};
    char cell[ML_FLEET_CELL_BYTES];
    size_t count = 0;
    put_sides(asked, answer, out);
    if (ml_fleet_is(answer, "too_few")) {
        (void)fprintf(
            out,
            "too few: %.0f dumps by chance a side are wanted; \"control\" in a triggers file makes "
            "them\n",
            ml_fleet_number(answer, "dumps_least")
        );
        return;
    }
    const json_t **list = differing(answer, &count);
    if (list == NULL) {
        return;
    }
    struct ml_fleet_table table = ml_fleet_table_of(headings);
    for (size_t i = 0; i < count; i++) {
        add_difference(&table, list[i]);
    }
    if (count > 0) {
        static const char *const whose[] = {"live bytes", "peak", "allocated bytes"};
        (void)fprintf(
            out,
            "shares of a dump's %s, mean; the surest, what grew first\n",
            whose[asked->options->metric]
        );
        put_table(&table, out);
        put_next_hosts(asked, list[0], out);
    } else {
        (void)fprintf(
            out,
            "no stack differs, of %s compared\n",
            ml_fleet_many(ml_fleet_number(answer, "stacks_compared"), cell)
        );
    }
    free(list);
}

/* ---- one report */

static void put_fact(FILE *out, const char *name, const char *text) {
    char words[ML_FLEET_NAME_BYTES];
    if (text[0] != '\0') {
        (void)fprintf(out, "%-10s %s\n", name, ml_fleet_name(text, words));
    }
}

/* What memlog cost, and whether its promise was kept. */
static void put_cost(const json_t *one, FILE *out) {
    const double promised_ppm = ml_fleet_number(one, "promised_ppm");
    char cost[ML_FLEET_CELL_BYTES];
    char promised[ML_FLEET_CELL_BYTES];
    if (!json_is_number(json_object_get(one, "cost_ppm"))) {
        return;
    }
    (void)fprintf(out, "cost       %s of processor time", ml_fleet_cost(one, "cost_ppm", cost));
    if (promised_ppm > 0) {
        (void)fprintf(
            out,
            ", %s promised%s",
            ml_fleet_cost(one, "promised_ppm", promised),
            ml_fleet_number(one, "cost_ppm") > promised_ppm ? ": not kept" : ""
        );
    }
    (void)fputs("\n", out);
}

static void put_facts(const json_t *one, FILE *out) {
    char cell[ML_FLEET_CELL_BYTES];
    char live[ML_FLEET_CELL_BYTES];
    char peak[ML_FLEET_CELL_BYTES];
    put_fact(out, "report", ml_fleet_text(one, "guid"));
    put_fact(out, "program", ml_fleet_text(one, "program"));
    put_fact(out, "build", ml_fleet_text(one, "build_id"));
    put_fact(out, "version", ml_fleet_text(one, "version"));
    put_fact(out, "host", ml_fleet_text(one, "host"));
    put_fact(out, "trigger", ml_fleet_text(one, "trigger"));
    put_fact(out, "reason", ml_fleet_text(one, "reason"));
    (void)fprintf(out, "time       %s UTC\n", ml_fleet_time(ml_fleet_number(one, "time_ms"), cell));
    (void)fprintf(
        out,
        "live       %s, peak %s, allocated %s\n",
        ml_fleet_figure(one, "live_bytes", live),
        ml_fleet_figure(one, "peak_bytes", peak),
        ml_fleet_figure(one, "total_bytes", cell)
    );
    if (ml_fleet_is_not(one, "complete")) {
        (void)fputs("INCOMPLETE: events were lost\n", out);
    }
    if (ml_fleet_is_not(one, "covered")) {
        (void)fputs("INCOMPLETE: some memory was not recorded\n", out);
    }
    if (ml_fleet_number(one, "sampling_bytes") > 1) {
        (void)fprintf(
            out,
            "a sample  one allocation in %s\n",
            ml_fleet_bytes(ml_fleet_number(one, "sampling_bytes"), cell)
        );
    }
    put_cost(one, out);
}

void ml_fleet_show_report(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    static const char *const headings[] = {
        "LIVE", "BLOCKS", "PEAK", "ALLOCATED", "<PROCESS", "<FUNCTION", NULL};
    struct ml_fleet_table table = ml_fleet_table_of(headings);
    const json_t *report = ml_fleet_element(answer, "reports", 0);
    char cell[ML_FLEET_CELL_BYTES];
    char name[ML_FLEET_NAME_BYTES];
    put_facts(report, out);
    for (size_t i = 0; i < ml_fleet_count(answer, "rows"); i++) {
        const json_t *one = ml_fleet_element(answer, "rows", i);
        ml_fleet_table_add(&table, ml_fleet_bytes(ml_fleet_number(one, "live_bytes"), cell));
        ml_fleet_table_add(&table, ml_fleet_many(ml_fleet_number(one, "live_blocks"), cell));
        ml_fleet_table_add(&table, ml_fleet_figure(one, "peak_bytes", cell));
        ml_fleet_table_add(&table, ml_fleet_figure(one, "total_bytes", cell));
        ml_fleet_table_add(&table, ml_fleet_name(ml_fleet_text(one, "process"), name));
        add_stack(&table, one, "");
    }
    put_table(&table, out);
    ml_fleet_put_next(asked, "reports", ml_fleet_text(report, "program"), out);
}

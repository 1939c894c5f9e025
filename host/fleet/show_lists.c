/* Programs, builds, machines and reports, for people. Room: host. */
#include <stdlib.h>
#include <string.h>

#include "host/fleet/ask.h"
#include "host/fleet/table.h"

static void add_many(struct ml_fleet_table *table, const json_t *one, const char *name) {
    char cell[ML_FLEET_CELL_BYTES];
    ml_fleet_table_add(table, ml_fleet_many(ml_fleet_number(one, name), cell));
}

static void add_bytes(struct ml_fleet_table *table, const json_t *one, const char *name) {
    char cell[ML_FLEET_CELL_BYTES];
    ml_fleet_table_add(table, ml_fleet_figure(one, name, cell));
}

static void add_time(struct ml_fleet_table *table, const json_t *one, const char *name) {
    char cell[ML_FLEET_CELL_BYTES];
    ml_fleet_table_add(table, ml_fleet_time(ml_fleet_number(one, name), cell));
}

static void add_name(struct ml_fleet_table *table, const json_t *one, const char *name) {
    char cell[ML_FLEET_NAME_BYTES];
    ml_fleet_table_add(table, ml_fleet_name(ml_fleet_text(one, name), cell));
}

/* "1.4 dddd3333eeee". */
static void add_version(struct ml_fleet_table *table, const json_t *one) {
    char build[ML_FLEET_CELL_BYTES];
    char name[ML_FLEET_NAME_BYTES];
    char cell[ML_FLEET_NAME_BYTES + ML_FLEET_CELL_BYTES];
    const char *version = ml_fleet_text(one, "version");
    (void)snprintf(
        cell,
        sizeof(cell),
        "%s%s%s",
        version[0] != '\0' ? ml_fleet_name(version, name) : "",
        version[0] != '\0' ? " " : "",
        ml_fleet_build(ml_fleet_text(one, "build_id"), build)
    );
    ml_fleet_table_add(table, cell);
}

static void put_table(struct ml_fleet_table *table, FILE *out) {
    if (!ml_fleet_table_put(table, out)) {
        (void)fputs("INCOMPLETE: memory ran out\n", out);
    }
    ml_fleet_table_fini(table);
}

/* What the largest peak of a list is not of. */
static void put_without_peak(const json_t *answer, const char *list, FILE *out) {
    double all = 0;
    double without = 0;
    for (size_t i = 0; i < ml_fleet_count(answer, list); i++) {
        all += ml_fleet_number(ml_fleet_element(answer, list, i), "dumps");
        without += ml_fleet_number(ml_fleet_element(answer, list, i), "dumps_without_peak");
    }
    ml_fleet_put_without(out, "peak", without, all);
}

void ml_fleet_show_programs(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    static const char *const headings[] = {
        "DUMPS",
        "CHANCE",
        "BUILDS",
        "HOSTS",
        "MEAN LIVE",
        "MOST PEAK",
        "NEWEST (UTC)",
        "<PROGRAM",
        NULL};
    struct ml_fleet_table table = ml_fleet_table_of(headings);
    for (size_t i = 0; i < ml_fleet_count(answer, "programs"); i++) {
        const json_t *one = ml_fleet_element(answer, "programs", i);
        add_many(&table, one, "dumps");
        add_many(&table, one, "control_dumps");
        add_many(&table, one, "builds");
        add_many(&table, one, "hosts");
        add_bytes(&table, one, "mean_live_bytes");
        add_bytes(&table, one, "most_peak_bytes");
        add_time(&table, one, "last_ms");
        add_name(&table, one, "program");
    }
    put_table(&table, out);
    put_without_peak(answer, "programs", out);
    ml_fleet_put_next(
        asked, "top", ml_fleet_text(ml_fleet_element(answer, "programs", 0), "program"), out
    );
}

/* "20.0 MiB +- 1.2 MiB" of dumps by chance. */
static void add_interval(struct ml_fleet_table *table, const json_t *control) {
    char mean[ML_FLEET_CELL_BYTES];
    char width[ML_FLEET_CELL_BYTES];
    char cell[2 * ML_FLEET_CELL_BYTES + 8] = "-";
    if (json_is_object(control)) {
        (void)snprintf(
            cell,
            sizeof(cell),
            "%s +- %s",
            ml_fleet_bytes(ml_fleet_number(control, "mean_live_bytes"), mean),
            ml_fleet_bytes(ml_fleet_number(control, "mean_live_bytes_interval"), width)
        );
    }
    ml_fleet_table_add(table, cell);
}

/* memlog's own cost: where --overhead was not kept. */
static void put_over_promise(const json_t *answer, FILE *out) {
    double told = 0;
    double over = 0;
    char over_text[ML_FLEET_CELL_BYTES];
    char told_text[ML_FLEET_CELL_BYTES];
    for (size_t i = 0; i < ml_fleet_count(answer, "builds"); i++) {
        const json_t *one = ml_fleet_element(answer, "builds", i);
        told += ml_fleet_number(one, "dumps_with_cost");
        over += ml_fleet_number(one, "dumps_over_promise");
    }
    if (over > 0) {
        (void)fprintf(
            out,
            "memlog cost more than --overhead promised in %s of %s dump%s that told its cost\n",
            ml_fleet_many(over, over_text),
            ml_fleet_many(told, told_text),
            told == 1 ? "" : "s"
        );
    }
}

void ml_fleet_show_builds(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    static const char *const headings[] = {
        "FIRST (UTC)", "DUMPS", "CHANCE", "HOSTS", "COST", "MEAN LIVE BY CHANCE", "<BUILD", NULL};
    struct ml_fleet_table table = ml_fleet_table_of(headings);
    const size_t count = ml_fleet_count(answer, "builds");
    char cell[ML_FLEET_CELL_BYTES];
    for (size_t i = 0; i < count; i++) {
        const json_t *one = ml_fleet_element(answer, "builds", i);
        const json_t *control = json_object_get(one, "control");
        add_time(&table, one, "first_ms");
        add_many(&table, one, "dumps");
        add_many(&table, control, "dumps");
        add_many(&table, one, "hosts");
        ml_fleet_table_add(&table, ml_fleet_cost(one, "mean_cost_ppm", cell));
        add_interval(&table, control);
        add_version(&table, one);
    }
    put_table(&table, out);
    put_over_promise(answer, out);
    ml_fleet_put_next(asked, count > 1 ? "diff" : "top", asked->options->program, out);
}

void ml_fleet_show_hosts(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    static const char *const headings[] = {
        "LARGEST", "MEAN LIVE", "DUMPS", "NEWEST (UTC)", "<DEVIATES", "<HOST", NULL};
    struct ml_fleet_table table = ml_fleet_table_of(headings);
    const json_t *median = json_object_get(answer, "control_median_live_bytes");
    char words[ML_FLEET_CELL_BYTES];
    for (size_t i = 0; i < ml_fleet_count(answer, "hosts"); i++) {
        const json_t *one = ml_fleet_element(answer, "hosts", i);
        add_bytes(&table, one, "most_live_bytes");
        add_bytes(&table, one, "mean_live_bytes");
        add_many(&table, one, "dumps");
        add_time(&table, one, "last_ms");
        ml_fleet_table_add(&table, ml_fleet_is(one, "deviates") ? "yes" : "");
        add_name(&table, one, "host");
    }
    put_table(&table, out);
    if (json_is_integer(median)) {
        (void)fprintf(
            out,
            "half of the dumps by chance hold at most %s; over ten times that deviates\n",
            ml_fleet_bytes(json_number_value(median), words)
        );
    }
    ml_fleet_put_next(asked, "reports --host=NAME", asked->options->program, out);
}

/* What a later question needs of a report. */
static void add_names_of_report(struct ml_fleet_table *table, const json_t *one) {
    char guid[ML_FLEET_NAME_BYTES];
    char build[ML_FLEET_CELL_BYTES];
    char version[ML_FLEET_NAME_BYTES];
    char line[3 * ML_FLEET_NAME_BYTES];
    const char *told = ml_fleet_text(one, "version");
    (void)snprintf(
        line,
        sizeof(line),
        "report %s  build %s%s%s",
        ml_fleet_name(ml_fleet_text(one, "guid"), guid),
        ml_fleet_build(ml_fleet_text(one, "build_id"), build),
        told[0] != '\0' ? " " : "",
        told[0] != '\0' ? ml_fleet_name(told, version) : ""
    );
    ml_fleet_table_below(table, line);
}

static void add_reports(struct ml_fleet_table *table, const json_t *answer) {
    for (size_t i = 0; i < ml_fleet_count(answer, "reports"); i++) {
        const json_t *one = ml_fleet_element(answer, "reports", i);
        add_time(table, one, "time_ms");
        add_bytes(table, one, "live_bytes");
        add_bytes(table, one, "peak_bytes");
        add_name(table, one, ml_fleet_text(one, "trigger")[0] != '\0' ? "trigger" : "reason");
        add_name(table, one, "program");
        add_name(table, one, "host");
        add_names_of_report(table, one);
    }
}

void ml_fleet_show_reports(const struct ml_fleet_asked *asked, const json_t *answer, FILE *out) {
    static const char *const headings[] = {
        "TIME (UTC)", "LIVE", "PEAK", "<WHY", "<PROGRAM", "<HOST", NULL};
    struct ml_fleet_table table = ml_fleet_table_of(headings);
    add_reports(&table, answer);
    put_table(&table, out);
    ml_fleet_put_next(
        asked, "report", ml_fleet_text(ml_fleet_element(answer, "reports", 0), "guid"), out
    );
}

/* Statements of questions.sql and renamed.sql with the values of a question in their places. Room:
 * host. */
#include <inttypes.h>
#include <string.h>

#include "host/collect/clickhouse/asking.h"

struct values {
    const struct ml_click_asking *asking;
    struct ml_ask_bound bound;
    const int64_t *ids;
    size_t ids_count;
};

#define JOIN_WHOLE                                                                                 \
    "GLOBAL ANY LEFT JOIN (SELECT guid, toFloat64(:figure) AS whole FROM dumps WHERE team = "      \
    ":team AND program = :program AND build IN (:build, :other) AND control = 1) AS three "        \
    "USING guid"

/* "AND column = 'word'", where there is one. */
static void put_and(struct ml_click_sql *sql, const char *column, const char *word) {
    if (word != NULL) {
        ml_click_sql_printf(sql, "AND %s = ", column);
        ml_click_sql_text(sql, word);
    }
}

static bool put_word(const struct values *values, const char *name, struct ml_click_sql *sql) {
    const struct ml_question *question = values->asking->question;
    const char *build = values->bound.build != NULL ? values->bound.build : question->build;
    const struct {
        const char *name, *word;
    } words[] = {
        {"team", question->team},
        {"program", question->program},
        {"build", build},
        {"other", question->other},
        {"host", question->host},
        {"guid", question->guid},
    };
    static const char prefix[] = "and_";
    const bool is_condition = strncmp(name, prefix, sizeof(prefix) - 1) == 0;
    const char *what = is_condition ? name + sizeof(prefix) - 1 : name;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(what, words[i].name) == 0 && is_condition) {
            put_and(sql, what, words[i].word);
            return true;
        }
        if (strcmp(what, words[i].name) == 0) {
            ml_click_sql_text(sql, words[i].word != NULL ? words[i].word : "");
            return true;
        }
    }
    return false;
}

static bool put_number(const struct values *values, const char *name, struct ml_click_sql *sql) {
    const struct ml_click_asking *asking = values->asking;
    const struct ml_question *question = asking->question;
    const struct {
        const char *name;
        int64_t number;
    } numbers[] = {
        {"metric", question->metric},
        {"control", question->control_only},
        {"from", asking->times.from_week},
        {"until", asking->times.until_week},
        {"from_ms", (int64_t)asking->times.from_ms},
        {"until_ms", (int64_t)asking->times.until_ms},
        {"limit", (int64_t)ml_ask_limit(question)},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(name, numbers[i].name) == 0) {
            ml_click_sql_printf(sql, "%" PRId64, numbers[i].number);
            return true;
        }
    }
    return false;
}

/* What the question says of weeks and of the control population: conditions that hold for every row
 * would be read of all the same. */
static void put_span(const struct ml_click_asking *asking, struct ml_click_sql *sql) {
    const struct ml_question *question = asking->question;
    if (question->from_ms > 0) {
        ml_click_sql_put(sql, "AND kept >= ");
        ml_click_sql_day(sql, asking->times.from_week); /* nothing came before it was made */
    }
    if (question->from_ms > 0 || question->until_ms > 0) {
        ml_click_sql_printf(
            sql,
            " AND week BETWEEN %" PRId64 " AND %" PRId64,
            asking->times.from_week,
            asking->times.until_week
        );
    }
    ml_click_sql_put(sql, question->control_only ? " AND control = 1" : "");
}

static ml_click_sql_value value;

/* What shares are of. A sample knows what is live in its dump; its peak and total the dump has. */
static bool put_share(const struct values *values, const char *name, struct ml_click_sql *sql) {
    static const struct {
        const char *figure, *whole, *is_untold, *join_whole;
    } metrics[] = {
        [ML_ASKED_LIVE] = {"live", "dump_live", "0", ""},
        [ML_ASKED_PEAK] = {"peak", "whole", "bitAnd(told, 2) = 0", JOIN_WHOLE},
        [ML_ASKED_TOTAL] = {"total", "whole", "bitAnd(told, 4) = 0", JOIN_WHOLE},
    };
    const enum ml_asked_metric metric = values->asking->question->metric;
    if (strcmp(name, "figure") == 0) {
        ml_click_sql_put(sql, metrics[metric].figure);
    } else if (strcmp(name, "whole") == 0) {
        ml_click_sql_put(sql, metrics[metric].whole);
    } else if (strcmp(name, "is_untold") == 0) {
        ml_click_sql_put(sql, metrics[metric].is_untold);
    } else if (strcmp(name, "join_whole") == 0) {
        ml_click_sql_fill(sql, metrics[metric].join_whole, value, values);
    } else {
        return false;
    }
    return true;
}

/* Names that came later: the samples of some names, and what the statements of renamed.sql want. */
static bool put_names(const struct values *values, const char *name, struct ml_click_sql *sql) {
    static const struct {
        const char *name, *as_they_came, *later;
    } forms[] = {
        {"of_names",
         "names IN (:ids)",
         "stack IN (SELECT id FROM :db.stacks WHERE team = :team AND names IN (:ids) AND id NOT IN "
         "(:renamed) UNION ALL SELECT k FROM (:calls) AS six WHERE later IN (:ids))"},
        {"renamed", "", "SELECT id FROM :db.renamed WHERE :seen"},
        {"calls",
         "",
         "SELECT id AS k, argMax(names, turn) AS later FROM :db.renamed WHERE :seen GROUP BY id"},
    };
    const struct ml_click_asking *asking = values->asking;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strcmp(name, forms[i].name) == 0) {
            const bool is_later = asking->view.turn != 0;
            ml_click_sql_fill(
                sql, is_later ? forms[i].later : forms[i].as_they_came, value, values
            );
            return true;
        }
    }
    if (strcmp(name, "seen") == 0) {
        ml_click_sql_seen(sql, asking->nodes.database, &asking->view);
        return true;
    }
    if (strcmp(name, "ids") == 0) {
        ml_click_sql_ids(
            sql,
            values->ids_count > 0 ? values->ids : &values->bound.id,
            values->ids_count > 0 ? values->ids_count : 1
        );
        return true;
    }
    return false;
}

static bool value(const void *context, const char *name, struct ml_click_sql *sql) {
    const struct values *values = context;
    const struct ml_click_asking *asking = values->asking;
    if (strcmp(name, "and_span") == 0) {
        put_span(asking, sql);
        return true;
    }
    if (strcmp(name, "and_stack") == 0) {
        /* A report and its samples are at one node. */
        ml_click_sql_fill(
            sql,
            values->bound.id != 0 ? "AND guid IN (SELECT guid FROM :db.samples_local WHERE "
                                    "team = :team AND :of_names :and_program :and_build)"
                                  : "",
            value,
            values
        );
        return true;
    }
    if (strcmp(name, "db") == 0) {
        ml_click_sql_put(sql, asking->nodes.database);
        return true;
    }
    if (strcmp(name, "unit") == 0) {
        ml_click_sql_put(sql, values->bound.by_host ? "host" : "guid");
        return true;
    }
    if (strcmp(name, "from_day") == 0) {
        ml_click_sql_day(sql, asking->times.from_week); /* nothing came before it was made */
        return true;
    }
    if (strcmp(name, "rolled") == 0) {
        ml_click_sql_day(sql, 0); /* a list is not empty */
        for (size_t i = 0; i < asking->weeks_count; i++) {
            ml_click_sql_put(sql, ", ");
            ml_click_sql_day(sql, asking->weeks[i]);
        }
        return true;
    }
    return put_word(values, name, sql) || put_number(values, name, sql) ||
           put_share(values, name, sql) || put_names(values, name, sql);
}

void ml_click_statement(
    const struct ml_click_asking *asking,
    enum ml_ask which,
    struct ml_ask_bound bound,
    const int64_t *ids,
    size_t ids_count,
    struct ml_click_sql *sql
) {
    const struct values values = {
        .asking = asking, .bound = bound, .ids = ids, .ids_count = ids_count};
    const char *renamed = asking->view.turn != 0 ? asking->renamed_forms[which] : NULL;
    ml_click_sql_fill(sql, renamed != NULL ? renamed : asking->forms[which], value, &values);
}

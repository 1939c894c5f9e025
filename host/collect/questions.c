#include "host/collect/questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/questions_internal.h"
#include "host/collect/statistics.h"

const char *const ml_question_names[ML_ASK_COUNT + 1] = {
    "programs", "builds", "top", "flame", "diff", "hosts", "reports", "report", NULL};
const char *const ml_asked_metrics[4] = {"live", "peak", "total", NULL};

struct ml_questions {
    struct ml_asking *asking;
};

/* ---- what they are told */

#define OF(kind) (1U << ML_ASK_##kind)
#define OF_SUMS (OF(TOP) | OF(FLAME)) /* these have neither hosts nor days */
#define OF_DUMPS (OF(PROGRAMS) | OF(BUILDS) | OF(DIFF) | OF(HOSTS) | OF(REPORTS))

static const struct {
    const char *name;
    unsigned kinds;
} parameters[] = {
    {"program", OF_DUMPS | OF_SUMS},
    {"build", OF_DUMPS | OF_SUMS},
    {"other", OF(DIFF)},
    {"host", OF_DUMPS},
    {"stack", OF(HOSTS) | OF(REPORTS)},
    {"guid", OF(REPORT)},
    {"metric", OF_SUMS | OF(DIFF)},
    {"control", (OF_DUMPS & ~OF(DIFF)) | OF_SUMS}, /* a diff is of those alone */
    {"from_ms", OF_DUMPS | OF_SUMS},
    {"until_ms", OF_DUMPS | OF_SUMS},
    {"limit", OF_DUMPS | OF_SUMS | OF(REPORT)},
};
enum { PARAMETERS = sizeof(parameters) / sizeof(parameters[0]) };

bool ml_question_takes(enum ml_question_kind kind, const char *parameter) {
    for (size_t i = 0; i < PARAMETERS; i++) {
        if (strcmp(parameters[i].name, parameter) == 0) {
            return (parameters[i].kinds & (1U << kind)) != 0;
        }
    }
    return false;
}

void ml_question_parameters(
    enum ml_question_kind kind, char out_text[ML_QUESTION_PARAMETERS_BYTES]
) {
    size_t at = 0;
    out_text[0] = '\0';
    for (size_t i = 0; i < PARAMETERS && at < ML_QUESTION_PARAMETERS_BYTES; i++) {
        if ((parameters[i].kinds & (1U << kind)) != 0) {
            const int count = snprintf(
                out_text + at,
                ML_QUESTION_PARAMETERS_BYTES - at,
                "%s%s",
                at > 0 ? ", " : "",
                parameters[i].name
            );
            at += count > 0 ? (size_t)count : 0;
        }
    }
}

const char *const ml_ask_names[ML_SQL_COUNT] = {
    [ML_SQL_PROGRAMS] = "programs",
    [ML_SQL_BUILDS] = "builds",
    [ML_SQL_DUMPS_OF_SUMS] = "dumps_of_sums",
    [ML_SQL_TOP] = "top",
    [ML_SQL_HOSTS_OF_NAMES] = "hosts_of_names",
    [ML_SQL_PATH] = "path",
    [ML_SQL_SUMS] = "sums",
    [ML_SQL_NODE] = "node",
    [ML_SQL_CONTROL_DUMPS] = "control_dumps",
    [ML_SQL_SHARES] = "shares",
    [ML_SQL_MEDIAN_OF_CONTROL] = "median_of_control",
    [ML_SQL_HOSTS] = "hosts",
    [ML_SQL_HOSTS_OF_STACK] = "hosts_of_stack",
    [ML_SQL_REPORTS] = "reports",
    [ML_SQL_ROWS] = "rows",
};

/* ---- what engines are told */

char *ml_ask_text(const char *file, enum ml_ask which) {
    enum { HEAD_BYTES = 64 };
    char head[HEAD_BYTES];
    (void)snprintf(head, sizeof(head), "-- name: %s\n", ml_ask_names[which]);
    const char *begin = strstr(file, head);
    if (begin == NULL) {
        return NULL;
    }
    begin += strlen(head);
    const char *end = strstr(begin, "-- name: ");
    return end != NULL ? strndup(begin, (size_t)(end - begin)) : strdup(begin);
}

struct ml_ask_times ml_ask_times(const struct ml_question *question) {
    const uint64_t until_ms = question->until_ms > 0 ? question->until_ms : (uint64_t)1 << 52;
    return (struct ml_ask_times){
        .from_ms = question->from_ms,
        .until_ms = until_ms,
        .from_week = ml_week_of(question->from_ms),
        .until_week = ml_week_of(until_ms),
    };
}

uint64_t ml_ask_limit(const struct ml_question *question) {
    return question->limit > 0 ? question->limit : ML_ASK_LIMIT;
}

/* ---- rows */

struct ml_store_rows *
ml_answering_find(struct ml_answering *answering, enum ml_ask which, int64_t id) {
    return answering->asking->engine->rows(
        answering->asking, which, (struct ml_ask_bound){.id = id}
    );
}

void ml_answering_expect(
    struct ml_answering *answering, enum ml_ask which, const int64_t *ids, size_t count
) {
    if (count > 0) {
        answering->asking->engine->expect(answering->asking, which, ids, count);
    }
}

bool ml_store_rows_next(struct ml_store_rows *rows) {
    return rows->engine->next(rows);
}

void ml_store_rows_end(struct ml_store_rows *rows) {
    rows->engine->end(rows);
}

const char *ml_store_rows_text(const struct ml_store_rows *rows, int column) {
    return rows->engine->text(rows, column);
}

int64_t ml_store_rows_id(const struct ml_store_rows *rows, int column) {
    return rows->engine->id(rows, column);
}

double ml_store_rows_real(const struct ml_store_rows *rows, int column) {
    return rows->engine->real(rows, column);
}

uint64_t ml_store_rows_number(const struct ml_store_rows *rows, int column) {
    const double number = ml_store_rows_real(rows, column);
    return number > 0 && number < 0x1p63 ? (uint64_t)llround(number) : 0;
}

int64_t ml_answering_one(struct ml_store_rows *rows, int64_t missing) {
    if (!ml_store_rows_next(rows)) {
        return missing;
    }
    const int64_t number = ml_store_rows_id(rows, 0);
    ml_store_rows_end(rows);
    return number;
}

/* ---- lists */

enum column_kind { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_BOOL };

struct column {
    const char *name;
    enum column_kind kind;
};

/* Null: nothing told it. */
static bool
put_untold(struct ml_json *json, const char *name, const struct ml_store_rows *rows, int column) {
    if (ml_store_rows_real(rows, column) >= 0) {
        return false;
    }
    ml_json_key(json, name);
    ml_json_null(json);
    return true;
}

static void
put_figure(struct ml_json *json, const char *name, const struct ml_store_rows *rows, int column) {
    if (!put_untold(json, name, rows, column)) {
        ml_json_number_member(json, name, ml_store_rows_number(rows, column));
    }
}

static void
put_row(struct ml_json *json, struct ml_store_rows *rows, const struct column *columns) {
    for (int i = 0; columns[i].name != NULL; i++) {
        switch (columns[i].kind) {
        case COLUMN_TEXT:
            ml_json_string_member(json, columns[i].name, ml_store_rows_text(rows, i));
            break;
        case COLUMN_BOOL:
            if (!put_untold(json, columns[i].name, rows, i)) {
                ml_json_bool_member(json, columns[i].name, ml_store_rows_number(rows, i) != 0);
            }
            break;
        case COLUMN_NUMBER:
            put_figure(json, columns[i].name, rows, i);
            break;
        }
    }
}

static void put_list(
    struct ml_answering *answering,
    const char *name,
    enum ml_ask which,
    const struct column *columns
) {
    struct ml_store_rows *rows = ml_answering_find(answering, which, 0);
    ml_json_open_member(&answering->json, name, '[');
    while (ml_store_rows_next(rows)) {
        ml_json_open(&answering->json, '{');
        put_row(&answering->json, rows, columns);
        ml_json_close(&answering->json, '}');
    }
    ml_json_close(&answering->json, ']');
}

static void answer_programs(struct ml_answering *answering) {
    static const struct column columns[] = {
        {"program", COLUMN_TEXT},
        {"dumps", COLUMN_NUMBER},
        {"builds", COLUMN_NUMBER},
        {"hosts", COLUMN_NUMBER},
        {"control_dumps", COLUMN_NUMBER},
        {"last_ms", COLUMN_NUMBER},
        {"mean_live_bytes", COLUMN_NUMBER},
        {"most_peak_bytes", COLUMN_NUMBER},
        {"dumps_without_peak", COLUMN_NUMBER},
        {NULL, COLUMN_TEXT}};
    put_list(answering, "programs", ML_SQL_PROGRAMS, columns);
}

/* The mean of the control population with its interval; null where there is no such dump. */
static void put_control(struct ml_json *json, struct ml_store_rows *rows) {
    const uint64_t count = ml_store_rows_number(rows, 6);
    const double mean = ml_store_rows_real(rows, 7);
    const struct ml_side side = {
        .count = count,
        .sum = mean * (double)count,
        .squares = ml_store_rows_real(rows, 8) * (double)count};
    if (count == 0) {
        ml_json_key(json, "control");
        ml_json_null(json);
        return;
    }
    ml_json_open_member(json, "control", '{');
    ml_json_number_member(json, "dumps", count);
    ml_json_number_member(json, "mean_live_bytes", ml_store_rows_number(rows, 7));
    ml_json_number_member(
        json, "mean_live_bytes_interval", (uint64_t)llround(ml_statistics_interval(side))
    );
    ml_json_close(json, '}');
}

static void answer_builds(struct ml_answering *answering) {
    static const struct column columns[] = {
        {"build_id", COLUMN_TEXT},
        {"version", COLUMN_TEXT},
        {"first_ms", COLUMN_NUMBER},
        {"last_ms", COLUMN_NUMBER},
        {"dumps", COLUMN_NUMBER},
        {"hosts", COLUMN_NUMBER},
        {NULL, COLUMN_TEXT}};
    struct ml_store_rows *rows = ml_answering_find(answering, ML_SQL_BUILDS, 0);
    ml_json_open_member(&answering->json, "builds", '[');
    while (ml_store_rows_next(rows)) {
        ml_json_open(&answering->json, '{');
        put_row(&answering->json, rows, columns);
        put_control(&answering->json, rows);
        ml_json_number_member(&answering->json, "mean_live_bytes", ml_store_rows_number(rows, 9));
        put_figure(&answering->json, "most_peak_bytes", rows, 10);
        ml_json_number_member(
            &answering->json, "dumps_without_peak", ml_store_rows_number(rows, 11)
        );
        put_figure(&answering->json, "mean_cost_ppm", rows, 12);
        put_figure(&answering->json, "dumps_with_cost", rows, 13);
        put_figure(&answering->json, "dumps_over_promise", rows, 14);
        ml_json_close(&answering->json, '}');
    }
    ml_json_close(&answering->json, ']');
}

/* A host deviates that has more than ten times what half of the control population has. */
static void answer_hosts(struct ml_answering *answering) {
    enum { DEVIATES_BY = 10 };
    static const struct column columns[] = {
        {"host", COLUMN_TEXT},
        {"dumps", COLUMN_NUMBER},
        {"most_live_bytes", COLUMN_NUMBER},
        {"mean_live_bytes", COLUMN_NUMBER},
        {"last_ms", COLUMN_NUMBER},
        {"build_id", COLUMN_TEXT},
        {NULL, COLUMN_TEXT}};
    struct ml_json *json = &answering->json;
    const bool is_of_stack = answering->question->stack != 0;
    const int64_t median =
        is_of_stack
            ? -1
            : ml_answering_one(ml_answering_find(answering, ML_SQL_MEDIAN_OF_CONTROL, 0), -1);
    struct ml_store_rows *rows = ml_answering_find(
        answering, is_of_stack ? ML_SQL_HOSTS_OF_STACK : ML_SQL_HOSTS, answering->question->stack
    );
    ml_json_key(json, "control_median_live_bytes");
    if (median >= 0) {
        ml_json_number(json, (uint64_t)median);
    } else {
        ml_json_null(json);
    }
    ml_json_open_member(json, "hosts", '[');
    while (ml_store_rows_next(rows)) {
        ml_json_open(json, '{');
        put_row(json, rows, columns);
        ml_json_bool_member(
            json,
            "deviates",
            median > 0 && ml_store_rows_real(rows, 2) > (double)DEVIATES_BY * (double)median
        );
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

static void answer_reports(struct ml_answering *answering) {
    static const struct column columns[] = {
        {"guid", COLUMN_TEXT},
        {"time_ms", COLUMN_NUMBER},
        {"program", COLUMN_TEXT},
        {"build_id", COLUMN_TEXT},
        {"version", COLUMN_TEXT},
        {"host", COLUMN_TEXT},
        {"trigger", COLUMN_TEXT},
        {"reason", COLUMN_TEXT},
        {"control", COLUMN_BOOL},
        {"complete", COLUMN_BOOL},
        {"covered", COLUMN_BOOL},
        {"sampling_bytes", COLUMN_NUMBER},
        {"processes", COLUMN_NUMBER},
        {"live_bytes", COLUMN_NUMBER},
        {"peak_bytes", COLUMN_NUMBER},
        {"total_bytes", COLUMN_NUMBER},
        {"private_bytes", COLUMN_NUMBER},
        {"left_bytes", COLUMN_NUMBER},
        {"promised_ppm", COLUMN_NUMBER},
        {"cost_ppm", COLUMN_NUMBER},
        {NULL, COLUMN_TEXT}};
    enum { TOLD = 20 };
    struct ml_json *json = &answering->json;
    struct ml_store_rows *rows =
        ml_answering_find(answering, ML_SQL_REPORTS, answering->question->stack);
    ml_json_open_member(json, "reports", '[');
    while (ml_store_rows_next(rows)) {
        ml_json_open(json, '{');
        put_row(json, rows, columns);
        ml_json_close(json, '}');
        answering->told = ml_store_rows_number(rows, TOLD);
    }
    ml_json_close(json, ']');
    if (answering->question->kind == ML_ASK_REPORT) {
        ml_answer_report(answering);
    }
}

/* ---- all of them */

static const struct {
    void (*answer)(struct ml_answering *answering);
    bool wants_program, wants_builds, wants_guid;
} answers[ML_ASK_COUNT] = {
    [ML_ASK_PROGRAMS] = {.answer = answer_programs},
    [ML_ASK_BUILDS] = {.answer = answer_builds, .wants_program = true},
    [ML_ASK_TOP] = {.answer = ml_answer_top},
    [ML_ASK_FLAME] = {.answer = ml_answer_flame},
    [ML_ASK_DIFF] = {.answer = ml_answer_diff, .wants_program = true, .wants_builds = true},
    [ML_ASK_HOSTS] = {.answer = answer_hosts},
    [ML_ASK_REPORTS] = {.answer = answer_reports},
    [ML_ASK_REPORT] = {.answer = answer_reports, .wants_guid = true},
};

static bool is_said(const char *word) {
    return word != NULL && word[0] != '\0';
}

/* NULL: nothing is missing. */
static const char *missing(const struct ml_question *question) {
    if (answers[question->kind].wants_program && !is_said(question->program)) {
        return "say of which program: program=NAME";
    }
    if (answers[question->kind].wants_builds &&
        (question->build == NULL || question->other == NULL)) {
        return "say which two builds: build=ID and other=ID; of one without an id it is none";
    }
    if (question->kind == ML_ASK_HOSTS && !is_said(question->program) && question->stack == 0) {
        return "say of which program, program=NAME, or of which stack, stack=ID";
    }
    return answers[question->kind].wants_guid && !is_said(question->guid)
               ? "say which report: guid=GUID"
               : NULL;
}

static void put_missing(struct ml_answering *answering) {
    const char *const *missing_shards = answering->asking->engine->missing(answering->asking);
    ml_json_open_member(&answering->json, "missing_shards", '[');
    for (size_t i = 0; missing_shards[i] != NULL; i++) {
        ml_json_string(&answering->json, missing_shards[i]);
    }
    ml_json_close(&answering->json, ']');
}

enum ml_status ml_questions_ask(
    struct ml_questions *questions,
    const struct ml_question *question,
    FILE *out,
    struct ml_error_message *error
) {
    struct ml_asking *asking = questions->asking;
    struct ml_answering answering = {
        .asking = asking,
        .question = question,
        .json = ml_json_over(out),
        .status = ML_OK,
    };
    const char *what = missing(question);
    if (what != NULL) {
        ml_error_set(error, "%s", what);
        return ML_ENV_MISSING;
    }
    const enum ml_status begun = asking->engine->begin(asking, question, error);
    if (begun != ML_OK) {
        return begun;
    }
    ml_json_open(&answering.json, '{');
    ml_json_number_member(&answering.json, "memlog", 1);
    put_missing(&answering);
    answers[question->kind].answer(&answering);
    ml_json_close(&answering.json, '}');
    (void)fputc('\n', out);
    const enum ml_status ended = asking->engine->end(asking, error);
    return answering.status != ML_OK ? answering.status : ended;
}

void ml_questions_interrupt(const struct ml_questions *questions) {
    if (questions->asking->engine->interrupt != NULL) {
        questions->asking->engine->interrupt(questions->asking);
    }
}

/* ---- open and close */

struct ml_questions *
ml_questions_open(const struct ml_store *store, struct ml_error_message *error) {
    struct ml_questions *questions = calloc(1, sizeof(*questions));
    if (questions == NULL) {
        ml_error_set(error, "memory ran out");
        return NULL;
    }
    questions->asking = store->engine->ask_open(store, error);
    if (questions->asking == NULL) {
        ml_questions_close(questions);
        return NULL;
    }
    return questions;
}

void ml_questions_close(struct ml_questions *take_questions) {
    if (take_questions != NULL && take_questions->asking != NULL) {
        take_questions->asking->engine->close(take_questions->asking);
    }
    free(take_questions);
}

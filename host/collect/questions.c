#include "host/collect/questions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/questions_internal.h"
#include "host/collect/statistics.h"

extern const char ml_collect_questions[]; /* sql/questions.sql */

const char *const ml_question_names[ML_ASK_COUNT + 1] = {
    "programs", "builds", "top", "flame", "diff", "hosts", "reports", "report", NULL};
const char *const ml_asked_metrics[4] = {"live", "peak", "total", NULL};

static const char *const sql_names[ML_SQL_COUNT] = {
    [ML_SQL_WORD] = "word",
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

/* ---- statements */

/* The statement behind "-- name: NAME", up to the next one. Owner: free. NULL: it is not there. */
static char *statement_text(const char *name) {
    enum { HEAD_BYTES = 64 };
    char head[HEAD_BYTES];
    (void)snprintf(head, sizeof(head), "-- name: %s\n", name);
    const char *begin = strstr(ml_collect_questions, head);
    if (begin == NULL) {
        return NULL;
    }
    begin += strlen(head);
    const char *end = strstr(begin, "-- name: ");
    return end != NULL ? strndup(begin, (size_t)(end - begin)) : strdup(begin);
}

struct ml_questions *
ml_questions_open(const struct ml_store *store, struct ml_error_message *error) {
    struct ml_questions *questions = calloc(1, sizeof(*questions));
    bool done = questions != NULL;
    if (done) {
        questions->db = *ml_store_db(store);
    }
    for (enum ml_ask i = 0; done && i < ML_SQL_COUNT; i++) {
        char *text = statement_text(sql_names[i]);
        questions->statements[i] = text != NULL ? ml_db_prepare(&questions->db, text, error) : NULL;
        free(text);
        done = questions->statements[i] != NULL;
    }
    if (!done) {
        ml_questions_close(questions);
        return NULL;
    }
    return questions;
}

void ml_questions_close(struct ml_questions *take_questions) {
    for (enum ml_ask i = 0; take_questions != NULL && i < ML_SQL_COUNT; i++) {
        (void)sqlite3_finalize(take_questions->statements[i]);
    }
    free(take_questions);
}

static int64_t word_of(const struct ml_questions *questions, const char *word) {
    sqlite3_stmt *statement = questions->statements[ML_SQL_WORD];
    if (word == NULL || word[0] == '\0') {
        return 0;
    }
    ml_db_bind_text(statement, ":word", word);
    return ml_db_number(statement, -1);
}

/* The Monday of that time, as host/collect/store.c counts weeks. */
static int64_t week_of(uint64_t time_ms) {
    return (int64_t)(time_ms / 86400000 + 3) / 7 * 7 - 3;
}

sqlite3_stmt *ml_answering_use(const struct ml_answering *answering, enum ml_ask which) {
    sqlite3_stmt *statement = answering->questions->statements[which];
    const struct ml_question *question = answering->question;
    const uint64_t until_ms = question->until_ms > 0 ? question->until_ms : (uint64_t)1 << 52;
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {
        {":team", answering->team},
        {":program", answering->program},
        {":build", answering->build},
        {":other", answering->other},
        {":host", answering->host},
        {":metric", question->metric},
        {":control", question->control_only},
        {":from", week_of(question->from_ms)},
        {":until", week_of(until_ms)},
        {":from_ms", (int64_t)question->from_ms},
        {":until_ms", (int64_t)until_ms},
        {":limit", (int64_t)(question->limit > 0 ? question->limit : ML_ASK_LIMIT)},
    };
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        ml_db_bind_number(statement, numbers[i].name, numbers[i].value);
    }
    ml_db_bind_text(statement, ":guid", question->guid != NULL ? question->guid : "");
    return statement;
}

bool ml_answering_row(struct ml_answering *answering, sqlite3_stmt *statement) {
    const int state = sqlite3_step(statement);
    if (state == SQLITE_ROW) {
        return true;
    }
    if (state != SQLITE_DONE) {
        answering->status = ML_ENV_SYSTEM;
        ml_error_set(answering->error, "%s", sqlite3_errmsg(answering->questions->db.handle));
    }
    (void)sqlite3_reset(statement);
    return false;
}

const char *ml_answering_text(sqlite3_stmt *statement, int column) {
    const unsigned char *text = sqlite3_column_text(statement, column);
    return text != NULL ? (const char *)text : "";
}

uint64_t ml_answering_number(sqlite3_stmt *statement, int column) {
    const double number = sqlite3_column_double(statement, column);
    return number > 0 && number < 0x1p63 ? (uint64_t)llround(number) : 0;
}

/* ---- lists */

enum column_kind { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_BOOL };

struct column {
    const char *name;
    enum column_kind kind;
};

static void put_row(struct ml_json *json, sqlite3_stmt *statement, const struct column *columns) {
    for (int i = 0; columns[i].name != NULL; i++) {
        switch (columns[i].kind) {
        case COLUMN_TEXT:
            ml_json_string_member(json, columns[i].name, ml_answering_text(statement, i));
            break;
        case COLUMN_BOOL:
            ml_json_bool_member(json, columns[i].name, ml_answering_number(statement, i) != 0);
            break;
        case COLUMN_NUMBER:
            ml_json_number_member(json, columns[i].name, ml_answering_number(statement, i));
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
    sqlite3_stmt *statement = ml_answering_use(answering, which);
    ml_json_open_member(&answering->json, name, '[');
    while (ml_answering_row(answering, statement)) {
        ml_json_open(&answering->json, '{');
        put_row(&answering->json, statement, columns);
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
        {NULL, COLUMN_TEXT}};
    put_list(answering, "programs", ML_SQL_PROGRAMS, columns);
}

/* The mean of the control population with its interval; null where there is no such dump. */
static void put_control(struct ml_json *json, sqlite3_stmt *statement) {
    const uint64_t count = ml_answering_number(statement, 6);
    const double mean = sqlite3_column_double(statement, 7);
    const struct ml_side side = {
        .count = count,
        .sum = mean * (double)count,
        .squares = sqlite3_column_double(statement, 8) * (double)count};
    if (count == 0) {
        ml_json_key(json, "control");
        ml_json_null(json);
        return;
    }
    ml_json_open_member(json, "control", '{');
    ml_json_number_member(json, "dumps", count);
    ml_json_number_member(json, "mean_live_bytes", ml_answering_number(statement, 7));
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
    sqlite3_stmt *statement = ml_answering_use(answering, ML_SQL_BUILDS);
    ml_json_open_member(&answering->json, "builds", '[');
    while (ml_answering_row(answering, statement)) {
        ml_json_open(&answering->json, '{');
        put_row(&answering->json, statement, columns);
        put_control(&answering->json, statement);
        ml_json_number_member(
            &answering->json, "mean_live_bytes", ml_answering_number(statement, 9)
        );
        ml_json_number_member(
            &answering->json, "most_peak_bytes", ml_answering_number(statement, 10)
        );
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
        is_of_stack ? -1 : ml_db_number(ml_answering_use(answering, ML_SQL_MEDIAN_OF_CONTROL), -1);
    sqlite3_stmt *statement =
        ml_answering_use(answering, is_of_stack ? ML_SQL_HOSTS_OF_STACK : ML_SQL_HOSTS);
    ml_db_bind_number(statement, ":names", answering->question->stack);
    ml_json_key(json, "control_median_live_bytes");
    if (median >= 0) {
        ml_json_number(json, (uint64_t)median);
    } else {
        ml_json_null(json);
    }
    ml_json_open_member(json, "hosts", '[');
    while (ml_answering_row(answering, statement)) {
        ml_json_open(json, '{');
        put_row(json, statement, columns);
        ml_json_bool_member(
            json,
            "deviates",
            median > 0 && sqlite3_column_double(statement, 2) > (double)DEVIATES_BY * (double)median
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
        {NULL, COLUMN_TEXT}};
    put_list(answering, "reports", ML_SQL_REPORTS, columns);
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
        (!is_said(question->build) || !is_said(question->other))) {
        return "say which two builds: build=ID and other=ID";
    }
    if (question->kind == ML_ASK_HOSTS && !is_said(question->program) && question->stack == 0) {
        return "say of which program, program=NAME, or of which stack, stack=ID";
    }
    return answers[question->kind].wants_guid && !is_said(question->guid)
               ? "say which report: guid=GUID"
               : NULL;
}

enum ml_status ml_questions_ask(
    struct ml_questions *questions,
    const struct ml_question *question,
    FILE *out,
    struct ml_error_message *error
) {
    struct ml_answering answering = {
        .questions = questions,
        .question = question,
        .json = ml_json_over(out),
        .team = word_of(questions, question->team),
        .program = word_of(questions, question->program),
        .build = word_of(questions, question->build),
        .other = word_of(questions, question->other),
        .host = word_of(questions, question->host),
        .error = error,
        .status = ML_OK,
    };
    const char *what = missing(question);
    if (what != NULL) {
        ml_error_set(error, "%s", what);
        return ML_ENV_MISSING;
    }
    ml_json_open(&answering.json, '{');
    ml_json_number_member(&answering.json, "memlog", 1);
    /* Shards that did not answer; the embedded store is whole. */
    ml_json_open_member(&answering.json, "missing_shards", '[');
    ml_json_close(&answering.json, ']');
    answers[question->kind].answer(&answering);
    ml_json_close(&answering.json, '}');
    (void)fputc('\n', out);
    return answering.status;
}

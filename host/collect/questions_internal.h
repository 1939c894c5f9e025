/* What questions.c and questions_stacks.c share. Room: host (private). */
#ifndef MEMLOG_HOST_COLLECT_QUESTIONS_INTERNAL_H
#define MEMLOG_HOST_COLLECT_QUESTIONS_INTERNAL_H

#include "base/json_writer.h"
#include "host/collect/db.h"
#include "host/collect/questions.h"

/* In the order of sql/questions.sql. */
enum ml_ask {
    ML_SQL_WORD,
    ML_SQL_PROGRAMS,
    ML_SQL_BUILDS,
    ML_SQL_DUMPS_OF_SUMS,
    ML_SQL_TOP,
    ML_SQL_HOSTS_OF_NAMES,
    ML_SQL_PATH,
    ML_SQL_SUMS,
    ML_SQL_NODE,
    ML_SQL_CONTROL_DUMPS,
    ML_SQL_SHARES,
    ML_SQL_MEDIAN_OF_CONTROL,
    ML_SQL_HOSTS,
    ML_SQL_HOSTS_OF_STACK,
    ML_SQL_REPORTS,
    ML_SQL_ROWS,
    ML_SQL_COUNT
};

struct ml_questions {
    struct ml_db db;
    sqlite3_stmt *statements[ML_SQL_COUNT];
};

/* One question as it is answered. */
struct ml_answering {
    struct ml_questions *questions;
    const struct ml_question *question;
    struct ml_json json;
    int64_t team, program, build, other, host; /* numbers of words; 0: any; -1: nobody has it */
    struct ml_error_message *error;
    enum ml_status status;
};

/* The statement with all that questions bind. */
sqlite3_stmt *ml_answering_use(const struct ml_answering *answering, enum ml_ask which);

/* The next row. False: there is none, and the statement is reset. */
bool ml_answering_row(struct ml_answering *answering, sqlite3_stmt *statement);

const char *ml_answering_text(sqlite3_stmt *statement, int column);
uint64_t ml_answering_number(sqlite3_stmt *statement, int column);

/* "frames": the stack's, the outermost first: a name, or [module, build id, offset] of one without.
 */
void ml_answering_path(struct ml_answering *answering, int64_t stack);

/* An id as text: JSON's readers keep 53 bits of a number. */
void ml_answering_id(struct ml_json *json, const char *name, int64_t id);

/* Of all dumps that the question is about. */
struct ml_answer_sums {
    double dumps, live, peak, total;
};
struct ml_answer_sums ml_answering_sums(struct ml_answering *answering);
void ml_answering_put_sums(struct ml_json *json, struct ml_answer_sums sums);

/* questions_flame.c */
void ml_answer_flame(struct ml_answering *answering);

/* questions_stacks.c */
void ml_answer_top(struct ml_answering *answering);
void ml_answer_diff(struct ml_answering *answering);
void ml_answer_report(struct ml_answering *answering);

#endif

/* What questions.c, questions_flame.c and questions_stacks.c share. Room: host (private). */
#ifndef MEMLOG_HOST_COLLECT_QUESTIONS_INTERNAL_H
#define MEMLOG_HOST_COLLECT_QUESTIONS_INTERNAL_H

#include "base/json_writer.h"
#include "host/collect/engine.h"
#include "host/collect/questions.h"

/* One question as it is answered. */
struct ml_answering {
    struct ml_asking *asking;
    const struct ml_question *question;
    struct ml_json json;
    enum ml_status status;
    uint64_t told; /* of the last report in the answer: bits of MEMLOG_FLEET_TOLD_* */
};

/* ---- rows */

/* The rows of that kind, about a stack or names where it is about one. */
struct ml_store_rows *
ml_answering_find(struct ml_answering *answering, enum ml_ask which, int64_t id);

/* Rows of `which` will be asked of these ids, one after the other. */
void ml_answering_expect(
    struct ml_answering *answering, enum ml_ask which, const int64_t *ids, size_t count
);

/* The first column of their first row, or `missing`. */
int64_t ml_answering_one(struct ml_store_rows *rows, int64_t missing);

/* The next row. False: there is none. */
bool ml_store_rows_next(struct ml_store_rows *rows);
void ml_store_rows_end(struct ml_store_rows *rows); /* of rows that are not at their end */

const char *ml_store_rows_text(const struct ml_store_rows *rows, int column);
int64_t ml_store_rows_id(const struct ml_store_rows *rows, int column);
double ml_store_rows_real(const struct ml_store_rows *rows, int column);
uint64_t ml_store_rows_number(const struct ml_store_rows *rows, int column);

/* ---- parts of answers */

/* "frames": the stack's, the outermost first: a name, or [module, build id, offset] of one without.
 */
void ml_answering_path(struct ml_answering *answering, int64_t stack);

/* An id as text: JSON's readers keep 53 bits of a number. */
void ml_answering_id(struct ml_json *json, const char *name, int64_t id);

/* Of all dumps that the question is about; peaks and totals are of those that tell them. */
struct ml_answer_sums {
    double dumps, live, peak, total;
    double without_peak, without_total; /* dumps that do not tell it */
};
struct ml_answer_sums ml_answering_sums(struct ml_answering *answering);
void ml_answering_put_sums(struct ml_json *json, struct ml_answer_sums sums);

/* ---- answers */

/* questions_flame.c */
void ml_answer_flame(struct ml_answering *answering);

/* questions_stacks.c */
void ml_answer_top(struct ml_answering *answering);
void ml_answer_diff(struct ml_answering *answering);
void ml_answer_report(struct ml_answering *answering);

#endif

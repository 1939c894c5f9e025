/* Questions about stacks: who holds most, what differs between two builds, and one report's rows.
 * Room: host. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/collect/questions_internal.h"
#include "host/collect/statistics.h"

void ml_answering_id(struct ml_json *json, const char *name, int64_t id) {
    char text[24];
    (void)snprintf(text, sizeof(text), "%" PRId64, id);
    ml_json_string_member(json, name, text);
}

void ml_answering_path(struct ml_answering *answering, int64_t stack) {
    struct ml_json *json = &answering->json;
    sqlite3_stmt *statement = answering->questions->statements[ML_SQL_PATH];
    ml_db_bind_number(statement, ":stack", stack);
    ml_json_open_member(json, "frames", '[');
    while (ml_answering_row(answering, statement)) {
        const char *function = ml_answering_text(statement, 0);
        if (function[0] != '\0') {
            ml_json_string(json, function);
            continue;
        }
        ml_json_open(json, '[');
        ml_json_string(json, ml_answering_text(statement, 1));
        ml_json_string(json, ml_answering_text(statement, 2));
        ml_json_number(json, ml_answering_number(statement, 3));
        ml_json_close(json, ']');
    }
    ml_json_close(json, ']');
}

/* ---- who holds most */

struct ml_answer_sums ml_answering_sums(struct ml_answering *answering) {
    sqlite3_stmt *statement = ml_answering_use(answering, ML_SQL_DUMPS_OF_SUMS);
    struct ml_answer_sums sums = {.dumps = 0};
    if (ml_answering_row(answering, statement)) {
        sums = (struct ml_answer_sums
        ){.dumps = sqlite3_column_double(statement, 0),
          .live = sqlite3_column_double(statement, 1),
          .peak = sqlite3_column_double(statement, 2),
          .total = sqlite3_column_double(statement, 3)};
    }
    (void)sqlite3_reset(statement);
    return sums;
}

void ml_answering_put_sums(struct ml_json *json, struct ml_answer_sums sums) {
    ml_json_number_member(json, "dumps", (uint64_t)llround(sums.dumps));
    ml_json_double_member(json, "live_bytes", sums.live);
    ml_json_double_member(json, "peak_bytes", sums.peak);
    ml_json_double_member(json, "total_bytes", sums.total);
}

static uint64_t hosts_of(struct ml_answering *answering, int64_t names) {
    sqlite3_stmt *statement = ml_answering_use(answering, ML_SQL_HOSTS_OF_NAMES);
    ml_db_bind_number(statement, ":names", names);
    return (uint64_t)ml_db_number(statement, 0);
}

static void
put_top(struct ml_answering *answering, sqlite3_stmt *statement, struct ml_answer_sums all) {
    struct ml_json *json = &answering->json;
    const double dumps = all.dumps > 0 ? all.dumps : 1;
    ml_json_open(json, '{');
    ml_answering_id(json, "stack", sqlite3_column_int64(statement, 0));
    ml_json_double_member(json, "live_bytes", sqlite3_column_double(statement, 2));
    ml_json_double_member(json, "peak_bytes", sqlite3_column_double(statement, 3));
    ml_json_double_member(json, "total_bytes", sqlite3_column_double(statement, 4));
    ml_json_double_member(json, "live_blocks", sqlite3_column_double(statement, 7));
    ml_json_double_member(json, "mean_live_bytes", sqlite3_column_double(statement, 2) / dumps);
    ml_json_double_member(json, "mean_peak_bytes", sqlite3_column_double(statement, 3) / dumps);
    ml_json_double_member(
        json, "share_of_dumps", fmin(1, sqlite3_column_double(statement, 5) / dumps)
    );
    ml_json_number_member(json, "most_live_bytes", ml_answering_number(statement, 6));
    ml_json_number_member(json, "hosts", hosts_of(answering, sqlite3_column_int64(statement, 0)));
    ml_answering_path(answering, sqlite3_column_int64(statement, 1));
    ml_json_close(json, '}');
}

void ml_answer_top(struct ml_answering *answering) {
    const struct ml_answer_sums all = ml_answering_sums(answering);
    sqlite3_stmt *statement = ml_answering_use(answering, ML_SQL_TOP);
    ml_answering_put_sums(&answering->json, all);
    ml_json_open_member(&answering->json, "stacks", '[');
    while (ml_answering_row(answering, statement)) {
        put_top(answering, statement, all);
    }
    ml_json_close(&answering->json, ']');
}

/* ---- two builds */

struct compared {
    int64_t names, stack;
    struct ml_difference difference;
};

static uint64_t control_dumps(struct ml_answering *answering, int64_t build) {
    sqlite3_stmt *statement = ml_answering_use(answering, ML_SQL_CONTROL_DUMPS);
    ml_db_bind_number(statement, ":build", build);
    return (uint64_t)ml_db_number(statement, 0);
}

static int by_z(const void *a, const void *b) {
    const double one = fabs(((const struct compared *)a)->difference.z);
    const double other = fabs(((const struct compared *)b)->difference.z);
    return one > other ? -1 : one < other;
}

/* All stacks of either side. Owner: free. NULL: no memory. */
static struct compared *
compare(struct ml_answering *answering, uint64_t before, uint64_t after, size_t *out_count) {
    sqlite3_stmt *statement = ml_answering_use(answering, ML_SQL_SHARES);
    size_t capacity = 256;
    struct compared *list = calloc(capacity, sizeof(*list));
    *out_count = 0;
    while (list != NULL && ml_answering_row(answering, statement)) {
        if (*out_count == capacity) {
            struct compared *grown = reallocarray(list, capacity * 2, sizeof(*list));
            if (grown == NULL) {
                free(list);
                (void)sqlite3_reset(statement);
                return NULL;
            }
            list = grown;
            capacity *= 2;
        }
        const struct ml_side sides[] = {
            {.count = before,
             .sum = sqlite3_column_double(statement, 2),
             .squares = sqlite3_column_double(statement, 3)},
            {.count = after,
             .sum = sqlite3_column_double(statement, 4),
             .squares = sqlite3_column_double(statement, 5)}};
        list[(*out_count)++] = (struct compared
        ){.names = sqlite3_column_int64(statement, 0),
          .stack = sqlite3_column_int64(statement, 1),
          .difference = ml_statistics_compare(sides[0], sides[1])};
    }
    return list;
}

static bool adjust(struct compared *list, size_t count) {
    struct ml_difference *differences = calloc(count + 1, sizeof(*differences));
    for (size_t i = 0; differences != NULL && i < count; i++) {
        differences[i] = list[i].difference;
    }
    const bool done = differences != NULL && ml_statistics_adjust(differences, count);
    for (size_t i = 0; done && i < count; i++) {
        list[i].difference.q = differences[i].q;
    }
    free(differences);
    return done;
}

static void put_compared(struct ml_answering *answering, const struct compared *one) {
    const double called_different = 0.05;
    struct ml_json *json = &answering->json;
    ml_json_open(json, '{');
    ml_answering_id(json, "stack", one->names);
    ml_json_double_member(json, "share_before", one->difference.mean_before);
    ml_json_double_member(json, "share_after", one->difference.mean_after);
    ml_json_double_member(json, "z", one->difference.z);
    ml_json_double_member(json, "q", one->difference.q);
    ml_json_bool_member(json, "differs", one->difference.q < called_different);
    ml_answering_path(answering, one->stack);
    ml_json_close(json, '}');
}

void ml_answer_diff(struct ml_answering *answering) {
    struct ml_json *json = &answering->json;
    const uint64_t before = control_dumps(answering, answering->build);
    const uint64_t after = control_dumps(answering, answering->other);
    const bool is_enough = before >= ML_STATISTICS_LEAST && after >= ML_STATISTICS_LEAST;
    const uint64_t limit =
        answering->question->limit > 0 ? answering->question->limit : ML_ASK_LIMIT;
    size_t count = 0;
    struct compared *list = compare(answering, before, after, &count);
    if (list == NULL || !adjust(list, count)) {
        answering->status = ML_ENV_MEMORY;
        free(list);
        return;
    }
    qsort(list, count, sizeof(*list), by_z);
    ml_json_number_member(json, "dumps_before", before);
    ml_json_number_member(json, "dumps_after", after);
    ml_json_number_member(json, "dumps_least", ML_STATISTICS_LEAST);
    ml_json_bool_member(json, "too_few", !is_enough);
    ml_json_number_member(json, "stacks_compared", count);
    ml_json_open_member(json, "stacks", '[');
    for (size_t i = 0; is_enough && i < count && i < limit; i++) {
        put_compared(answering, &list[i]);
    }
    ml_json_close(json, ']');
    free(list);
}

/* ---- one report */

void ml_answer_report(struct ml_answering *answering) {
    struct ml_json *json = &answering->json;
    sqlite3_stmt *statement = ml_answering_use(answering, ML_SQL_ROWS);
    ml_json_open_member(json, "rows", '[');
    while (ml_answering_row(answering, statement)) {
        static const char *const figures[] = {
            "live_bytes",
            "live_blocks",
            "peak_bytes",
            "peak_blocks",
            "total_bytes",
            "total_blocks"};
        enum { FIRST_FIGURE = 5 };
        ml_json_open(json, '{');
        ml_json_string_member(json, "role", ml_answering_text(statement, 1));
        ml_json_string_member(json, "process", ml_answering_text(statement, 2));
        ml_json_string_member(json, "heap", ml_answering_text(statement, 3));
        ml_json_string_member(json, "type", ml_answering_text(statement, 4));
        for (int i = 0; i < 6; i++) {
            ml_json_number_member(
                json, figures[i], ml_answering_number(statement, FIRST_FIGURE + i)
            );
        }
        ml_answering_path(answering, sqlite3_column_int64(statement, 0));
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

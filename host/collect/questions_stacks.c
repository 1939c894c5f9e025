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
    struct ml_store_rows *rows = ml_answering_find(answering, ML_SQL_PATH, stack);
    ml_json_open_member(json, "frames", '[');
    while (ml_store_rows_next(rows)) {
        const char *function = ml_store_rows_text(rows, 0);
        if (function[0] != '\0') {
            ml_json_string(json, function);
            continue;
        }
        ml_json_open(json, '[');
        ml_json_string(json, ml_store_rows_text(rows, 1));
        ml_json_string(json, ml_store_rows_text(rows, 2));
        ml_json_number(json, ml_store_rows_number(rows, 3));
        ml_json_close(json, ']');
    }
    ml_json_close(json, ']');
}

/* ---- who holds most */

struct ml_answer_sums ml_answering_sums(struct ml_answering *answering) {
    struct ml_store_rows *rows = ml_answering_find(answering, ML_SQL_DUMPS_OF_SUMS, 0);
    struct ml_answer_sums sums = {.dumps = 0};
    if (ml_store_rows_next(rows)) {
        sums = (struct ml_answer_sums
        ){.dumps = ml_store_rows_real(rows, 0),
          .live = ml_store_rows_real(rows, 1),
          .peak = ml_store_rows_real(rows, 2),
          .total = ml_store_rows_real(rows, 3),
          .without_peak = ml_store_rows_real(rows, 4),
          .without_total = ml_store_rows_real(rows, 5)};
    }
    ml_store_rows_end(rows);
    return sums;
}

void ml_answering_put_sums(struct ml_json *json, struct ml_answer_sums sums) {
    ml_json_number_member(json, "dumps", (uint64_t)llround(sums.dumps));
    ml_json_double_member(json, "live_bytes", sums.live);
    ml_json_double_member(json, "peak_bytes", sums.peak);
    ml_json_double_member(json, "total_bytes", sums.total);
    ml_json_number_member(json, "dumps_without_peak", (uint64_t)llround(sums.without_peak));
    ml_json_number_member(json, "dumps_without_total", (uint64_t)llround(sums.without_total));
}

/* Null: of no dumps. */
static void put_mean(struct ml_json *json, const char *name, double sum, double dumps) {
    ml_json_key(json, name);
    if (dumps > 0) {
        ml_json_double(json, sum / dumps);
    } else {
        ml_json_null(json);
    }
}

/* Stacks of one list of names. */
struct held {
    int64_t names, stack;
    double live, peak, total, dumps, live_blocks;
    uint64_t most;
};

static struct held held_of(const struct ml_store_rows *rows) {
    return (struct held){
        .names = ml_store_rows_id(rows, 0),
        .stack = ml_store_rows_id(rows, 1),
        .live = ml_store_rows_real(rows, 2),
        .peak = ml_store_rows_real(rows, 3),
        .total = ml_store_rows_real(rows, 4),
        .dumps = ml_store_rows_real(rows, 5),
        .most = ml_store_rows_number(rows, 6),
        .live_blocks = ml_store_rows_real(rows, 7),
    };
}

static void
put_held(struct ml_answering *answering, const struct held *held, struct ml_answer_sums all) {
    struct ml_json *json = &answering->json;
    const double dumps = all.dumps > 0 ? all.dumps : 1;
    const int64_t hosts =
        ml_answering_one(ml_answering_find(answering, ML_SQL_HOSTS_OF_NAMES, held->names), 0);
    ml_json_open(json, '{');
    ml_answering_id(json, "stack", held->names);
    ml_json_double_member(json, "live_bytes", held->live);
    ml_json_double_member(json, "peak_bytes", held->peak);
    ml_json_double_member(json, "total_bytes", held->total);
    ml_json_double_member(json, "live_blocks", held->live_blocks);
    ml_json_double_member(json, "mean_live_bytes", held->live / dumps);
    put_mean(json, "mean_peak_bytes", held->peak, all.dumps - all.without_peak);
    put_mean(json, "mean_total_bytes", held->total, all.dumps - all.without_total);
    ml_json_double_member(json, "share_of_dumps", fmin(1, held->dumps / dumps));
    ml_json_number_member(json, "most_live_bytes", held->most);
    ml_json_number_member(json, "hosts", (uint64_t)hosts);
    ml_answering_path(answering, held->stack);
    ml_json_close(json, '}');
}

void ml_answer_top(struct ml_answering *answering) {
    const struct ml_answer_sums all = ml_answering_sums(answering);
    const uint64_t limit = ml_ask_limit(answering->question);
    struct held *list = calloc(limit, sizeof(*list));
    int64_t *ids = calloc(limit, sizeof(*ids));
    struct ml_store_rows *rows = ml_answering_find(answering, ML_SQL_TOP, 0);
    size_t count = 0;
    if (list == NULL || ids == NULL) {
        answering->status = ML_ENV_MEMORY;
    }
    while (answering->status == ML_OK && count < limit && ml_store_rows_next(rows)) {
        ids[count] = ml_store_rows_id(rows, 0);
        list[count++] = held_of(rows);
    }
    ml_store_rows_end(rows);
    ml_answering_expect(answering, ML_SQL_HOSTS_OF_NAMES, ids, count);
    for (size_t i = 0; i < count; i++) {
        ids[i] = list[i].stack;
    }
    ml_answering_expect(answering, ML_SQL_PATH, ids, count);
    ml_answering_put_sums(&answering->json, all);
    ml_json_open_member(&answering->json, "stacks", '[');
    for (size_t i = 0; i < count; i++) {
        put_held(answering, &list[i], all);
    }
    ml_json_close(&answering->json, ']');
    free(ids);
    free(list);
}

/* ---- two builds */

struct compared {
    int64_t names, stack;
    struct ml_difference difference;
};

/* The control population of a build. */
struct population {
    uint64_t dumps, hosts; /* that have some of the metric */
    uint64_t untold;       /* dumps that do not tell it */
};

static struct population population_of(struct ml_answering *answering, const char *build) {
    struct ml_asking *asking = answering->asking;
    struct ml_store_rows *rows =
        asking->engine->rows(asking, ML_SQL_CONTROL_DUMPS, (struct ml_ask_bound){.build = build});
    struct population population = {.dumps = 0};
    if (ml_store_rows_next(rows)) {
        population.dumps = (uint64_t)ml_store_rows_id(rows, 0);
        population.hosts = (uint64_t)ml_store_rows_id(rows, 1);
        population.untold = (uint64_t)ml_store_rows_id(rows, 2);
    }
    ml_store_rows_end(rows);
    return population;
}

static int by_z(const void *a, const void *b) {
    const double one = fabs(((const struct compared *)a)->difference.z);
    const double other = fabs(((const struct compared *)b)->difference.z);
    if (one != other) {
        return one > other ? -1 : 1;
    }
    const int64_t names = ((const struct compared *)a)->names;
    return names < ((const struct compared *)b)->names ? -1 : 1;
}

/* All stacks of either side, which have `before` and `after` hosts or dumps. Owner: free. NULL: no
 * memory. */
static struct compared *compare(
    struct ml_answering *answering, bool by_host, uint64_t before, uint64_t after, size_t *out_count
) {
    struct ml_asking *asking = answering->asking;
    struct ml_store_rows *rows =
        asking->engine->rows(asking, ML_SQL_SHARES, (struct ml_ask_bound){.by_host = by_host});
    size_t capacity = 256;
    struct compared *list = calloc(capacity, sizeof(*list));
    *out_count = 0;
    while (list != NULL && ml_store_rows_next(rows)) {
        if (*out_count == capacity) {
            struct compared *grown = reallocarray(list, capacity * 2, sizeof(*list));
            if (grown == NULL) {
                free(list);
                ml_store_rows_end(rows);
                return NULL;
            }
            list = grown;
            capacity *= 2;
        }
        const struct ml_side sides[] = {
            {.count = before,
             .sum = ml_store_rows_real(rows, 2),
             .squares = ml_store_rows_real(rows, 3)},
            {.count = after,
             .sum = ml_store_rows_real(rows, 4),
             .squares = ml_store_rows_real(rows, 5)}};
        list[(*out_count)++] = (struct compared
        ){.names = ml_store_rows_id(rows, 0),
          .stack = ml_store_rows_id(rows, 1),
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
    struct ml_json *json = &answering->json;
    ml_json_open(json, '{');
    ml_answering_id(json, "stack", one->names);
    ml_json_double_member(json, "share_before", one->difference.mean_before);
    ml_json_double_member(json, "share_after", one->difference.mean_after);
    ml_json_double_member(json, "z", one->difference.z);
    ml_json_double_member(json, "q", one->difference.q);
    ml_json_bool_member(json, "differs", one->difference.q < ML_STATISTICS_Q);
    ml_answering_path(answering, one->stack);
    ml_json_close(json, '}');
}

static void
expect_paths(struct ml_answering *answering, const struct compared *list, size_t count) {
    int64_t *ids = calloc(count + 1, sizeof(*ids));
    for (size_t i = 0; ids != NULL && i < count; i++) {
        ids[i] = list[i].stack;
    }
    if (ids != NULL) {
        ml_answering_expect(answering, ML_SQL_PATH, ids, count);
    } else {
        answering->status = ML_ENV_MEMORY;
    }
    free(ids);
}

void ml_answer_diff(struct ml_answering *answering) {
    struct ml_json *json = &answering->json;
    const struct population before = population_of(answering, answering->question->build);
    const struct population after = population_of(answering, answering->question->other);
    const bool is_enough =
        before.dumps >= ML_STATISTICS_LEAST && after.dumps >= ML_STATISTICS_LEAST;
    /* Of fewer hosts the dumps are compared: what is found then is said of these hosts alone. */
    const bool by_host = before.hosts >= ML_STATISTICS_LEAST && after.hosts >= ML_STATISTICS_LEAST;
    const uint64_t limit = ml_ask_limit(answering->question);
    size_t count = 0;
    struct compared *list = compare(
        answering,
        by_host,
        by_host ? before.hosts : before.dumps,
        by_host ? after.hosts : after.dumps,
        &count
    );
    if (list == NULL || !adjust(list, count)) {
        answering->status = ML_ENV_MEMORY;
        free(list);
        return;
    }
    qsort(list, count, sizeof(*list), by_z);
    ml_json_string_member(json, "metric", ml_asked_metrics[answering->question->metric]);
    ml_json_number_member(json, "dumps_before", before.dumps);
    ml_json_number_member(json, "dumps_after", after.dumps);
    ml_json_number_member(json, "untold_before", before.untold);
    ml_json_number_member(json, "untold_after", after.untold);
    ml_json_number_member(json, "hosts_before", before.hosts);
    ml_json_number_member(json, "hosts_after", after.hosts);
    ml_json_string_member(json, "compared", by_host ? "hosts" : "dumps");
    ml_json_number_member(json, "dumps_least", ML_STATISTICS_LEAST);
    ml_json_bool_member(json, "too_few", !is_enough);
    ml_json_number_member(json, "stacks_compared", count);
    ml_json_open_member(json, "stacks", '[');
    expect_paths(answering, list, is_enough ? (count < limit ? count : limit) : 0);
    for (size_t i = 0; is_enough && i < count && i < limit; i++) {
        put_compared(answering, &list[i]);
    }
    ml_json_close(json, ']');
    free(list);
}

/* ---- one report */

/* The stacks of its rows, which are asked for twice: their texts are not kept. */
static void expect_paths_of_rows(struct ml_answering *answering) {
    const uint64_t limit = ml_ask_limit(answering->question);
    int64_t *ids = calloc(limit, sizeof(*ids));
    struct ml_store_rows *rows = ml_answering_find(answering, ML_SQL_ROWS, 0);
    size_t count = 0;
    if (ids == NULL) {
        answering->status = ML_ENV_MEMORY;
    }
    while (ids != NULL && count < limit && ml_store_rows_next(rows)) {
        ids[count++] = ml_store_rows_id(rows, 0);
    }
    ml_store_rows_end(rows);
    ml_answering_expect(answering, ML_SQL_PATH, ids, count);
    free(ids);
}

void ml_answer_report(struct ml_answering *answering) {
    struct ml_json *json = &answering->json;
    expect_paths_of_rows(answering);
    struct ml_store_rows *rows = ml_answering_find(answering, ML_SQL_ROWS, 0);
    ml_json_open_member(json, "rows", '[');
    while (ml_store_rows_next(rows)) {
        static const struct {
            const char *name;
            uint64_t told;
        } figures[] = {
            {"live_bytes", MEMLOG_FLEET_TOLD_LIVE},
            {"live_blocks", MEMLOG_FLEET_TOLD_LIVE},
            {"peak_bytes", MEMLOG_FLEET_TOLD_PEAK},
            {"peak_blocks", MEMLOG_FLEET_TOLD_PEAK},
            {"total_bytes", MEMLOG_FLEET_TOLD_TOTAL},
            {"total_blocks", MEMLOG_FLEET_TOLD_TOTAL}};
        enum { FIRST_FIGURE = 5 };
        ml_json_open(json, '{');
        ml_json_string_member(json, "role", ml_store_rows_text(rows, 1));
        ml_json_string_member(json, "process", ml_store_rows_text(rows, 2));
        ml_json_string_member(json, "heap", ml_store_rows_text(rows, 3));
        ml_json_string_member(json, "type", ml_store_rows_text(rows, 4));
        for (int i = 0; i < 6; i++) {
            ml_json_key(json, figures[i].name);
            if ((answering->told & figures[i].told) != 0) {
                ml_json_number(json, ml_store_rows_number(rows, FIRST_FIGURE + i));
            } else {
                ml_json_null(json);
            }
        }
        ml_answering_path(answering, ml_store_rows_id(rows, 0));
        ml_json_close(json, '}');
    }
    ml_json_close(json, ']');
}

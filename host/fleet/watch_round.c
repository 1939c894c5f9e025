/* A round of a watch: the newest build of each program against the one before. Room: host. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "host/fleet/watch.h"

enum { PATH_BYTES = 6144, STACKS_MOST = 1000 };

/* The collector calls a stack different whose q is below this. */
static const double told_until_q = 0.2;
/* Of a dump. What a fleet can tell apart may be far less than anybody wants to hear of. */
static const double least_growth = 0.001, told_until_growth = 0.0005;

void ml_fleet_watch_rows_free(struct ml_fleet_watch_row *take_rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        json_decref(take_rows[i].program);
        json_decref(take_rows[i].before);
        json_decref(take_rows[i].after);
        json_decref(take_rows[i].grown);
    }
    free(take_rows);
}

/* NULL: it failed, with an error message. Owner: json_decref. */
static json_t *
ask(struct ml_fleet_watch *watch,
    const char *question,
    const char *const words[][2],
    struct ml_error_message *error) {
    char path[PATH_BYTES];
    const char *bytes = NULL;
    size_t count = 0;
    (void)snprintf(path, sizeof(path), "/api/v1/fleet/%s", question);
    for (size_t i = 0; words[i][0] != NULL; i++) {
        if (!ml_fleet_path_add(path, sizeof(path), words[i][0], words[i][1])) {
            ml_error_set(error, "a name is too long to be asked about");
            return NULL;
        }
    }
    return ml_fleet_client_ask(watch->collector, path, &bytes, &count, error) == ML_OK
               ? ml_fleet_answer_read(bytes, count, error)
               : NULL;
}

bool ml_fleet_watch_grew(const json_t *difference, bool was_told) {
    const double growth =
        ml_fleet_number(difference, "share_after") - ml_fleet_number(difference, "share_before");
    if (was_told) {
        return growth >= told_until_growth && ml_fleet_number(difference, "q") < told_until_q;
    }
    return growth >= least_growth && ml_fleet_is(difference, "differs");
}

/* Whether that stack was told of these builds. */
static bool was_told(
    const struct ml_fleet_watch *watch, const struct ml_fleet_watch_row *row, const json_t *one
) {
    const json_t *told = json_object_get(watch->state.told, json_string_value(row->program));
    if (strcmp(ml_fleet_text(told, "before"), ml_fleet_text(row->before, "build_id")) != 0 ||
        strcmp(ml_fleet_text(told, "after"), ml_fleet_text(row->after, "build_id")) != 0) {
        return false;
    }
    for (size_t i = 0; i < ml_fleet_count(told, "stacks"); i++) {
        if (json_equal(ml_fleet_element(told, "stacks", i), json_object_get(one, "stack"))) {
            return true;
        }
    }
    return false;
}

static void
judge(const struct ml_fleet_watch *watch, struct ml_fleet_watch_row *row, const json_t *diff) {
    row->dumps_before = (uint64_t)ml_fleet_number(diff, "dumps_before");
    row->dumps_after = (uint64_t)ml_fleet_number(diff, "dumps_after");
    if (ml_fleet_count(diff, "missing_shards") > 0) {
        row->outcome = ML_FLEET_WATCH_PARTIAL;
        return;
    }
    if (ml_fleet_is(diff, "too_few")) {
        row->outcome = ML_FLEET_WATCH_TOO_FEW;
        return;
    }
    row->grown = json_array();
    for (size_t i = 0; i < ml_fleet_count(diff, "stacks"); i++) {
        const json_t *one = ml_fleet_element(diff, "stacks", i);
        if (ml_fleet_watch_grew(one, was_told(watch, row, one))) {
            (void)json_array_append(row->grown, json_array_get(json_object_get(diff, "stacks"), i));
        }
    }
    row->outcome = json_array_size(row->grown) > 0 ? ML_FLEET_WATCH_GREW : ML_FLEET_WATCH_SAME;
}

static bool has_enough(const json_t *build) {
    enum { DUMPS_LEAST = 20 }; /* as the collector wants them */
    return ml_fleet_number(json_object_get(build, "control"), "dumps") >= DUMPS_LEAST;
}

/* The newest build, and the nearest before it that has dumps enough: one that lived for an hour is
 * nothing to compare with. What has no id may be many builds. */
static void choose_builds(struct ml_fleet_watch_row *row, const json_t *answer) {
    json_t *builds = json_object_get(answer, "builds");
    for (size_t i = 0; i < json_array_size(builds); i++) {
        json_t *one = json_array_get(builds, i);
        if (ml_fleet_text(one, "build_id")[0] == '\0') {
            continue;
        }
        if (row->after == NULL) {
            row->after = json_incref(one);
        } else if (row->before == NULL || (!has_enough(row->before) && has_enough(one))) {
            json_decref(row->before);
            row->before = json_incref(one);
        }
    }
}

/* False: the collector did not answer. */
static bool compare(
    struct ml_fleet_watch *watch, struct ml_fleet_watch_row *row, struct ml_error_message *error
) {
    const char *program = json_string_value(row->program);
    const char *const of_builds[][2] = {{"program", program}, {"limit", "10000"}, {NULL, NULL}};
    json_t *builds = ask(watch, "builds", of_builds, error);
    if (builds == NULL) {
        return false;
    }
    choose_builds(row, builds);
    const bool is_partial = ml_fleet_count(builds, "missing_shards") > 0;
    json_decref(builds);
    if (row->before == NULL || is_partial) {
        row->outcome = is_partial ? ML_FLEET_WATCH_PARTIAL : ML_FLEET_WATCH_ONE_BUILD;
        return true;
    }
    char limit[16];
    (void)snprintf(limit, sizeof(limit), "%d", STACKS_MOST);
    const char *const of_diff[][2] = {
        {"program", program},
        {"build", ml_fleet_text(row->before, "build_id")},
        {"other", ml_fleet_text(row->after, "build_id")},
        {"limit", limit},
        {NULL, NULL}};
    json_t *diff = ask(watch, "diff", of_diff, error);
    if (diff != NULL) {
        judge(watch, row, diff);
    }
    json_decref(diff);
    return diff != NULL;
}

/* All programs of an answer, or the one that is watched. Returns how many could not be asked about,
 * with an error message of the first. */
static size_t compare_all(
    struct ml_fleet_watch *watch,
    const json_t *programs,
    struct ml_fleet_watch_row *rows,
    size_t *out_count,
    struct ml_error_message *error
) {
    enum { FAILURES_MOST = 3 }; /* each may have waited for minutes */
    const char *only = watch->options->program;
    size_t failures = 0;
    for (size_t i = 0; i < json_array_size(programs) && failures < FAILURES_MOST; i++) {
        json_t *program = json_object_get(json_array_get(programs, i), "program");
        const char *name = json_string_value(program);
        if (name == NULL || name[0] == '\0' || (only != NULL && strcmp(only, name) != 0)) {
            continue;
        }
        struct ml_fleet_watch_row *row = &rows[(*out_count)++];
        *row = (struct ml_fleet_watch_row){.program = json_incref(program)};
        if (!compare(watch, row, error)) {
            row->outcome = ML_FLEET_WATCH_FAILED;
            failures++;
        }
    }
    return failures;
}

bool ml_fleet_watch_round(struct ml_fleet_watch *watch, struct ml_error_message *error) {
    const char *const words[][2] = {{"limit", "10000"}, {NULL, NULL}};
    json_t *answer = ask(watch, "programs", words, error);
    const json_t *programs = json_object_get(answer, "programs");
    struct ml_fleet_watch_row *rows = calloc(json_array_size(programs) + 1, sizeof(*rows));
    size_t count = 0;
    size_t failures = 0;
    if (answer != NULL && rows != NULL) {
        failures = compare_all(watch, programs, rows, &count, error);
        ml_fleet_watch_rows_free(watch->rows, watch->rows_count);
        watch->rows = rows;
        watch->rows_count = count;
    } else {
        free(rows);
        ml_error_set(error, "no memory");
    }
    const bool done = answer != NULL && rows != NULL && failures == 0;
    json_decref(answer);
    return done;
}

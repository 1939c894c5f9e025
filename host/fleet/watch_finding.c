/* What a watch tells: findings as JSON, and in words. Room: host. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "host/fleet/watch.h"

enum { TEXT_BYTES = 4096, ID_BYTES = 17 };

/* "1.4 (dddd3333eeee)". */
static void put_build(const json_t *build, char *out, size_t out_bytes) {
    char id[ML_FLEET_CELL_BYTES];
    char version[ML_FLEET_NAME_BYTES];
    const char *told = ml_fleet_text(build, "version");
    (void)ml_fleet_build(ml_fleet_text(build, "build_id"), id);
    if (told[0] == '\0') {
        (void)snprintf(out, out_bytes, "%s", id);
    } else {
        (void)snprintf(out, out_bytes, "%s (%s)", ml_fleet_name(told, version), id);
    }
}

/* "leak 8.1 % -> 26.1 % of a dump". */
static void put_growth(const json_t *one, char *out, size_t out_bytes) {
    char name[ML_FLEET_NAME_BYTES];
    char before[ML_FLEET_CELL_BYTES];
    char after[ML_FLEET_CELL_BYTES];
    const size_t count = ml_fleet_count(one, "frames");
    (void)snprintf(
        out,
        out_bytes,
        "%s %s -> %s of a dump",
        ml_fleet_frame(count > 0 ? ml_fleet_element(one, "frames", count - 1) : NULL, name),
        ml_fleet_share(ml_fleet_number(one, "share_before"), before),
        ml_fleet_share(ml_fleet_number(one, "share_after"), after)
    );
}

static void
say_grown(const struct ml_fleet_watch_row *row, const char *builds, char *out, size_t out_bytes) {
    char growth[TEXT_BYTES];
    char program[ML_FLEET_NAME_BYTES];
    const size_t count = json_array_size(row->grown);
    const json_t *most = json_array_get(row->grown, 0);
    for (size_t i = 1; i < count; i++) {
        const json_t *one = json_array_get(row->grown, i);
        const double growth_of_one =
            ml_fleet_number(one, "share_after") - ml_fleet_number(one, "share_before");
        if (growth_of_one >
            ml_fleet_number(most, "share_after") - ml_fleet_number(most, "share_before")) {
            most = one;
        }
    }
    put_growth(most, growth, sizeof(growth));
    const int written = snprintf(
        out,
        out_bytes,
        "%s: GREW %s: %s",
        ml_fleet_name(json_string_value(row->program), program),
        builds,
        growth
    );
    if (count > 1 && written > 0 && (size_t)written < out_bytes) {
        (void)snprintf(out + written, out_bytes - (size_t)written, ", and %zu more", count - 1);
    }
}

void ml_fleet_watch_say(const struct ml_fleet_watch_row *row, char *out, size_t out_bytes) {
    char program[ML_FLEET_NAME_BYTES];
    char sides[2][ML_FLEET_NAME_BYTES + ML_FLEET_CELL_BYTES + 4];
    char builds[2 * sizeof(sides[0]) + 24];
    (void)ml_fleet_name(json_string_value(row->program), program);
    put_build(row->before, sides[0], sizeof(sides[0]));
    put_build(row->after, sides[1], sizeof(sides[1]));
    (void)snprintf(builds, sizeof(builds), "from %s to %s", sides[0], sides[1]);
    switch (row->outcome) {
    case ML_FLEET_WATCH_FAILED:
        (void)snprintf(out, out_bytes, "%s: no verdict: the collector did not answer", program);
        break;
    case ML_FLEET_WATCH_ONE_BUILD:
        (void)snprintf(out, out_bytes, "%s: one build, nothing to compare", program);
        break;
    case ML_FLEET_WATCH_TOO_FEW:
        (void)snprintf(
            out,
            out_bytes,
            "%s: too few %s: %" PRIu64 " and %" PRIu64 " dumps by chance, 20 a side are wanted",
            program,
            builds,
            row->dumps_before,
            row->dumps_after
        );
        break;
    case ML_FLEET_WATCH_PARTIAL:
        (void
        )snprintf(out, out_bytes, "%s: no verdict: a part of the store did not answer", program);
        break;
    case ML_FLEET_WATCH_SAME:
        (void)snprintf(out, out_bytes, "%s: nothing grew %s", program, builds);
        break;
    case ML_FLEET_WATCH_GREW:
        say_grown(row, builds, out, out_bytes);
        break;
    }
    ml_printable_clean(out); /* a long name may have been cut within a letter */
}

/* ---- findings */

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The stacks' ids, in order. Owner: json_decref. NULL: no memory. */
static json_t *ids_of(const json_t *grown) {
    const size_t count = json_array_size(grown);
    const char **ids = calloc(count + 1, sizeof(*ids));
    json_t *list = json_array();
    for (size_t i = 0; ids != NULL && i < count; i++) {
        ids[i] = ml_fleet_text(json_array_get(grown, i), "stack");
    }
    if (ids != NULL) {
        qsort(ids, count, sizeof(*ids), by_text);
    }
    for (size_t i = 0; ids != NULL && i < count; i++) {
        (void)json_array_append_new(list, json_string(ids[i]));
    }
    free(ids);
    return list;
}

static void hash_add(uint64_t *hash, const char *text) {
    for (;; text++) {
        *hash = (*hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3); /* FNV-1a */
        if (*text == '\0') {
            return;
        }
    }
}

static void id_of(const json_t *told, const char *program, char out_id[ID_BYTES]) {
    char number[24];
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    (void)snprintf(
        number,
        sizeof(number),
        "%" JSON_INTEGER_FORMAT,
        json_integer_value(json_object_get(told, "number"))
    );
    hash_add(&hash, program);
    hash_add(&hash, ml_fleet_text(told, "before"));
    hash_add(&hash, ml_fleet_text(told, "after"));
    hash_add(&hash, number);
    for (size_t i = 0; i < ml_fleet_count(told, "stacks"); i++) {
        const char *stack = json_string_value(ml_fleet_element(told, "stacks", i));
        hash_add(&hash, stack != NULL ? stack : "");
    }
    (void)snprintf(out_id, ID_BYTES, "%016" PRIx64, hash);
}

static json_t *side_of(const json_t *build, uint64_t dumps) {
    const json_t *control = json_object_get(build, "control");
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I}",
        "build_id",
        ml_fleet_text(build, "build_id"),
        "version",
        ml_fleet_text(build, "version"),
        "dumps",
        (json_int_t)dumps,
        "mean_live_bytes",
        (json_int_t)ml_fleet_number(control, "mean_live_bytes"),
        "mean_live_bytes_interval",
        (json_int_t)ml_fleet_number(control, "mean_live_bytes_interval")
    );
}

static json_t *stacks_of(const json_t *grown) {
    static const char *const members[] = {
        "stack", "share_before", "share_after", "z", "q", "frames"};
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(grown); i++) {
        const json_t *one = json_array_get(grown, i);
        json_t *stack = json_object();
        for (size_t j = 0; j < sizeof(members) / sizeof(members[0]); j++) {
            (void)json_object_set(stack, members[j], json_object_get(one, members[j]));
        }
        (void)json_array_append_new(list, stack);
    }
    return list;
}

/* Owner: json_decref. NULL: no memory. */
static json_t *
finding_of(const struct ml_fleet_watch_row *row, const json_t *told, uint64_t now_ms) {
    const char *program = json_string_value(row->program);
    char id[ID_BYTES];
    char text[TEXT_BYTES];
    id_of(told, program, id);
    ml_fleet_watch_say(row, text, sizeof(text));
    return json_pack(
        "{s:i, s:s, s:s, s:s, s:I, s:s, s:o, s:o, s:o}",
        "memlog_fleet_watch",
        1,
        "id",
        id,
        "verdict",
        row->outcome == ML_FLEET_WATCH_GREW ? "grew" : "no longer",
        "text",
        text,
        "time_ms",
        (json_int_t)now_ms,
        "program",
        program,
        "before",
        side_of(row->before, row->dumps_before),
        "after",
        side_of(row->after, row->dumps_after),
        "stacks",
        stacks_of(row->grown)
    );
}

/* Instead of an earlier one of the same builds that nobody has taken yet. */
static void put_pending(struct ml_fleet_watch *watch, json_t *take_finding) {
    json_t *pending = watch->state.pending;
    for (size_t i = json_array_size(pending); i > 0; i--) {
        const json_t *one = json_array_get(pending, i - 1);
        if (json_equal(json_object_get(one, "program"), json_object_get(take_finding, "program")) &&
            strcmp(
                ml_fleet_text(json_object_get(one, "after"), "build_id"),
                ml_fleet_text(json_object_get(take_finding, "after"), "build_id")
            ) == 0) {
            (void)json_array_remove(pending, i - 1);
        }
    }
    (void)json_array_append_new(pending, take_finding);
}

/* Whether what grew is other than what was told of these builds; then it is kept as told. */
static bool
note(struct ml_fleet_watch *watch, const struct ml_fleet_watch_row *row, uint64_t now_ms) {
    const char *program = json_string_value(row->program);
    const char *before = ml_fleet_text(row->before, "build_id");
    const char *after = ml_fleet_text(row->after, "build_id");
    const json_t *told = json_object_get(watch->state.told, program);
    const bool is_same_pair = strcmp(ml_fleet_text(told, "before"), before) == 0 &&
                              strcmp(ml_fleet_text(told, "after"), after) == 0;
    const json_int_t number =
        is_same_pair ? json_integer_value(json_object_get(told, "number")) : 0;
    json_t *stacks = ids_of(row->grown);
    /* What was found before there was a webhook is new to it. */
    const bool is_sent = watch->webhook == NULL || ml_fleet_is(told, "sent");
    const bool is_known =
        json_array_size(stacks) == 0
            ? !is_same_pair || ml_fleet_count(told, "stacks") == 0
            : is_same_pair && is_sent && json_equal(json_object_get(told, "stacks"), stacks);
    if (is_known) {
        json_decref(stacks);
        return false;
    }
    json_t *kept = json_pack(
        "{s:s, s:s, s:I, s:b, s:o}",
        "before",
        before,
        "after",
        after,
        "number",
        number + 1,
        "sent",
        watch->webhook != NULL,
        "stacks",
        stacks
    );
    (void)json_object_set_new(watch->state.told, program, kept);
    if (watch->webhook != NULL) {
        put_pending(watch, finding_of(row, kept, now_ms));
    }
    return true;
}

size_t ml_fleet_watch_note(struct ml_fleet_watch *watch, uint64_t now_ms) {
    size_t count = 0;
    for (size_t i = 0; i < watch->rows_count; i++) {
        const struct ml_fleet_watch_row *row = &watch->rows[i];
        const bool is_judged =
            row->outcome == ML_FLEET_WATCH_GREW || row->outcome == ML_FLEET_WATCH_SAME;
        if (is_judged && note(watch, row, now_ms)) {
            char text[TEXT_BYTES];
            count++;
            if (!watch->options->once && !watch->options->quiet) {
                ml_fleet_watch_say(row, text, sizeof(text));
                (void)puts(text);
            }
        }
    }
    (void)fflush(stdout);
    return count;
}

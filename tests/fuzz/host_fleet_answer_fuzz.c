/* What a collector answers, or whoever sits at its address: nothing of it moves a terminal,
 * whatever is missing, of another kind or out of order; and what is printed as JSON is the same
 * JSON. The first byte says of which question it is, the rest is the answer. */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/printable.h"
#include "base/utf8.h"
#include "host/fleet/answer.h"
#include "host/fleet/ask.h"
#include "host/fleet/watch.h"
#include "tests/fuzz/fuzz.h"

static void (*const shows[])(const struct ml_fleet_asked *, const json_t *, FILE *) = {
    ml_fleet_show_programs,
    ml_fleet_show_builds,
    ml_fleet_show_top,
    ml_fleet_show_flame,
    ml_fleet_show_diff,
    ml_fleet_show_hosts,
    ml_fleet_show_reports,
    ml_fleet_show_report,
};
enum { SHOWS = sizeof(shows) / sizeof(shows[0]) };

static void check_printable(const char *text, size_t count_bytes) {
    for (size_t at = 0; at < count_bytes;) {
        const size_t length = ml_utf8_length(text + at, count_bytes - at);
        REQUIRE(length > 0);
        REQUIRE(text[at] == '\n' || ml_printable(ml_utf8_character(text + at, length)));
        at += length;
    }
}

static void show(const json_t *answer, uint8_t how) {
    const struct ml_fleet_options options = {
        .program = (how & 64) != 0 ? "prog" : NULL,
        .metric = how % 3,
        .folded = (how & 128) != 0,
    };
    const struct ml_fleet_asked asked = {
        .options = &options, .build = "b1", .other = "b2", .again = " --at=http://127.0.0.1"};
    char *text = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&text, &count);
    REQUIRE(out != NULL);
    shows[how % SHOWS](&asked, answer, out);
    REQUIRE(fclose(out) == 0);
    check_printable(text, count);
    free(text);
}

/* As JSON it says the same, in letters that are printable but for blanks. */
static void put(const json_t *answer, const char *bytes, size_t count_bytes) {
    struct ml_error_message error = {.text = ""};
    char *text = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&text, &count);
    REQUIRE(out != NULL);
    ml_fleet_answer_put(out, bytes, count_bytes);
    REQUIRE(fclose(out) == 0);
    json_t *again = ml_fleet_answer_read(text, count, &error);
    REQUIRE(again != NULL && json_equal(again, answer));
    for (char *letter = text; letter < text + count; letter++) {
        *letter = *letter == '\t' || *letter == '\r' ? '\n' : *letter;
    }
    check_printable(text, count);
    json_decref(again);
    free(text);
}

/* A watch's line about what grew, of the answer to diff. */
static void say(json_t *answer) {
    char text[512];
    json_t *grown = json_array();
    for (size_t i = 0; i < ml_fleet_count(answer, "stacks"); i++) {
        const json_t *one = ml_fleet_element(answer, "stacks", i);
        if (ml_fleet_watch_grew(one, i % 2 == 0)) {
            (void)json_array_append(grown, json_array_get(json_object_get(answer, "stacks"), i));
        }
    }
    const struct ml_fleet_watch_row row = {
        .program = json_object_get(answer, "program"),
        .before = json_object_get(answer, "before"),
        .after = answer,
        .outcome = json_array_size(grown) > 0 ? ML_FLEET_WATCH_GREW : ML_FLEET_WATCH_SAME,
        .grown = grown,
    };
    if (json_is_string(row.program)) {
        ml_fleet_watch_say(&row, text, sizeof(text));
        check_printable(text, strlen(text));
    }
    json_decref(grown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    struct ml_error_message error = {.text = ""};
    const char *bytes = (const char *)data + 1;
    if (count_bytes < 2) {
        return 0;
    }
    json_t *answer = ml_fleet_answer_read(bytes, count_bytes - 1, &error);
    REQUIRE((answer == NULL) == (error.text[0] != '\0'));
    if (answer != NULL) {
        show(answer, data[0]);
        put(answer, bytes, count_bytes - 1);
        say(answer);
        json_decref(answer);
    }
    return 0;
}

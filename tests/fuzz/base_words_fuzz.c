/* Words of anybody's that people will read: a name, a label, a reason. Whatever form they are
 * written in is one line of UTF-8 that nobody acts upon, and cleaning it again changes nothing. */
#include <stdbool.h>
#include <string.h>

#include "base/csv.h"
#include "base/html.h"
#include "base/json_writer.h"
#include "base/metric_label.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "tests/fuzz/fuzz.h"

static void check(const char *text, size_t count_bytes) {
    for (size_t at = 0; at < count_bytes;) {
        const size_t count = ml_utf8_length(text + at, count_bytes - at);
        REQUIRE(count >= 1 && count <= 4 && count <= count_bytes - at);
        REQUIRE(ml_printable(ml_utf8_character(text + at, count)));
        at += count;
    }
}

static void put_json(FILE *out, const char *text) {
    struct ml_json json = ml_json_over(out);
    ml_json_string(&json, text);
}

/* Each form alone: what stands in it ends it nowhere but at its end. */
static void write_forms(const char *text) {
    static void (*const forms[])(FILE *, const char *) = {
        ml_printable_put_text, put_json, ml_csv_text, ml_html_text, ml_metric_label};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        char *written = NULL;
        size_t count = 0;
        FILE *out = open_memstream(&written, &count);
        REQUIRE(out != NULL);
        forms[i](out, text);
        REQUIRE(fclose(out) == 0);
        check(written, count);
        REQUIRE(forms[i] != ml_html_text || strpbrk(written, "<>\"'") == NULL);
        REQUIRE(forms[i] != ml_csv_text || strchr("=+-@", written[1]) == NULL);
        free(written);
    }
}

static void cut(const char *text) {
    const size_t columns = ml_printable_columns(text);
    for (size_t wanted = 0; wanted <= columns && wanted < 40; wanted++) {
        const size_t tail = ml_printable_tail(text, wanted);
        char *head = strndup(text, ml_printable_head(text, wanted));
        REQUIRE(head != NULL && ml_printable_columns(head) <= wanted);
        REQUIRE(tail <= strlen(text) && ml_printable_columns(text + tail) <= wanted);
        free(head);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t count_bytes) {
    char again[256];
    if (count_bytes == 0) {
        return 0;
    }
    /* Of its size exactly, so that one byte too many is seen. */
    const size_t room = 1 + data[0];
    char *out = malloc(room);
    REQUIRE(out != NULL);
    const size_t count = ml_printable_copy((const char *)data + 1, count_bytes - 1, out, room);
    REQUIRE(count < room && out[count] == '\0' && strlen(out) == count);
    check(out, count);
    REQUIRE(ml_printable_copy(out, count, again, sizeof(again)) == count);
    REQUIRE(memcmp(out, again, count) == 0);
    free(out);
    char *text = strndup((const char *)data + 1, count_bytes - 1);
    REQUIRE(text != NULL);
    write_forms(text);
    cut(text);
    ml_printable_clean(text);
    check(text, strlen(text));
    free(text);
    return 0;
}

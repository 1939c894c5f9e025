/* What the page's handlers answer with. Room: host. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/utf8.h"
#include "host/page/internal.h"

enum { ERROR_BYTES = 1024 };

struct ml_page_question *ml_page_ask(struct ml_page *page, struct ml_http_request *request) {
    struct ml_page_question *question = calloc(1, sizeof(*question));
    if (question == NULL) {
        ml_page_answer_error(request, 500, "no memory");
        return NULL;
    }
    *question = (struct ml_page_question){.page = page, .request = request};
    return question;
}

struct ml_http_request *ml_page_asked(struct ml_page_question *take_question) {
    struct ml_http_request *request =
        take_question->page->http != NULL ? take_question->request : NULL;
    free(take_question);
    return request;
}

void ml_page_answer_bytes(
    struct ml_http_request *request, const char *content_type, const void *bytes, size_t count
) {
    const struct ml_http_answer answer = {
        .status = 200,
        .content_type = content_type,
        .bytes = bytes,
        .bytes_count = count,
    };
    ml_http_answer(request, &answer);
}

void ml_page_answer_json(struct ml_http_request *request, unsigned status, json_t *take_json) {
    char *text = take_json != NULL ? json_dumps(take_json, JSON_COMPACT) : NULL;
    const struct ml_http_answer answer = {
        .status = text != NULL ? status : 500,
        .content_type = "application/json",
        .bytes = text != NULL ? text : "",
        .bytes_count = text != NULL ? strlen(text) : 0,
    };
    ml_http_answer(request, &answer);
    free(text);
    json_decref(take_json);
}

void ml_page_answer_error(
    struct ml_http_request *request, unsigned status, const char *format, ...
) {
    char text[ERROR_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    json_t *json = json_object();
    ml_page_set_text(json, "error", text);
    ml_page_answer_json(request, status, json);
}

json_t *ml_page_text(const char *bytes, size_t count) {
    json_t *text = json_stringn(count > 0 ? bytes : "", count);
    char *copy = text == NULL ? malloc(3 * count + 1) : NULL;
    size_t copied = 0;
    if (copy == NULL) {
        return text;
    }
    for (size_t at = 0; at < count;) {
        const size_t length = ml_utf8_length(bytes + at, count - at);
        const size_t copied_now = length > 0 ? length : 3;
        memcpy(copy + copied, length > 0 ? bytes + at : "\ufffd", copied_now);
        copied += copied_now;
        at += length > 0 ? length : 1;
    }
    text = json_stringn(copy, copied);
    free(copy);
    return text;
}

void ml_page_set_text(json_t *json, const char *name, const char *text) {
    (void)json_object_set_new(json, name, ml_page_text(text, strlen(text)));
}

void ml_page_set_number(json_t *json, const char *name, uint64_t value) {
    const uint64_t most = INT64_MAX;
    (void)json_object_set_new(json, name, json_integer((json_int_t)(value < most ? value : most)));
}

void ml_page_set_bool(json_t *json, const char *name, bool value) {
    (void)json_object_set_new(json, name, json_boolean(value));
}

bool ml_page_number_argument(
    struct ml_http_request *request, const char *name, uint64_t max, uint64_t *out_number
) {
    const char *text = ml_http_argument(request, name);
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    if (!ml_count_read(text, max, out_number)) {
        ml_page_answer_error(
            request, 400, "%s=%.40s: a whole number up to %" PRIu64 " is wanted", name, text, max
        );
        return false;
    }
    return true;
}

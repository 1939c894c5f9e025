/* /api/v1/upload and /api/v1/uploads: what leaves, at whose request, and how it went. Room: host.
 */
#include <stdlib.h>
#include <string.h>

#include "host/page/internal.h"
#include "host/upload/uploader.h"

/* A request that waits for an upload. */
struct sending {
    struct ml_page_question *question;
    struct ml_engine *engine;
    char path[PATH_MAX];
    bool waits; /* until it has arrived */
};

static json_t *text_of(struct ml_string text) {
    return ml_page_text(text.data, text.count_bytes);
}

static json_t *dump_of(const char *path) {
    json_t *answer = json_object();
    ml_page_set_text(answer, "file", basename(path));
    ml_page_set_text(answer, "path", path);
    return answer;
}

static void on_arrived(void *context, const char *trouble) {
    struct sending *sending = context;
    struct ml_http_request *request = ml_page_asked(sending->question);
    if (request != NULL && trouble[0] != '\0') {
        ml_page_answer_error(request, 502, "%s was not sent: %s", sending->path, trouble);
    } else if (request != NULL) {
        ml_page_answer_json(request, 200, dump_of(sending->path));
    }
    free(sending);
}

static void on_dumped(void *context, const char *path, bool complete, const char *trouble) {
    struct sending *sending = context;
    (void)complete;
    if (path[0] == '\0') {
        struct ml_http_request *request = ml_page_asked(sending->question);
        if (request != NULL) {
            ml_page_answer_error(request, 409, "no dump was taken: %s", trouble);
        }
        free(sending);
        return;
    }
    (void)snprintf(sending->path, sizeof(sending->path), "%s", path);
    if (sending->waits) {
        ml_uploader_submit(ml_engine_uploader(sending->engine), path, on_arrived, sending);
        return;
    }
    ml_uploader_submit(ml_engine_uploader(sending->engine), path, NULL, NULL);
    struct ml_http_request *request = ml_page_asked(sending->question);
    if (request != NULL) {
        ml_page_answer_json(request, 202, dump_of(path));
    }
    free(sending);
}

void ml_page_post_upload(struct ml_page *page, struct ml_http_request *request) {
    uint64_t wait = 0;
    if (ml_engine_uploader(page->engine) == NULL) {
        ml_page_answer_error(
            request, 409, "it was started without --upload=URL: nothing leaves this machine"
        );
        return;
    }
    struct ml_engine_dump_request wanted = {.reason = MEMLOG_SERVICE_DUMP_REASON_MANUAL};
    if (!ml_page_number_argument(request, "wait", 1, &wait) ||
        !ml_page_dump_request_of(request, &wanted)) {
        return;
    }
    struct sending *sending = calloc(1, sizeof(*sending));
    if (sending == NULL) {
        ml_page_answer_error(request, 500, "no memory");
        return;
    }
    sending->engine = page->engine;
    sending->waits = wait != 0;
    sending->question = ml_page_ask(page, request);
    if (sending->question == NULL) {
        free(sending);
        return;
    }
    ml_engine_request_dump(page->engine, &wanted, on_dumped, sending);
}

void ml_page_get_uploads(struct ml_page *page, struct ml_http_request *request) {
    struct memlog_host_uploads uploads = {.sent = 0};
    json_t *answer = json_object();
    json_t *history = json_array();
    if (ml_engine_uploader(page->engine) != NULL) {
        uploads = ml_uploader_figures(ml_engine_uploader(page->engine));
    }
    for (uint32_t i = 0; i < uploads.history.count; i++) {
        (void)json_array_append_new(history, text_of(uploads.history.items[i]));
    }
    (void)json_object_set_new(answer, "target", text_of(uploads.target));
    ml_page_set_number(answer, "sent", uploads.sent);
    ml_page_set_number(answer, "sent_bytes", uploads.sent_bytes);
    ml_page_set_number(answer, "retries", uploads.retries);
    ml_page_set_number(answer, "given_up", uploads.given_up);
    ml_page_set_number(answer, "refused", uploads.refused);
    ml_page_set_number(answer, "waiting", uploads.waiting);
    ml_page_set_number(answer, "next_ms", uploads.next_ms);
    (void)json_object_set_new(answer, "last_error", text_of(uploads.last_error));
    (void)json_object_set_new(answer, "history", history);
    ml_page_answer_json(request, 200, answer);
}

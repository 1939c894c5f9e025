/* The live page of a host inside a program. Room: host. */
#include "host/page/page.h"

#include <stdio.h>

#include "host/lib/internal.h"
#include "host/process/paths.h"

/* On the host's thread. */
static void open_page(struct memlog_host *host) {
    struct ml_error_message error = {.text = ""};
    const struct ml_page_setup setup = {
        .loop = host->loop,
        .engine = host->engine,
        .place = &host->page.place,
        .analyzer_path = host->page.analyzer_path,
        .inherited = &host->inherited,
        .on_helper = ml_host_add_helper,
        .context = host,
    };
    if (host->page.page != NULL) {
        ml_host_answer(host, "", "the page is open already");
        return;
    }
    enum ml_status status = ml_paths_find(ML_ANALYZER_FILE, host->page.analyzer_path, &error);
    if (status == ML_OK) {
        status = ml_page_open(&setup, &host->page.page, &error);
    }
    if (status == ML_OK) {
        ml_host_answer(host, ml_page_url(host->page.page), "");
    } else {
        ml_host_answer(host, "", error.text[0] != '\0' ? error.text : ml_status_text(status));
    }
}

int memlog_host_page(struct memlog_host *host, const char *place, char *url, size_t url_bytes) {
    struct ml_error_message error = {.text = ""};
    struct ml_page_place wanted = host->options.page;
    enum ml_status status = ML_OK;
    if (place != NULL || wanted.kind == ML_PAGE_NONE) {
        status = ml_page_place_parse(place, &wanted, &error);
    }
    if (status != ML_OK || !ml_page_place_allowed(&wanted, host->options.page_remote, &error)) {
        if (url_bytes > 0) {
            (void)snprintf(url, url_bytes, "%s", error.text);
        }
        return -1;
    }
    host->page.place = wanted;
    host->page.open = open_page;
    host->page.close = ml_page_close;
    host->page.free = ml_page_free;
    return ml_host_ask(host, ML_HOST_PAGE, url, url_bytes);
}

#include "host/page/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/page/assets.h"
#include "host/page/internal.h"
#include "host/http/listen.h"

/* ---- routes */

static void get_health(struct ml_page *page, struct ml_http_request *request) {
    static const char fine[] = "ok\n";
    (void)page;
    ml_page_answer_bytes(request, "text/plain; charset=utf-8", fine, sizeof(fine) - 1);
}

static void get_pprof_index(struct ml_page *page, struct ml_http_request *request) {
    static const char text[] =
        "<!DOCTYPE html><html lang=\"en\"><title>memlog: /debug/pprof/</title>\n"
        "<h1>/debug/pprof/</h1>\n"
        "<ul><li><a href=\"heap\">heap</a>: who holds the memory now\n"
        "<li><a href=\"allocs\">allocs</a>: who ever allocated it\n"
        "<li><a href=\"heap?debug=1\">heap?debug=1</a>: as text</ul>\n"
        "<p>pid=PID is one process, seconds=N is what changes in N seconds.</html>\n";
    (void)page;
    ml_page_answer_bytes(request, "text/html; charset=utf-8", text, sizeof(text) - 1);
}

/* An open route needs no token, a live one needs a run that goes on. In `path` a star stands for
 * one part. */
struct route {
    const char *method;
    const char *path;
    ml_page_handler *handler;
    bool is_open;
    bool is_live;
};

static const struct route routes[] = {
    {"GET", "/healthz", get_health, true, false},
    {"GET", "/metrics", ml_page_get_metrics, false, true},
    {"GET", "/api/v1/session", ml_page_get_session, false, false},
    {"GET", "/api/v1/processes", ml_page_get_processes, false, false},
    {"POST", "/api/v1/processes/*/start", ml_page_post_start, false, true},
    {"POST", "/api/v1/processes/*/stop", ml_page_post_stop, false, true},
    {"GET", "/api/v1/dumps", ml_page_get_dumps, false, false},
    {"POST", "/api/v1/dumps", ml_page_post_dumps, false, true},
    {"GET", "/api/v1/dumps/*", ml_page_get_dump, false, false},
    {"POST", "/api/v1/upload", ml_page_post_upload, false, true},
    {"GET", "/api/v1/uploads", ml_page_get_uploads, false, true},
    {"GET", "/api/v1/profile", ml_page_get_profile, false, false},
    {"GET", "/api/v1/diff", ml_page_get_diff, false, false},
    {"GET", "/api/v1/memory", ml_page_get_memory, false, false},
    {"GET", "/api/v1/memory/history", ml_page_get_memory_history, false, true},
    {"GET", "/api/v1/memory/stacks", ml_page_get_memory_stacks, false, false},
    {"GET", "/api/v1/suspects", ml_page_get_suspects, false, false},
    {"GET", "/api/v1/timeline", ml_page_get_timeline, false, false},
    {"GET", "/api/v1/events", ml_page_get_events, false, true},
    {"GET", "/debug/pprof/", get_pprof_index, false, false},
    {"GET", "/debug/pprof/heap", ml_page_get_pprof_heap, false, false},
    {"GET", "/debug/pprof/allocs", ml_page_get_pprof_allocs, false, false},
};
enum { ROUTES = sizeof(routes) / sizeof(routes[0]) };

/* Whether a path is of that form. */
static bool path_matches(const char *pattern, const char *path) {
    const char *star = strchr(pattern, '*');
    if (star == NULL) {
        return strcmp(pattern, path) == 0;
    }
    const size_t before = (size_t)(star - pattern);
    if (strncmp(pattern, path, before) != 0) {
        return false;
    }
    const size_t count = strcspn(path + before, "/");
    return count > 0 && count < ML_PAGE_WORD_BYTES && strcmp(path + before + count, star + 1) == 0;
}

/* HEAD is a GET whose answer's body is left out. */
static const char *method_of(const struct ml_http_request *request) {
    const char *method = ml_http_method(request);
    return strcmp(method, "HEAD") == 0 ? "GET" : method;
}

/* The route of a request. NULL: none; out_allow says what its path may be asked by, or "". */
static const struct route *find_route(const struct ml_http_request *request, char out_allow[32]) {
    out_allow[0] = '\0';
    for (size_t i = 0; i < ROUTES; i++) {
        if (path_matches(routes[i].path, ml_http_path(request))) {
            if (strcmp(routes[i].method, method_of(request)) == 0) {
                return &routes[i];
            }
            const size_t at = strlen(out_allow);
            (void)snprintf(out_allow + at, 32 - at, "%s%s", at > 0 ? ", " : "", routes[i].method);
        }
    }
    return NULL;
}

/* ---- who may ask */

static struct ml_page_claim claim_of(const struct ml_http_request *request) {
    return (struct ml_page_claim){
        .host = ml_http_header(request, "Host"),
        .authorization = ml_http_header(request, "Authorization"),
        .query_token = ml_http_argument(request, "token"),
        .cookies = ml_http_header(request, "Cookie"),
        .origin = ml_http_header(request, "Origin"),
        .fetch_site = ml_http_header(request, "Sec-Fetch-Site"),
        .page_token = ml_http_header(request, "X-Memlog-Page"),
    };
}

static void refuse(struct ml_http_request *request, unsigned status, const char *text) {
    ml_page_answer_error(request, status, "%s", text);
}

/* A person without the right token gets a page to read, a program gets JSON. */
static void refuse_token(struct ml_http_request *request, bool is_visit) {
    static const char text[] = "<!DOCTYPE html><html lang=\"en\"><title>memlog</title>\n"
                               "<h1>memlog</h1>\n"
                               "<p>This address has no token, or that of another run.\n"
                               "<p>Open the address that memlog printed when this run began:\n"
                               "<code>memlog: page: http://...</code></html>\n";
    const char *accept = ml_http_header(request, "Accept");
    const struct ml_http_answer answer = {
        .status = 401,
        .content_type = "text/html; charset=utf-8",
        .bytes = text,
        .bytes_count = sizeof(text) - 1,
    };
    if (is_visit && accept != NULL && strstr(accept, "text/html") != NULL) {
        ml_http_answer(request, &answer);
        return;
    }
    refuse(
        request,
        401,
        "no token: open the address that memlog printed, or send it as Authorization: token T"
    );
}

static bool is_too_long(const struct ml_http_request *request) {
    const char *length = ml_http_header(request, "Content-Length");
    return length != NULL && (strlen(length) > 9 || atoi(length) > ML_HTTP_BODY_BYTES);
}

/* Whatever the head alone can decide is refused here, so that nothing of a stranger's goes further.
 */
static void on_head(void *context, struct ml_http_request *request) {
    struct ml_page *page = context;
    const struct ml_page_claim claim = claim_of(request);
    const char *path = ml_http_path(request);
    const bool is_get = strcmp(method_of(request), "GET") == 0;
    char allow[32];
    if (!ml_page_guard_knows_host(&page->guard, claim.host)) {
        refuse(request, 421, "the Host header names somebody else");
        return;
    }
    const struct route *route = find_route(request, allow);
    if (is_too_long(request)) {
        refuse(request, 413, "no request of this server has a body of that size");
        return;
    }
    if (route != NULL && route->is_open) {
        return;
    }
    const enum ml_page_proof proof = ml_page_guard_proof(&page->guard, &claim);
    if (proof == ML_PAGE_PROOF_NONE) {
        refuse_token(request, is_get && strcmp(path, "/") == 0);
        return;
    }
    /* Following a link to the page from another site is allowed. Nothing else may be asked from
     * another site in the visitor's name. */
    const bool is_visit = is_get && strcmp(path, "/") == 0;
    const bool trusts_browser = proof == ML_PAGE_PROOF_COOKIE || !is_get;
    if (trusts_browser && !is_visit && !ml_page_guard_is_own_site(&page->guard, &claim)) {
        refuse(request, 403, "another site may not ask for this");
        return;
    }
    if (!is_get && !ml_page_guard_may_act(&page->guard, &claim)) {
        refuse(request, 403, "a cookie alone may not act: X-Memlog-Page is wanted, too");
    }
}

/* ---- what is answered */

static void serve_asset(
    struct ml_page *page, struct ml_http_request *request, const struct ml_http_asset *asset
) {
    char cookie[ML_PAGE_TOKEN_BYTES + ML_PAGE_COOKIE_NAME_BYTES + 64];
    const bool is_visit = strcmp(asset->path, "/") == 0;
    (void)snprintf(
        cookie,
        sizeof(cookie),
        "%s=%s; Path=/; HttpOnly; SameSite=Strict",
        page->guard.cookie,
        page->guard.token
    );
    ml_http_asset_answer(request, asset, is_visit ? cookie : NULL);
}

static void answer_not_allowed(struct ml_http_request *request, const char *allow) {
    static const char text[] = "{\"error\":\"not by this method\"}";
    const struct ml_http_answer answer = {
        .status = 405,
        .content_type = "application/json",
        .bytes = text,
        .bytes_count = sizeof(text) - 1,
        .allow = allow,
    };
    ml_http_answer(request, &answer);
}

static void on_request(void *context, struct ml_http_request *request) {
    struct ml_page *page = context;
    const char *path = ml_http_path(request);
    char allow[32];
    const struct route *route = find_route(request, allow);
    const struct ml_http_asset *asset = ml_http_asset_find(ml_page_assets, path);
    if (route != NULL && route->is_live && page->engine == NULL) {
        ml_page_answer_error(request, 409, "the run has ended: there are only its dumps");
    } else if (route != NULL) {
        route->handler(page, request);
    } else if (asset != NULL && strcmp(method_of(request), "GET") == 0) {
        serve_asset(page, request, asset);
    } else if (allow[0] != '\0' || asset != NULL) {
        answer_not_allowed(request, allow[0] != '\0' ? allow : "GET");
    } else {
        ml_page_answer_error(request, 404, "there is nothing at %.200s", path);
    }
}

/* ---- birth and end */

static enum ml_status open_server(struct ml_page *page, struct ml_error_message *error) {
    struct ml_page_place place = *page->setup.place;
    int fd = -1;
    enum ml_status status = ml_page_listen(&place, &fd, error);
    if (status != ML_OK) {
        return status;
    }
    status = ml_page_guard_init(&page->guard, &place);
    if (status != ML_OK) {
        ml_error_set(error, "no random bytes for the page's token: %s", strerror(errno));
        (void)close(fd);
        return status;
    }
    ml_page_guard_url(&page->guard, page->url);
    const struct ml_http_setup setup = {
        .loop = page->setup.loop,
        .take_listen_fd = fd,
        .on_head = on_head,
        .on_request = on_request,
        .context = page,
    };
    return ml_http_open(&setup, &page->http, error);
}

enum ml_status ml_page_open(
    const struct ml_page_setup *setup, struct ml_page **out_page, struct ml_error_message *error
) {
    struct ml_page *page = calloc(1, sizeof(*page));
    if (page == NULL) {
        return ML_ENV_MEMORY;
    }
    page->setup = *setup;
    page->engine = setup->engine;
    ml_page_snapshot_init(&page->profile, page, MEMLOG_SERVICE_DUMP_CONTENT_PROFILE);
    ml_page_snapshot_init(&page->series, page, MEMLOG_SERVICE_DUMP_CONTENT_SERIES);
    ml_page_snapshot_init(&page->growth, page, MEMLOG_SERVICE_DUMP_CONTENT_GROWTH);
    ml_page_memory_init(page);
    ml_page_events_init(page);
    const struct ml_analyzer_setup analyzer_setup = {
        .loop = setup->loop,
        .path = setup->analyzer_path,
        .inherited = setup->inherited,
        .on_helper = setup->on_helper,
        .context = setup->context,
    };
    enum ml_status status = ml_analyzer_open(&analyzer_setup, &page->analyzer);
    if (status == ML_OK) {
        status = open_server(page, error);
    }
    if (status != ML_OK) {
        ml_page_close(page);
        ml_page_free(page);
        return status;
    }
    *out_page = page;
    return ML_OK;
}

void ml_page_close(struct ml_page *page) {
    if (page == NULL) {
        return;
    }
    struct ml_http *http = page->http;
    page->http = NULL; /* callbacks find that no request waits any more */
    ml_http_close(http);
    ml_analyzer_close(page->analyzer);
    page->analyzer = NULL;
    if (http != NULL) {
        ml_page_unlisten(&page->guard.place);
    }
}

void ml_page_free(struct ml_page *take_page) {
    if (take_page == NULL) {
        return;
    }
    ml_page_snapshot_fini(&take_page->profile); /* calls analyses back */
    ml_page_snapshot_fini(&take_page->series);
    ml_page_memory_fini(take_page);
    ml_page_analyses_fini(take_page);
    ml_page_events_fini(take_page);
    free(take_page);
}

const char *ml_page_url(const struct ml_page *page) {
    return page->url;
}

/* What the analyzer makes of a dump for the page and for pprof. The host hands descriptors on and
 * reads nothing. Room: host. */
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host/page/internal.h"
#include "host/process/loop.h"

#include "base/descriptor.h"

enum { SECONDS_MAX = 3600, ARGUMENT_BYTES = 64, FILE_NAME_BYTES = NAME_MAX + 64 };

/* Points of each series unless more or fewer are asked for: a chart's width. What changed: the
 * first so many, and the last. */
enum { TIMELINE_POINTS = 600, TIMELINE_POINTS_MAX = 10000, TIMELINE_CHANGES = 25 };

/* Of the year 9999. */
#define TIME_MAX_MS UINT64_C(253402300799999)
#define TIME_MAX_BYTES 40

/* A request that the analyzer answers from one or two dumps. */
struct ml_page_analysis {
    struct ml_page *page;
    struct ml_http_request *request;
    struct ml_page_snapshot *now; /* the kind of snapshot that is used when no dump is named */
    char words[ML_ANALYZER_ARGUMENTS_MAX][ARGUMENT_BYTES];
    size_t words_count;
    const char *content_type;
    char file_name[FILE_NAME_BYTES]; /* the name that a browser saves it as; "": it does not */
    int fds[2];                      /* the dump and the one that it is compared with; -1: none */
    double wait_s;                   /* between the two */
    ev_timer timer;
    LIST_ENTRY(ml_page_analysis) links;
};

static void free_analysis(struct ml_page_analysis *analysis) {
    LIST_REMOVE(analysis, links);
    ev_timer_stop(analysis->page->setup.loop, &analysis->timer);
    for (size_t i = 0; i < 2; i++) {
        ml_descriptor_close(&analysis->fds[i]);
    }
    free(analysis);
}

static void fail(struct ml_page_analysis *analysis, unsigned status, const char *trouble) {
    if (analysis->page->http != NULL) {
        ml_page_answer_error(analysis->request, status, "%s", trouble);
    }
    free_analysis(analysis);
}

static void on_analyzed(
    void *context,
    enum ml_analyzer_verdict verdict,
    int take_file_fd,
    uint64_t file_bytes,
    const char *trouble
) {
    struct ml_page_analysis *analysis = context;
    if (take_file_fd < 0) {
        /* Asking for what a dump lacks is the client's mistake, a failed analyzer is not. */
        fail(analysis, verdict == ML_ANALYZER_LACKING ? 404 : 503, trouble);
        return;
    }
    char disposition[FILE_NAME_BYTES + 32];
    (void
    )snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"", analysis->file_name);
    const struct ml_http_answer answer = {
        .status = 200,
        .content_type = analysis->content_type,
        .is_file = true,
        .take_file_fd = take_file_fd,
        .file_bytes = file_bytes,
        .disposition = analysis->file_name[0] != '\0' ? disposition : NULL,
    };
    if (analysis->page->http != NULL) {
        ml_http_answer(analysis->request, &answer);
    } else {
        (void)close(take_file_fd);
    }
    free_analysis(analysis);
}

void ml_page_analyses_fini(struct ml_page *page) {
    struct ml_page_analysis *next = LIST_FIRST(&page->analyses);
    while (next != NULL) {
        struct ml_page_analysis *one = next;
        next = LIST_NEXT(one, links);
        free_analysis(one);
    }
}

/* True. */
__attribute__((format(printf, 2, 3))) static bool
add_word(struct ml_page_analysis *analysis, const char *format, ...) {
    if (analysis->words_count < ML_ANALYZER_ARGUMENTS_MAX) {
        va_list values;
        va_start(values, format);
        (void)vsnprintf(analysis->words[analysis->words_count++], ARGUMENT_BYTES, format, values);
        va_end(values);
    }
    return true;
}

/* The analyzer's `command`; NULL: no memory, and it was answered. */
static struct ml_page_analysis *analysis_new(
    struct ml_page *page,
    struct ml_http_request *request,
    const char *content_type,
    const char *command
) {
    struct ml_page_analysis *analysis = calloc(1, sizeof(*analysis));
    if (analysis == NULL) {
        ml_page_answer_error(request, 500, "no memory");
        return NULL;
    }
    *analysis = (struct ml_page_analysis
    ){.page = page,
      .request = request,
      .now = &page->profile,
      .content_type = content_type,
      .fds = {-1, -1}};
    LIST_INSERT_HEAD(&page->analyses, analysis, links);
    (void)add_word(analysis, "%s", command);
    return analysis;
}

/* Both dumps are here. */
static void analyze(struct ml_page_analysis *analysis) {
    struct ml_analyzer_job job = {
        .first_fd = analysis->fds[0],
        .second_fd = analysis->fds[1],
        .on_done = on_analyzed,
        .context = analysis,
    };
    for (size_t i = 0; i < analysis->words_count; i++) {
        job.arguments[i] = analysis->words[i];
    }
    ml_analyzer_start(analysis->page->analyzer, &job);
}

void ml_page_convert(
    struct ml_page *page,
    struct ml_http_request *request,
    int file_fd,
    const char *const *arguments,
    const char *content_type,
    const char *file_name
) {
    struct ml_page_analysis *analysis = analysis_new(page, request, content_type, arguments[0]);
    if (analysis == NULL) {
        return;
    }
    for (size_t i = 1; arguments[i] != NULL; i++) {
        (void)add_word(analysis, "%s", arguments[i]);
    }
    (void)snprintf(analysis->file_name, sizeof(analysis->file_name), "%s", file_name);
    analysis->fds[0] = dup(file_fd);
    analyze(analysis);
}

/* ---- which dumps */

static void on_second(void *context, int fd, const char *trouble) {
    struct ml_page_analysis *analysis = context;
    if (fd < 0 || analysis->page->http == NULL) {
        fail(analysis, 503, trouble);
        return;
    }
    /* The first one is what it is compared with. */
    analysis->fds[1] = analysis->fds[0];
    analysis->fds[0] = dup(fd);
    analyze(analysis);
}

static void on_waited(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_page_analysis *analysis = watcher->data;
    ml_page_take_snapshot(analysis->now, on_second, analysis);
}

static void on_first(void *context, int fd, const char *trouble) {
    struct ml_page_analysis *analysis = context;
    if (fd < 0 || analysis->page->http == NULL) {
        fail(analysis, 503, trouble);
        return;
    }
    analysis->fds[0] = dup(fd);
    if (analysis->wait_s > 0.) {
        ml_timer_init(&analysis->timer, on_waited, analysis);
        ml_timer_start(analysis->page->setup.loop, &analysis->timer, analysis->wait_s);
        return;
    }
    analyze(analysis);
}

/* The newest state: a snapshot of a running engine. */
static bool is_now(const char *id) {
    return id == NULL || id[0] == '\0' || strcmp(id, "now") == 0;
}

/* Open the dump of that id. False: there is none, and it was answered. */
static bool open_side(struct ml_page_analysis *analysis, size_t side, const char *id) {
    char name[NAME_MAX + 1];
    analysis->fds[side] = ml_page_open_dump(analysis->page, id, name);
    if (analysis->fds[side] < 0) {
        ml_page_answer_error(
            analysis->request, 404, "there is no dump %.40s; /api/v1/dumps lists them", id
        );
    }
    return analysis->fds[side] >= 0;
}

/* Let the analyzer work on that dump, or on now. Nothing is done if what was asked for is not fine,
 * which was answered. */
static void start(struct ml_page_analysis *analysis, bool is_fine, const char *id) {
    if (analysis == NULL) {
        return;
    }
    (void)add_word(analysis, ML_ANALYZER_FIRST_PATH);
    if (is_fine && is_now(id) && analysis->page->engine != NULL) {
        ml_page_take_snapshot(analysis->now, on_first, analysis);
        return;
    }
    if (is_fine && !is_now(id) && open_side(analysis, 0, id)) {
        analyze(analysis);
        return;
    }
    if (is_fine && is_now(id)) {
        ml_page_answer_error(analysis->request, 400, "dump=: which? the run has ended");
    }
    free_analysis(analysis);
}

/* ---- what is asked for */

/* pid, role, metric and order of frames, as the analyzer's options. False: it was answered. */
static bool add_selection(struct ml_page_analysis *analysis) {
    struct ml_http_request *request = analysis->request;
    struct ml_error_message error = {.text = ""};
    enum memlog_service_role known = MEMLOG_SERVICE_ROLE_OTHER;
    const char *metric = ml_http_argument(request, "metric");
    const char *role = ml_http_argument(request, "role");
    const char *order = NULL;
    uint64_t pid = 0;
    if (!ml_page_number_argument(request, "pid", INT_MAX, &pid) ||
        !ml_page_order_argument(request, &order)) {
        return false;
    }
    if (metric != NULL && !ml_page_is_metric(metric)) {
        ml_page_answer_error(
            request,
            400,
            "metric=%.20s: live, peak, total, resident, waste or alone is wanted",
            metric
        );
        return false;
    }
    if (role != NULL && role[0] != '\0' && ml_role_parse(role, &known, &error) != ML_OK) {
        ml_page_answer_error(
            request, 400, "role=%.20s: browser, renderer, gpu, utility or other is wanted", role
        );
        return false;
    }
    (void)add_word(analysis, "--metric=%s", metric != NULL ? metric : "live");
    if (order != NULL) {
        (void)add_word(analysis, "--by=%s", order);
    }
    if (pid != 0) {
        (void)add_word(analysis, "--pid=%" PRIu64, pid);
    }
    if (role != NULL && role[0] != '\0') {
        (void)add_word(analysis, "--role=%s", role);
    }
    return true;
}

void ml_page_get_profile(struct ml_page *page, struct ml_http_request *request) {
    struct ml_page_analysis *analysis =
        analysis_new(page, request, "application/json", "page-data");
    const bool is_fine = analysis != NULL && add_selection(analysis);
    start(analysis, is_fine, ml_http_argument(request, "dump"));
}

void ml_page_get_dump_processes(
    struct ml_page *page, struct ml_http_request *request, const char *id
) {
    struct ml_page_analysis *analysis =
        analysis_new(page, request, "application/json", "page-data");
    start(analysis, analysis != NULL && add_word(analysis, "--processes"), id);
}

void ml_page_get_dump_memory(struct ml_page *page, struct ml_http_request *request) {
    struct ml_page_analysis *analysis =
        analysis_new(page, request, "application/json", "page-data");
    start(
        analysis,
        analysis != NULL && add_word(analysis, "--memory"),
        ml_http_argument(request, "dump")
    );
}

/* Names of components are words. */
static bool is_component(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz -";
    return text != NULL && text[0] >= 'a' && text[0] <= 'z' && strlen(text) < ARGUMENT_BYTES &&
           text[strspn(text, letters)] == '\0';
}

void ml_page_get_memory_stacks(struct ml_page *page, struct ml_http_request *request) {
    const char *component = ml_http_argument(request, "component");
    uint64_t pid = 0;
    if (!is_component(component)) {
        ml_page_answer_error(request, 400, "component=: the name of a component is wanted");
        return;
    }
    if (!ml_page_number_argument(request, "pid", INT_MAX, &pid)) {
        return;
    }
    struct ml_page_analysis *analysis =
        analysis_new(page, request, "text/plain; charset=utf-8", "expand");
    if (analysis != NULL && pid != 0) {
        (void)add_word(analysis, "--pid=%" PRIu64, pid);
    }
    start(
        analysis,
        analysis != NULL && add_word(analysis, "%s", component),
        ml_http_argument(request, "dump")
    );
}

void ml_page_get_diff(struct ml_page *page, struct ml_http_request *request) {
    const char *from = ml_http_argument(request, "from");
    if (is_now(from)) {
        ml_page_answer_error(request, 400, "from=: the id of a dump is wanted");
        return;
    }
    struct ml_page_analysis *analysis =
        analysis_new(page, request, "application/json", "page-data");
    const bool is_fine = analysis != NULL && add_selection(analysis) &&
                         add_word(analysis, "--before=%s", ML_ANALYZER_SECOND_PATH) &&
                         open_side(analysis, 1, from);
    start(analysis, is_fine, ml_http_argument(request, "to"));
}

/* A time: ms since 1970, or as memlog prints it (UTC), which the analyzer reads. False: an error
 * was answered. */
static bool add_moment(struct ml_page_analysis *analysis, const char *name, uint64_t *out_ms) {
    const char *text = ml_http_argument(analysis->request, name);
    *out_ms = 0;
    if (text == NULL || strpbrk(text, ":") == NULL) {
        if (!ml_page_number_argument(analysis->request, name, TIME_MAX_MS, out_ms)) {
            return false;
        }
        if (*out_ms != 0) {
            (void)add_word(analysis, "--%s=@%" PRIu64, name, *out_ms);
        }
        return true;
    }
    struct tm parts = {.tm_year = 0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    end = end != NULL ? end : strptime(text, "%H:%M:%S", &parts);
    if (end != NULL && *end == '.') {
        end += 1 + strspn(end + 1, "0123456789");
    }
    if (end == NULL || strcmp(end, "Z") != 0 || strlen(text) > TIME_MAX_BYTES) {
        ml_page_answer_error(
            analysis->request, 400, "%s=: ms since 1970, or a time as 2026-11-21T10:02:30Z", name
        );
        return false;
    }
    return add_word(analysis, "--%s=%s", name, text);
}

/* From when to when; how much of it. False: it was answered. */
static bool add_span(struct ml_page_analysis *analysis) {
    struct ml_http_request *request = analysis->request;
    uint64_t pid = 0;
    uint64_t from_ms = 0;
    uint64_t to_ms = 0;
    uint64_t points = TIMELINE_POINTS;
    uint64_t stacks = 0;
    if (!ml_page_number_argument(request, "pid", INT_MAX, &pid) ||
        !add_moment(analysis, "from", &from_ms) || !add_moment(analysis, "to", &to_ms) ||
        !ml_page_number_argument(request, "points", TIMELINE_POINTS_MAX, &points) ||
        !ml_page_number_argument(request, "stacks", 1, &stacks)) {
        return false;
    }
    if (points < 2) {
        ml_page_answer_error(request, 400, "points=%" PRIu64 ": two at least", points);
        return false;
    }
    if (to_ms != 0 && from_ms != 0 && from_ms >= to_ms) {
        ml_page_answer_error(request, 400, "from= is not before to=");
        return false;
    }
    (void)add_word(analysis, "--points=%" PRIu64, points);
    (void)add_word(analysis, "--limit=%d", TIMELINE_CHANGES);
    if (pid != 0) {
        (void)add_word(analysis, "--pid=%" PRIu64, pid);
    }
    if (stacks == 0) {
        (void)add_word(analysis, "--no-stacks");
    }
    return true;
}

void ml_page_get_timeline(struct ml_page *page, struct ml_http_request *request) {
    struct ml_page_analysis *analysis = analysis_new(page, request, "application/json", "timeline");
    const bool is_fine = analysis != NULL && add_word(analysis, "--json") && add_span(analysis);
    if (is_fine) {
        analysis->now = &page->series;
    }
    start(analysis, is_fine, ml_http_argument(request, "dump"));
}

void ml_page_get_suspects(struct ml_page *page, struct ml_http_request *request) {
    uint64_t pid = 0;
    if (!ml_page_number_argument(request, "pid", INT_MAX, &pid)) {
        return;
    }
    struct ml_page_analysis *analysis = analysis_new(page, request, "application/json", "suspects");
    if (analysis == NULL) {
        return;
    }
    (void)add_word(analysis, "--json");
    if (pid != 0) {
        (void)add_word(analysis, "--pid=%" PRIu64, pid);
    }
    analysis->now = &page->growth;
    start(analysis, true, ml_http_argument(request, "dump"));
}

/* ---- /debug/pprof */

static void get_pprof(
    struct ml_page *page, struct ml_http_request *request, const char *name, const char *metric
) {
    uint64_t pid = 0;
    uint64_t seconds = 0;
    uint64_t debug = 0;
    if (!ml_page_number_argument(request, "pid", INT_MAX, &pid) ||
        !ml_page_number_argument(request, "seconds", SECONDS_MAX, &seconds) ||
        !ml_page_number_argument(request, "debug", 2, &debug)) {
        return;
    }
    if (debug != 0 && seconds != 0) {
        ml_page_answer_error(
            request, 400, "seconds= goes without debug=: a text holds no difference"
        );
        return;
    }
    const char *type = debug != 0 ? "text/plain; charset=utf-8" : "application/octet-stream";
    struct ml_page_analysis *analysis = analysis_new(page, request, type, "convert");
    if (analysis == NULL) {
        return;
    }
    (void)add_word(analysis, "--to=%s", debug != 0 ? "heap" : "pprof");
    if (pid != 0) {
        (void)add_word(analysis, "--pid=%" PRIu64, pid);
    }
    if (debug == 0) {
        (void)add_word(analysis, "--metric=%s", metric);
        (void)snprintf(analysis->file_name, sizeof(analysis->file_name), "%s.pb.gz", name);
    }
    if (seconds != 0) {
        (void)add_word(analysis, "--before=%s", ML_ANALYZER_SECOND_PATH);
        analysis->wait_s = (double)seconds;
    }
    start(analysis, true, ml_http_argument(request, "dump"));
}

void ml_page_get_pprof_heap(struct ml_page *page, struct ml_http_request *request) {
    get_pprof(page, request, "heap", "live");
}

void ml_page_get_pprof_allocs(struct ml_page *page, struct ml_http_request *request) {
    get_pprof(page, request, "allocs", "total");
}

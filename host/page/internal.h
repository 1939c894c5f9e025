/* Private to the page: its parts, and what they call of one another. Room: host. */
#ifndef MEMLOG_HOST_PAGE_INTERNAL_H
#define MEMLOG_HOST_PAGE_INTERNAL_H

#include <limits.h>
#include <sys/queue.h>

#include <ev.h>
#include <jansson.h>

#include "host/engine/engine.h"
#include "host/analysis/analyzer.h"
#include "host/http/http.h"
#include "host/page/page.h"
#include "host/policy/page_guard.h"
#include "host/process/clock.h"

/* Of the part of a path that a star stands for, with a NUL. */
enum { ML_PAGE_WORD_BYTES = 64 };

struct ml_page_waiter;
struct ml_page_viewer;

/* The snapshot of one kind that the service is writing. */
struct ml_page_snapshot {
    struct ml_page *page;
    enum memlog_service_dump_content content;
    bool reads_memory;              /* of the processes, first */
    int fd;                         /* -1: none */
    struct ml_page_waiter *asked;   /* asked before it was begun: it answers these */
    struct ml_page_waiter *waiting; /* asked since: the next one answers these */
};

/* Viewers that follow the run: events.c. */
struct ml_page_events {
    LIST_HEAD(, ml_page_viewer) viewers;
    ev_timer timer;
    bool is_asking;              /* for figures */
    struct ml_page_shown *shown; /* of each member, by id - 1: what viewers know already */
    uint32_t shown_count;
    uint32_t missing_told; /* how many programs without memlog the viewers know */
};

/* What memory is made of, as the analyzer said it last: memory.c. */
enum ml_page_memory_form { ML_PAGE_MEMORY_JSON, ML_PAGE_MEMORY_METRICS, ML_PAGE_MEMORY_FORMS };

struct ml_page_memory_waiter;

struct ml_page_memory_answer {
    struct ml_page *page;
    const char *word; /* the analyzer's option */
    char *text;       /* the latest; NULL: none yet */
    size_t bytes;
    uint64_t begun_ns, taken_ns, fresh_until_ns; /* CLOCK_MONOTONIC */
    bool is_asking;
    SLIST_HEAD(, ml_page_memory_waiter) waiters;
};

struct ml_page_memory_kept {
    char *text;
    size_t bytes;
    uint64_t number; /* from 1 */
};

struct ml_page_memory {
    struct ml_page_memory_answer answers[ML_PAGE_MEMORY_FORMS];
    struct ml_page_snapshot snapshot; /* reads memory */
    struct ml_page_memory_kept *kept; /* for a chart, by number */
    size_t kept_count, kept_bytes;
    uint64_t last_number;
};

struct ml_page {
    struct ml_page_setup setup;
    struct ml_engine *engine;
    struct ml_page_guard guard;
    char url[ML_PAGE_URL_BYTES];
    struct ml_http *http;
    struct ml_analyzer *analyzer;
    struct ml_page_snapshot profile, series, growth; /* snapshot.c */
    struct ml_page_memory memory;
    struct ml_page_events events;
    LIST_HEAD(, ml_page_analysis) analyses; /* not answered yet */
};

/* A handler of one route. */
typedef void ml_page_handler(struct ml_page *page, struct ml_http_request *request);

/* A request that waits for the engine. The server may close before the answer is known. */
struct ml_page_question {
    struct ml_page *page;
    struct ml_http_request *request;
};

/* NULL: no memory, and it was answered. */
struct ml_page_question *ml_page_ask(struct ml_page *page, struct ml_http_request *request);

/* The answer is known: the request to answer. NULL: the server is closed. */
struct ml_http_request *ml_page_asked(struct ml_page_question *take_question);

/* answer.c: what handlers answer with. */
void ml_page_answer_json(struct ml_http_request *request, unsigned status, json_t *take_json);
void ml_page_answer_bytes(
    struct ml_http_request *request, const char *content_type, const void *bytes, size_t count
);
__attribute__((format(printf, 3, 4))) void
ml_page_answer_error(struct ml_http_request *request, unsigned status, const char *format, ...);

/* Values of JSON: a text, with question marks where it is no UTF-8, and a member. */
json_t *ml_page_text(const char *bytes, size_t count);
void ml_page_set_text(json_t *json, const char *name, const char *text);
void ml_page_set_number(json_t *json, const char *name, uint64_t value);
void ml_page_set_bool(json_t *json, const char *name, bool value);

/* A number among the request's arguments. False: an error was answered. `out_number` stays as it is
 * if there is no such argument. */
ML_NODISCARD bool ml_page_number_argument(
    struct ml_http_request *request, const char *name, uint64_t max, uint64_t *out_number
);

/* processes.c */
json_t *ml_page_process_row(
    const struct ml_engine_process *process, const struct memlog_service_client_figures *figures
);
const struct memlog_service_client_figures *
ml_page_figures_of(const struct memlog_service_figures_reply *reply, uint32_t id);
/* "lost_forks", "covered" and "uncovered" of the run as it is now, in the report's words. Without a
 * service `reply` is NULL. */
json_t *
ml_page_coverage(const struct ml_engine *engine, const struct memlog_service_figures_reply *reply);
json_t *ml_page_tree(const struct memlog_service_figures_reply *reply); /* NULL: all 0 */
/* Rows of the processes that are not recorded, the newest ones. */
json_t *ml_page_unrecorded(struct ml_engine *engine, uint32_t most);
json_t *ml_page_not_profiled(const struct ml_engine *engine);
ml_page_handler ml_page_get_processes;
ml_page_handler ml_page_post_start;
ml_page_handler ml_page_post_stop;
ml_page_handler ml_page_get_session;

/* dumps.c */
ml_page_handler ml_page_get_dumps;
ml_page_handler ml_page_get_dump;
ml_page_handler ml_page_post_dumps;

/* "live", "peak" or "total". */
bool ml_page_is_metric(const char *text);

/* by= of a request: the analyzer's words for orders of frames, as "type" and "backtrace,type"; NULL
 * without one. False: it is another word, and was answered. */
ML_NODISCARD bool ml_page_order_argument(struct ml_http_request *request, const char **out_order);

/* role= and reason= of a request for a dump. False: it was answered with an error. */
ML_NODISCARD bool
ml_page_dump_request_of(struct ml_http_request *request, struct ml_engine_dump_request *wanted);

/* uploads.c */
ml_page_handler ml_page_post_upload;
ml_page_handler ml_page_get_uploads;

/* The folder where dumps lie; "": there is none yet. */
const char *ml_page_folder(const struct ml_page *page);

/* Open the dump of that id; its file's name. -1: there is none. Owner: the caller's. */
int ml_page_open_dump(const struct ml_page *page, const char *id, char out_name[NAME_MAX + 1]);

/* profile.c: whatever the analyzer makes of a dump. */
ml_page_handler ml_page_get_profile;
ml_page_handler ml_page_get_timeline;
ml_page_handler ml_page_get_diff;

/* The processes of a dump, as the live ones. */
void ml_page_get_dump_processes(
    struct ml_page *page, struct ml_http_request *request, const char *id
);
/* What the memory of a dump's processes is made of. */
ml_page_handler ml_page_get_dump_memory;

/* Which functions grow steadily. */
ml_page_handler ml_page_get_suspects;

/* Whose stacks hold a component, as text for people. */
ml_page_handler ml_page_get_memory_stacks;

/* history.c: resident and private memory since the run's start. */
ml_page_handler ml_page_get_memory_history;
ml_page_handler ml_page_get_pprof_heap;
ml_page_handler ml_page_get_pprof_allocs;

/* Free the analyses that will not be called back. */
void ml_page_analyses_fini(struct ml_page *page);

/* Let the analyzer turn a file (borrowed) into an answer. */
void ml_page_convert(
    struct ml_page *page,
    struct ml_http_request *request,
    int file_fd,
    const char *const *arguments,
    const char *content_type,
    const char *file_name
);

/* snapshot.c */

void ml_page_snapshot_init(
    struct ml_page_snapshot *snapshot,
    struct ml_page *page,
    enum memlog_service_dump_content content
);

/* A fresh one, as a descriptor that is borrowed until the callback returns; -1 with why not. The
 * callback is called once, perhaps before this returns. */
void ml_page_take_snapshot(
    struct ml_page_snapshot *snapshot,
    void (*on_taken)(void *context, int fd, const char *trouble),
    void *context
);
void ml_page_snapshot_fini(struct ml_page_snapshot *snapshot);

/* memory.c */
typedef void ml_page_memory_ready(void *context, const char *trouble);
void ml_page_memory_init(struct ml_page *page);
void ml_page_memory_fini(struct ml_page *page); /* when the analyzer is closed */

/* Have an answer of this form that is fresh, or where there is one, an older one. `on_ready` is
 * called once, perhaps before this returns. */
void ml_page_memory_ask(
    struct ml_page *page,
    enum ml_page_memory_form form,
    bool takes_older,
    ml_page_memory_ready *on_ready,
    void *context
);

/* Whole families of Prometheus' text; "": none yet. */
const char *ml_page_memory_metrics(const struct ml_page *page);
ml_page_handler ml_page_get_memory;

/* metrics.c */
ml_page_handler ml_page_get_metrics;

/* events.c */
ml_page_handler ml_page_get_events;
void ml_page_events_init(struct ml_page *page);
void ml_page_events_fini(struct ml_page *page);

#endif

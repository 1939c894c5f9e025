/* /metrics: what Prometheus reads, in its own text format (0.0.4) or as OpenMetrics. Room: host. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_label.h"
#include "host/page/internal.h"

static const char prometheus_type[] = "text/plain; version=0.0.4; charset=utf-8";
static const char open_metrics_type[] =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

/* What is told of a process, or of the tree. */
struct subject {
    const struct ml_engine_process *process; /* NULL: the tree */
    const struct memlog_service_totals *totals;
    const struct memlog_service_client_figures *figures; /* NULL: of the tree, or not recorded */
    const struct memlog_service_figures_reply *reply;    /* NULL: of a process, or no answer */
};

static uint64_t live_bytes(const struct subject *s) {
    return s->totals->live_bytes;
}
static uint64_t live_blocks(const struct subject *s) {
    return s->totals->live_blocks;
}
static uint64_t left_bytes(const struct subject *s) {
    return s->reply != NULL ? s->reply->left_bytes : 0;
}
static uint64_t left_blocks(const struct subject *s) {
    return s->reply != NULL ? s->reply->left_blocks : 0;
}
static uint64_t peak_bytes(const struct subject *s) {
    return s->totals->peak_bytes;
}
static uint64_t total_bytes(const struct subject *s) {
    return s->totals->total_bytes;
}
static uint64_t total_blocks(const struct subject *s) {
    return s->totals->total_blocks;
}
static uint64_t resident_bytes(const struct subject *s) {
    return s->process->resident_bytes;
}
static uint64_t footprint_bytes(const struct subject *s) {
    return s->process->footprint_bytes;
}
static uint64_t recording(const struct subject *s) {
    return ml_recording_is_on(s->process->recording) ? 1 : 0;
}
static uint64_t covered(const struct subject *s) {
    return s->figures != NULL && s->figures->unseen.count_bytes == 0 ? 1 : 0;
}
static uint64_t events(const struct subject *s) {
    return s->figures != NULL ? s->figures->events : 0;
}
static uint64_t lost_events(const struct subject *s) {
    return s->figures != NULL ? s->figures->lost_events : 0;
}
static uint64_t waits(const struct subject *s) {
    return s->figures != NULL ? s->figures->waits : 0;
}

/* A family of figures. A counter's samples are called NAME_total. */
struct family {
    const char *name;
    bool is_counter;
    bool is_of_tree;
    uint64_t (*value)(const struct subject *subject);
    const char *help;
};

static const struct family families[] = {
    {"memlog_tree_live_bytes",
     false,
     true,
     live_bytes,
     "Requested bytes that are allocated and not freed, over all running processes."},
    {"memlog_tree_live_blocks",
     false,
     true,
     live_blocks,
     "Blocks that are allocated and not freed, over all running processes."},
    {"memlog_tree_left_bytes",
     false,
     true,
     left_bytes,
     "Requested bytes that processes held when they ended, or their recording was stopped."},
    {"memlog_tree_left_blocks",
     false,
     true,
     left_blocks,
     "Blocks that processes held when they ended, or their recording was stopped."},
    {"memlog_tree_peak_bytes",
     false,
     true,
     peak_bytes,
     "The most that all processes held at one moment."},
    {"memlog_tree_allocated_bytes",
     true,
     true,
     total_bytes,
     "Bytes that were ever allocated, over all processes."},
    {"memlog_tree_allocated_blocks",
     true,
     true,
     total_blocks,
     "Blocks that were ever allocated, over all processes."},
    {"memlog_process_recording", false, false, recording, "1 while the process is recorded."},
    {"memlog_process_live_bytes",
     false,
     false,
     live_bytes,
     "Requested bytes that the process has allocated and not freed."},
    {"memlog_process_live_blocks",
     false,
     false,
     live_blocks,
     "Blocks that the process has allocated and not freed."},
    {"memlog_process_peak_bytes",
     false,
     false,
     peak_bytes,
     "The most that the process held at one moment."},
    {"memlog_process_allocated_bytes",
     true,
     false,
     total_bytes,
     "Bytes that the process ever allocated."},
    {"memlog_process_allocated_blocks",
     true,
     false,
     total_blocks,
     "Blocks that the process ever allocated."},
    {"memlog_process_resident_bytes",
     false,
     false,
     resident_bytes,
     "Resident memory, as last read."},
    {"memlog_process_footprint_bytes",
     false,
     false,
     footprint_bytes,
     "Private memory with swap, as last read."},
    {"memlog_process_covered",
     false,
     false,
     covered,
     "1 while the process is recorded and nothing of its memory is known to go unseen."},
    {"memlog_process_events", true, false, events, "Allocations and frees that were recorded."},
    {"memlog_process_lost_events",
     true,
     false,
     lost_events,
     "Allocations and frees that are known to be lost."},
    {"memlog_process_waits",
     true,
     false,
     waits,
     "Times that a thread waited for room in its pipe."},
};

static void put_sample(FILE *out, const struct family *family, const struct subject *subject) {
    (void)fprintf(out, "%s%s", family->name, family->is_counter ? "_total" : "");
    if (subject->process != NULL) {
        (void)fprintf(
            out,
            "{id=\"%" PRIu32 "\",pid=\"%d\",role=\"%s\",name=\"",
            subject->process->id,
            (int)subject->process->pid,
            ml_role_name(subject->process->role)
        );
        ml_metric_label(out, subject->process->name);
        (void)fputs("\"}", out);
    }
    (void)fprintf(out, " %" PRIu64 "\n", family->value(subject));
}

static void put_family(
    FILE *out,
    const struct family *family,
    bool is_open,
    const struct ml_engine *engine,
    const struct memlog_service_figures_reply *reply
) {
    static const struct memlog_service_totals none = {.live_bytes = 0};
    /* OpenMetrics names the family, Prometheus' own format the samples. */
    const char *suffix = family->is_counter && !is_open ? "_total" : "";
    (void)fprintf(out, "# HELP %s%s %s\n", family->name, suffix, family->help);
    (void)fprintf(
        out, "# TYPE %s%s %s\n", family->name, suffix, family->is_counter ? "counter" : "gauge"
    );
    if (family->is_of_tree) {
        const struct subject tree = {
            .totals = reply != NULL ? &reply->tree : &none, .reply = reply};
        put_sample(out, family, &tree);
        return;
    }
    for (uint32_t i = 0; i < ml_engine_processes_count(engine); i++) {
        const struct ml_engine_process process = ml_engine_process(engine, i);
        const struct memlog_service_client_figures *figures =
            process.is_running ? ml_page_figures_of(reply, process.id) : NULL;
        const struct subject subject = {
            .process = &process,
            .totals = figures != NULL ? &figures->totals : &none,
            .figures = figures,
        };
        if (process.is_running) {
            put_sample(out, family, &subject);
        }
    }
}

static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_page_question *question = context;
    const struct ml_engine *engine = question->page->engine;
    struct ml_http_request *request = ml_page_asked(question);
    char *text = NULL;
    size_t count = 0;
    if (request == NULL) {
        return;
    }
    const char *accept = ml_http_header(request, "Accept");
    const bool is_open = accept != NULL && strstr(accept, "application/openmetrics-text") != NULL;
    FILE *out = open_memstream(&text, &count);
    if (out == NULL) {
        ml_page_answer_error(request, 500, "no memory");
        return;
    }
    (void)fprintf(
        out,
        "# HELP memlog_up 1 while the service records.\n# TYPE memlog_up gauge\nmemlog_up %d\n",
        status == ML_OK ? 1 : 0
    );
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        put_family(out, &families[i], is_open, engine, status == ML_OK ? reply : NULL);
    }
    ml_engine_put_metrics(out, engine, is_open);
    if (is_open) {
        (void)fputs("# EOF\n", out);
    }
    (void)fclose(out);
    ml_page_answer_bytes(request, is_open ? open_metrics_type : prometheus_type, text, count);
    free(text);
}

void ml_page_get_metrics(struct ml_page *page, struct ml_http_request *request, const char *word) {
    (void)word;
    struct ml_page_question *question = ml_page_ask(page, request);
    if (question != NULL) {
        ml_engine_figures(page->engine, on_figures, question);
    }
}

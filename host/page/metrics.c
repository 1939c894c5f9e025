/* /metrics: what Prometheus reads, in its own text format (0.0.4) or as OpenMetrics. Room: host. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_label.h"
#include "host/page/internal.h"

static const char prometheus_type[] = "text/plain; version=0.0.4; charset=utf-8";
static const char open_metrics_type[] =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

/* What a family's figure is a member of, or made of. */
enum source { OF_TREE, OF_FIGURES, OF_PROCESS, IS_RECORDED, IS_COVERED };

/* A family of figures. A counter's samples are called NAME_total. */
struct family {
    const char *name;
    bool is_counter;
    enum source source;
    size_t offset; /* of a uint64_t in what the source names */
    const char *help;
};

#define GAUGE(name) "memlog_" name, false
#define COUNTER(name) "memlog_" name, true
#define FIGURE(source, type, member)                                                               \
    source, offsetof(type, member) + _Generic(((type *)0)->member, uint64_t : 0)
#define TREE(member) FIGURE(OF_TREE, struct memlog_service_figures_reply, member)
#define CLIENT(member) FIGURE(OF_FIGURES, struct memlog_service_client_figures, member)
#define PROCESS(member) FIGURE(OF_PROCESS, struct ml_engine_process, member)

static const struct family families[] = {
    {GAUGE("tree_live_bytes"),
     TREE(tree.live_bytes),
     "Requested bytes that are allocated and not freed, over all running processes."},
    {GAUGE("tree_live_blocks"),
     TREE(tree.live_blocks),
     "Blocks that are allocated and not freed, over all running processes."},
    {GAUGE("tree_left_bytes"),
     TREE(left_bytes),
     "Requested bytes that processes held when they ended, or their recording was stopped."},
    {GAUGE("tree_left_blocks"),
     TREE(left_blocks),
     "Blocks that processes held when they ended, or their recording was stopped."},
    {GAUGE("tree_peak_bytes"),
     TREE(tree.peak_bytes),
     "The most that all processes held at one moment."},
    {COUNTER("tree_allocated_bytes"),
     TREE(tree.total_bytes),
     "Bytes that were ever allocated, over all processes."},
    {COUNTER("tree_allocated_blocks"),
     TREE(tree.total_blocks),
     "Blocks that were ever allocated, over all processes."},
    {GAUGE("process_recording"), IS_RECORDED, 0, "1 while the process is recorded."},
    {GAUGE("process_live_bytes"),
     CLIENT(totals.live_bytes),
     "Requested bytes that the process has allocated and not freed."},
    {GAUGE("process_live_blocks"),
     CLIENT(totals.live_blocks),
     "Blocks that the process has allocated and not freed."},
    {GAUGE("process_peak_bytes"),
     CLIENT(totals.peak_bytes),
     "The most that the process held at one moment."},
    {COUNTER("process_allocated_bytes"),
     CLIENT(totals.total_bytes),
     "Bytes that the process ever allocated."},
    {COUNTER("process_allocated_blocks"),
     CLIENT(totals.total_blocks),
     "Blocks that the process ever allocated."},
    {GAUGE("process_resident_bytes"), PROCESS(resident_bytes), "Resident memory, as last read."},
    {GAUGE("process_footprint_bytes"),
     PROCESS(footprint_bytes),
     "Private memory with swap, as last read."},
    {GAUGE("process_covered"),
     IS_COVERED,
     0,
     "1 while the process is recorded and nothing of its memory is known to go unseen."},
    {COUNTER("process_events"), CLIENT(events), "Allocations and frees that were recorded."},
    {COUNTER("process_lost_events"),
     CLIENT(lost_events),
     "Allocations and frees that are known to be lost."},
    {COUNTER("process_waits"), CLIENT(waits), "Times that a thread waited for room in its pipe."},
};

/* Of a process that the service knows nothing of, all figures are 0. */
static uint64_t value_of(
    const struct family *family,
    const struct ml_engine_process *process,
    const struct memlog_service_client_figures *figures
) {
    static const struct memlog_service_client_figures none = {.id = 0};
    const void *from = process;
    switch (family->source) {
    case IS_RECORDED:
        return ml_recording_is_on(process->recording) ? 1 : 0;
    case IS_COVERED:
        return figures != NULL && figures->unseen.count_bytes == 0 ? 1 : 0;
    case OF_FIGURES:
        from = figures != NULL ? figures : &none;
        break;
    case OF_PROCESS:
    case OF_TREE:
        break;
    }
    return *(const uint64_t *)(const void *)((const char *)from + family->offset);
}

static void put_family(
    FILE *out,
    const struct family *family,
    bool is_open,
    const struct ml_engine *engine,
    const struct memlog_service_figures_reply *reply
) {
    static const struct memlog_service_figures_reply none = {.left_bytes = 0};
    const char *suffix = family->is_counter ? "_total" : "";
    ml_metric_head(out, family->name, family->is_counter, is_open, family->help);
    if (family->source == OF_TREE) {
        const char *tree = (const char *)(reply != NULL ? reply : &none);
        const uint64_t value = *(const uint64_t *)(const void *)(tree + family->offset);
        (void)fprintf(out, "%s%s %" PRIu64 "\n", family->name, suffix, value);
        return;
    }
    for (uint32_t i = 0; i < ml_engine_processes_count(engine); i++) {
        const struct ml_engine_process process = ml_engine_process(engine, i);
        if (!process.is_running) {
            continue;
        }
        (void)fprintf(
            out,
            "%s%s{id=\"%" PRIu32 "\",pid=\"%d\",role=\"%s\",name=\"",
            family->name,
            suffix,
            process.id,
            (int)process.pid,
            ml_role_name(process.role)
        );
        ml_metric_label(out, process.name);
        const uint64_t value = value_of(family, &process, ml_page_figures_of(reply, process.id));
        (void)fprintf(out, "\"} %" PRIu64 "\n", value);
    }
}

static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_page_question *question = context;
    struct ml_page *page = question->page;
    const struct ml_engine *engine = page->engine;
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
    (void)fputs(ml_page_memory_metrics(page), out);
    if (is_open) {
        (void)fputs("# EOF\n", out);
    }
    (void)fclose(out);
    ml_page_answer_bytes(request, is_open ? open_metrics_type : prometheus_type, text, count);
    free(text);
}

/* Without it the other figures are answered all the same. */
static void on_memory(void *context, const char *trouble) {
    struct ml_page_question *question = context;
    (void)trouble;
    if (question->page->http == NULL) {
        (void)ml_page_asked(question);
        return;
    }
    ml_engine_figures(question->page->engine, on_figures, question);
}

void ml_page_get_metrics(struct ml_page *page, struct ml_http_request *request) {
    struct ml_page_question *question = ml_page_ask(page, request);
    if (question != NULL) {
        ml_page_memory_ask(page, ML_PAGE_MEMORY_METRICS, true, on_memory, question);
    }
}

/* /api/v1/events: what changes, to whoever follows the run. Room: host.
 *
 * One rule: the service is asked once a second while there are viewers, however many, and not at
 * all without any. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/page/internal.h"
#include "host/process/loop.h"
#include "host/upload/uploader.h"

struct ml_page_viewer {
    struct ml_page *page;
    struct ml_http_stream *stream;
    bool is_new; /* it has got nothing yet */
    LIST_ENTRY(ml_page_viewer) links;
};

/* What viewers know of a member. While it stays the same, no row is sent. */
struct ml_page_shown {
    struct memlog_service_totals totals;
    uint64_t events;
    uint64_t lost_events;
    uint64_t waits;
    uint64_t footprint_bytes;
    uint64_t resident_bytes;
    uint64_t sampling_bytes;
    uint64_t cost_ppm;
    const char *state; /* by its address */
    char note[64];
    char name[ML_PROCESS_NAME_BYTES];
    uint32_t is_recording;
    uint32_t is_running;
    uint32_t role;
    uint32_t is_complete;
    uint64_t held_at_tree_peak_bytes;
    uint64_t coverage_private_bytes;
    uint64_t was_read;
    uint64_t unseen_bytes; /* of its text, which mostly changes once */
};

static struct ml_page_shown shown_of(
    const struct ml_engine_process *process, const struct memlog_service_client_figures *figures
) {
    struct ml_page_shown shown;
    memset(&shown, 0, sizeof(shown)); /* compared as bytes */
    shown.footprint_bytes = process->footprint_bytes;
    shown.resident_bytes = process->resident_bytes;
    shown.sampling_bytes = process->sampling_bytes;
    shown.cost_ppm = process->overhead != NULL ? ml_overhead_sum(process->overhead->whole) : 0;
    shown.is_running = process->is_running;
    shown.is_recording = ml_recording_is_on(process->recording);
    shown.state = process->state;
    shown.role = (uint32_t)process->role;
    (void)snprintf(shown.note, sizeof(shown.note), "%.63s", process->note);
    (void)snprintf(shown.name, sizeof(shown.name), "%s", process->name);
    if (figures != NULL) {
        shown.totals = figures->totals;
        shown.events = figures->events;
        shown.lost_events = figures->lost_events;
        shown.waits = figures->waits;
        shown.is_complete = figures->complete;
        shown.held_at_tree_peak_bytes = figures->held_at_tree_peak_bytes;
        shown.was_read = figures->coverage_was_read;
        shown.coverage_private_bytes = figures->coverage_private_bytes;
        shown.unseen_bytes = figures->unseen.count_bytes;
    }
    return shown;
}

/* Room for what is known of every member. False: no memory. */
static bool shown_grow(struct ml_page_events *events, uint32_t count) {
    if (count <= events->shown_count) {
        return true;
    }
    struct ml_page_shown *grown = realloc(events->shown, count * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    memset(grown + events->shown_count, 0, (count - events->shown_count) * sizeof(*grown));
    events->shown = grown;
    events->shown_count = count;
    return true;
}

/* An event's text: its data is one line. NULL: no memory. */
static char *event_text(const char *name, json_t *take_json) {
    char *data = json_dumps(take_json, JSON_COMPACT);
    char *text = NULL;
    json_decref(take_json);
    if (data == NULL || asprintf(&text, "event: %s\ndata: %s\n\n", name, data) < 0) {
        text = NULL;
    }
    free(data);
    return text;
}

/* Rows of processes without a profile that each viewer gets each second, the newest. */
enum { UNRECORDED_MAX = 512 };

static json_t *
head_of(struct ml_page *page, const struct memlog_service_figures_reply *reply, json_t *take_rows) {
    json_t *json = json_object();
    ml_page_set_number(
        json, "time_ms", ml_clock_timestamp(ML_CLOCK_MONOTONIC).realtime_ns / 1000000
    );
    ml_page_set_bool(json, "serving", reply != NULL);
    ml_page_set_number(json, "dumps", ml_engine_last_dump(page->engine));
    struct ml_uploader *uploader = ml_engine_uploader(page->engine);
    if (uploader != NULL) {
        ml_page_set_number(json, "uploads_told", ml_uploader_told(uploader));
        ml_page_set_number(json, "uploads_waiting", ml_uploader_figures(uploader).waiting);
    }
    (void)json_object_set_new(json, "dump", ml_page_coverage(page->engine, reply));
    (void)json_object_set_new(json, "tree", ml_page_tree(reply));
    (void)json_object_set_new(json, "processes", take_rows);
    (void)json_object_set_new(json, "unrecorded", ml_page_unrecorded(page->engine, UNRECORDED_MAX));
    return json;
}

static void send_to(struct ml_page *page, bool is_new, const char *text) {
    struct ml_page_viewer *one = NULL;
    LIST_FOREACH(one, &page->events.viewers, links) {
        if (one->is_new == is_new && text != NULL &&
            ml_http_stream_send(one->stream, text, strlen(text))) {
            one->is_new = false;
        } else if (one->is_new == is_new) {
            one->is_new = true; /* too slow: it gets everything later */
        }
    }
}

static bool has_viewer(const struct ml_page *page, bool is_new) {
    const struct ml_page_viewer *one = NULL;
    LIST_FOREACH(one, &page->events.viewers, links) {
        if (one->is_new == is_new) {
            return true;
        }
    }
    return false;
}

static void tell_missing(struct ml_page *page, json_t *head) {
    (void)json_object_set_new(head, "not_profiled", ml_page_not_profiled(page->engine));
}

static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_page *page = context;
    struct ml_page_events *events = &page->events;
    const struct memlog_service_figures_reply *figures = status == ML_OK ? reply : NULL;
    events->is_asking = false;
    const uint32_t count = ml_engine_processes_count(page->engine);
    if (page->http == NULL || !shown_grow(events, count)) {
        return;
    }
    const bool wants_all = has_viewer(page, true);
    json_t *all = json_array();
    json_t *changed = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct ml_engine_process process = ml_engine_process(page->engine, i);
        const struct memlog_service_client_figures *own = ml_page_figures_of(figures, process.id);
        const struct ml_page_shown now = shown_of(&process, own);
        const bool is_changed = memcmp(&now, &events->shown[i], sizeof(now)) != 0;
        events->shown[i] = now;
        if (wants_all || is_changed) {
            json_t *row = ml_page_process_row(&process, own);
            if (wants_all) {
                (void)json_array_append(all, row);
            }
            if (is_changed) {
                (void)json_array_append(changed, row);
            }
            json_decref(row);
        }
    }
    json_t *heads[] = {head_of(page, figures, changed), head_of(page, figures, all)};
    if (events->missing_told != ml_engine_told_count(page->engine)) {
        events->missing_told = ml_engine_told_count(page->engine);
        tell_missing(page, heads[0]);
    }
    if (wants_all) {
        tell_missing(page, heads[1]);
    }
    char *texts[] = {event_text("update", heads[0]), event_text("all", heads[1])};
    send_to(page, false, texts[0]);
    send_to(page, true, texts[1]);
    free(texts[0]);
    free(texts[1]);
}

static void ask(struct ml_page *page) {
    if (!page->events.is_asking) {
        page->events.is_asking = true;
        ml_engine_figures(page->engine, on_figures, page);
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int revents) {
    (void)revents;
    struct ml_page *page = watcher->data;
    if (LIST_EMPTY(&page->events.viewers)) {
        ev_timer_stop(loop, watcher);
        return;
    }
    ask(page);
}

static void on_closed(void *context, struct ml_http_stream *stream) {
    struct ml_page_viewer *viewer = context;
    (void)stream;
    LIST_REMOVE(viewer, links);
    free(viewer);
}

void ml_page_get_events(struct ml_page *page, struct ml_http_request *request) {
    struct ml_page_viewer *viewer = calloc(1, sizeof(*viewer));
    struct ml_http_stream *stream =
        viewer != NULL ? ml_http_stream_open(request, on_closed, viewer) : NULL;
    if (stream == NULL) {
        free(viewer);
        ml_page_answer_error(request, 503, "too many follow this run already; close a page");
        return;
    }
    *viewer = (struct ml_page_viewer){.page = page, .stream = stream, .is_new = true};
    LIST_INSERT_HEAD(&page->events.viewers, viewer, links);
    ask(page);
    if (!ev_is_active(&page->events.timer)) {
        ev_timer_again(page->setup.loop, &page->events.timer);
    }
}

void ml_page_events_init(struct ml_page *page) {
    ml_timer_init_every(&page->events.timer, on_timer, 1., page);
}

void ml_page_events_fini(struct ml_page *page) {
    ev_timer_stop(page->setup.loop, &page->events.timer);
    free(page->events.shown);
    page->events.shown = NULL;
    page->events.shown_count = 0;
}

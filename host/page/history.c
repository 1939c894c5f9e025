/* /api/v1/memory/history: resident and private memory since the run's start, as the engine has read
 * them anyway. Room: host. */
#include <limits.h>

#include "host/memory/history.h"
#include "host/page/internal.h"
#include "host/process/clock.h"

enum { NS_PER_MS = 1000000 };

/* What a moment of CLOCK_MONOTONIC is by the clock of people, in ms. */
struct clock {
    uint64_t monotonic_ms, realtime_ms; /* now */
};

static uint64_t realtime_of(const struct clock *clock, uint64_t monotonic_ms) {
    const uint64_t ago_ms = clock->monotonic_ms - monotonic_ms;
    return ago_ms < clock->realtime_ms ? clock->realtime_ms - ago_ms : 0;
}

static json_t *series_of(const struct ml_memory_history *history, const struct clock *clock) {
    json_t *json = json_object();
    json_t *points = json_array();
    for (uint32_t i = 0; i < history->count; i++) {
        const struct ml_memory_point *point = &history->points[i];
        const uint64_t values[] = {
            realtime_of(clock, point->end_ms),
            point->most.resident_bytes,
            point->last.resident_bytes,
            point->most.private_bytes,
            point->last.private_bytes};
        json_t *row = json_array();
        for (size_t value = 0; value < sizeof(values) / sizeof(values[0]); value++) {
            (void)json_array_append_new(row, json_integer((json_int_t)values[value]));
        }
        (void)json_array_append_new(points, row);
    }
    (void)json_object_set_new(json, "points", points);
    return json;
}

static void add_process(
    json_t *processes,
    const struct ml_engine_process *process,
    uint64_t pid,
    const struct clock *clock
) {
    if ((uint64_t)process->pid != pid || process->folded_processes != 0) {
        return;
    }
    json_t *json = series_of(process->memory, clock);
    ml_page_set_number(json, "id", process->id);
    ml_page_set_number(json, "pid", pid);
    ml_page_set_text(json, "name", process->name);
    (void)json_array_append_new(processes, json);
}

void ml_page_get_memory_history(struct ml_page *page, struct ml_http_request *request) {
    const struct ml_engine *engine = page->engine;
    const struct memlog_service_moment now = ml_clock_timestamp(ML_CLOCK_MONOTONIC);
    const struct clock clock = {
        .monotonic_ms = now.monotonic_ns / NS_PER_MS, .realtime_ms = now.realtime_ns / NS_PER_MS};
    uint64_t pid = 0;
    if (!ml_page_number_argument(request, "pid", INT_MAX, &pid)) {
        return;
    }
    json_t *answer = json_object();
    json_t *processes = json_array();
    for (uint32_t i = 0; pid != 0 && i < ml_engine_processes_count(engine); i++) {
        const struct ml_engine_process process = ml_engine_process(engine, i);
        add_process(processes, &process, pid, &clock);
    }
    for (uint32_t i = 0; pid != 0 && i < ml_engine_unrecorded_count(engine); i++) {
        const struct ml_engine_process process = ml_engine_unrecorded(engine, i);
        add_process(processes, &process, pid, &clock);
    }
    (void)json_object_set_new(
        answer, "tree", pid == 0 ? series_of(ml_engine_tree_memory(engine), &clock) : json_null()
    );
    (void)json_object_set_new(answer, "processes", processes);
    ml_page_answer_json(request, 200, answer);
}

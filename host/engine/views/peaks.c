#include "host/engine/views/peaks.h"

#include "host/engine/views/views.h"
#include "host/process/clock.h"
#include "host/process/loop.h"

enum { STEP_PART = 20, STEP_LEAST_BYTES = 1 << 20, MS_PER_S = 1000, COST_PART = 50 };

static const double ns_per_s = 1e9;

bool ml_is_new_peak(uint64_t private_bytes, uint64_t peak_bytes) {
    const uint64_t part = peak_bytes / STEP_PART;
    const uint64_t step = part > STEP_LEAST_BYTES ? part : STEP_LEAST_BYTES;
    return private_bytes > peak_bytes && private_bytes - peak_bytes >= step;
}

uint64_t ml_next_reading_ns(uint64_t now_ns, uint64_t cost_ns) {
    return now_ns + cost_ns * COST_PART;
}

void ml_peaks_look(struct ml_engine *engine, struct ml_member *member) {
    const uint64_t now_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    if (!ml_views_may_be_seen(engine, member) || now_ns < engine->views->next_ns ||
        engine->views->on_all != NULL) { /* or a later view would take the place of a dump's */
        return;
    }
    const uint64_t private_bytes = ml_memory_private_bytes(member->pid);
    if (ml_is_new_peak(private_bytes, member->viewed_bytes)) {
        member->viewed_bytes = private_bytes;
        ml_views_want(engine, member);
    }
}

static void on_time(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    const uint64_t begun_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        ml_peaks_look(engine, engine->members.items[i]);
    }
    const uint64_t cost_ns = ml_clock_timestamp(engine->clock).monotonic_ns - begun_ns;
    const double every_s = (double)engine->options->whole_interval_ms / MS_PER_S;
    const double least_s = (double)cost_ns * COST_PART / ns_per_s;
    ml_timer_start(engine->loop, &engine->views->look_timer, every_s > least_s ? every_s : least_s);
}

void ml_peaks_init(struct ml_engine *engine) {
    ml_timer_init(&engine->views->look_timer, on_time, engine);
    if (engine->options->whole != ML_WHOLE_OFF) {
        on_time(engine->loop, &engine->views->look_timer, 0);
    }
}

void ml_peaks_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->views->look_timer);
}

#include "host/engine/triggers/peak.h"

#include <stdio.h>

#include "base/size.h"
#include "host/engine/dump/jobs.h"
#include "host/engine/lifecycle.h"
#include "host/process/clock.h"
#include "host/process/loop.h"

/* How often the service is asked for the peak, which costs it microseconds. */
static const double look_s = 1.0;

/* These dumps take at most one part in so many of the time. */
enum { DUMP_TIME_PARTS = 6 };

/* A share of a small peak is no step. */
enum { LEAST_STEP_BYTES = 1 << 20 };

static uint64_t step_of(const struct ml_peak_step *step, uint64_t peak_bytes) {
    if (step->bytes != 0) {
        return step->bytes;
    }
    const uint64_t part = peak_bytes / 100 * step->percent;
    return part > LEAST_STEP_BYTES ? part : LEAST_STEP_BYTES;
}

static void on_dumped(void *context, const char *path, bool complete, const char *trouble) {
    struct ml_engine *engine = context;
    struct ml_peak *peak = engine->peak;
    const uint64_t now_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    peak->free_ns = now_ns + (now_ns - peak->asked_ns) * (DUMP_TIME_PARTS - 1);
    peak->is_dumping = false;
    if (engine->phase == ML_PHASE_CLOSED) {
        return;
    }
    if (path[0] == '\0') {
        ml_engine_notice(engine, "no dump of the peak was taken: %s", trouble);
    } else {
        ml_dump_notice(engine, path, "", complete, trouble);
    }
}

static void dump(struct ml_engine *engine, uint64_t peak_bytes) {
    struct ml_peak *peak = engine->peak;
    struct ml_dump_trigger trigger = {
        .decision = {.dump = true, .kind = MEMLOG_SERVICE_TRIGGER_KIND_PEAK}};
    char now[ML_SIZE_TEXT_BYTES];
    char before[ML_SIZE_TEXT_BYTES];
    (void)snprintf(
        trigger.reason,
        sizeof(trigger.reason),
        "the tree's peak is %s, at its last dump it was %s",
        ml_size_text(peak_bytes, now),
        ml_size_text(peak->dumped_bytes, before)
    );
    peak->dumped_bytes = peak_bytes;
    peak->asked_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    peak->is_dumping = true;
    ml_engine_dump_as(engine, MEMLOG_SERVICE_DUMP_REASON_PEAK, &trigger, on_dumped, engine);
}

static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_engine *engine = context;
    struct ml_peak *peak = engine->peak;
    peak->is_asking = false;
    if (status != ML_OK || peak->is_dumping || engine->phase != ML_PHASE_RUNNING) {
        return;
    }
    const uint64_t bytes = reply->tree.peak_bytes;
    if (bytes <
        peak->dumped_bytes) { /* of another service, which does not know the old one's peak */
        peak->dumped_bytes = bytes;
    }
    if (bytes - peak->dumped_bytes >= step_of(&engine->options->peak_step, peak->dumped_bytes)) {
        dump(engine, bytes);
    }
}

static void on_look(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    struct ml_peak *peak = engine->peak;
    /* Wait for other dumps first, which may show the same peak. */
    if (engine->service_state == ML_ENGINE_SERVING && !peak->is_asking && !peak->is_dumping &&
        engine->jobs->first == NULL && engine->phase == ML_PHASE_RUNNING &&
        ml_clock_timestamp(engine->clock).monotonic_ns >= peak->free_ns) {
        peak->is_asking = true;
        ml_engine_figures(engine, on_figures, engine);
    }
}

void ml_peak_init(struct ml_engine *engine) {
    ml_timer_init_every(&engine->peak->look_timer, on_look, look_s, engine);
    if (engine->options->peak_step.is_set) {
        ev_timer_start(engine->loop, &engine->peak->look_timer);
    }
}

void ml_peak_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->peak->look_timer);
}

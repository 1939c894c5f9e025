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

/* Nothing is read while a dump waits: a later view would take the place of its own. */
static bool may_read(const struct ml_engine *engine, uint64_t next_ns) {
    return ml_clock_timestamp(engine->clock).monotonic_ns >= next_ns &&
           engine->views->on_all == NULL;
}

static void look(struct ml_engine *engine, struct ml_member *member, uint64_t private_bytes) {
    if (may_read(engine, engine->views->next_ns) &&
        ml_is_new_peak(private_bytes, member->viewed_bytes)) {
        member->viewed_bytes = private_bytes;
        ml_views_want(engine, member);
    }
}

void ml_peaks_look(struct ml_engine *engine, struct ml_member *member) {
    if (ml_views_may_be_seen(engine, member)) {
        look(engine, member, ml_memory_private_bytes(member->pid));
    }
}

/* What each has now, and all together. */
static uint64_t poll_all(struct ml_engine *engine) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        const bool is_seen = ml_views_may_be_seen(engine, member);
        member->polled_bytes = is_seen ? ml_memory_private_bytes(member->pid) : 0;
        sum += member->polled_bytes;
    }
    return sum;
}

/* All of them are read: for those that are largest now this is their own reading, too. */
static void read_tree(struct ml_engine *engine, uint64_t sum) {
    engine->views->tree_bytes = sum;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->polled_bytes > member->viewed_bytes) {
            member->viewed_bytes = member->polled_bytes;
        }
    }
    ml_views_want_tree(engine);
}

void ml_peaks_forget(struct ml_engine *engine) {
    engine->views->tree_bytes = 0;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        engine->members.items[i]->viewed_bytes = 0;
    }
}

static void look_at_all(struct ml_engine *engine) {
    const struct ml_views *views = engine->views;
    const uint64_t sum = poll_all(engine);
    if (views->told_serial >= views->tree_serial && may_read(engine, views->tree_next_ns) &&
        ml_is_new_peak(sum, views->tree_bytes)) {
        read_tree(engine, sum);
        return;
    }
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (ml_views_may_be_seen(engine, member)) {
            look(engine, member, member->polled_bytes);
        }
    }
}

static void on_time(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    const uint64_t begun_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    look_at_all(engine);
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

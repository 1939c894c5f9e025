#include "host/engine/members/governor.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "host/engine/members/rate.h"
#include "host/process/clock.h"
#include "host/process/loop.h"

/* How often all processes are looked at. A process that begins to allocate costs what it costs for
 * so long. */
static const double look_interval_s = 0.5;

static const struct ml_overhead_rule *rule_of(const struct ml_engine *engine) {
    return &engine->options->overhead;
}

/* False: the process is gone. */
static bool
read_clocks(const struct ml_engine *engine, pid_t pid, struct ml_overhead_reading *out_reading) {
    enum { NS_PER_S = 1000000000 };
    clockid_t clock = 0;
    struct timespec taken;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &taken) != 0) {
        return false;
    }
    const struct memlog_service_moment now = ml_clock_timestamp(engine->clock);
    out_reading->cpu_ns = (uint64_t)taken.tv_sec * NS_PER_S + (uint64_t)taken.tv_nsec;
    out_reading->at_ns = now.monotonic_ns;
    out_reading->ticks = now.ticks;
    return true;
}

uint64_t ml_governor_interval(const struct ml_engine *engine, const struct ml_member *member) {
    const bool is_governed = rule_of(engine)->promised_ppm != 0;
    return is_governed && member->overhead.interval_bytes != 0 ? member->overhead.interval_bytes
                                                               : engine->options->sampling_bytes;
}

void ml_governor_begin(struct ml_engine *engine, struct ml_member *member) {
    struct ml_overhead_reading now = {.at_ns = 0};
    if (rule_of(engine)->promised_ppm == 0) {
        return;
    }
    ev_timer_again(engine->loop, &engine->governor->timer);
    /* One that was attached to has taken time before, and pays from now on. */
    if (!member->overhead.has_begun && read_clocks(engine, member->pid, &now)) {
        member->overhead.interval_bytes = member->endpoint.control.sampling_bytes;
        (void)ml_overhead_step(
            &member->overhead, rule_of(engine), member->endpoint.control.sampling_bytes, &now
        );
        ml_service_link_update(&engine->link, member); /* it may end before the first look */
    }
}

/* The note is for what people must know: nothing else is overwritten. */
static void note(struct ml_engine *engine, struct ml_member *member) {
    char text[ML_OVERHEAD_TEXT_BYTES];
    ml_overhead_trouble(&member->overhead, rule_of(engine), text);
    if (member->note[0] != '\0' && !member->overhead.is_noted) {
        return;
    }
    (void)snprintf(member->note, sizeof(member->note), "%s", text);
    member->overhead.is_noted = text[0] != '\0';
    if (text[0] != '\0' && ml_engine_says_first(engine, ML_SAID_OVERHEAD)) {
        ml_engine_notice(engine, "%s (%d): %s", member->name, (int)member->pid, text);
    }
}

static bool is_same(const struct ml_overhead_cost *a, const struct ml_overhead_cost *b) {
    return a->recording_ppm == b->recording_ppm && a->passing_ppm == b->passing_ppm;
}

static void look(
    struct ml_engine *engine,
    struct ml_member *member,
    const struct memlog_service_client_figures *figures
) {
    struct ml_overhead_reading now = {
        .recording_ticks = figures->recording_ticks,
        .passing_ticks = figures->passing_ticks,
        .passed_calls = figures->passed_calls};
    if (!read_clocks(engine, member->pid, &now)) {
        return;
    }
    struct ml_overhead *overhead = &member->overhead;
    const struct ml_overhead_cost before = overhead->whole;
    const uint64_t interval_bytes = member->endpoint.control.sampling_bytes;
    const uint64_t wanted = ml_overhead_step(overhead, rule_of(engine), interval_bytes, &now);
    /* Somebody else's rate is kept (memlog rate, memlog start), and so is that of a service short
     * of memory: no finer one. */
    const bool is_own = member->sampling_bytes != 0 || wanted < member->overhead.least_bytes;
    if (wanted != interval_bytes && !is_own &&
        ml_member_interval(engine, member, wanted) == ML_OK) {
        overhead->interval_bytes = wanted;
    }
    note(engine, member);
    if (!is_same(&before, &overhead->whole) || wanted != interval_bytes) {
        ml_service_link_update(&engine->link, member);
    }
}

static bool is_governed(const struct ml_member *member) {
    return member->state == ML_MEMBER_RUNNING && ml_recording_is_on(member->recording) &&
           ml_recording_in_service(member->recording) && member->endpoint.control_fd >= 0;
}

static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_engine *engine = context;
    engine->governor->is_asking = false;
    for (uint32_t i = 0; status == ML_OK && i < reply->clients.count; i++) {
        const struct memlog_service_client_figures *figures = &reply->clients.items[i];
        struct ml_member *member = ml_members_find(&engine->members, figures->id);
        if (member != NULL && is_governed(member)) {
            look(engine, member, figures);
        }
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct ml_engine *engine = watcher->data;
    bool any = false;
    for (uint32_t i = 0; i < engine->members.count && !any; i++) {
        any = is_governed(engine->members.items[i]);
    }
    if (!any) {
        ev_timer_stop(loop, watcher); /* until the next one begins */
    } else if (!engine->governor->is_asking) {
        engine->governor->is_asking = true;
        ml_engine_figures(engine, on_figures, engine);
    }
}

void ml_governor_init(struct ml_engine *engine) {
    ml_timer_init_every(&engine->governor->timer, on_timer, look_interval_s, engine);
}

void ml_governor_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->governor->timer);
}

#include "host/engine/members/rate.h"

#include "host/process/loop.h"

/* How often the service is asked that. */
static const double ask_interval_s = 2;

enum ml_status
ml_member_interval(struct ml_engine *engine, struct ml_member *member, uint64_t interval_bytes) {
    struct ml_control_page page = member->endpoint.control;
    if (page.sampling_bytes <= 1) {
        page.all_sampled = 0;
    }
    page.sampling_bytes = interval_bytes;
    const enum ml_status status = ml_endpoint_control(&member->endpoint, &page);
    member->sampled_alone.is_open = status == ML_OK && interval_bytes > 1 && page.all_sampled == 0;
    if (member->sampled_alone.is_open) {
        ev_timer_start(engine->loop, &engine->rates->timer);
    }
    return status;
}

const char *
ml_member_rate(struct ml_engine *engine, struct ml_member *member, uint64_t interval_bytes) {
    if (member->state != ML_MEMBER_RUNNING) {
        return "it has ended";
    }
    if (!ml_recording_is_on(member->recording) || member->endpoint.control_fd < 0) {
        return "it is not being recorded";
    }
    if (interval_bytes < 1 || interval_bytes > ML_SAMPLING_MAX_BYTES) {
        return "the rate is none";
    }
    const uint32_t stack_mode = member->endpoint.control.stack_mode;
    if (ml_member_interval(engine, member, interval_bytes) != ML_OK) {
        return "its control page cannot be written";
    }
    /* Its next profile's and its next image's too. */
    member->sampling_bytes = interval_bytes;
    member->stack_mode = stack_mode;
    return "";
}

static void filter(struct ml_member *member) {
    struct ml_control_page page = member->endpoint.control;
    page.all_sampled = 1;
    member->sampled_alone.is_open = false;
    (void)!ml_endpoint_control(&member->endpoint, &page);
}

/* What was told is from after the asking, which came after the change. */
static void
on_figures(void *context, enum ml_status status, const struct memlog_service_figures_reply *reply) {
    struct ml_engine *engine = context;
    for (uint32_t i = 0; status == ML_OK && i < reply->clients.count; i++) {
        const struct memlog_service_client_figures *figures = &reply->clients.items[i];
        struct ml_member *member = ml_members_find(&engine->members, figures->id);
        if (member != NULL && member->sampled_alone.is_open &&
            member->sampled_alone.control_generation == member->endpoint.control.generation &&
            figures->complete && figures->exact_blocks == 0) {
            filter(member);
        }
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)events;
    struct ml_engine *engine = watcher->data;
    bool any = false;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->sampled_alone.is_open && member->state == ML_MEMBER_RUNNING &&
            ml_recording_is_on(member->recording)) {
            member->sampled_alone.control_generation = member->endpoint.control.generation;
            any = true;
        }
    }
    if (any) {
        ml_engine_figures(engine, on_figures, engine);
    } else {
        ev_timer_stop(loop, watcher);
    }
}

void ml_rates_init(struct ml_engine *engine) {
    ml_timer_init_every(&engine->rates->timer, on_timer, ask_interval_s, engine);
}

void ml_rates_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->rates->timer);
}

#include "host/engine/views/views.h"

#include <stdlib.h>

#include "host/engine/views/peaks.h"
#include "host/engine/views/reader.h"
#include "host/process/clock.h"
#include "host/process/loop.h"

/* For the views of a dump: those of a thousand processes of 5 ms each, twice. */
static const double patience_s = 10.;

bool ml_views_may_be_seen(const struct ml_engine *engine, const struct ml_member *member) {
    return engine->options->whole != ML_WHOLE_OFF && member->state == ML_MEMBER_RUNNING &&
           ml_recording_in_service(member->recording);
}

/* Whether it runs another image by now: what was read may be of that one. */
static bool is_another(const struct ml_member *member) {
    const struct ml_process_facts facts = ml_process_facts(member->pid);
    return facts.start_ticks != member->start_ticks ||
           ml_image_mark_differs(&member->image, &facts.image);
}

/* Nobody waits any more. */
static void end_wait(struct ml_engine *engine) {
    void (*on_all)(struct ml_engine * engine) = engine->views->on_all;
    engine->views->on_all = NULL;
    ev_timer_stop(engine->loop, &engine->views->patience);
    if (on_all != NULL) {
        on_all(engine);
    }
}

/* Who waits for the service's word on a view. */
struct shown {
    struct ml_engine *engine;
    uint64_t serial;
};

static void release(struct ml_engine *engine, uint64_t serial) {
    if (engine->views->reader != NULL) { /* else the run is over */
        ml_view_reader_release(engine->views->reader, serial);
    }
}

static void on_shown(
    void *context, enum ml_status status, const struct memlog_service_show_process_reply *reply
) {
    struct shown *shown = context;
    (void)status;
    (void)reply; /* the dump says whether they were laid */
    release(shown->engine, shown->serial);
    free(shown);
}

static void tell(
    struct ml_engine *engine,
    struct ml_member *member,
    uint64_t serial,
    const struct ml_process_view *view
) {
    const uint32_t libcs = ml_memory_regions_libcs(&view->regions);
    struct shown *shown = malloc(sizeof(*shown));
    if (shown == NULL) {
        release(engine, serial);
        return;
    }
    *shown = (struct shown){.engine = engine, .serial = serial};
    for (uint32_t i = 0; i < view->regions.count; i++) {
        const struct ml_memory_region *region = &view->regions.items[i];
        if (region->inode != 0 && (region->permissions & ML_MEMORY_EXECUTE) != 0) {
            ml_code_files_mapped(&member->code_files, region->name);
            member->has_unlinked_code =
                member->has_unlinked_code || ml_memory_region_is_unlinked(region);
        }
    }
    ml_service_link_show(&engine->link, member, view, on_shown, shown);
    if (libcs > 1 && member->libc_files <= 1) {
        member->libc_files = libcs;
        ml_service_link_update(&engine->link, member);
    }
}

/* When there may be a next reading. */
static void note_cost(struct ml_engine *engine, const struct ml_process_view *view) {
    struct ml_views *views = engine->views;
    const uint64_t now_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    if (view->tree_reading == 0) {
        views->next_ns = ml_next_reading_ns(now_ns, view->cost_ns);
    } else {
        views->tree_cost_ns += view->cost_ns;
        views->tree_next_ns = ml_next_reading_ns(now_ns, views->tree_cost_ns);
    }
}

static void
on_view(void *context, uint32_t id, uint64_t serial, const struct ml_process_view *view) {
    struct ml_engine *engine = context;
    struct ml_member *member = ml_members_find(&engine->members, id);
    engine->views->told_serial = serial;
    note_cost(engine, view);
    /* Without threads it is gone, and what was seen before stays. */
    if (member != NULL && ml_views_may_be_seen(engine, member) && view->threads.count > 0 &&
        !is_another(member)) {
        tell(engine, member, serial, view);
    } else {
        release(engine, serial);
    }
    if (serial == engine->views->asked_serial) {
        end_wait(engine);
    }
}

static void on_patience(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    end_wait(watcher->data);
}

static void
ask(struct ml_engine *engine, struct ml_member *member, bool hold, uint32_t tree_reading) {
    struct ml_views *views = engine->views;
    if (!ml_views_may_be_seen(engine, member)) {
        return;
    }
    if (views->reader == NULL) {
        const struct ml_view_reader_setup setup = {
            .loop = engine->loop,
            .clock = engine->clock,
            .reads_words = engine->options->types != ML_TYPES_NONE,
            .reads_python = engine->options->types == ML_TYPES_PYTHON,
            .on_view = on_view,
            .context = engine};
        views->reader = ml_view_reader_new(&setup, views->holder);
        views->holder.fd = -1;
    }
    if (views->reader != NULL) {
        const struct ml_view_question question = {
            .id = member->id,
            .pid = member->pid,
            .is_to_be_held = hold,
            .tree_reading = tree_reading};
        const uint64_t serial = ml_view_reader_ask(views->reader, &question);
        views->asked_serial = serial > views->asked_serial ? serial : views->asked_serial;
    }
}

void ml_views_want(struct ml_engine *engine, struct ml_member *member) {
    ask(engine, member, false, 0);
}

/* A dump's reading counts as well: the tree's peak is never less than what a dump shows. */
static void ask_all(struct ml_engine *engine, bool hold) {
    struct ml_views *views = engine->views;
    views->tree_reading++;
    views->tree_cost_ns = 0;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        ask(engine, engine->members.items[i], hold, views->tree_reading);
    }
    views->tree_serial = views->asked_serial;
}

void ml_views_want_tree(struct ml_engine *engine) {
    ask_all(engine, false);
}

void ml_views_want_all(struct ml_engine *engine, void (*on_all)(struct ml_engine *engine)) {
    struct ml_views *views = engine->views;
    ask_all(engine, engine->options->whole == ML_WHOLE_STOP);
    views->on_all = on_all;
    if (views->told_serial == views->asked_serial) {
        end_wait(engine);
    } else {
        ml_timer_start(engine->loop, &views->patience, patience_s);
    }
}

/* Started before there is a program: a copy of this process as it is then. */
static void open_holder(struct ml_engine *engine) {
    const pid_t pid = ml_holder_open(&engine->views->holder, engine->inherited);
    if (pid < 0) {
        ml_engine_notice(engine, "no process is stopped while it is read: no process for that");
        return;
    }
    ml_engine_add_helper(engine, pid);
    if (engine->on_service != NULL) {
        engine->on_service(engine->context, pid);
    }
}

void ml_views_init(struct ml_engine *engine) {
    engine->views->holder.fd = -1;
    if (engine->options->whole == ML_WHOLE_STOP) {
        open_holder(engine);
    }
    ml_timer_init(&engine->views->patience, on_patience, engine);
    ml_peaks_init(engine);
}

void ml_views_fini(struct ml_engine *engine) {
    ml_peaks_fini(engine);
    ev_timer_stop(engine->loop, &engine->views->patience);
    engine->views->on_all = NULL;
    ml_view_reader_free(engine->views->reader);
    engine->views->reader = NULL;
    ml_holder_close(&engine->views->holder);
}

#include "host/engine/run/finish.h"

#include <stdio.h>

#include "host/engine/commands/connection.h"
#include "host/engine/dump/jobs.h"
#include "host/engine/lifecycle.h"
#include "host/engine/list/judge.h"
#include "host/engine/list/walk.h"
#include "host/engine/members/watch.h"
#include "host/engine/triggers/triggers.h"
#include "host/process/loop.h"

/* The service has this long to take in what ended processes have left. */
enum { ML_DRAIN_DEADLINE_MS = 60000 };

static void on_interval_dump(void *context, const char *path, bool complete, const char *trouble) {
    ml_dump_notice(context, path, "", complete, trouble);
}

static void on_interval(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    /* One that takes longer than the interval must not make them pile up. */
    if (engine->phase == ML_PHASE_RUNNING && engine->jobs->first == NULL) {
        ml_engine_dump(engine, MEMLOG_SERVICE_DUMP_REASON_INTERVAL, on_interval_dump, engine);
    }
}

static void on_uploads_settled(void *context) {
    struct ml_engine *engine = context;
    engine->finish->on_done(
        engine->finish->context,
        engine->finish->final.path,
        engine->finish->final.complete,
        engine->finish->final.trouble
    );
}

static void on_final_dump(void *context, const char *path, bool complete, const char *trouble) {
    struct ml_engine *engine = context;
    if (engine->uploader == NULL) {
        engine->finish->on_done(engine->finish->context, path, complete, trouble);
        return;
    }
    /* The exit dump itself is not sent: nobody has asked for that. */
    (void)snprintf(engine->finish->final.path, sizeof(engine->finish->final.path), "%s", path);
    engine->finish->final.complete = complete;
    (void
    )snprintf(engine->finish->final.trouble, sizeof(engine->finish->final.trouble), "%s", trouble);
    const double wait_s = (double)engine->options->upload.wait_s;
    ml_uploader_settle(engine->uploader, wait_s, on_uploads_settled, engine);
}

static void
on_drained(void *context, enum ml_status status, const struct memlog_service_drain_reply *reply) {
    struct ml_engine *engine = context;
    ml_dump_unguard(engine);
    if (status != ML_OK && ml_dump_jobs_may_wait(engine)) {
        ml_engine_set_phase(engine, ML_PHASE_WAIT);
        return;
    }
    if (status == ML_OK && !reply->complete) {
        ml_engine_notice(
            engine,
            "not all events of ended processes were read in time: their figures lack the rest"
        );
    }
    const struct ml_dump_trigger *why = &engine->triggers->last;
    ml_engine_dump_as(engine, MEMLOG_SERVICE_DUMP_REASON_EXIT, why, on_final_dump, engine);
}

static void drain(struct ml_engine *engine) {
    if (engine->service_state == ML_ENGINE_RESTARTING) {
        ml_engine_set_phase(engine, ML_PHASE_WAIT);
        return;
    }
    ml_dump_guard(engine, ML_DRAIN_DEADLINE_MS);
    const struct memlog_service_drain_request request = {.deadline_ms = ML_DRAIN_DEADLINE_MS};
    ML_SERVICE_ASK(&engine->link, memlog_service_drain, &request, on_drained, engine);
}

void ml_engine_finish(struct ml_engine *engine, ml_dump_done *on_done, void *context) {
    ml_engine_set_phase(engine, ML_PHASE_END);
    engine->finish->on_done = on_done;
    engine->finish->context = context;
    ev_timer_stop(engine->loop, &engine->finish->interval_timer);
    ml_connections_hear(engine);
    ml_engine_poll_members(engine);
    ml_list_walk(engine);
    if (!engine->root_seen && engine->root != 0) {
        const uint32_t count = engine->not_profiled_count;
        ml_engine_add_not_profiled(
            engine,
            engine->root,
            0,
            engine->is_profiled ? "another memlog, which profiles this one, has it"
                                : ml_image_text(engine->root_image),
            engine->root_argv[0]
        );
        if (engine->not_profiled_count > count) {
            engine->not_profiled[count].told_of =
                engine->is_profiled ? ML_TOLD_OF_PROFILED : ML_TOLD_OF_PROGRAM;
            ml_list_root_told(engine, &engine->not_profiled[count]);
        }
    }
    if (!ml_engine_triggers_flush(engine, drain)) {
        drain(engine);
    }
}

void ml_finish_resume(struct ml_engine *engine) {
    if (engine->phase == ML_PHASE_WAITING) {
        ml_engine_set_phase(engine, ML_PHASE_RESUME);
        drain(engine);
    }
    ml_dump_jobs_resume(engine);
}

void ml_finish_init(struct ml_engine *engine) {
    const double interval_s = (double)engine->options->dump_interval_ms / 1000.;
    ml_timer_init_every(&engine->finish->interval_timer, on_interval, interval_s, engine);
    if (engine->options->dump_interval_ms > 0) {
        ev_timer_start(engine->loop, &engine->finish->interval_timer);
    }
}

void ml_finish_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->finish->interval_timer);
}

#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <unistd.h>

#include "host/engine/list/dump.h"
#include "host/engine/list/judge.h"
#include "host/engine/list/known.h"
#include "host/engine/list/walk.h"
#include "host/engine/members/members.h"
#include "host/engine/members/watch.h"
#include "host/engine/state.h"
#include "host/process/clock.h"

static void start_job(struct ml_engine *engine);

struct ml_dump_job *
ml_dump_job_new(enum memlog_service_dump_reason reason, ml_dump_done *on_done, void *context) {
    struct ml_dump_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        on_done(context, "", false, ml_status_text(ML_ENV_MEMORY));
        return NULL;
    }
    job->reason = reason;
    job->on_done = on_done;
    job->context = context;
    return job;
}

void ml_dump_job_free(struct ml_dump_job *take_job) {
    free(take_job->ids);
    free(take_job);
}

/* The first job is done: answer, and go on with the next. */
static void
end_job(struct ml_engine *engine, const char *path, bool complete, const char *trouble) {
    struct ml_dump_job *job = engine->jobs;
    engine->jobs = job->next;
    ev_timer_stop(engine->loop, &engine->guard_timer);
    job->on_done(job->context, path, complete, trouble);
    ml_dump_job_free(job);
    if (engine->jobs != NULL && !engine->jobs->started) { /* who was told may have asked again */
        start_job(engine);
    }
}

static void discard_file(struct ml_dump_job *job) {
    if (job->is_snapshot) {
        (void)!ftruncate(job->file.fd, 0);
        (void)lseek(job->file.fd, 0, SEEK_SET);
    } else {
        ml_dumps_discard(&job->file);
    }
}

static enum ml_status
keep_file(struct ml_dump_job *job, bool is_whole, struct ml_error_message *error) {
    if (job->is_snapshot) {
        return ML_OK; /* a cut one shows what is there */
    }
    return is_whole ? ml_dumps_commit(&job->file, error) : ml_dumps_keep_cut(&job->file, error);
}

/* There is no service now, but there may be one soon: on_gone is told next. */
static bool may_come_back(const struct ml_engine *engine) {
    return engine->phase != ML_PHASE_CLOSED && engine->service_state != ML_ENGINE_ALONE;
}

static void
on_dumped(void *context, enum ml_status status, const struct memlog_service_dump_reply *reply) {
    struct ml_engine *engine = context;
    struct ml_dump_job *job = engine->jobs;
    struct ml_error_message error = {.text = ""};
    if (status != ML_OK && may_come_back(engine) && job->tries < ML_DUMP_TRIES_MAX) {
        /* The service has died over it: its successor writes another one. */
        ev_timer_stop(engine->loop, &engine->guard_timer);
        discard_file(job);
        job->started = false;
        return;
    }
    char trouble[MEMLOG_SERVICE_DUMP_REPLY_TROUBLE_LIMIT + 1];
    const bool has_reply = status == ML_OK;
    ml_string_copy(
        trouble, sizeof(trouble), has_reply ? reply->trouble : ml_string_of(ml_status_text(status))
    );
    if (!has_reply || reply->written_bytes == 0) {
        ml_error_set(&error, "memlog-service did not write it: %s", trouble);
        discard_file(job);
        end_job(engine, "", false, error.text);
        return;
    }
    if (keep_file(job, reply->whole, &error) != ML_OK) {
        end_job(engine, "", false, error.text);
        return;
    }
    ml_error_set(&error, "%s", trouble);
    if (!reply->whole) {
        ml_error_set(
            &error, "%s: %s was cut off, what it holds can be read", trouble, job->file.path
        );
    }
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", job->is_snapshot ? "snapshot" : job->file.path);
    if (!job->is_snapshot) {
        ml_engine_keep_words(engine, &job->trigger);
    }
    end_job(engine, path, reply->complete, error.text);
}

static void guard(struct ml_engine *engine, uint32_t deadline_ms) {
    ev_timer_stop(engine->loop, &engine->guard_timer);
    ev_timer_set(&engine->guard_timer, (double)deadline_ms / 1000. + (double)ML_GUARD_EXTRA_S, 0.);
    ev_timer_start(engine->loop, &engine->guard_timer);
}

/* The service hangs: without it all waiting ends by the link's own callbacks. */
static void on_guard(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    ml_engine_notice(engine, "memlog-service does not answer and is ended");
    if (engine->link.pid > 0 && ml_service_link_up(&engine->link)) {
        (void)kill(engine->link.pid, SIGKILL);
    }
}

/* A program that somebody left out by name. Not what it forked: whoever reads the report asks for
 * programs. And a process that is recorded no more, if the service does not know of it, or its
 * predecessor alone did. */
static bool was_left_out(const struct ml_member *member) {
    return (member->left_out && !ml_recording_was_ever_on(member->recording) &&
            member->birth != ML_BIRTH_FORK) ||
           (ml_recording_is_lost(member->recording) && !ml_recording_in_service(member->recording));
}

/* Whether the list of processes has it, too: of that pid, or of a child by posix_spawn. */
static bool is_listed(const struct ml_engine *engine, const struct ml_not_profiled *item) {
    const struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, item->pid);
    return item->is_listed || (one != NULL && ml_list_told_of(item, one));
}

static bool is_told(const struct ml_engine *engine, const struct ml_unrecorded *one) {
    for (uint32_t i = 0; i < engine->not_profiled_count; i++) {
        if (ml_list_told_of(&engine->not_profiled[i], one)) {
            return true;
        }
    }
    return false;
}

/* Programs that nobody has told of, for readers who know no other list. */
static uint32_t add_untold(
    const struct ml_engine *engine, struct memlog_service_not_profiled *all, uint32_t count
) {
    const struct ml_unrecorded_table *table = &engine->unrecorded;
    for (uint32_t i = 0; i < table->count && count < ML_NOT_PROFILED_MAX; i++) {
        const struct ml_unrecorded *one = table->items[i];
        if (!one->is_forked && !one->has_reason && one->folded_processes == 0 &&
            !is_told(engine, one)) {
            const char *path = one->executable != NULL ? one->executable : one->name;
            all[count++] = (struct memlog_service_not_profiled){
                .pid = (uint32_t)one->pid,
                .parent_pid = (uint32_t)one->parent_pid,
                .reason = ml_string_of(one->reason),
                .path = ml_string_cut(path, MEMLOG_SERVICE_NOT_PROFILED_PATH_LIMIT),
                .listed = true,
            };
        }
    }
    return count;
}

/* Who is not in the profile, and why. NULL: no memory. Owner: the caller's; its texts are the
 * engine's. */
static struct memlog_service_not_profiled *
not_profiled_of(const struct ml_engine *engine, uint32_t *out_count) {
    struct memlog_service_not_profiled *all = calloc(ML_NOT_PROFILED_MAX, sizeof(*all));
    uint32_t count = 0;
    for (uint32_t i = 0; all != NULL && i < engine->not_profiled_count; i++) {
        const struct ml_not_profiled *item = &engine->not_profiled[i];
        const char *path = item->path != NULL ? item->path : "";
        all[count++] = (struct memlog_service_not_profiled){
            .pid = (uint32_t)item->pid,
            .parent_pid = (uint32_t)item->parent_pid,
            .reason = ml_string_of(item->reason),
            .path = ml_string_cut(path, MEMLOG_SERVICE_NOT_PROFILED_PATH_LIMIT),
            .has_other_profiler = item->has_other_profiler,
            .listed = is_listed(engine, item),
        };
    }
    for (uint32_t i = 0; all != NULL && i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        const char *path = member->executable[0] != '\0' ? member->executable : member->name;
        if (was_left_out(member) && count < ML_NOT_PROFILED_MAX) {
            all[count++] = (struct memlog_service_not_profiled){
                .pid = (uint32_t)member->pid,
                .parent_pid = (uint32_t)member->parent_pid,
                .reason = ml_string_of(member->note),
                .path = ml_string_cut(path, MEMLOG_SERVICE_NOT_PROFILED_PATH_LIMIT),
                .listed = !ml_recording_in_service(member->recording),
            };
        }
    }
    *out_count = all != NULL ? add_untold(engine, all, count) : 0;
    return all;
}

/* What of the run was not seen by anybody. NULL: no memory. Owner: as above. */
static struct memlog_service_gap *
gaps_of(const struct ml_engine *engine, struct memlog_service_moment now, uint32_t *out_count) {
    struct memlog_service_gap *all =
        calloc(engine->gaps_count + engine->members.count + 1, sizeof(*all));
    uint32_t count = 0;
    for (uint32_t i = 0; all != NULL && i < engine->gaps_count; i++) {
        all[count++] = (struct memlog_service_gap){
            .from = engine->gaps[i].from,
            .to = engine->gaps[i].to,
            .reason = ml_string_of(engine->gaps[i].reason),
        };
    }
    for (uint32_t i = 0; all != NULL && i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->stopped.ticks != 0 && ml_recording_in_service(member->recording) &&
            count < MEMLOG_SERVICE_MAX_CLIENTS) {
            all[count++] = (struct memlog_service_gap){
                .id = member->id,
                .from = member->stopped,
                .to = member->state == ML_MEMBER_RUNNING ? now : member->end,
                .reason = ml_string_of("its recording was stopped"),
            };
        }
    }
    *out_count = count;
    return all;
}

/* The members' memory, as it is now: walking over it holds each of them up a little. */
static void look_at_members(struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && ml_recording_in_service(member->recording)) {
            member->looks += member->looks == 0 ? 1 : 0; /* its memory counts now */
            ml_member_look(engine, member);
            ml_member_show(engine, member);
        }
    }
    ml_list_walk(engine);
    (void)ml_list_look(engine, true);
}

static void start_job(struct ml_engine *engine) {
    struct ml_dump_job *job = engine->jobs;
    struct ml_error_message error = {.text = ""};
    if (engine->service_state == ML_ENGINE_RESTARTING) {
        return; /* ml_engine_dumps_resume */
    }
    job->started = true;
    job->tries++;
    if (engine->dumps.folder_fd < 0 && !job->is_snapshot) {
        end_job(engine, "", false, "there is no folder for dumps yet");
        return;
    }
    if (!job->is_snapshot) {
        if (ml_dumps_begin(&engine->dumps, job->reason, &job->file, &error) != ML_OK) {
            end_job(engine, "", false, error.text);
            return;
        }
        look_at_members(engine);
    }
    struct memlog_service_dump_request request = {
        .order =
            {.reason = job->reason,
             .content = job->content,
             .now = ml_clock_timestamp(engine->clock),
             .deadline_ms = ML_DUMP_DEADLINE_MS,
             .ids = {.items = job->ids, .count = job->ids_count},
             .program = ml_string_cut(
                 engine->root_argv != NULL ? engine->root_argv[0] : "",
                 MEMLOG_SERVICE_DUMP_ORDER_PROGRAM_LIMIT
             ),
             .has_trigger = job->trigger.is_set,
             .trigger =
                 {.kind = job->trigger.kind,
                  .dump = true,
                  .id = job->trigger.id,
                  .node = job->trigger.node,
                  .node_bytes = job->trigger.node_bytes,
                  .checked_ns = job->trigger.checked_ns,
                  .reason = ml_string_of(job->trigger.reason)}},
        .file = job->file.fd,
    };
    struct memlog_service_dump_order *order = &request.order;
    struct memlog_service_not_profiled *not_profiled =
        not_profiled_of(engine, &order->not_profiled.count);
    struct memlog_service_gap *gaps = gaps_of(engine, order->now, &order->gaps.count);
    order->not_profiled.items = not_profiled;
    order->gaps.items = gaps;
    if (job->content == MEMLOG_SERVICE_DUMP_CONTENT_EVERYTHING) {
        ml_list_order(engine, order);
    }
    guard(engine, ML_DUMP_DEADLINE_MS);
    ml_service_link_dump(&engine->link, &request, on_dumped, engine);
    ml_list_order_fini(order);
    free(not_profiled);
    free(gaps);
}

void ml_dump_job_queue(struct ml_engine *engine, struct ml_dump_job *job) {
    struct ml_dump_job **last = &engine->jobs;
    unsigned waiting = 0;
    while (*last != NULL) {
        last = &(*last)->next;
        waiting++;
    }
    if (waiting >= ML_DUMPS_WAITING_MAX && job->reason != MEMLOG_SERVICE_DUMP_REASON_EXIT) {
        job->on_done(job->context, "", false, "too many dumps are waiting to be written already");
        ml_dump_job_free(job);
        return;
    }
    *last = job;
    if (engine->jobs == job) {
        start_job(engine);
    }
}

void ml_engine_snapshot(
    struct ml_engine *engine,
    enum memlog_service_dump_content content,
    int file_fd,
    ml_dump_done *on_done,
    void *context
) {
    struct ml_dump_job *job = ml_dump_job_new(MEMLOG_SERVICE_DUMP_REASON_PAGE, on_done, context);
    if (job != NULL) {
        job->file.fd = file_fd;
        job->is_snapshot = true;
        job->content = content;
        ml_dump_job_queue(engine, job);
    }
}

void ml_engine_dump_as(
    struct ml_engine *engine,
    enum memlog_service_dump_reason reason,
    const struct ml_dump_trigger *trigger,
    ml_dump_done *on_done,
    void *context
) {
    struct ml_dump_job *job = ml_dump_job_new(reason, on_done, context);
    if (job != NULL) {
        job->trigger = *trigger;
        ml_dump_job_queue(engine, job);
    }
}

void ml_dump_notice(
    struct ml_engine *engine, const char *path, const char *why, bool complete, const char *trouble
) {
    const bool has_why = why[0] != '\0';
    const char *lacks = has_why ? "; not complete: " : ", incomplete: ";
    ml_engine_notice(
        engine,
        "%s%s%s%s%s",
        path,
        has_why ? ": " : "",
        why,
        complete ? "" : lacks,
        complete ? "" : trouble
    );
}

static void on_interval_dump(void *context, const char *path, bool complete, const char *trouble) {
    struct ml_engine *engine = context;
    if (path[0] == '\0') {
        ml_engine_notice(engine, "no dump was taken: %s", trouble);
    } else {
        ml_dump_notice(engine, path, "", complete, trouble);
    }
}

static void on_interval(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    /* One that takes longer than the interval must not make them pile up. */
    if (engine->phase == ML_PHASE_RUNNING && engine->jobs == NULL) {
        ml_engine_dump(
            engine, MEMLOG_SERVICE_DUMP_REASON_INTERVAL, NULL, 0, on_interval_dump, engine
        );
    }
}

void ml_engine_dumps_init(struct ml_engine *engine) {
    engine->dumps.folder_fd = -1;
    ev_init(&engine->guard_timer, on_guard);
    engine->guard_timer.data = engine;
    double interval_s = (double)engine->options->dump_interval_s;
    ev_timer_init(&engine->interval_timer, on_interval, interval_s, interval_s);
    engine->interval_timer.data = engine;
    if (engine->options->dump_interval_s > 0) {
        ev_timer_start(engine->loop, &engine->interval_timer);
    }
}

void ml_engine_dumps_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->interval_timer);
    ev_timer_stop(engine->loop, &engine->guard_timer);
    while (engine->jobs != NULL) {
        struct ml_dump_job *job = engine->jobs;
        engine->jobs = job->next;
        if (job->file.temporary[0] != '\0') {
            discard_file(job);
        }
        job->on_done(job->context, "", false, "the run is over");
        ml_dump_job_free(job);
    }
    ml_dumps_close(&engine->dumps);
}

static void on_uploads_settled(void *context) {
    struct ml_engine *engine = context;
    engine->on_finished(
        engine->finished_context, engine->final.path, engine->final.complete, engine->final.trouble
    );
}

static void on_final_dump(void *context, const char *path, bool complete, const char *trouble) {
    struct ml_engine *engine = context;
    if (engine->uploader == NULL) {
        engine->on_finished(engine->finished_context, path, complete, trouble);
        return;
    }
    /* The exit dump itself is not sent: nobody has asked for that. */
    (void)snprintf(engine->final.path, sizeof(engine->final.path), "%s", path);
    engine->final.complete = complete;
    (void)snprintf(engine->final.trouble, sizeof(engine->final.trouble), "%s", trouble);
    const double wait_s = (double)engine->options->upload.wait_s;
    ml_uploader_settle(engine->uploader, wait_s, on_uploads_settled, engine);
}

static void
on_drained(void *context, enum ml_status status, const struct memlog_service_drain_reply *reply) {
    struct ml_engine *engine = context;
    ev_timer_stop(engine->loop, &engine->guard_timer);
    if (status != ML_OK && may_come_back(engine)) {
        ml_engine_set_phase(engine, ML_PHASE_WAIT);
        return;
    }
    if (status == ML_OK && !reply->complete) {
        ml_engine_notice(
            engine, "not everything that ended processes left behind was read in time"
        );
    }
    ml_engine_dump(engine, MEMLOG_SERVICE_DUMP_REASON_EXIT, NULL, 0, on_final_dump, engine);
}

static void drain(struct ml_engine *engine) {
    if (engine->service_state == ML_ENGINE_RESTARTING) {
        ml_engine_set_phase(engine, ML_PHASE_WAIT);
        return;
    }
    guard(engine, ML_DRAIN_DEADLINE_MS);
    ml_service_link_drain(&engine->link, ML_DRAIN_DEADLINE_MS, on_drained, engine);
}

/* What processes have said before they ended, and the loop has not come to yet. */
static void hear_all(struct ml_engine *engine) {
    /* More than lie in a socket at once: one who goes on talking must not hold up the end. */
    enum { TURNS_MAX = 32 };
    struct ml_engine_connection *next = NULL;
    for (struct ml_engine_connection *one = engine->connections; one != NULL; one = next) {
        next = one->next;
        const bool is_clients = one->member_id != 0; /* commands wait for the loop */
        for (int i = 0; is_clients && i < TURNS_MAX && ml_channel_turn(one->channel); i++) {
        }
    }
}

void ml_engine_finish(struct ml_engine *engine, ml_dump_done *on_done, void *context) {
    ml_engine_set_phase(engine, ML_PHASE_END);
    engine->on_finished = on_done;
    engine->finished_context = context;
    ev_timer_stop(engine->loop, &engine->interval_timer);
    hear_all(engine);
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
            engine->not_profiled[count].has_other_profiler = engine->is_profiled;
            ml_list_root_told(engine, &engine->not_profiled[count]);
        }
    }
    if (!ml_engine_triggers_flush(engine, drain)) {
        drain(engine);
    }
}

void ml_engine_dumps_resume(struct ml_engine *engine) {
    if (engine->phase == ML_PHASE_WAITING) {
        ml_engine_set_phase(engine, ML_PHASE_RESUME);
        drain(engine);
    }
    if (engine->jobs != NULL && !engine->jobs->started) {
        start_job(engine);
    }
}

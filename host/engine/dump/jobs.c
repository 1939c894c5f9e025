#include "host/engine/dump/jobs.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/engine/dump/names.h"
#include "host/engine/dump/order.h"
#include "host/engine/lifecycle.h"
#include "host/engine/list/walk.h"
#include "host/engine/members/members.h"
#include "host/engine/views/views.h"
#include "host/process/loop.h"

/* Dumps that may wait. People and timers ask for them, not load. */
enum { ML_DUMPS_WAITING_MAX = 16 };

/* A dump that so many services die over is given up. */
enum { ML_DUMP_TRIES_MAX = 3 };

/* A service that hangs is ended this long after its deadline. */
enum { ML_GUARD_EXTRA_S = 60 };

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
    struct ml_dump_job *job = engine->jobs->first;
    engine->jobs->first = job->next;
    ml_dump_unguard(engine);
    job->on_done(job->context, path, complete, trouble);
    ml_dump_job_free(job);
    if (engine->jobs->first != NULL &&
        !engine->jobs->first->started) { /* on_done may have started the next one */
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
        return ML_OK; /* a cut snapshot shows what it has */
    }
    return is_whole ? ml_dumps_commit(&job->file, error) : ml_dumps_keep_cut(&job->file, error);
}

bool ml_dump_jobs_may_wait(const struct ml_engine *engine) {
    return engine->phase != ML_PHASE_CLOSED && engine->service_state != ML_ENGINE_ALONE;
}

/* The newest dump is written: remember why it was taken, if there is a reason. */
static void keep_words(struct ml_engine *engine, const struct ml_dump_trigger *trigger) {
    if (!trigger->decision.dump) {
        return;
    }
    struct ml_dump_words *words = &engine->jobs->words[engine->jobs->words_next];
    engine->jobs->words_next = (engine->jobs->words_next + 1) % ML_DUMP_WORDS_KEPT;
    words->number = engine->jobs->folder.last_number;
    (void)snprintf(words->text, sizeof(words->text), "%s", trigger->reason);
}

/* Nobody asks for the names of its code. */
static bool lacks_places(const struct ml_dump_job *job) {
    return job->content == MEMLOG_SERVICE_DUMP_CONTENT_SERIES ||
           job->content == MEMLOG_SERVICE_DUMP_CONTENT_GROWTH;
}

/* The first job's dump has all that it will have. */
static void settle(struct ml_engine *engine) {
    struct ml_dump_job *job = engine->jobs->first;
    struct ml_error_message error = {.text = ""};
    if (keep_file(job, job->is_whole, &error) != ML_OK) {
        end_job(engine, "", false, error.text);
        return;
    }
    if (job->is_whole) {
        ml_error_set(&error, "%s", job->trouble);
    } else {
        ml_error_set(
            &error, "%s: %s was cut off, what it holds can be read", job->trouble, job->file.path
        );
    }
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", job->is_snapshot ? "snapshot" : job->file.path);
    if (!job->is_snapshot) {
        keep_words(engine, &job->trigger);
    }
    end_job(engine, path, job->is_complete, error.text);
}

static void
on_dumped(void *context, enum ml_status status, const struct memlog_service_dump_reply *reply) {
    struct ml_engine *engine = context;
    struct ml_dump_job *job = engine->jobs->first;
    struct ml_error_message error = {.text = ""};
    if (status != ML_OK && ml_dump_jobs_may_wait(engine) && job->tries < ML_DUMP_TRIES_MAX) {
        /* The service died over it: its successor writes another dump. */
        ml_dump_unguard(engine);
        discard_file(job);
        job->started = false;
        return;
    }
    if (status == ML_OK) {
        job->is_whole = reply->whole;
        job->is_complete = reply->complete;
        ml_string_copy(job->trouble, sizeof(job->trouble), reply->trouble);
    }
    if (status != ML_OK || reply->written_bytes == 0) {
        ml_error_set(
            &error,
            "memlog-service did not write it: %s",
            status == ML_OK ? job->trouble : ml_status_text(status)
        );
        discard_file(job);
        end_job(engine, "", false, error.text);
        return;
    }
    if (!job->is_whole || lacks_places(job)) {
        settle(engine);
        return;
    }
    ml_dump_unguard(engine); /* the service is done */
    if (job->is_snapshot) {
        ml_dump_names_add_known(engine, job->file.fd);
        settle(engine);
    } else {
        ml_dump_names_add(engine, job->file.fd, settle);
    }
}

void ml_dump_guard(struct ml_engine *engine, uint32_t deadline_ms) {
    ml_dump_unguard(engine);
    ml_timer_start(
        engine->loop,
        &engine->jobs->guard_timer,
        (double)deadline_ms / 1000. + (double)ML_GUARD_EXTRA_S
    );
}

void ml_dump_unguard(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->jobs->guard_timer);
}

/* The service hangs. When it is killed, the link's callbacks end all waiting. */
static void on_guard(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    ml_engine_notice(engine, "memlog-service does not answer and is killed");
    if (engine->link.pid > 0 && ml_service_link_up(&engine->link)) {
        (void)kill(engine->link.pid, SIGKILL);
    }
}

/* Read the members' memory as it is now. Reading it holds each of them up a little. */
static void look_at_members(struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && ml_recording_in_service(member->recording)) {
            member->looks += member->looks == 0 ? 1 : 0; /* so that its memory is read */
            ml_member_look(engine, member);
        }
    }
    ml_list_walk(engine);
    (void)ml_list_look(engine, true);
}

/* Names of the code that the members' run-times have made until now. */
static void hand_code(struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && ml_recording_in_service(member->recording)) {
            ml_code_files_look(&member->code_files, member->pid);
            ml_member_hand_code(engine, member);
        }
    }
}

/* What was to be read is read. */
static void ask_service(struct ml_engine *engine) {
    struct ml_dump_job *job = engine->jobs->first;
    if (engine->service_state == ML_ENGINE_RESTARTING) { /* it has ended meanwhile */
        discard_file(job);
        job->started = false;
        return; /* ml_dump_jobs_resume */
    }
    if (job->content != MEMLOG_SERVICE_DUMP_CONTENT_SERIES) {
        hand_code(engine);
    }
    ml_dump_names_note(engine);
    struct memlog_service_dump_request request = {.file = job->file.fd};
    ml_dump_order_init(engine, job, &request.order);
    ml_dump_guard(engine, request.order.deadline_ms);
    ML_SERVICE_ASK(&engine->link, memlog_service_dump, &request, on_dumped, engine);
    ml_dump_order_fini(&request.order);
}

static void start_job(struct ml_engine *engine) {
    struct ml_dump_job *job = engine->jobs->first;
    struct ml_error_message error = {.text = ""};
    if (engine->service_state == ML_ENGINE_RESTARTING) {
        return; /* ml_dump_jobs_resume */
    }
    job->started = true;
    job->tries++;
    if (engine->jobs->folder.folder_fd < 0 && !job->is_snapshot) {
        end_job(engine, "", false, "there is no folder for dumps yet");
        return;
    }
    if (job->is_snapshot && job->reads_memory) {
        ml_views_want_all(engine, ask_service);
        return;
    }
    if (job->is_snapshot) {
        ask_service(engine);
        return;
    }
    if (ml_dumps_begin(&engine->jobs->folder, job->reason, &job->file, &error) != ML_OK) {
        end_job(engine, "", false, error.text);
        return;
    }
    look_at_members(engine);
    ml_views_want_all(engine, ask_service);
}

void ml_dump_job_queue(struct ml_engine *engine, struct ml_dump_job *job) {
    struct ml_dump_job **last = &engine->jobs->first;
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
    if (engine->jobs->first == job) {
        start_job(engine);
    }
}

void ml_engine_snapshot(
    struct ml_engine *engine,
    enum memlog_service_dump_content content,
    bool reads_memory,
    int file_fd,
    ml_dump_done *on_done,
    void *context
) {
    struct ml_dump_job *job = ml_dump_job_new(MEMLOG_SERVICE_DUMP_REASON_PAGE, on_done, context);
    if (job != NULL) {
        job->reads_memory = reads_memory;
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
    if (path[0] == '\0') {
        ml_engine_notice(
            engine,
            "no dump was taken%s%s%s: %s",
            has_why ? " (" : "",
            why,
            has_why ? ")" : "",
            trouble
        );
        return;
    }
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

void ml_dump_jobs_init(struct ml_engine *engine) {
    engine->jobs->folder.folder_fd = -1;
    ml_timer_init(&engine->jobs->guard_timer, on_guard, engine);
    ml_dump_names_init(engine);
}

void ml_dump_jobs_fini(struct ml_engine *engine) {
    ml_dump_unguard(engine);
    ml_dump_names_fini(engine);
    while (engine->jobs->first != NULL) {
        struct ml_dump_job *job = engine->jobs->first;
        engine->jobs->first = job->next;
        if (job->file.temporary[0] != '\0') {
            discard_file(job);
        }
        job->on_done(job->context, "", false, "the run is over");
        ml_dump_job_free(job);
    }
    ml_dumps_close(&engine->jobs->folder);
}

void ml_dump_jobs_resume(struct ml_engine *engine) {
    if (engine->jobs->first != NULL && !engine->jobs->first->started) {
        start_job(engine);
    }
}

const char *ml_engine_dump_words(const struct ml_engine *engine, uint32_t number) {
    for (uint32_t i = 0; number != 0 && i < ML_DUMP_WORDS_KEPT; i++) {
        if (engine->jobs->words[i].number == number) {
            return engine->jobs->words[i].text;
        }
    }
    return "";
}

const char *ml_engine_dumps_folder(const struct ml_engine *engine, int *out_fd) {
    *out_fd = engine->jobs->folder.folder_fd;
    return engine->jobs->folder.folder;
}

uint32_t ml_engine_last_dump(const struct ml_engine *engine) {
    return engine->jobs->folder.last_number;
}

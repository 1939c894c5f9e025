#include "host/engine/attach/attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/attach/precondition.h"
#include "host/engine/dump/folder.h"
#include "host/engine/dump/jobs.h"
#include "host/engine/list/known.h"
#include "host/engine/list/list.h"
#include "host/engine/members/members.h"
#include "host/engine/members/recorder.h"
#include "host/engine/members/targets.h"
#include "host/engine/members/watch.h"
#include "host/process/loop.h"

static const double ns_per_ms = 1e6;

/* Its member, while memlog is in it. */
static struct ml_member *member_of(const struct ml_attach_job *job) {
    struct ml_member *member = ml_members_running(&job->engine->members, job->pid);
    return member != NULL && member->start_ticks == job->start_ticks &&
                   member->attachment != ML_ATTACHMENT_NONE
               ? member
               : NULL;
}

/* ---- detach */

static void
on_detach_end(struct ml_attach_job *job, enum ml_attach_result result, const char *text) {
    struct ml_engine *engine = job->engine;
    struct ml_member *member = member_of(job);
    const bool is_clean = result != ML_ATTACH_UNKNOWN && result != ML_ATTACH_REFUSED;
    char name[ML_PROCESS_NAME_BYTES];
    char trouble[ML_ENGINE_ATTACH_TEXT_BYTES + 128] = "";
    if (member != NULL && member->attachment == ML_ATTACHMENT_DETACHING) {
        ml_member_set_attachment(member, is_clean ? ML_ATTACHMENT_CLEAN : ML_ATTACHMENT_HOOKED);
    }
    ml_process_name(job->pid, name);
    if (result == ML_ATTACH_REPAIRED) {
        ml_engine_notice(engine, "%s (%d): %s", name, (int)job->pid, text);
    } else if (!is_clean) {
        (void)snprintf(
            trouble,
            sizeof(trouble),
            "it is recorded no more, but memlog is still in it, and does nothing there: %s%s",
            text,
            result == ML_ATTACH_REFUSED ? "; 'memlog doctor --repair PID' takes it out" : ""
        );
    }
    job->on_done(job->context, is_clean && job->why != NULL ? job->why : trouble);
}

/* `wanted`: which process, and who is told. It records no more. */
static void detach(struct ml_engine *engine, const struct ml_attach_job *wanted) {
    struct ml_attach_job job = *wanted;
    struct ml_member *member = ml_members_running(&engine->members, job.pid);
    job.task = ML_TRACER_DETACH;
    job.on_end = on_detach_end;
    if (member != NULL && member->attachment == ML_ATTACHMENT_ATTACHED) {
        ml_member_set_attachment(member, ML_ATTACHMENT_LEAVE);
        (void)!ml_member_enable(engine, member, false); /* nor its forked children */
    }
    ml_attach_jobs_add(engine, &job);
}

void ml_attach_detach(
    struct ml_engine *engine,
    pid_t pid,
    uint64_t start_ticks,
    ml_control_done *on_done,
    void *context
) {
    const struct ml_attach_job job = {
        .pid = pid, .start_ticks = start_ticks, .on_done = on_done, .context = context};
    detach(engine, &job);
}

/* ---- attach */

static void note(struct ml_member *member, const char *text) {
    (void)snprintf(member->note, sizeof(member->note), "%s", text);
}

/* Some functions could not be hooked: who calls them is not seen. */
static void doubt(struct ml_engine *engine, struct ml_member *member, const char *refused) {
    if (refused[0] == '\0') {
        return;
    }
    (void)snprintf(
        member->trouble, sizeof(member->trouble), "not all of its allocator is hooked: %s", refused
    );
    ml_engine_notice(engine, "%s (%d): %s", member->name, (int)member->pid, member->trouble);
    if (ml_recording_in_service(member->recording)) {
        ml_service_link_trouble(&engine->link, member, member->trouble);
    }
}

static void say_attached(const struct ml_attach_job *job, const struct ml_member *member) {
    const struct memlog_tracer_traced *traced = &job->end.traced;
    ml_engine_notice(
        job->engine,
        "attached to %s (%d): %u functions hooked, %u thread%s stopped for %.1f ms at most; what "
        "it "
        "had allocated before is not known",
        member->name,
        (int)member->pid,
        traced->functions,
        traced->threads,
        traced->threads == 1 ? "" : "s",
        (double)traced->longest_stop_ns / ns_per_ms
    );
}

/* Its libraries come and go while they are looked at, or this host had no time for its Hello. */
static bool deserves_another_look(const struct ml_attach_job *job) {
    enum { LOOKS_MAX = 5 };
    return job->end.is_finished && job->end.outcome == MEMLOG_TRACER_OUTCOME_AGAIN &&
           job->looks + 1 < LOOKS_MAX && !job->engine->attaches->is_leaving;
}

static void look_again(const struct ml_attach_job *job) {
    struct ml_attach_job next = *job;
    next.looks++;
    next.tracer = NULL;
    ml_attach_jobs_add(job->engine, &next);
}

/* A member that has said Hello, and has not been hooked. */
static void
on_attach_failed(struct ml_attach_job *job, enum ml_attach_result result, const char *text) {
    struct ml_member *member = member_of(job);
    if (member != NULL && member->attachment == ML_ATTACHMENT_ATTACHING) {
        const bool is_clean = result != ML_ATTACH_UNKNOWN;
        ml_member_set_attachment(member, is_clean ? ML_ATTACHMENT_CLEAN : ML_ATTACHMENT_HOOKED);
        note(member, text);
    }
    if (deserves_another_look(job)) {
        look_again(job);
        return;
    }
    job->on_done(job->context, result == ML_ATTACH_GONE ? "it has ended" : text);
}

static void on_started(void *context, const char *trouble) {
    struct ml_attach_job *job = context;
    struct ml_member *member = member_of(job);
    if (trouble[0] == '\0' && member != NULL) {
        ml_attach_left_add(job->engine, job->pid, job->start_ticks);
        say_attached(job, member);
        doubt(job->engine, member, job->end.refused);
    }
    job->on_done(job->context, trouble);
}

static void
on_attach_end(struct ml_attach_job *job, enum ml_attach_result result, const char *text) {
    struct ml_engine *engine = job->engine;
    struct ml_member *member = member_of(job);
    if (result != ML_ATTACH_DONE) {
        on_attach_failed(job, result, text);
        return;
    }
    if (member != NULL && member->attachment == ML_ATTACHMENT_ATTACHING) {
        ml_member_set_attachment(member, ML_ATTACHMENT_HOOKED);
    } else {
        member = NULL;
    }
    if (member == NULL || engine->attaches->is_leaving) {
        const struct ml_attach_job undo = {
            .pid = job->pid,
            .start_ticks = job->start_ticks,
            .why = member == NULL ? "memlog was put into it, but no word of it has come"
                                  : "memlog is ending",
            .on_done = job->on_done,
            .context = job->context,
        };
        detach(engine, &undo);
        return;
    }
    /* Nothing was recorded before. It answers at once, as no service knows the member. */
    ml_engine_start_member(engine, member, job->sampling_bytes, job->stack_mode, on_started, job);
}

/* Why it is not to be attached to, by what this run knows; "": by that it may be. */
static const char *
why_not_here(struct ml_engine *engine, pid_t pid, char *text, size_t text_bytes) {
    const struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, pid);
    char executable[PATH_MAX];
    struct ml_command_line line = {.count = 0};
    if (engine->phase != ML_PHASE_RUNNING || engine->attaches->is_leaving) {
        return "memlog is ending";
    }
    if (ml_list_is_helper(engine, pid)) {
        return "it is a part of memlog itself";
    }
    if (engine->service_state == ML_ENGINE_ALONE) {
        return "there is no memlog-service any more";
    }
    if (ml_attach_jobs_of(engine, pid) != NULL) {
        return ml_attachment_why_not(ML_ATTACHMENT_ATTACHING);
    }
    if (one != NULL && one->kind == ML_UNRECORDED_IDLE_FORK) {
        return ml_engine_why_not(engine, pid);
    }
    ml_process_executable(pid, executable, sizeof(executable));
    const bool has_line = ml_process_command_line(pid, &line) == ML_OK;
    const bool is_forbidden = ml_targets_forbid_program(
        engine, has_line ? line.joined : "", executable, text, text_bytes
    );
    ml_command_line_fini(&line);
    return is_forbidden ? text : "";
}

static void attach(
    struct ml_engine *engine,
    pid_t pid,
    uint64_t sampling_bytes,
    uint32_t stack_mode,
    ml_control_done *on_done,
    void *context
) {
    char text[ML_ATTACHABLE_TEXT_BYTES] = "";
    const struct ml_member *ended = ml_members_newest(&engine->members, pid);
    /* First what this run knows of it: a fork that is idle has memlog's library in it, too. */
    const char *why = why_not_here(engine, pid, text, sizeof(text));
    if (why[0] == '\0') {
        ml_attach_why_not(pid, text);
        why = text;
        if (text[0] != '\0' && ended != NULL && ml_process_facts(pid).has_ended) {
            why = "it has ended";
        }
    }
    if (why[0] != '\0') {
        on_done(context, why);
        return;
    }
    const struct ml_attach_job job = {
        .task = ML_TRACER_ATTACH,
        .pid = pid,
        .start_ticks = ml_process_facts(pid).start_ticks,
        .sampling_bytes = sampling_bytes,
        .stack_mode = stack_mode,
        .on_end = on_attach_end,
        .on_done = on_done,
        .context = context,
    };
    ml_attach_jobs_add(engine, &job);
}

/* ---- stop */

/* Somebody who waits for a stop, behind which comes a detach. */
struct stop {
    struct ml_engine *engine;
    pid_t pid;
    uint64_t start_ticks;
    ml_control_done *on_done;
    void *context;
};

static void on_stopped(void *context, const char *trouble) {
    struct stop *stop = context;
    const struct ml_member *member = ml_members_running(&stop->engine->members, stop->pid);
    const bool is_there = member != NULL && member->start_ticks == stop->start_ticks &&
                          member->attachment == ML_ATTACHMENT_ATTACHED;
    if (trouble[0] == '\0' && is_there) {
        ml_attach_detach(stop->engine, stop->pid, stop->start_ticks, stop->on_done, stop->context);
    } else {
        stop->on_done(stop->context, trouble);
    }
    free(stop);
}

static void stop_attached(
    struct ml_engine *engine, struct ml_member *member, ml_control_done *on_done, void *context
) {
    struct stop *stop = malloc(sizeof(*stop));
    if (stop == NULL) {
        on_done(context, "no memory");
        return;
    }
    *stop = (struct stop
    ){.engine = engine,
      .pid = member->pid,
      .start_ticks = member->start_ticks,
      .on_done = on_done,
      .context = context};
    if (ml_recording_is_on(member->recording)) {
        ml_engine_stop_member(engine, member, on_stopped, stop);
    } else {
        on_stopped(stop, "");
    }
}

/* ---- what callers see */

void ml_engine_start_process(
    struct ml_engine *engine,
    pid_t pid,
    uint64_t sampling_bytes,
    uint32_t stack_mode,
    ml_control_done *on_done,
    void *context
) {
    struct ml_member *member = ml_members_running(&engine->members, pid);
    if (member == NULL || ml_member_has_ended(engine, member) ||
        member->attachment == ML_ATTACHMENT_DETACHED) {
        attach(engine, pid, sampling_bytes, stack_mode, on_done, context);
    } else {
        ml_engine_start_member(engine, member, sampling_bytes, stack_mode, on_done, context);
    }
}

void ml_engine_stop_process(
    struct ml_engine *engine, pid_t pid, ml_control_done *on_done, void *context
) {
    struct ml_member *member = ml_members_running(&engine->members, pid);
    if (member == NULL) {
        on_done(context, ml_engine_why_not(engine, pid));
    } else if (member->attachment == ML_ATTACHMENT_ATTACHED) {
        stop_attached(engine, member, on_done, context);
    } else {
        ml_engine_stop_member(engine, member, on_done, context);
    }
}

enum ml_status
ml_engine_set_attached(struct ml_engine *engine, pid_t pid, struct ml_error_message *error) {
    char name[ML_PROCESS_NAME_BYTES];
    ml_process_name(pid, name);
    if (ml_process_command_line(pid, &engine->attaches->line) == ML_OK) {
        engine->root_argv = engine->attaches->line.arguments;
    }
    return ml_dumps_open(&engine->jobs->folder, engine->options->output, name, pid, error);
}

void ml_attach_init(struct ml_engine *engine) {
    ml_attach_jobs_init(engine);
    ml_attach_let_go_init(engine);
    ml_attach_left_init(engine);
}

void ml_attach_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->attaches->leave_timer);
    ml_attach_left_fini(engine);
    ml_attach_jobs_fini(engine);
    ml_command_line_fini(&engine->attaches->line);
}

/* Starting and stopping the recording of one process, as somebody has asked. Room: host. */
#include <stdio.h>
#include <stdlib.h>

#include "host/engine/members/recorder.h"
#include "host/engine/members/targets.h"
#include "host/engine/state.h"

/* A request that the service has not answered. The member may have ended by then; it stays in the
 * list. */
struct pending {
    struct ml_engine *engine;
    struct ml_member *member;
    ml_control_done *on_done;
    void *context;
};

/* Why the request cannot be carried out; "": it can. */
static const char *
refusal_of(const struct ml_engine *engine, struct ml_member *member, bool is_start) {
    if (member->state != ML_MEMBER_RUNNING) {
        return "it has ended";
    }
    if (!ml_attachment_may_record(member->attachment)) {
        return ml_attachment_why_not(member->attachment);
    }
    if (ml_recording_is_lost(member->recording) || member->endpoint.control_fd < 0) {
        return member->note[0] != '\0' ? member->note : "it has no pipe to the service";
    }
    if (ml_request_waits(member->request)) {
        return "it is just being started or stopped";
    }
    if (engine->service_state == ML_ENGINE_ALONE) {
        return "there is no memlog-service any more";
    }
    if (ml_recording_is_on(member->recording) == is_start) {
        return is_start ? "it is being recorded already" : "it is not being recorded";
    }
    return is_start && ml_targets_forbid(engine, member) ? member->note : "";
}

static void set_stopped_note(struct ml_member *member) {
    (void)snprintf(member->note, sizeof(member->note), "stopped; what was recorded stays");
}

/* Nothing of the member's former profile is wanted: it begins the next one. */
static const char *begin(struct ml_engine *engine, struct ml_member *member) {
    member->profile++;
    member->from_startup = false;
    member->trouble[0] = '\0';
    member->stopped = (struct memlog_service_moment){.ticks = 0};
    if (ml_member_enable(engine, member, true) != ML_OK) {
        return "its control page cannot be written";
    }
    member->note[0] = '\0';
    return "";
}

static void on_begun(
    void *context, enum ml_status status, const struct memlog_service_begin_profile_reply *reply
) {
    struct pending *pending = context;
    struct ml_member *member = pending->member;
    const char *trouble = "memlog-service has died; try again";
    member->request = ml_request_settled(member->request);
    if (ml_recording_is_lost(member->recording)) { /* meanwhile */
        trouble = member->note;
    } else if (status == ML_OK && reply->running && member->state == ML_MEMBER_RUNNING) {
        trouble = begin(pending->engine, member);
        if (trouble[0] == '\0') {
            ml_member_set_recording(member, ML_RECORDING_SERVE);
        }
    } else if (status == ML_OK) {
        trouble = "it has ended";
    }
    pending->on_done(pending->context, trouble);
    free(pending);
}

static struct pending *pending_new(
    struct ml_engine *engine,
    struct ml_member *member,
    enum ml_request request,
    ml_control_done *on_done,
    void *context
) {
    struct pending *pending = calloc(1, sizeof(*pending));
    if (pending == NULL) {
        on_done(context, "no memory");
        return NULL;
    }
    member->request = request;
    *pending = (struct pending
    ){.engine = engine, .member = member, .on_done = on_done, .context = context};
    return pending;
}

void ml_engine_start_member(
    struct ml_engine *engine,
    struct ml_member *member,
    uint64_t sampling_bytes,
    uint32_t stack_mode,
    ml_control_done *on_done,
    void *context
) {
    const char *trouble = refusal_of(engine, member, true);
    if (trouble[0] != '\0') {
        on_done(context, trouble);
        return;
    }
    member->request = ML_REQUEST_START;
    member->sampling_bytes = sampling_bytes;
    member->stack_mode = stack_mode;
    if (ml_recording_in_service(member->recording)) {
        const struct memlog_service_begin_profile_request request = {
            .id = member->id, .profile = member->profile + 1};
        struct pending *pending =
            pending_new(engine, member, ML_REQUEST_STARTING, on_done, context);
        if (pending != NULL) {
            ML_SERVICE_ASK(
                &engine->link, memlog_service_begin_profile, &request, on_begun, pending
            );
        }
        return;
    }
    ml_member_empty_pipe(member);
    trouble = begin(engine, member);
    if (trouble[0] == '\0') {
        ml_member_set_recording(member, ML_RECORDING_EMPTY);
        ml_member_record(engine, member);
    }
    on_done(context, trouble);
}

static void on_stopped(
    void *context, enum ml_status status, const struct memlog_service_stop_client_reply *reply
) {
    struct pending *pending = context;
    struct ml_member *member = pending->member;
    (void)reply;
    member->request = ml_request_settled(member->request);
    if (member->state == ML_MEMBER_RUNNING) {
        (void)!ml_member_enable(pending->engine, member, false);
        ml_member_set_recording(member, ML_RECORDING_STOP);
        if (!ml_recording_is_lost(member->recording)) {
            set_stopped_note(member);
        }
    }
    pending->on_done(
        pending->context,
        status == ML_OK ? "" : "memlog-service died meanwhile: it is stopped, its profile is gone"
    );
    free(pending);
}

void ml_engine_stop_member(
    struct ml_engine *engine, struct ml_member *member, ml_control_done *on_done, void *context
) {
    const char *refusal = refusal_of(engine, member, false);
    if (refusal[0] != '\0') {
        on_done(context, refusal);
        return;
    }
    member->request = ML_REQUEST_STOP;
    member->stopped = ml_engine_timestamp(engine);
    if (ml_recording_in_service(member->recording)) {
        const struct memlog_service_stop_client_request request = {.id = member->id};
        struct pending *pending =
            pending_new(engine, member, ML_REQUEST_STOPPING, on_done, context);
        if (pending != NULL) {
            ML_SERVICE_ASK(
                &engine->link, memlog_service_stop_client, &request, on_stopped, pending
            );
        }
        return;
    }
    (void)!ml_member_enable(engine, member, false);
    ml_member_set_recording(member, ML_RECORDING_STOP);
    set_stopped_note(member);
    on_done(context, "");
}

#include "host/engine/members/control.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/engine/members/recorder.h"
#include "host/engine/members/targets.h"
#include "host/process/clock.h"

/* A wish that waits for the service's word. The member may have ended by then; it stays in the
 * list. */
struct wish {
    struct ml_engine *engine;
    struct ml_member *member;
    ml_control_done *on_done;
    void *context;
};

static const char *refusal_of(const struct ml_engine *engine, const struct ml_member *member) {
    if (member->state != ML_MEMBER_RUNNING) {
        return "it has ended";
    }
    if (ml_recording_is_lost(member->recording) || member->endpoint.control_fd < 0) {
        return member->note[0] != '\0' ? member->note : "it has no pipe to the service";
    }
    if (ml_wish_waits(member->wish)) {
        return "it is just being started or stopped";
    }
    return engine->service_state == ML_ENGINE_ALONE ? "there is no memlog-service any more" : "";
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
    struct wish *wish = context;
    struct ml_member *member = wish->member;
    const char *trouble = "memlog-service has died; try again";
    member->wish = ml_wish_settled(member->wish);
    if (ml_recording_is_lost(member->recording)) { /* meanwhile */
        trouble = member->note;
    } else if (status == ML_OK && reply->running && member->state == ML_MEMBER_RUNNING) {
        trouble = begin(wish->engine, member);
        if (trouble[0] == '\0') {
            ml_member_set_recording(member, ML_RECORDING_SERVE);
        }
    } else if (status == ML_OK) {
        trouble = "it has ended";
    }
    wish->on_done(wish->context, trouble);
    free(wish);
}

static struct wish *wish_new(
    struct ml_engine *engine, struct ml_member *member, ml_control_done *on_done, void *context
) {
    struct wish *wish = calloc(1, sizeof(*wish));
    if (wish == NULL) {
        on_done(context, "no memory");
        return NULL;
    }
    member->wish = member->wish == ML_WISH_START ? ML_WISH_STARTING : ML_WISH_STOPPING;
    *wish =
        (struct wish){.engine = engine, .member = member, .on_done = on_done, .context = context};
    return wish;
}

void ml_engine_start_member(
    struct ml_engine *engine,
    struct ml_member *member,
    uint64_t sampling_bytes,
    uint32_t stack_mode,
    ml_control_done *on_done,
    void *context
) {
    const char *refusal = refusal_of(engine, member);
    if (refusal[0] == '\0' && ml_recording_is_on(member->recording)) {
        refusal = "it is being recorded already";
    }
    if (refusal[0] == '\0' && ml_targets_forbid(engine, member)) {
        refusal = member->note;
    }
    if (refusal[0] != '\0') {
        on_done(context, refusal);
        return;
    }
    member->wish = ML_WISH_START;
    member->sampling_bytes = sampling_bytes;
    member->stack_mode = stack_mode;
    if (ml_recording_in_service(member->recording)) {
        struct wish *wish = wish_new(engine, member, on_done, context);
        if (wish != NULL) {
            ml_service_link_begin_profile(
                &engine->link, member->id, member->profile + 1, on_begun, wish
            );
        }
        return;
    }
    ml_member_empty_pipe(member);
    const char *trouble = begin(engine, member);
    if (trouble[0] == '\0') {
        ml_member_set_recording(member, ML_RECORDING_EMPTY);
        ml_member_record(engine, member);
    }
    on_done(context, trouble);
}

static void on_stopped(
    void *context, enum ml_status status, const struct memlog_service_stop_client_reply *reply
) {
    struct wish *wish = context;
    struct ml_member *member = wish->member;
    (void)reply;
    member->wish = ml_wish_settled(member->wish);
    if (member->state == ML_MEMBER_RUNNING) {
        (void)!ml_member_enable(wish->engine, member, false);
        ml_member_set_recording(member, ML_RECORDING_STOP);
        if (!ml_recording_is_lost(member->recording)) {
            set_stopped_note(member);
        }
    }
    wish->on_done(
        wish->context,
        status == ML_OK ? "" : "memlog-service died meanwhile: it is stopped, its profile is gone"
    );
    free(wish);
}

void ml_engine_stop_member(
    struct ml_engine *engine, struct ml_member *member, ml_control_done *on_done, void *context
) {
    const char *refusal = refusal_of(engine, member);
    if (refusal[0] == '\0' && !ml_recording_is_on(member->recording)) {
        refusal = "it is not being recorded";
    }
    if (refusal[0] != '\0') {
        on_done(context, refusal);
        return;
    }
    member->wish = ML_WISH_STOP;
    member->stopped = ml_engine_timestamp(engine);
    if (ml_recording_in_service(member->recording)) {
        struct wish *wish = wish_new(engine, member, on_done, context);
        if (wish != NULL) {
            ml_service_link_stop(&engine->link, member->id, on_stopped, wish);
        }
        return;
    }
    (void)!ml_member_enable(engine, member, false);
    ml_member_set_recording(member, ML_RECORDING_STOP);
    set_stopped_note(member);
    on_done(context, "");
}

static void on_forbidden(void *context, const char *trouble) {
    struct ml_member *member = context;
    (void)trouble;
    (void)ml_targets_forbid(member->members->context, member);
}

void ml_engine_stop_forbidden(struct ml_engine *engine, struct ml_member *member) {
    if (ml_recording_is_on(member->recording) && !ml_wish_waits(member->wish) &&
        ml_targets_forbid(engine, member)) {
        ml_engine_stop_member(engine, member, on_forbidden, member);
    }
}

#include "host/engine/members/recorder.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/scripts/script_names.h"
#include "host/engine/members/governor.h"
#include "host/engine/members/targets.h"

struct ml_control_page ml_member_control_page(
    const struct ml_engine *engine, const struct ml_member *member, bool enabled
) {
    const struct ml_options *options = engine->options;
    const bool has_own = member->sampling_bytes != 0;
    struct ml_control_page page = {
        .fork_enabled =
            ml_attachment_may_record(member->attachment) && ml_targets_want_forked(engine) ? 1 : 0,
        .enabled = enabled ? 1 : 0,
        .sampling_bytes = has_own ? member->sampling_bytes : ml_governor_interval(engine, member),
        .all_sampled = 1, /* nothing has been recorded yet */
        .stack_mode = has_own ? member->stack_mode : (uint32_t)options->stack_mode,
        .overrun = (uint32_t)options->overrun,
        .unwind_check = options->unwind_check,
        .frames = (uint32_t)options->frames,
        .clock = (uint32_t)engine->clock,
        .fork_pipe_bytes = engine->fork_pipe_bytes,
        .profile = member->profile,
        .hooks_entries = options->leaves_executables ? 0 : 1,
        .measures_cost = options->overhead.promised_ppm != 0 ? 1 : 0,
    };
    memcpy(page.allocators, options->allocators, sizeof(page.allocators));
    return page;
}

void ml_engine_tell_pipes(struct ml_engine *engine) {
    const uint32_t bytes = ml_pipe_budget_fork_bytes(&engine->budget);
    if (bytes == engine->fork_pipe_bytes) {
        return;
    }
    engine->fork_pipe_bytes = bytes;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        if (engine->members.items[i]->state == ML_MEMBER_RUNNING) {
            ml_endpoint_fork_pipe(&engine->members.items[i]->endpoint, bytes);
        }
    }
}

enum ml_status ml_member_enable(struct ml_engine *engine, struct ml_member *member, bool enabled) {
    const struct ml_control_page page = ml_member_control_page(engine, member, enabled);
    return ml_endpoint_control(&member->endpoint, &page);
}

void ml_member_lost(struct ml_engine *engine, struct ml_member *member, const char *reason) {
    ml_member_set_recording(member, ML_RECORDING_LOSE);
    (void)snprintf(member->note, sizeof(member->note), "%s", reason);
    if (member->state == ML_MEMBER_RUNNING) {
        (void)!ml_member_enable(engine, member, false);
    }
}

/* A forked child of a process whose profile has gone with a service: its own is whole, but for what
 * it began with. */
static void doubt_inheritance(const struct ml_engine *engine, struct ml_member *member) {
    const struct ml_member *parent = ml_members_find(&engine->members, member->parent_id);
    if (member->birth == ML_BIRTH_FORK && member->from_startup && member->trouble[0] == '\0' &&
        parent != NULL && ml_recording_was_ever_on(parent->recording) &&
        !ml_recording_in_service(parent->recording)) {
        (void)snprintf(
            member->trouble,
            sizeof(member->trouble),
            "what it inherited is not known: its parent's profile went with a service that died"
        );
    }
}

/* Its functions were asked for, and will have no names. */
static void note_python(struct ml_engine *engine, const struct ml_member *member) {
    const char *next = engine->options->frames == ML_FRAMES_PYTHON
                           ? ml_script_names_unread_python(member->executable)
                           : NULL;
    if (next != NULL && ml_engine_says_first(engine, ML_SAID_PYTHON)) {
        ml_engine_notice(
            engine,
            "--frames=python reads Python " ML_SCRIPT_NAMES_READ
            ", not %s (%d): its functions have no names; %s",
            member->executable,
            (int)member->pid,
            next
        );
    }
}

void ml_member_record(struct ml_engine *engine, struct ml_member *member) {
    const bool is_up = ml_service_link_up(&engine->link);
    ml_member_set_recording(member, is_up ? ML_RECORDING_SERVE : ML_RECORDING_WAIT);
    member->note[0] = '\0';
    note_python(engine, member);
    if (is_up) {
        doubt_inheritance(engine, member);
        ml_service_link_add(
            &engine->link,
            member,
            member->sampling_bytes != 0 ? member->sampling_bytes
                                        : ml_governor_interval(engine, member)
        );
        ml_governor_begin(engine, member);
    }
}

bool ml_engine_detach_members(struct ml_engine *engine, uint32_t *out_ended) {
    uint32_t ended = 0;
    bool had_any = false;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (!ml_recording_in_service(member->recording)) {
            continue;
        }
        had_any = true;
        ml_member_set_recording(member, ML_RECORDING_DETACH);
        if (member->state != ML_MEMBER_RUNNING) {
            ended++;
            (void
            )snprintf(member->note, sizeof(member->note), "its profile went with memlog-service");
        } else if (ml_recording_is_on(member->recording)) {
            (void)!ml_member_enable(engine, member, false);
        }
    }
    *out_ended = ended;
    return had_any;
}

/* A service that died may have read half a frame. Behind what is in the pipe now, frames are whole:
 * each was written at once. A process that goes on writing loses nothing but itself. */
void ml_member_empty_pipe(struct ml_member *member) {
    static uint8_t nothing[1 << 16];
    enum { READS_MAX = 1 << 10 };
    for (unsigned i = 0; i < READS_MAX; i++) {
        if (read(member->endpoint.pipe_read_fd, nothing, sizeof(nothing)) <= 0) {
            return;
        }
    }
}

static void attach(struct ml_engine *engine, struct ml_member *member, const char *ending) {
    if (member->recording == ML_RECORDING_WAITS_TORN) {
        ml_member_empty_pipe(member);
        member->profile++;
        member->from_startup = false;
        ml_member_set_recording(member, ML_RECORDING_EMPTY);
        (void)snprintf(
            member->trouble,
            sizeof(member->trouble),
            "%s: what it had allocated before is not known",
            ending
        );
    }
    if (ml_member_enable(engine, member, true) == ML_OK) {
        ml_member_record(engine, member);
    }
}

void ml_engine_attach_members(struct ml_engine *engine, const char *ending) {
    for (uint32_t i = 0; i < engine->members.count && engine->service_state == ML_ENGINE_SERVING;
         i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && ml_recording_is_on(member->recording) &&
            !ml_recording_in_service(member->recording) && member->endpoint.control_fd >= 0) {
            attach(engine, member, ending);
        }
    }
}

void ml_engine_quiet_members(struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && member->endpoint.control_fd >= 0) {
            struct ml_control_page page = member->endpoint.control;
            page.enabled = 0;
            page.fork_enabled = 0;
            (void)!ml_endpoint_control(&member->endpoint, &page);
            ml_member_set_recording(member, ML_RECORDING_STOP);
        }
    }
}

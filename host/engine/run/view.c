/* What people are shown of a run: by the page, which knows no internals. Room: host. */
#include "host/engine/list/judge.h"
#include "host/engine/members/control.h"
#include "host/engine/state.h"

uint32_t ml_engine_processes_count(const struct ml_engine *engine) {
    return engine->members.count;
}

struct ml_engine_process ml_engine_process(const struct ml_engine *engine, uint32_t index) {
    const struct ml_member *member = engine->members.items[index];
    const bool has_own = member->sampling_bytes != 0;
    return (struct ml_engine_process){
        .id = member->id,
        .parent_id = member->parent_id,
        .pid = member->pid,
        .parent_pid = member->parent_pid,
        .name = member->name,
        .line = &member->line,
        .role = member->role,
        .state = ml_member_state_name(member->state),
        .note = member->note,
        .recording = member->recording,
        .is_running = member->state == ML_MEMBER_RUNNING,
        .is_recordable =
            member->endpoint.control_fd >= 0 && !ml_recording_is_lost(member->recording),
        .from_startup = member->from_startup,
        .sampling_bytes = has_own ? member->sampling_bytes : engine->options->sampling_bytes,
        .stack_mode = has_own ? member->stack_mode : (uint32_t)engine->options->stack_mode,
        .footprint_bytes = member->footprint_bytes,
        .resident_bytes = member->resident_bytes,
        .ending = member->ending,
        .start = member->start,
        .end = member->end,
    };
}

uint32_t ml_engine_unrecorded_count(const struct ml_engine *engine) {
    return engine->unrecorded.count;
}

struct ml_engine_unrecorded ml_engine_unrecorded(const struct ml_engine *engine, uint32_t index) {
    const struct ml_unrecorded *one = engine->unrecorded.items[index];
    return (struct ml_engine_unrecorded){
        .id = one->id,
        .parent_id = one->parent_id,
        .pid = one->pid,
        .parent_pid = one->parent_pid,
        .name = one->name,
        .line = &one->line,
        .role = one->role,
        .state = ml_member_state_name(one->state),
        .reason = one->reason,
        .is_idle = one->is_idle,
        .footprint_bytes = one->footprint_bytes,
        .resident_bytes = one->resident_bytes,
        .ending = one->ending,
        .start = one->start,
        .end = one->end,
        .folded_processes = one->folded_processes,
    };
}

void ml_engine_judge_unrecorded(struct ml_engine *engine, uint32_t index) {
    ml_list_judge(engine, engine->unrecorded.items[index]);
}

uint32_t ml_engine_told_count(const struct ml_engine *engine) {
    return engine->not_profiled_count;
}

struct ml_engine_told ml_engine_told(const struct ml_engine *engine, uint32_t index) {
    const struct ml_not_profiled *item = &engine->not_profiled[index];
    return (struct ml_engine_told){
        .pid = item->pid,
        .parent_pid = item->parent_pid,
        .path = item->path != NULL ? item->path : "",
        .reason = item->reason,
    };
}

void ml_engine_figures(struct ml_engine *engine, ml_engine_on_figures *on_reply, void *context) {
    ml_service_link_figures(&engine->link, on_reply, context);
}

enum ml_engine_who ml_engine_who(const struct ml_engine *engine, pid_t pid, uint32_t *out_id) {
    const struct ml_member *member = ml_members_running(&engine->members, pid);
    if (member != NULL) {
        *out_id = member->id;
        return ML_ENGINE_RUNNING;
    }
    return ml_members_newest(&engine->members, pid) != NULL ? ML_ENGINE_ENDED : ML_ENGINE_NOBODY;
}

void ml_engine_start_process(
    struct ml_engine *engine,
    uint32_t id,
    uint64_t sampling_bytes,
    uint32_t stack_mode,
    ml_control_done *on_done,
    void *context
) {
    struct ml_member *member = ml_members_find(&engine->members, id);
    if (member == NULL) {
        on_done(context, "there is no such process");
        return;
    }
    ml_engine_start_member(engine, member, sampling_bytes, stack_mode, on_done, context);
}

void ml_engine_stop_process(
    struct ml_engine *engine, uint32_t id, ml_control_done *on_done, void *context
) {
    struct ml_member *member = ml_members_find(&engine->members, id);
    if (member == NULL) {
        on_done(context, "there is no such process");
        return;
    }
    ml_engine_stop_member(engine, member, on_done, context);
}

const struct ml_options *ml_engine_options(const struct ml_engine *engine) {
    return engine->options;
}

char *const *ml_engine_program(const struct ml_engine *engine) {
    return engine->root_argv;
}

struct ml_uploader *ml_engine_uploader(const struct ml_engine *engine) {
    return engine->uploader;
}

struct memlog_service_moment ml_engine_start_moment(const struct ml_engine *engine) {
    return engine->start;
}

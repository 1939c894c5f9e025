/* What people are shown of a run: by the page, which knows no internals. Room: host. */
#include "host/engine/list/judge.h"
#include "host/engine/members/governor.h"
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
        .sampling_bytes = has_own ? member->sampling_bytes : ml_governor_interval(engine, member),
        .overhead = engine->options->overhead.promised_ppm != 0 ? &member->overhead : NULL,
        .stack_mode = has_own ? member->stack_mode : (uint32_t)engine->options->stack_mode,
        .footprint_bytes = member->footprint_bytes,
        .resident_bytes = member->resident_bytes,
        .memory = &member->memory,
        .ending = member->ending,
        .start = member->start,
        .end = member->end,
    };
}

const struct ml_memory_history *ml_engine_tree_memory(const struct ml_engine *engine) {
    return &engine->tree_memory;
}

uint32_t ml_engine_unrecorded_count(const struct ml_engine *engine) {
    return engine->unrecorded.count;
}

struct ml_engine_process ml_engine_unrecorded(const struct ml_engine *engine, uint32_t index) {
    const struct ml_unrecorded *one = engine->unrecorded.items[index];
    return (struct ml_engine_process){
        .id = one->id,
        .parent_id = one->parent_id,
        .pid = one->pid,
        .parent_pid = one->parent_pid,
        .name = one->name,
        .line = &one->line,
        .role = one->role,
        .state = ml_member_state_name(one->state),
        .note = one->reason,
        .is_idle = one->kind == ML_UNRECORDED_IDLE_FORK,
        .footprint_bytes = one->footprint_bytes,
        .resident_bytes = one->resident_bytes,
        .memory = &one->memory,
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

uint64_t ml_engine_lost_forks(const struct ml_engine *engine) {
    return engine->lost_forks;
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

struct ml_member *ml_engine_running(const struct ml_engine *engine, pid_t pid) {
    return ml_members_running(&engine->members, pid);
}

bool ml_engine_has_ended(const struct ml_engine *engine, pid_t pid) {
    const struct ml_member *member = ml_members_newest(&engine->members, pid);
    return member != NULL && member->state != ML_MEMBER_RUNNING;
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

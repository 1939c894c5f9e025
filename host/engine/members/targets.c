/* Who is recorded besides what the mode says: programs that the machine's owner forbids, and names
 * that somebody has asked for. Room: host. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/engine/state.h"
#include "host/process/paths.h"

/* ---- never */

enum ml_status ml_engine_never_open(struct ml_engine *engine, struct ml_error_message *error) {
    enum ml_status status =
        ml_never_list_load(&engine->never[0], ML_NEVER_LIST_FOLDER, ML_NEVER_LIST_FILE, 0, error);
    if (status == ML_OK && engine->options->never_list != NULL) {
        status = ml_never_list_load_file(
            &engine->never[1], engine->options->never_list, geteuid(), error
        );
    }
    return status;
}

void ml_engine_targets_close(struct ml_engine *engine) {
    for (unsigned i = 0; i < ML_NEVER_LISTS; i++) {
        ml_never_list_fini(&engine->never[i]);
    }
    ml_name_rules_fini(&engine->names);
}

bool ml_engine_forbids(struct ml_engine *engine, struct ml_member *member) {
    for (unsigned i = 0; i < ML_NEVER_LISTS; i++) {
        const int line =
            ml_never_list_match(&engine->never[i], member->line.joined, member->executable);
        if (line > 0) {
            (void)snprintf(
                member->note,
                sizeof(member->note),
                "never recorded: line %d of %.200s",
                line,
                engine->never[i].path
            );
            return true;
        }
    }
    return false;
}

static void on_forbidden(void *context, const char *trouble) {
    struct ml_member *member = context;
    (void)trouble;
    (void)ml_engine_forbids(member->members->context, member);
}

void ml_engine_stop_forbidden(struct ml_engine *engine, struct ml_member *member) {
    if (ml_recording_is_on(member->recording) && !ml_wish_waits(member->wish) &&
        ml_engine_forbids(engine, member)) {
        ml_engine_stop_member(engine, member, on_forbidden, member);
    }
}

/* ---- names */

/* A process forked from now on records until it is judged: of one that is wanted nothing is
 * missed. */
static void tell_forks(struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && member->endpoint.control_fd >= 0) {
            ml_endpoint_fork_enabled(&member->endpoint, ml_engine_wants_forked(engine));
        }
    }
}

enum ml_status ml_engine_want_name(
    struct ml_engine *engine, const struct ml_name_rule *rule, struct ml_error_message *error
) {
    const enum ml_status status = ml_name_rules_add(&engine->names, rule, error);
    tell_forks(engine);
    return status;
}

void ml_engine_forget_name(struct ml_engine *engine, const char *regex) {
    ml_name_rules_remove(&engine->names, regex);
    tell_forks(engine);
}

bool ml_engine_wants_name(const struct ml_engine *engine, struct ml_member *member) {
    const struct ml_name_rule *rule =
        ml_name_rules_find(&engine->names, member->name, member->line.joined);
    if (rule != NULL) {
        member->sampling_bytes = rule->sampling_bytes;
        member->stack_mode = rule->stack_mode;
    }
    return rule != NULL;
}

/* ---- others' */

/* Of one that is listed, and no member. */
static const char *why_not_listed(struct ml_engine *engine, struct ml_unrecorded *one) {
    if (one->is_idle) {
        return "it was forked by a process that is recorded, and is recorded itself from its first "
               "allocation on: there is nothing to start";
    }
    ml_engine_list_judge(engine, one);
    (void)snprintf(
        engine->why_not,
        sizeof(engine->why_not),
        "%s; whether a process can be recorded is decided when its program starts",
        one->reason
    );
    return engine->why_not;
}

/* What can be done about one that no run has. */
static const char *why_not_foreign(pid_t pid) {
    if (kill(pid, 0) != 0) {
        return errno == ESRCH ? "there is no such process"
                              : "it is another user's process: memlog records those of its own run";
    }
    return "it was not started under this memlog: start its program by 'memlog run -- PROGRAM', or "
           "in "
           "a shell that 'memlog env' has made join this run";
}

const char *ml_engine_why_not(struct ml_engine *engine, pid_t pid) {
    ml_engine_walk(engine);
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->list.table, pid);
    if (one != NULL) {
        return why_not_listed(engine, one);
    }
    if (ml_members_newest(&engine->members, pid) != NULL ||
        ml_unrecorded_newest(&engine->list.table, pid) != NULL) {
        return "it has ended";
    }
    if (ml_engine_is_helper(engine, pid)) {
        return "it is a part of memlog itself";
    }
    if (ml_process_maps(pid, ML_PRELOAD_FILE)) {
        return "another memlog has it: a process has one profiler at a time";
    }
    return why_not_foreign(pid);
}

/* Why a process cannot be started or stopped. Room: host. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "host/engine/list/judge.h"
#include "host/engine/list/known.h"
#include "host/engine/list/walk.h"
#include "host/engine/state.h"
#include "host/process/paths.h"

/* Of a listed process that is no member. */
static const char *why_not_listed(struct ml_engine *engine, struct ml_unrecorded *one) {
    if (one->kind == ML_UNRECORDED_IDLE_FORK) {
        return "it was forked by a process that is recorded, and is recorded itself from its first "
               "allocation on: there is nothing to start";
    }
    ml_list_judge(engine, one);
    (void)snprintf(
        engine->list->why_not,
        sizeof(engine->list->why_not),
        "%s%s",
        one->reason,
        strstr(one->reason, "'memlog start PID'") != NULL
            ? ""
            : "; 'memlog start PID' tries to attach to it"
    );
    return engine->list->why_not;
}

/* What can be done about a process outside of the run. */
static const char *why_not_foreign(pid_t pid) {
    if (kill(pid, 0) != 0) {
        return errno == ESRCH ? "there is no such process"
                              : "it is another user's process: memlog records those of its own run";
    }
    return "it was not started under this memlog: 'memlog start PID' attaches to it";
}

const char *ml_engine_why_not(struct ml_engine *engine, pid_t pid) {
    ml_list_walk(engine);
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, pid);
    if (one != NULL) {
        return why_not_listed(engine, one);
    }
    if (ml_members_newest(&engine->members, pid) != NULL ||
        ml_unrecorded_newest(&engine->unrecorded, pid) != NULL) {
        return "it has ended";
    }
    if (ml_list_is_helper(engine, pid)) {
        return "it is a part of memlog itself";
    }
    if (ml_process_maps(pid, ML_PRELOAD_FILE)) {
        return "another memlog has it: a process has one profiler at a time";
    }
    return why_not_foreign(pid);
}

/* Dumps that somebody asks for, a person or a program: whose, and in what words. Room: host. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/printable.h"
#include "host/engine/commands/connection.h"
#include "host/engine/dump/jobs.h"
#include "host/engine/lifecycle.h"
#include "host/engine/triggers/triggers.h"
#include "host/process/clock.h"

/* What all programs of a run together get: twenty in a row, then one in ten seconds. */
enum { ASKED_BURST = 20 };
static const uint64_t asked_interval_ns = UINT64_C(10000000000);

static bool is_among(const struct ml_member *member, const struct ml_engine_dump_request *request) {
    bool found = request->pids_count == 0;
    for (size_t i = 0; !found && i < request->pids_count; i++) {
        found = (uint32_t)member->pid == request->pids[i];
    }
    return found && (!request->has_role || member->role == request->role);
}

/* "" or why there is nobody to dump. */
static const char *choose(
    struct ml_engine *engine, const struct ml_engine_dump_request *request, struct ml_dump_job *job
) {
    if (request->pids_count == 0 && !request->has_role) {
        return "";
    }
    job->ids = calloc((size_t)engine->members.count + 1, sizeof(*job->ids));
    if (job->ids == NULL) {
        return ml_status_text(ML_ENV_MEMORY);
    }
    for (uint32_t i = 0; i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (ml_recording_in_service(member->recording) && is_among(member, request)) {
            job->ids[job->ids_count++] = member->id;
        }
    }
    if (job->ids_count > 0) {
        return "";
    }
    return request->has_role ? "no process of that role is recorded"
                             : "none of these processes is recorded";
}

void ml_engine_request_dump(
    struct ml_engine *engine,
    const struct ml_engine_dump_request *request,
    ml_dump_done *on_done,
    void *context
) {
    struct ml_dump_job *job = ml_dump_job_new(request->reason, on_done, context);
    if (job == NULL) {
        return;
    }
    if (request->words_bytes > 0) {
        job->trigger.decision = (struct memlog_service_decision
        ){.dump = true, .kind = MEMLOG_SERVICE_TRIGGER_KIND_ASKED, .id = request->requester_id};
        char *words = job->trigger.reason;
        (void)ml_printable_copy(
            request->words, request->words_bytes, words, MEMLOG_HOST_DUMP_REQUEST_REASON_LIMIT + 1
        );
    }
    const char *trouble = choose(engine, request, job);
    if (trouble[0] != '\0') {
        ml_dump_job_free(job);
        on_done(context, "", false, trouble);
        return;
    }
    ml_dump_job_queue(engine, job);
}

void ml_engine_dump(
    struct ml_engine *engine,
    enum memlog_service_dump_reason reason,
    ml_dump_done *on_done,
    void *context
) {
    const struct ml_engine_dump_request request = {.reason = reason};
    ml_engine_request_dump(engine, &request, on_done, context);
}

/* The dump that a program has asked for. */
struct asked {
    struct ml_engine *engine;
    char words[MEMLOG_CLIENT_DUMP_ASKED_REQUEST_REASON_LIMIT + 1];
};

static void refuse(struct ml_engine *engine, const char *words, const char *why) {
    char line[MEMLOG_SERVICE_DECISION_REASON_LIMIT];
    (void)snprintf(line, sizeof(line), "%s; but %s", words, why);
    ml_engine_trigger_decided(engine, MEMLOG_SERVICE_TRIGGER_KIND_ASKED, false, "no dump", line);
}

static void on_asked_dump(void *context, const char *path, bool complete, const char *trouble) {
    struct asked *asked = context;
    struct ml_engine *engine = asked->engine;
    if (path[0] == '\0') {
        refuse(engine, asked->words, trouble);
    } else {
        ml_engine_trigger_decided(engine, MEMLOG_SERVICE_TRIGGER_KIND_ASKED, true, "written", path);
        ml_dump_notice(engine, path, asked->words, complete, trouble);
    }
    free(asked);
}

/* Whether programs may have another one now. */
static bool may_ask(struct ml_engine *engine) {
    const uint64_t now_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    if (engine->connections->asked_to_ns > now_ns + asked_interval_ns * (ASKED_BURST - 1)) {
        return false;
    }
    engine->connections->asked_to_ns =
        (engine->connections->asked_to_ns > now_ns ? engine->connections->asked_to_ns : now_ns) +
        asked_interval_ns;
    return true;
}

static size_t clean(const struct ml_bytes *bytes, char *out, size_t out_bytes) {
    return ml_printable_copy((const char *)bytes->data, bytes->count_bytes, out, out_bytes);
}

void ml_engine_on_dump_asked(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_dump_asked_request *request
) {
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    const struct ml_member *member =
        call->peer.pid > 0 ? ml_members_running(&engine->members, call->peer.pid) : NULL;
    struct ml_error_message error = {.text = ""};
    char role[MEMLOG_CLIENT_DUMP_ASKED_REQUEST_ROLE_LIMIT + 1];
    char said[MEMLOG_CLIENT_DUMP_ASKED_REQUEST_REASON_LIMIT + 1];
    struct ml_engine_dump_request wanted = {.reason = MEMLOG_SERVICE_DUMP_REASON_MANUAL};
    if (member == NULL || engine->phase != ML_PHASE_RUNNING ||
        request->version != MEMLOG_CLIENT_CLIENT_VERSION) {
        return;
    }
    engine->triggers->decisions[MEMLOG_SERVICE_TRIGGER_KIND_ASKED][0] += request->passed_over;
    struct asked *asked = calloc(1, sizeof(*asked));
    if (asked == NULL) {
        return;
    }
    asked->engine = engine;
    if (clean(&request->reason, said, sizeof(said)) == 0) {
        (void)snprintf(said, sizeof(said), "by %s itself", member->name);
    }
    (void)ml_printable_copy(said, strlen(said), asked->words, sizeof(asked->words));
    wanted.words = asked->words;
    wanted.words_bytes = strlen(asked->words);
    wanted.requester_id = member->id;
    wanted.has_role = clean(&request->role, role, sizeof(role)) > 0;
    if (wanted.has_role && ml_role_parse(role, &wanted.role, &error) != ML_OK) {
        refuse(engine, asked->words, error.text);
        free(asked);
    } else if (!may_ask(engine)) {
        refuse(engine, asked->words, "programs get 20 dumps in a row, then one in 10 s");
        free(asked);
    } else {
        ml_engine_request_dump(engine, &wanted, on_asked_dump, asked);
    }
}

/* `memlog start`, `stop` and `rate` as the command socket answers them. Room: host. */
#include <stdio.h>
#include <stdlib.h>

#include "host/attach/precondition.h"
#include "host/engine/commands/call.h"
#include "host/engine/commands/connection.h"
#include "host/engine/members/rate.h"
#include "host/engine/members/targets.h"
#include "host/engine/state.h"
#include "host/policy/patterns.h"

struct control;

struct control_one {
    struct control *control;
    uint32_t pid;
    char trouble[MEMLOG_HOST_OUTCOME_TROUBLE_LIMIT + 1];
};

struct control {
    struct ml_command_call *pending;
    uint32_t count;
    uint32_t waiting; /* processes of which the end is not known; one more while they are begun */
    struct control_one ones[];
};

static void finish_control(struct control *control) {
    struct ml_command_call *pending = control->pending;
    if (--control->waiting > 0) {
        return;
    }
    struct memlog_host_outcome *outcomes = calloc(control->count + 1, sizeof(*outcomes));
    for (uint32_t i = 0; outcomes != NULL && i < control->count; i++) {
        const struct control_one *one = &control->ones[i];
        outcomes[i] = (struct memlog_host_outcome
        ){.pid = one->pid, .done = one->trouble[0] == '\0', .trouble = ml_string_of(one->trouble)};
    }
    uint32_t count = outcomes != NULL ? control->count : 0;
    count = count < MEMLOG_HOST_CONTROL_REPLY_OUTCOMES_LIMIT
                ? count
                : MEMLOG_HOST_CONTROL_REPLY_OUTCOMES_LIMIT;
    if (ml_command_end(pending)) {
        const struct memlog_host_control_reply reply = {
            .outcomes = {.items = outcomes, .count = count}};
        (void)!memlog_host_control_answer(&pending->call, &reply);
    }
    free(outcomes);
    free(pending);
    free(control);
}

static void on_controlled(void *context, const char *trouble) {
    struct control_one *one = context;
    (void)snprintf(one->trouble, sizeof(one->trouble), "%s", trouble);
    finish_control(one->control);
}

/* Whom a request is about: these pids, and whoever has that name and is not as asked already. */
struct wanted {
    const struct ml_engine *engine;
    const uint32_t *pids;
    uint32_t count;
    const struct ml_patterns *name; /* NULL: by pid alone */
    bool recording;                 /* who of that name is not as asked */
    bool attaches;                  /* also outside of the run */
};

static bool has_name(const struct wanted *wanted, const struct ml_member *member) {
    const char *line = member->line.joined != NULL ? member->line.joined : "";
    return member->state == ML_MEMBER_RUNNING &&
           (ml_patterns_match(wanted->name, member->name) >= 0 ||
            ml_patterns_match(wanted->name, line) >= 0);
}

/* Processes outside of the run at once; more of one name are a mistake. */
enum { STRANGERS_MAX = 256 };

/* Where no process of the run has the name, whom it names outside: memlog is attached to them. */
static void add_strangers(struct control *control, const struct wanted *wanted, pid_t asker) {
    pid_t pids[STRANGERS_MAX];
    size_t count = ml_attach_find(wanted->name, asker, pids, STRANGERS_MAX);
    count = count < STRANGERS_MAX ? count : STRANGERS_MAX;
    for (size_t i = 0; i < count; i++) {
        control->ones[control->count++].pid = (uint32_t)pids[i];
    }
}

/* Those of that name. */
static void add_by_name(struct control *control, const struct wanted *wanted, pid_t asker) {
    const struct ml_members *members = &wanted->engine->members;
    bool is_known = false;
    for (uint32_t i = 0; i < members->count; i++) {
        const struct ml_member *member = members->items[i];
        const bool is_named = has_name(wanted, member);
        is_known = is_known || is_named;
        if (is_named && ml_recording_is_on(member->recording) == wanted->recording) {
            control->ones[control->count++].pid = (uint32_t)member->pid;
        }
    }
    if (!is_known && wanted->attaches) {
        add_strangers(control, wanted, asker);
    }
}

static struct control *control_new(
    struct ml_engine_connection *connection,
    const struct ml_call *call,
    uint32_t version,
    const struct wanted *wanted
) {
    const struct ml_members *members = &wanted->engine->members;
    const uint32_t most =
        wanted->count + (wanted->name != NULL ? members->count + STRANGERS_MAX : 0);
    struct ml_command_call *pending = ml_command_begin(connection, call, version);
    if (pending == NULL) {
        return NULL;
    }
    struct control *control = calloc(1, sizeof(*control) + most * sizeof(control->ones[0]));
    if (control == NULL) {
        ml_connection_close(connection);
        free(pending);
        return NULL;
    }
    control->pending = pending;
    for (uint32_t i = 0; i < wanted->count; i++) {
        control->ones[control->count++].pid = wanted->pids[i];
    }
    if (wanted->name != NULL) {
        add_by_name(control, wanted, call->peer.pid);
    }
    for (uint32_t i = 0; i < control->count; i++) {
        control->ones[i].control = control;
    }
    control->waiting = control->count + 1;
    return control;
}

/* The expression of a request; NULL: it has none, or none that can be understood. */
static struct ml_patterns *name_of(
    struct ml_string text, char out_regex[ML_NAME_RULE_BYTES + 1], struct ml_error_message *error
) {
    ml_string_copy(out_regex, ML_NAME_RULE_BYTES + 1, text);
    struct ml_patterns *name = out_regex[0] != '\0' ? ml_patterns_new() : NULL;
    if (name != NULL && ml_patterns_add(name, out_regex, 0, error) != ML_OK) {
        ml_patterns_free(name);
        name = NULL;
    }
    return name;
}

static void begin(
    struct ml_engine *engine,
    const struct memlog_host_control_request *request,
    const struct ml_name_rule *rule,
    struct control_one *one
) {
    const pid_t pid = (pid_t)one->pid;
    struct ml_member *member = ml_members_running(&engine->members, pid);
    if (request->kind == MEMLOG_HOST_CONTROL_KIND_START) {
        ml_engine_start_process(
            engine, pid, rule->sampling_bytes, rule->stack_mode, on_controlled, one
        );
    } else if (request->kind == MEMLOG_HOST_CONTROL_KIND_STOP) {
        ml_engine_stop_process(engine, pid, on_controlled, one);
    } else if (member == NULL) {
        on_controlled(one, ml_engine_why_not(engine, pid));
    } else {
        on_controlled(one, ml_member_rate(engine, member, request->sampling_bytes));
    }
}

void ml_command_on_control(
    void *context, const struct ml_call *call, const struct memlog_host_control_request *request
) {
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    struct ml_error_message error = {.text = ""};
    struct ml_name_rule rule = {
        .sampling_bytes = request->sampling_bytes,
        .stack_mode = request->stack_mode < ML_STACK_MODE_COUNT ? request->stack_mode : 0};
    struct ml_patterns *name = name_of(request->name, rule.regex, &error);
    const struct wanted wanted = {
        .engine = engine,
        .pids = request->pids.items,
        .count = request->pids.count,
        .name = name,
        .recording = request->kind != MEMLOG_HOST_CONTROL_KIND_START,
        .attaches = request->kind == MEMLOG_HOST_CONTROL_KIND_START};
    const bool by_name = name != NULL;
    struct control *control = control_new(connection, call, request->version, &wanted);
    ml_patterns_free(name);
    if (control == NULL) {
        return;
    }
    if (by_name && request->kind == MEMLOG_HOST_CONTROL_KIND_STOP) {
        ml_targets_remove_name(engine, rule.regex);
    }
    if (by_name && request->kind == MEMLOG_HOST_CONTROL_KIND_START &&
        ml_targets_add_name(engine, &rule, &error) != ML_OK) {
        ml_engine_notice(engine, "memlog start --name: %s", error.text);
    }
    for (uint32_t i = 0; i < control->count; i++) {
        begin(engine, request, &rule, &control->ones[i]);
    }
    finish_control(control);
}

#include "service/control/connection.h"

#include <ev.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/control/requests.h"
#include "service/ingest/clock.h"
#include "service/ingest/readers.h"
#include "service/session/client.h"
#include "service/session/guard.h"
#include "service/session/session.h"
#include "service/snapshot/host_view.h"
#include "service/triggers/triggers.h"

/* CLOSED is 0: a cell of the table that nobody wrote ends the connection. */
enum connection_state {
    CONNECTION_CLOSED,
    CONNECTION_AWAIT_CONFIGURE,
    CONNECTION_SERVING,
    CONNECTION_STATE_COUNT
};

enum { METHOD_COUNT = MEMLOG_SERVICE_SERVICE_METHOD_HAND_CODE + 1 };

static const uint8_t connection_next[CONNECTION_STATE_COUNT][METHOD_COUNT] = {
    [CONNECTION_AWAIT_CONFIGURE] = {[MEMLOG_SERVICE_SERVICE_METHOD_CONFIGURE] = CONNECTION_SERVING},
    [CONNECTION_SERVING] =
        {[MEMLOG_SERVICE_SERVICE_METHOD_ADD_CLIENT] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_UPDATE_PROCESS] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_END_CLIENT] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_DUMP] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_FIGURES] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_DRAIN] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_BEGIN_PROFILE] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_STOP_CLIENT] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_OBSERVE] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_SHOW_PROCESS] = CONNECTION_SERVING,
         [MEMLOG_SERVICE_SERVICE_METHOD_HAND_CODE] = CONNECTION_SERVING},
};

/* Intervals of rounds while a request waits. The first is short: most threads that have stamped an
 * event publish it at once. They grow to the interval that ML_SESSION_BUSY_ROUNDS counts on. */
static const double soon_interval_s = 0.001;
static const double waiting_interval_s = 0.01;

/* A thread that is preempted between stamp and publishing waits for its turn: on a loaded machine
 * behind 50 threads of 4 ms each. One that takes longer was stopped, or left the event
 * unfinished. */
static const uint64_t patience_ns = 200000000;

struct ml_connection {
    struct ml_connection_options options;
    struct ml_workers *workers; /* NULL: none */
    struct ml_channel *channel;
    struct ml_channel_end end;
    struct ml_interface interface; /* the contract's, behind our own dispatch */
    enum connection_state state;
    double interval_s; /* until the next round while a request waits */
    /* From Configure on. */
    struct ml_clock_source clock;
    struct ml_session *session;
    struct ml_readers *readers;
    struct ml_requests *requests;
    struct ml_triggers *triggers;
};

/* End the connection and the loop. The first reason stays. */
static void
close_connection(struct ml_connection *connection, enum ml_status status, uint32_t method) {
    if (connection->state == CONNECTION_CLOSED) {
        return;
    }
    connection->state = CONNECTION_CLOSED;
    connection->end = (struct ml_channel_end){.status = status, .method = method};
    ev_break(connection->options.loop, EVBREAK_ALL);
}

/* Called before every handler: does the state permit the message? If not, the channel ends the
 * connection and closes what the message carried. */
static enum ml_status
dispatch(const void *handlers, void *context, const struct ml_call *call, const void *request) {
    struct ml_connection *connection = context;
    const enum connection_state next =
        (enum connection_state)connection_next[connection->state][call->method];
    if (next == CONNECTION_CLOSED) {
        return ML_PEER_STATE;
    }
    connection->state = next;
    return memlog_service_service_interface.dispatch(handlers, context, call, request);
}

/* After a bug of the service's own no figure would be true. */
static void abort_on_bug(enum ml_status status) {
    if (ml_status_family(status) == ML_FAMILY_BUG) {
        abort();
    }
}

/* Ends the connection if an answer could not be sent, or a request not be taken on. */
static void
check(struct ml_connection *connection, const struct ml_call *call, enum ml_status status) {
    abort_on_bug(status);
    if (status != ML_OK) {
        close_connection(connection, status, call->method);
    }
}

static void on_lost(void *context, uint32_t id, const char *reason) {
    struct ml_connection *connection = context;
    const struct memlog_service_client_lost_request lost = {
        .id = id, .reason = ml_string_cut(reason, MEMLOG_SERVICE_CLIENT_LOST_REQUEST_REASON_LIMIT)};
    /* An error means that the host does not read: it is gone or will be. The loop sees its end. */
    abort_on_bug(memlog_service_client_lost(ml_channel_port(connection->channel), &lost));
}

static void on_sampled(
    void *context, enum ml_status status, const struct memlog_service_memory_short_reply *reply
) {
    struct ml_connection *connection = context;
    if (status == ML_OK && connection->session != NULL) {
        ml_session_sampled(connection->session, reply->id);
    }
}

static void guard(struct ml_connection *connection) {
    struct ml_guard_event event;
    while (ml_session_guard(connection->session, &event)) {
        const struct memlog_service_memory_short_request request = {
            .id = event.client,
            .sampling_bytes = event.step == ML_GUARD_COARSER ? event.sampling_bytes : 0,
            .dropped = event.step == ML_GUARD_DROPPED,
            .used_bytes = event.used_bytes,
            .max_bytes = event.max_bytes,
            .quota = event.quota};
        abort_on_bug(memlog_service_memory_short(
            ml_channel_port(connection->channel), &request, on_sampled, connection
        ));
        ml_readers_round_within(connection->readers, 0); /* some pipe is not read from now on */
    }
}

static void
on_heard(void *context, enum ml_status status, const struct memlog_service_hear_reply *reply) {
    struct ml_connection *connection = context;
    if (status == ML_OK && connection->session != NULL) {
        ml_session_heard(connection->session, reply->id, reply->ticks);
    }
}

/* Which children there are. An error means that the host is gone or will be. */
static void ask_for_children(struct ml_connection *connection) {
    struct memlog_service_hear_request request;
    while (ml_session_ask(connection->session, &request.id)) {
        abort_on_bug(memlog_service_hear(
            ml_channel_port(connection->channel), &request, on_heard, connection
        ));
    }
}

static void on_round(void *context, uint64_t known_ticks) {
    struct ml_connection *connection = context;
    guard(connection);
    ask_for_children(connection);
    ml_session_note_time(connection->session, ml_clock_monotonic_ns(), false);
    ml_requests_serve(connection->requests, connection->readers, known_ticks);
    if (!ml_requests_waiting(connection->requests)) {
        connection->interval_s = soon_interval_s;
        return;
    }
    ml_readers_round_within(connection->readers, connection->interval_s);
    connection->interval_s *= 2;
    if (connection->interval_s > waiting_interval_s) {
        connection->interval_s = waiting_interval_s;
    }
}

/* Everything that Configure makes. */
static enum ml_status
set_up(struct ml_connection *connection, const struct memlog_service_setup *setup) {
    if (setup->version != MEMLOG_SERVICE_SERVICE_VERSION) {
        return ML_PEER_VERSION;
    }
    connection->clock = (struct ml_clock_source
    ){.kind = setup->clock == MEMLOG_SERVICE_CLOCK_TSC ? ML_CLOCK_TSC : ML_CLOCK_MONOTONIC,
      .start = ml_timestamp_of(&setup->start)};
    connection->session = ml_session_new(&connection->clock.start, setup->max_memory_bytes);
    if (connection->session == NULL) {
        return ML_ENV_MEMORY;
    }
    ml_session_quota(connection->session, setup->max_client_bytes);
    ml_session_keep(connection->session, setup->keep_processes);
    ml_session_say(connection->session, connection->options.last_words);
    ml_session_workers(connection->session, connection->workers, ML_SESSION_LEAST_EVENTS);
    ml_session_patience(connection->session, ml_clock_ticks_of_ns(&connection->clock, patience_ns));
    const struct ml_readers_options readers_options = {
        .loop = connection->options.loop,
        .pipes_fd = connection->options.pipes_fd,
        .session = connection->session,
        .workers = connection->workers,
        .clock = &connection->clock,
        .on_lost = on_lost,
        .on_round = on_round,
        .context = connection};
    connection->readers = ml_readers_new(&readers_options);
    connection->triggers = ml_triggers_new(&setup->triggers, setup->start.monotonic_ns);
    const struct ml_requests_options requests_options = {
        .session = connection->session,
        .clock = &connection->clock,
        .sandbox_missing = connection->options.sandbox_missing,
        .triggers = connection->triggers};
    connection->requests = ml_requests_new(&requests_options);
    return connection->readers != NULL && connection->requests != NULL &&
                   connection->triggers != NULL
               ? ML_OK
               : ML_ENV_MEMORY;
}

static void on_configure(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_configure_request *request
) {
    struct ml_connection *connection = context;
    enum ml_status status = set_up(connection, &request->setup);
    if (status == ML_OK) {
        const struct memlog_service_configure_reply reply = {
            .missing_sandbox = ml_string_cut(
                connection->options.sandbox_missing,
                MEMLOG_SERVICE_CONFIGURE_REPLY_MISSING_SANDBOX_LIMIT
            )};
        status = memlog_service_configure_answer(call, &reply);
    }
    check(connection, call, status);
}

/* Take the client's descriptors, if enough numbers are left for the next message. A message whose
 * descriptors find no room would end the connection, and with it every profile. */
static enum ml_status read_client(
    struct ml_connection *connection,
    struct ml_client *client,
    const struct memlog_service_add_client_request *request
) {
    const int last =
        request->event_pipe > request->staging ? request->event_pipe : request->staging;
    if (last >= connection->options.descriptors_max - 2 * ML_HANDLES_MAX) {
        (void)close(request->event_pipe);
        (void)close(request->staging);
        return ML_PEER_LIMIT;
    }
    return ml_readers_add(connection->readers, client, request->event_pipe, request->staging);
}

static void on_add_client(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_add_client_request *request
) {
    struct ml_connection *connection = context;
    const struct memlog_service_client_info *info = &request->client;
    const struct ml_client_setup setup = {
        .id = info->id,
        .parent_id = info->parent_id,
        .pid = info->pid,
        .parent_pid = info->parent_pid,
        .role = info->role,
        .from_startup = info->from_startup,
        .forked = info->forked,
        .fork_serial = info->fork_serial,
        .sampling_bytes = info->sampling_bytes,
        .start = ml_timestamp_of(&info->start),
        .profile = info->profile};
    struct ml_client *client = NULL;
    enum ml_status status = ml_session_add(connection->session, &setup, &client);
    if (status != ML_OK) {
        (void)close(request->event_pipe);
        (void)close(request->staging);
    } else {
        const struct memlog_service_process_facts facts = {
            .id = info->id,
            .role = info->role,
            .name = info->name,
            .executable = info->executable,
            .command_line = info->command_line,
            .trouble = info->trouble};
        ml_client_describe(client, &facts);
        ml_client_allocator(client, &info->allocator);
        status = read_client(connection, client, request);
    }
    if (status == ML_PEER_STATE || ml_status_family(status) == ML_FAMILY_BUG) {
        check(connection, call, status); /* the same id twice: the host is wrong */
    } else if (status != ML_OK) {
        const char *reason = status == ML_PEER_LIMIT ? "more processes at once than can be read"
                                                     : ml_status_text(status);
        if (client != NULL) {
            ml_client_trouble(client, reason);
        }
        on_lost(connection, info->id, reason);
    }
}

static void on_update_process(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_update_process_request *request
) {
    (void)call;
    struct ml_connection *connection = context;
    struct ml_client *client = ml_session_find(connection->session, request->facts.id);
    /* An unknown client was refused. The host may not have heard of that yet. */
    if (client != NULL) {
        ml_client_describe(client, &request->facts);
    }
}

static void on_end_client(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_end_client_request *request
) {
    (void)call;
    struct ml_connection *connection = context;
    const struct ml_client_end end = {
        .state = request->end.state,
        .exit_code = request->end.exit_code,
        .signal = request->end.signal,
        .end = ml_timestamp_of(&request->end.end)};
    if (ml_readers_end(connection->readers, request->end.id, &end) == ML_ENV_MISSING) {
        /* It was never read for want of memory, or is unknown as in on_update_process, or has ended
         * already. The session knows which. */
        struct ml_client *client = ml_session_find(connection->session, request->end.id);
        if (client != NULL) {
            (void)!ml_client_ended(client, &end);
        }
    }
}

/* Queue a request that is answered after a round. False: it was not queued. */
static bool take_on(
    struct ml_connection *connection,
    const struct ml_call *call,
    const struct ml_message_type *type,
    const void *request
) {
    const enum ml_status status = ml_requests_add(connection->requests, call, type, request);
    check(connection, call, status);
    ml_readers_round_within(connection->readers, 0);
    return status == ML_OK;
}

static void on_dump(
    void *context, const struct ml_call *call, const struct memlog_service_dump_request *request
) {
    if (!take_on(context, call, &memlog_service_dump_request_type, request)) {
        (void)close(request->file);
    }
}

static void on_figures(
    void *context, const struct ml_call *call, const struct memlog_service_figures_request *request
) {
    (void)take_on(context, call, &memlog_service_figures_request_type, request);
}

static void on_drain(
    void *context, const struct ml_call *call, const struct memlog_service_drain_request *request
) {
    (void)take_on(context, call, &memlog_service_drain_request_type, request);
}

static void on_observe(
    void *context, const struct ml_call *call, const struct memlog_service_observe_request *request
) {
    (void)take_on(context, call, &memlog_service_observe_request_type, request);
}

static void on_begin_profile(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_begin_profile_request *request
) {
    struct ml_connection *connection = context;
    struct ml_client *client = ml_session_find(connection->session, request->id);
    const struct memlog_service_begin_profile_reply reply = {
        .running = client != NULL && ml_client_begin(client, request->profile) == ML_OK};
    check(connection, call, memlog_service_begin_profile_answer(call, &reply));
}

static void on_stop_client(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_stop_client_request *request
) {
    struct ml_connection *connection = context;
    struct ml_client *client = ml_session_find(connection->session, request->id);
    const bool running = client != NULL && ml_client_status(client) == ML_OK;
    if (running) {
        ml_client_stop(client, ml_clock_ticks(&connection->clock));
        ml_client_trouble(client, "its recording was stopped");
    }
    const struct memlog_service_stop_client_reply reply = {.running = running};
    check(connection, call, memlog_service_stop_client_answer(call, &reply));
}

static void on_show_process(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_show_process_request *request
) {
    (void)take_on(context, call, &memlog_service_show_process_request_type, request);
}

static void on_hand_code(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_hand_code_request *request
) {
    (void)call;
    struct ml_connection *connection = context;
    struct ml_client *client = ml_session_find(connection->session, request->about.id);
    const enum ml_code_kind kind = request->about.kind == MEMLOG_SERVICE_CODE_FILE_KIND_JIT_DUMP
                                       ? ML_CODE_JIT_DUMP
                                       : ML_CODE_PERF_MAP;
    const struct ml_timestamp now = ml_timestamp_of(&request->about.now);
    if (client == NULL) { /* as in on_update_process */
        (void)close(request->file);
        return;
    }
    ml_client_take_code(client, kind, request->file, &now);
    /* Files of many that ended wait for a dump. They must not take the numbers that new clients
     * need. */
    if (request->file >= connection->options.descriptors_max / 2) {
        ml_session_name_code(connection->session);
    }
}

static const struct memlog_service_service_handlers handlers = {
    .configure = on_configure,
    .add_client = on_add_client,
    .update_process = on_update_process,
    .end_client = on_end_client,
    .dump = on_dump,
    .figures = on_figures,
    .drain = on_drain,
    .begin_profile = on_begin_profile,
    .stop_client = on_stop_client,
    .observe = on_observe,
    .show_process = on_show_process,
    .hand_code = on_hand_code};

static void on_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    (void)channel;
    struct ml_connection *connection = context;
    if (connection->state != CONNECTION_CLOSED) {
        close_connection(connection, end->status, end->method);
        connection->end = *end;
    }
}

enum ml_status
ml_connection_new(const struct ml_connection_options *options, struct ml_connection **out) {
    struct ml_connection *connection = calloc(1, sizeof(*connection));
    if (connection == NULL) {
        (void)close(options->take_host_fd);
        return ML_ENV_MEMORY;
    }
    connection->options = *options;
    connection->state = CONNECTION_AWAIT_CONFIGURE;
    connection->interval_s = soon_interval_s;
    connection->interface = memlog_service_service_interface;
    connection->interface.dispatch = dispatch;
    const struct ml_channel_options channel_options = {
        .loop = options->loop,
        .server =
            {.interface = &connection->interface, .handlers = &handlers, .context = connection},
        .on_end = on_end,
        .context = connection};
    const enum ml_status status =
        ml_channel_new(options->take_host_fd, &channel_options, &connection->channel);
    if (status != ML_OK) {
        free(connection);
        return status;
    }
    *out = connection;
    return ML_OK;
}

void ml_connection_workers(struct ml_connection *connection, struct ml_workers *workers) {
    connection->workers = workers;
}

struct ml_channel_end ml_connection_end(const struct ml_connection *connection) {
    return connection->end;
}

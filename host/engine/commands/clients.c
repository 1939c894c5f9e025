/* The control socket's messages: Hello, Forked, NotProfiled. Room: host. */
#include <stdio.h>
#include <unistd.h>

#include "host/engine/attach/jobs.h"
#include "host/engine/commands/connection.h"
#include "host/engine/commands/listen.h"
#include "host/engine/list/list.h"
#include "host/engine/members/members.h"
#include "host/engine/members/recorder.h"
#include "host/engine/members/targets.h"
#include "host/engine/members/watch.h"
#include "host/engine/state.h"
#include "host/process/closer.h"

/* A forked child is what its own memory said when it reported itself: by now it may have ended, or
 * made its exec, and /proc would show that. */
static void take_title(
    struct ml_engine *engine,
    struct ml_member *member,
    const struct ml_bytes *title,
    const struct ml_member *parent
) {
    size_t count = title->count_bytes;
    while (count > 0 && title->data[count - 1] == 0) {
        count--;
    }
    struct ml_command_line line;
    if (count > 0 && ml_command_line_from_bytes(&line, (const char *)title->data, count) == ML_OK) {
        ml_command_line_fini(&member->line);
        member->line = line;
    }
    if (parent != NULL) {
        member->allocator = parent->allocator;
        member->libc_files = parent->libc_files;
        (void)snprintf(member->name, sizeof(member->name), "%s", parent->name);
        ml_member_executable(member, parent->executable);
    }
    member->role = ml_role_of(engine->options->roles, &member->line, false);
}

static void refuse(const struct ml_call *call) {
    const struct memlog_client_hello_reply reply = {
        .params = {.verdict = MEMLOG_CLIENT_VERDICT_REFUSED, .sampling_bytes = 1}};
    (void)!memlog_client_hello_answer(call, &reply);
}

/* False: it has gone on without us; it waits for a bounded time. */
static bool answer_hello(
    struct ml_engine *engine,
    const struct ml_call *call,
    const struct ml_member *member,
    bool wanted,
    int write_fd
) {
    const struct ml_control_page *control = &member->endpoint.control;
    const struct memlog_client_hello_reply reply = {
        .params =
            {.verdict = wanted ? MEMLOG_CLIENT_VERDICT_RECORD : MEMLOG_CLIENT_VERDICT_DORMANT,
             .stack_mode = (enum memlog_client_stack_mode)control->stack_mode,
             .sampling_bytes = control->sampling_bytes,
             .staging_slots = engine->options->staging_slots,
             .unwind_check = control->unwind_check},
        .has_event_pipe = true,
        .event_pipe = write_fd,
        .has_staging = true,
        .staging = member->endpoint.staging_fd,
        .has_control = true,
        .control = member->endpoint.control_fd,
        .has_lease = true,
        .lease = engine->lease_fd,
    };
    return memlog_client_hello_answer(call, &reply) == ML_OK;
}

/* Of the program that is about to say Hello on this connection. */
static void on_allocators(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_allocators_request *request
) {
    (void)call;
    struct ml_engine_connection *connection = context;
    struct ml_member_allocator *told = &connection->allocator;
    ml_string_copy(told->owner, sizeof(told->owner), request->owner);
    ml_string_copy(told->entry_point, sizeof(told->entry_point), request->entry_point);
    ml_string_copy(told->entry_point_of, sizeof(told->entry_point_of), request->entry_point_of);
    told->in_front = request->in_front;
    told->in_program = request->in_program;
}

/* It is the same process in another image. */
static void keep_request(struct ml_member *member, const struct ml_member *old) {
    if (old != NULL && old->pid == member->pid) {
        member->request = ml_request_settled(old->request);
        member->sampling_bytes = old->sampling_bytes;
        member->stack_mode = old->stack_mode;
    }
}

/* It has said Hello and cannot be recorded: in the reports, and in the list of processes. */
static void lose_newcomer(struct ml_engine *engine, struct ml_member *member, const char *reason) {
    ml_engine_add_not_profiled(engine, member->pid, member->parent_pid, reason, member->executable);
    (void)snprintf(member->note, sizeof(member->note), "%s", reason);
}

/* Why it did not take its answer. Its socket closes after the kernel says that it ends. */
static const char *unanswered_text(pid_t pid) {
    const struct ml_process_facts facts = ml_process_facts(pid);
    return facts.start_ticks == 0 || facts.has_ended || facts.is_ending
               ? "it ended before memlog had answered it"
               : ml_engine_not_profiled_text(MEMLOG_CLIENT_NOT_PROFILED_REASON_HANDSHAKE_FAILED);
}

static void on_hello(
    void *context, const struct ml_call *call, const struct memlog_client_hello_request *request
) {
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    const bool is_attached = connection->is_attached;
    /* It may have said Hello before its socket was ours, and so without the kernel's word on the
     * sender. The socket's maker alone has the other end. */
    const pid_t pid = is_attached && call->peer.pid == 0 ? connection->only_pid : call->peer.pid;
    if (pid <= 0 || connection->member_id != 0 ||
        (connection->only_pid != 0 && pid != connection->only_pid) ||
        request->version != MEMLOG_CLIENT_CLIENT_VERSION) {
        refuse(call);
        return;
    }
    /* Its tracer died, and the next one has restored it: nobody is left to hook its functions. */
    if (is_attached && ml_attach_jobs_of(engine, pid) == NULL) {
        refuse(call);
        return;
    }
    ml_listen_joins(engine, pid);
    uint32_t old_id = ml_engine_leave_old_image(engine, pid);
    struct ml_member *member = ml_engine_add_member(engine, pid);
    if (member == NULL) {
        refuse(call);
        return;
    }
    connection->member_id = member->id;
    ml_connection_heard(connection);
    member->connection_id = member->id;
    engine->root_seen = engine->root_seen || member->birth == ML_BIRTH_ROOT;
    const uint32_t listed_id = ml_list_recorded(engine, member);
    old_id = old_id != 0 ? old_id : listed_id;
    const struct ml_member *parent = ml_members_newest(&engine->members, member->parent_pid);
    member->parent_id = old_id != 0 ? old_id : (parent != NULL ? parent->id : 0);
    keep_request(member, ml_members_find(&engine->members, old_id));
    ml_list_walk_soon(engine);
    member->allocator = connection->allocator;
    if (is_attached) { /* its functions are not hooked yet: the tracer's end brings it to record */
        ml_member_set_attachment(member, ML_ATTACHMENT_BEGIN);
    }
    bool wanted = ml_targets_want(engine, member);
    const struct ml_control_page page = ml_member_control_page(engine, member, wanted);
    int write_fd = -1;
    if (ml_endpoint_make(
            &member->endpoint, &engine->budget, engine->options->staging_slots, &page, &write_fd
        ) != ML_OK) {
        lose_newcomer(engine, member, "the host could not make its pipe");
        refuse(call);
        ml_member_watch(engine, member, ml_channel_peer_pidfd(connection->channel));
        return;
    }
    const bool answered = answer_hello(engine, call, member, wanted, write_fd);
    (void)close(write_fd);
    if (!answered) {
        ml_endpoint_close(&member->endpoint, &engine->budget);
        lose_newcomer(engine, member, unanswered_text(pid));
    } else if (wanted) {
        member->from_startup = true;
        ml_member_record(engine, member);
    }
    ml_engine_tell_pipes(engine);
    ml_member_watch(engine, member, ml_channel_peer_pidfd(connection->channel));
}

/* Who forked it: by the kernel, or, where the parent has gone or lives in another pid namespace, by
 * its own word as far as that names a member, else who owns the socket that it inherited. */
static uint32_t parent_of_fork(
    struct ml_engine_connection *connection, const struct ml_member *child, uint32_t parent_pid
) {
    const struct ml_members *members = &connection->engine->members;
    const struct ml_member *parent = ml_members_newest(members, child->parent_pid);
    if (parent == NULL || parent == child) {
        parent = ml_members_newest(members, (pid_t)parent_pid);
    }
    return parent != NULL && parent != child ? parent->id : connection->member_id;
}

/* Whether a forked child has copies of blocks that were recorded. Its parent is the kernel's word;
 * where that one is no member, the socket that the child inherited tells whose image it is of. */
static bool
has_inherited_blocks(const struct ml_engine_connection *connection, pid_t pid, pid_t parent_pid) {
    const struct ml_members *members = &connection->engine->members;
    const struct ml_member *parent = ml_members_newest(members, parent_pid);
    if (parent == NULL || parent->pid == pid) {
        parent = ml_members_find(members, connection->member_id);
    }
    return parent != NULL && ml_list_was_recorded(parent);
}

/* A forked child cannot be recorded; the reports from that number on speak of it. */
static void
lose_fork(struct ml_engine_connection *connection, pid_t pid, pid_t parent_pid, uint32_t told) {
    struct ml_engine *engine = connection->engine;
    if (!has_inherited_blocks(connection, pid, parent_pid)) {
        return;
    }
    engine->lost_forks++;
    for (uint32_t i = told; i < engine->not_profiled_count; i++) {
        engine->not_profiled[i].told_of = ML_TOLD_OF_LOST_FORK;
    }
}

/* Whether it has its parent's functions, hooked as memlog's tracer left them. */
static bool
is_of_attached(const struct ml_engine_connection *connection, const struct ml_member *child) {
    const struct ml_members *members = &connection->engine->members;
    const struct ml_member *parent = ml_members_find(members, child->parent_id);
    const struct ml_member *first = ml_members_find(members, connection->member_id);
    return (parent != NULL && parent->attachment != ML_ATTACHMENT_NONE) ||
           (first != NULL && first->attachment != ML_ATTACHMENT_NONE);
}

static void on_forked(
    void *context, const struct ml_call *call, const struct memlog_client_forked_request *request
) {
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    pid_t pid = call->peer.pid;
    struct ml_member *old = pid > 0 ? ml_members_running(&engine->members, pid) : NULL;
    const int last_fd = request->control > request->staging ? request->control : request->staging;
    const uint32_t told = engine->not_profiled_count;
    const bool is_foreign =
        pid > 0 && ml_listen_is_foreign(engine, call, ml_channel_peer_pidfd(connection->channel));
    bool allowed = pid > 0 && !is_foreign && request->version == MEMLOG_CLIENT_CLIENT_VERSION &&
                   (old == NULL || ml_member_has_ended(engine, old)) &&
                   ml_connections_have_room(engine, last_fd, pid, (pid_t)request->parent_pid);
    struct ml_member *member = allowed ? ml_engine_add_member(engine, pid) : NULL;
    if (member == NULL) {
        (void)close(request->event_pipe);
        (void)close(request->staging);
        (void)close(request->control);
        if (!is_foreign && (old == NULL || ml_member_has_ended(engine, old))) {
            lose_fork(connection, pid, ml_process_parent(pid), told);
        }
        return;
    }
    member->birth = ML_BIRTH_FORK;
    member->fork_serial = request->fork_serial;
    member->connection_id = connection->member_id;
    member->parent_id = parent_of_fork(connection, member, request->parent_pid);
    take_title(
        engine, member, &request->title, ml_members_find(&engine->members, member->parent_id)
    );
    /* By now it may have made its exec. All that inherited the connection are of one image. */
    const struct ml_member *first = ml_members_find(&engine->members, connection->member_id);
    if (first != NULL && ml_image_mark_is_known(&first->image)) {
        member->image = first->image;
    }
    if (is_of_attached(connection, member)) {
        ml_member_set_attachment(member, ML_ATTACHMENT_INHERIT);
    }
    (void)ml_list_recorded(engine, member);
    ml_list_walk_soon(engine);
    const enum ml_status status = ml_endpoint_adopt(
        &member->endpoint,
        &engine->budget,
        call->peer.uid,
        request->event_pipe,
        request->staging,
        request->control
    );
    if (status != ML_OK) {
        const char *reason = status == ML_ENV_REFUSED
                                 ? "its pipe is another user's, and memlog may not open it"
                                 : "its handles were not what they should be";
        ml_engine_add_not_profiled(engine, pid, member->parent_pid, reason, NULL);
        (void)snprintf(member->note, sizeof(member->note), "%s", reason);
        lose_fork(connection, pid, member->parent_pid, told);
        ml_member_watch(engine, member, ml_channel_peer_pidfd(connection->channel));
        return;
    }
    ml_engine_tell_pipes(engine);
    bool wanted = ml_targets_want(engine, member);
    bool enabled = member->endpoint.control.enabled != 0;
    if (wanted != enabled || member->sampling_bytes != 0) {
        (void)!ml_member_enable(engine, member, wanted);
    }
    if (wanted) {
        member->from_startup = enabled && member->attachment == ML_ATTACHMENT_NONE;
        ml_member_record(engine, member);
    }
    ml_member_watch(engine, member, ml_channel_peer_pidfd(connection->channel));
}

/* Not of a program that is to come. */
static bool speaks_of_itself(enum memlog_client_not_profiled_reason reason) {
    return reason == MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_DESCRIPTORS ||
           reason == MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_ROOM ||
           reason == MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_WIPE_ON_FORK ||
           reason == MEMLOG_CLIENT_NOT_PROFILED_REASON_NO_MEMFD;
}

/* Of itself: what it is a member for is not recorded, and it may have ended since. Whose Hello or
 * Forked came otherwise had the same pid before. */
static void
cannot_be_recorded(struct ml_engine_connection *connection, pid_t pid, const char *reason) {
    struct ml_engine *engine = connection->engine;
    const uint32_t told = engine->not_profiled_count;
    struct ml_member *self = ml_members_newest(&engine->members, pid);
    if (self == NULL || self->connection_id != connection->member_id) {
        /* A forked child is of the image whose socket it inherited; by now it may be another one.
         */
        const struct ml_member *first = ml_members_find(&engine->members, connection->member_id);
        const pid_t parent_pid = ml_process_parent(pid);
        char executable[PATH_MAX];
        ml_process_executable(pid, executable, sizeof(executable));
        ml_engine_add_not_profiled(
            engine, pid, parent_pid, reason, first != NULL ? first->executable : executable
        );
        if (first != NULL) {
            lose_fork(connection, pid, parent_pid, told);
        }
    } else if (!ml_recording_is_lost(self->recording)) {
        ml_member_lost(engine, self, reason);
        if (ml_recording_in_service(self->recording)) {
            ml_service_link_trouble(&engine->link, self, reason);
        } else if (self->birth == ML_BIRTH_FORK) { /* no service has heard of it */
            lose_fork(connection, pid, self->parent_pid, told);
        }
    }
}

static void on_not_profiled(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_not_profiled_request *request
) {
    struct ml_engine_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    char path[MEMLOG_CLIENT_NOT_PROFILED_REQUEST_PATH_LIMIT + 1];
    ml_string_copy(path, sizeof(path), request->path);
    pid_t pid = call->peer.pid;
    if (ml_listen_is_foreign(engine, call, ml_channel_peer_pidfd(connection->channel))) {
        return;
    }
    if (speaks_of_itself(request->reason)) {
        cannot_be_recorded(connection, pid, ml_engine_not_profiled_text(request->reason));
        return;
    }
    const uint32_t told = engine->not_profiled_count;
    ml_engine_add_not_profiled(
        engine, pid, ml_process_parent(pid), ml_engine_not_profiled_text(request->reason), path
    );
    engine->root_seen = engine->root_seen || pid == engine->root; /* it is named */
    if (request->reason == MEMLOG_CLIENT_NOT_PROFILED_REASON_SANITIZER &&
        engine->not_profiled_count > told) {
        ml_list_begins_anew(engine, pid);
    }
    struct ml_member *member = ml_members_running(&engine->members, pid);
    if (member != NULL) { /* soon another image, unless the exec fails */
        member->before.exec_announced = true;
        member->looks = 0;
        ml_member_look_soon(engine, member);
    }
}

/* A program that does not see the socket has a connection of its own, by one that was left to it.
 */
static void on_connected(
    void *context, const struct ml_call *call, const struct memlog_client_connected_request *request
) {
    const struct ml_engine_connection *connection = context;
    if (request->version != MEMLOG_CLIENT_CLIENT_VERSION) {
        ml_channel_close_socket(request->connection, ml_closer_close);
        return;
    }
    ml_listen_serve_left(connection->engine, request->connection, call->peer.pid);
}

const struct memlog_client_host_for_client_handlers ml_engine_client_handlers = {
    .hello = on_hello,
    .connected = on_connected,
    .forked = on_forked,
    .not_profiled = on_not_profiled,
    .allocators = on_allocators,
    .dump_asked = ml_engine_on_dump_asked};

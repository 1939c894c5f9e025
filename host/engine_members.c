#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/clock.h"
#include "host/engine_internal.h"

/* A process is looked at soon after its start, when it may still be giving itself a title, and ever
 * more rarely then: smaps_rollup walks its page tables. */
static const double look_after_s[] = {0.005, 0.02, 0.1, 0.5, 2.0, 5.0};
enum { LOOKS_COUNT = sizeof(look_after_s) / sizeof(look_after_s[0]) };

/* From this look on its memory is asked for too. */
enum { LOOK_AT_MEMORY_FROM = 1 };

static struct ml_engine *engine_of(const struct ml_member *member) {
    return member->members->context;
}

static void schedule_look(struct ml_engine *engine, struct ml_member *member) {
    uint32_t index = member->looks < LOOKS_COUNT ? member->looks : LOOKS_COUNT - 1;
    ev_timer_stop(engine->loop, &member->look_timer);
    ev_timer_set(&member->look_timer, look_after_s[index], 0.);
    ev_timer_start(engine->loop, &member->look_timer);
}

/* A loader may take that long from the exec to our constructor; who renames itself and makes an
 * exec within it keeps its older name. */
enum { EXEC_WINDOW_NS = 1000000000 };

/* Name, command line, role. True if something is new. */
static bool look_at_identity(struct ml_engine *engine, struct ml_member *member) {
    bool changed = false;
    char name[ML_PROCESS_NAME_BYTES];
    char name_before[ML_PROCESS_NAME_BYTES];
    (void)snprintf(name_before, sizeof(name_before), "%s", member->name);
    ml_process_name(member->pid, name);
    if (strcmp(name, "?") != 0 && strcmp(name, member->name) != 0) {
        (void)snprintf(member->name, sizeof(member->name), "%s", name);
        changed = true;
    }
    struct ml_command_line line;
    if (ml_process_command_line(member->pid, &line) == ML_OK) {
        if (ml_command_line_equal(&line, &member->line)) {
            ml_command_line_fini(&line);
        } else {
            ml_command_line_fini(&member->line_before);
            member->line_before = member->line;
            (void)snprintf(member->name_before, sizeof(member->name_before), "%s", name_before);
            member->changed_ns = ml_clock_moment(engine->clock).monotonic_ns;
            member->line = line;
            changed = true;
        }
    }
    enum ml_role role = ml_role_of(engine->options->roles, &member->line, member->is_root);
    changed = changed || role != member->role;
    member->role = role;
    return changed;
}

/* Whether it shall be recorded, by what is known of it now. */
static bool is_wanted(struct ml_engine *engine, struct ml_member *member) {
    const struct ml_options *options = engine->options;
    bool wanted = ml_mode_takes(
                      options->mode,
                      member->role,
                      member->draw,
                      ml_members_recording(&engine->members, member->role)
                  ) &&
                  ml_mode_permits(options->only, options->never, &member->line);
    if (!wanted && member->note[0] == '\0') {
        (void)snprintf(
            member->note,
            sizeof(member->note),
            "not taken by --memlog=%s",
            ml_mode_name(options->mode)
        );
    }
    return wanted && ml_service_link_up(&engine->link);
}

/* Whether the mode may want a process that came by fork. Then it records from its first allocation
 * until it is judged: a zygote's child would be gone before we could wake it. */
static bool may_want_forked(const struct ml_options *options) {
    for (int role = ML_ROLE_BROWSER; role < ML_ROLE_COUNT; role++) {
        bool possible = role != ML_ROLE_BROWSER || ml_patterns_count(options->roles) > 0;
        if (possible && ml_mode_take(options->mode, (enum ml_role)role) != ML_TAKE_NEVER) {
            return true;
        }
    }
    return false;
}

static struct ml_control_page control_page(const struct ml_engine *engine, bool enabled) {
    return (struct ml_control_page){
        .fork_enabled = may_want_forked(engine->options) ? 1 : 0,
        .enabled = enabled ? 1 : 0,
        .sampling_bytes = engine->options->sampling_bytes,
        .stack_mode = (uint32_t)engine->options->stack_mode,
        .overrun = (uint32_t)engine->options->overrun,
        .unwind_check = engine->options->unwind_check,
        .clock = (uint32_t)engine->clock,
    };
}

/* Bring a member to the service and let it record. */
static void record(struct ml_engine *engine, struct ml_member *member) {
    member->recording = true;
    member->in_service = true;
    member->note[0] = '\0';
    ml_service_link_add(&engine->link, member, engine->options->sampling_bytes);
}

void ml_member_look(struct ml_engine *engine, struct ml_member *member) {
    if (member->state != ML_MEMBER_RUNNING) {
        return;
    }
    bool changed = look_at_identity(engine, member);
    if (member->looks >= LOOK_AT_MEMORY_FROM) {
        uint64_t footprint = 0;
        uint64_t resident = 0;
        ml_process_footprint(member->pid, &footprint, &resident);
        if (resident != 0) { /* 0: it is ending or may not be read; what was known stays */
            changed = changed || footprint != member->footprint_bytes;
            member->footprint_bytes = footprint;
            member->resident_bytes = resident;
        }
    }
    if (!member->recording && !member->stream_lost && !member->in_service &&
        is_wanted(engine, member)) {
        struct ml_control_page page = control_page(engine, true);
        if (ml_endpoint_control(&member->endpoint, &page) == ML_OK) {
            member->from_startup = false;
            record(engine, member);
        }
    } else if (changed && member->in_service) {
        ml_service_link_update(&engine->link, member);
    }
}

void ml_member_release(struct ml_engine *engine, struct ml_member *member) {
    if (member->pidfd >= 0) {
        ev_io_stop(engine->loop, &member->pidfd_watcher);
        (void)close(member->pidfd);
        member->pidfd = -1;
    }
    ev_timer_stop(engine->loop, &member->look_timer);
    ml_endpoint_close(&member->endpoint, &engine->budget);
}

void ml_engine_quiet_members(struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && member->endpoint.control_fd >= 0) {
            struct ml_control_page page = member->endpoint.control;
            page.enabled = 0;
            page.fork_enabled = 0;
            (void)!ml_endpoint_control(&member->endpoint, &page);
            member->recording = false;
        }
    }
}

/* The end of a program image: tell the service, forget the rest. */
static void
end_member(struct ml_engine *engine, struct ml_member *member, enum ml_member_event event) {
    if (ml_member_set_state(member, event) != ML_OK) {
        return;
    }
    member->end = ml_clock_moment(engine->clock);
    if (member->in_service) {
        ml_service_link_end(&engine->link, member);
    }
    member->recording = false;
    ml_member_release(engine, member);
}

static void
end_process(struct ml_engine *engine, struct ml_member *member, const struct ml_ending *ending) {
    member->ending = *ending;
    if (!ending->known) {
        member->ending.exit_code = -1;
        (void)snprintf(member->note, sizeof(member->note), "how it ended is not known");
    }
    end_member(engine, member, ending->signal != 0 ? ML_MEMBER_EVENT_KILL : ML_MEMBER_EVENT_EXIT);
}

void ml_engine_child_ended(struct ml_engine *engine, pid_t pid, const struct ml_ending *ending) {
    struct ml_member *member = ml_members_running(&engine->members, pid);
    if (member != NULL) {
        end_process(engine, member, ending);
        return;
    }
    engine->reaped[engine->reaped_next] = (struct ml_reaped){.pid = pid, .ending = *ending};
    engine->reaped_next = (engine->reaped_next + 1) % ML_REAPED_MAX;
}

/* How a process ended that was gone when it became a member. */
static struct ml_ending ending_of_gone(struct ml_engine *engine, pid_t pid, int pidfd) {
    for (uint32_t i = 0; i < ML_REAPED_MAX; i++) {
        if (engine->reaped[i].pid == pid) {
            engine->reaped[i].pid = 0;
            return engine->reaped[i].ending;
        }
    }
    return ml_process_ending(pid, pidfd);
}

static void on_pidfd(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_member *member = watcher->data;
    struct ml_ending ending = ending_of_gone(engine_of(member), member->pid, member->pidfd);
    end_process(engine_of(member), member, &ending);
}

/* What was read of it in the moments before its exec was known was the new program's. */
static void restore_identity(struct ml_engine *engine, struct ml_member *member) {
    const uint64_t now_ns = ml_clock_moment(engine->clock).monotonic_ns;
    if (member->changed_ns == 0 || now_ns - member->changed_ns > EXEC_WINDOW_NS ||
        member->line_before.count == 0) {
        return;
    }
    const struct ml_command_line line = member->line;
    member->line = member->line_before;
    member->line_before = line;
    (void)snprintf(member->name, sizeof(member->name), "%s", member->name_before);
    member->role = ml_role_of(engine->options->roles, &member->line, member->is_root);
    if (member->in_service) {
        ml_service_link_update(&engine->link, member);
    }
}

static void on_look(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_member *member = watcher->data;
    struct ml_engine *engine = engine_of(member);
    member->looks++;
    if (member->exec_announced) {
        char executable[sizeof(member->executable)];
        ml_process_executable(member->pid, executable, sizeof(executable));
        if (executable[0] != '\0' && strcmp(executable, member->executable) != 0) {
            restore_identity(engine, member);
            end_member(engine, member, ML_MEMBER_EVENT_EXEC);
            return;
        }
    }
    ml_member_look(engine, member);
    if (member->state == ML_MEMBER_RUNNING) {
        schedule_look(engine, member);
    }
}

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
        (void)snprintf(member->name, sizeof(member->name), "%s", parent->name);
        (void)snprintf(member->executable, sizeof(member->executable), "%s", parent->executable);
    }
    member->role = ml_role_of(engine->options->roles, &member->line, false);
}

/* A process that has shown itself: make it a member. NULL: there is no room or it has gone. */
static struct ml_member *add_member(struct ml_engine *engine, pid_t pid) {
    struct ml_member *member = NULL;
    if (ml_members_add(&engine->members, pid, &member) != ML_OK) {
        ml_engine_add_not_profiled(
            engine, pid, ml_process_parent(pid), "too many processes for one run", NULL
        );
        return NULL;
    }
    member->start = ml_clock_moment(engine->clock);
    member->parent_pid = ml_process_parent(pid);
    member->is_root = pid == engine->root;
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof(random), 0);
    member->draw = random % ML_MODE_DRAWS;
    ev_init(&member->look_timer, on_look);
    member->look_timer.data = member;
    (void)look_at_identity(engine, member);
    ml_process_executable(pid, member->executable, sizeof(member->executable));
    return member;
}

/* Notice its end, by the sender's pidfd where the kernel gave one. A process that is gone already
 * ends at once. */
static void watch_member(struct ml_engine *engine, struct ml_member *member, int borrowed_pidfd) {
    member->pidfd = borrowed_pidfd >= 0 ? fcntl(borrowed_pidfd, F_DUPFD_CLOEXEC, 0)
                                        : (int)syscall(SYS_pidfd_open, member->pid, 0);
    if (member->pidfd < 0) {
        struct ml_ending ending = ending_of_gone(engine, member->pid, -1);
        end_process(engine, member, &ending);
        return;
    }
    ev_io_init(&member->pidfd_watcher, on_pidfd, member->pidfd, EV_READ);
    member->pidfd_watcher.data = member;
    ev_io_start(engine->loop, &member->pidfd_watcher);
    schedule_look(engine, member);
}

/* Whether the process behind a member has ended without our having noticed yet. */
static bool has_ended(struct ml_engine *engine, struct ml_member *member) {
    if (member->pidfd >= 0 && syscall(SYS_pidfd_send_signal, member->pidfd, 0, NULL, 0) == 0) {
        struct ml_ending ending = ml_process_ending(member->pid, member->pidfd);
        if (!ending.known) {
            return false;
        }
    }
    on_pidfd(engine->loop, &member->pidfd_watcher, EV_READ);
    return true;
}

/* The program image that a Hello leaves behind: the same process before its exec. */
static uint32_t leave_old_image(struct ml_engine *engine, pid_t pid) {
    struct ml_member *old = ml_members_running(&engine->members, pid);
    if (old == NULL || has_ended(engine, old)) {
        return 0;
    }
    restore_identity(engine, old);
    end_member(engine, old, ML_MEMBER_EVENT_EXEC);
    return old->id;
}

static void refuse(const struct ml_call *call) {
    const struct memlog_client_hello_reply reply = {
        .params = {.verdict = MEMLOG_CLIENT_VERDICT_REFUSED, .sampling_bytes = 1}};
    (void)!memlog_client_hello_answer(call, &reply);
}

static void answer_hello(
    struct ml_engine *engine, const struct ml_call *call, struct ml_member *member, int write_fd
) {
    const struct ml_options *options = engine->options;
    const struct memlog_client_hello_reply reply = {
        .params =
            {.verdict =
                 member->recording ? MEMLOG_CLIENT_VERDICT_RECORD : MEMLOG_CLIENT_VERDICT_DORMANT,
             .stack_mode = (enum memlog_client_stack_mode)options->stack_mode,
             .sampling_bytes = options->sampling_bytes,
             .staging_slots = options->staging_slots,
             .unwind_check = options->unwind_check},
        .has_event_pipe = true,
        .event_pipe = write_fd,
        .has_staging = true,
        .staging = member->endpoint.staging_fd,
        .has_control = true,
        .control = member->endpoint.control_fd,
    };
    (void)!memlog_client_hello_answer(call, &reply);
}

static void on_hello(
    void *context, const struct ml_call *call, const struct memlog_client_hello_request *request
) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    pid_t pid = call->peer.pid;
    if (pid <= 0 || connection->member_id != 0 ||
        request->version != MEMLOG_CLIENT_CLIENT_VERSION) {
        refuse(call);
        return;
    }
    uint32_t old_id = leave_old_image(engine, pid);
    struct ml_member *member = add_member(engine, pid);
    if (member == NULL) {
        refuse(call);
        return;
    }
    connection->member_id = member->id;
    engine->root_seen = engine->root_seen || member->is_root;
    const struct ml_member *parent = ml_members_newest(&engine->members, member->parent_pid);
    member->parent_id = old_id != 0 ? old_id : (parent != NULL ? parent->id : 0);
    bool wanted = is_wanted(engine, member);
    struct ml_control_page page = control_page(engine, wanted);
    int write_fd = -1;
    if (ml_endpoint_make(
            &member->endpoint, &engine->budget, engine->options->staging_slots, &page, &write_fd
        ) != ML_OK) {
        ml_engine_add_not_profiled(
            engine, pid, member->parent_pid, "the host could not make its pipe", member->executable
        );
        refuse(call);
        watch_member(engine, member, ml_channel_peer_pidfd(connection->channel));
        return;
    }
    if (wanted) {
        member->from_startup = true;
        record(engine, member);
    }
    answer_hello(engine, call, member, write_fd);
    (void)close(write_fd);
    watch_member(engine, member, ml_channel_peer_pidfd(connection->channel));
}

/* Who forked it: by the kernel, or, where the parent has gone or lives in another pid namespace, by
 * its own word as far as that names a member, else who owns the socket that it inherited. */
static uint32_t parent_of_fork(
    struct ml_connection *connection, const struct ml_member *child, uint32_t parent_pid
) {
    const struct ml_members *members = &connection->engine->members;
    const struct ml_member *parent = ml_members_newest(members, child->parent_pid);
    if (parent == NULL || parent == child) {
        parent = ml_members_newest(members, (pid_t)parent_pid);
    }
    return parent != NULL && parent != child ? parent->id : connection->member_id;
}

static void on_forked(
    void *context, const struct ml_call *call, const struct memlog_client_forked_request *request
) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    pid_t pid = call->peer.pid;
    struct ml_member *old = pid > 0 ? ml_members_running(&engine->members, pid) : NULL;
    bool allowed = pid > 0 && request->version == MEMLOG_CLIENT_CLIENT_VERSION &&
                   (old == NULL || has_ended(engine, old));
    struct ml_member *member = allowed ? add_member(engine, pid) : NULL;
    if (member == NULL) {
        (void)close(request->event_pipe);
        (void)close(request->staging);
        (void)close(request->control);
        return;
    }
    member->is_root = false;
    member->forked = true;
    member->fork_serial = request->fork_serial;
    member->parent_id = parent_of_fork(connection, member, request->parent_pid);
    take_title(
        engine, member, &request->title, ml_members_find(&engine->members, member->parent_id)
    );
    if (ml_endpoint_adopt(
            &member->endpoint,
            &engine->budget,
            request->event_pipe,
            request->staging,
            request->control
        ) != ML_OK) {
        ml_engine_add_not_profiled(
            engine, pid, member->parent_pid, "its handles were not what they should be", NULL
        );
        watch_member(engine, member, ml_channel_peer_pidfd(connection->channel));
        return;
    }
    bool wanted = is_wanted(engine, member);
    bool enabled = member->endpoint.control.enabled != 0;
    struct ml_control_page page = control_page(engine, wanted);
    if (wanted != enabled) {
        (void)!ml_endpoint_control(&member->endpoint, &page);
    }
    if (wanted) {
        member->from_startup = enabled;
        record(engine, member);
    }
    watch_member(engine, member, ml_channel_peer_pidfd(connection->channel));
}

static const char *not_profiled_text(enum memlog_client_not_profiled_reason reason) {
    switch (reason) {
    case MEMLOG_CLIENT_NOT_PROFILED_REASON_STATIC:
        return ml_image_text(ML_IMAGE_STATIC);
    case MEMLOG_CLIENT_NOT_PROFILED_REASON_OTHER_LOADER:
        return ml_image_text(ML_IMAGE_OTHER_LOADER);
    case MEMLOG_CLIENT_NOT_PROFILED_REASON_OTHER_ARCHITECTURE:
        return "of another architecture than memlog";
    case MEMLOG_CLIENT_NOT_PROFILED_REASON_SETUID:
        return ml_image_text(ML_IMAGE_SETUID);
    case MEMLOG_CLIENT_NOT_PROFILED_REASON_LIBRARY_NOT_VISIBLE:
        return "libmemlog.so is not visible in its root directory";
    case MEMLOG_CLIENT_NOT_PROFILED_REASON_UNREADABLE:
        return ml_image_text(ML_IMAGE_UNREADABLE);
    case MEMLOG_CLIENT_NOT_PROFILED_REASON_HANDSHAKE_FAILED:
        return "it started, but found no host in time";
    }
    return "for an unknown reason";
}

static void on_not_profiled(
    void *context,
    const struct ml_call *call,
    const struct memlog_client_not_profiled_request *request
) {
    struct ml_connection *connection = context;
    struct ml_engine *engine = connection->engine;
    char path[MEMLOG_CLIENT_NOT_PROFILED_REQUEST_PATH_LIMIT + 1];
    (void)snprintf(
        path,
        sizeof(path),
        "%.*s",
        (int)request->path.count_bytes,
        request->path.count_bytes > 0 ? request->path.data : ""
    );
    pid_t pid = call->peer.pid;
    ml_engine_add_not_profiled(
        engine, pid, ml_process_parent(pid), not_profiled_text(request->reason), path
    );
    struct ml_member *member = ml_members_running(&engine->members, pid);
    if (member != NULL) { /* soon another image, unless the exec fails */
        member->exec_announced = true;
        member->looks = 0;
        schedule_look(engine, member);
    }
}

const struct memlog_client_host_for_client_handlers ml_engine_client_handlers = {
    .hello = on_hello, .forked = on_forked, .not_profiled = on_not_profiled};

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "host/engine/state.h"
#include "host/process/clock.h"

/* A process is looked at soon after its start, when it may still be giving itself a title, and ever
 * more rarely then: smaps_rollup walks its page tables. */
static const double look_after_s[] = {0.005, 0.02, 0.1, 0.5, 2.0, 5.0};
enum { LOOKS_COUNT = sizeof(look_after_s) / sizeof(look_after_s[0]) };

/* From this look on its memory is asked for too. */
enum { LOOK_AT_MEMORY_FROM = 1 };

static struct ml_engine *engine_of(const struct ml_member *member) {
    return member->members->context;
}

/* Somebody else comes each time the host is about to read the clock: chance, or he lies. */
enum { LEASE_ENDS_MAX = 4 };

struct memlog_service_moment ml_engine_timestamp(struct ml_engine *engine) {
    struct memlog_service_moment timestamp;
    int ends = 0;
    do {
        ml_endpoint_lease_end(engine->lease_fd);
        timestamp = ml_clock_timestamp(engine->clock);
    } while (ml_endpoint_lease_held(engine->lease_fd) && ++ends < LEASE_ENDS_MAX);
    return timestamp;
}

void ml_member_look_soon(struct ml_engine *engine, struct ml_member *member) {
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
    struct ml_command_line line;
    bool has_line = ml_process_command_line(member->pid, &line) == ML_OK;
    /* Read last: while the image is still the same, name and line were its own. */
    const struct ml_image_mark now = ml_process_facts(member->pid).image;
    if (ml_image_mark_differs(&member->image, &now)) {
        if (has_line) {
            ml_command_line_fini(&line);
        }
        return false;
    }
    const bool is_sure = ml_image_mark_is_known(&member->image) && ml_image_mark_is_known(&now);
    /* Without a line it is in the middle of an exec, or has ended, perhaps as another program. */
    if ((has_line || member->name[0] == '\0') && strcmp(name, "?") != 0 &&
        strcmp(name, member->name) != 0) {
        (void)snprintf(member->name, sizeof(member->name), "%s", name);
        changed = true;
    }
    if (has_line) {
        if (ml_command_line_equal(&line, &member->line)) {
            ml_command_line_fini(&line);
        } else {
            ml_command_line_fini(&member->before.line);
            member->before.line = member->line;
            (void)snprintf(member->before.name, sizeof(member->before.name), "%s", name_before);
            member->before.changed_ns =
                is_sure ? 0 : ml_clock_timestamp(engine->clock).monotonic_ns;
            member->line = line;
            changed = true;
        }
    }
    enum memlog_service_role role =
        ml_role_of(engine->options->roles, &member->line, member->birth == ML_BIRTH_ROOT);
    changed = changed || role != member->role;
    member->role = role;
    return changed;
}

/* Why it is not recorded, for people. `left_out`: the reason is in `why`. */
static void note_refusal(
    struct ml_member *member, enum ml_mode mode, bool left_out, const char why[ML_MODE_WHY_BYTES]
) {
    member->left_out = left_out;
    if (left_out) {
        (void)snprintf(member->note, sizeof(member->note), "%s", why);
    } else if (member->note[0] == '\0') {
        (void)snprintf(
            member->note, sizeof(member->note), "not taken by --memlog=%s", ml_mode_name(mode)
        );
    }
}

/* Whether it shall be recorded, by what is known of it now. */
bool ml_member_is_wanted(struct ml_engine *engine, struct ml_member *member) {
    const struct ml_options *options = engine->options;
    char why[ML_MODE_WHY_BYTES] = "";
    /* All that ever were are looked through: only where the mode asks. */
    const bool is_alone = ml_mode_take(options->mode, member->role) == ML_TAKE_THIRD_ALONE;
    member->left_out = ml_engine_forbids(engine, member);
    if (member->left_out) {
        return false;
    }
    const enum ml_wish wish = ml_wish_settled(member->wish);
    if (wish != ML_WISH_NONE) {
        return wish == ML_WISH_START && engine->service_state != ML_ENGINE_ALONE;
    }
    const bool left_out = ml_mode_leaves_out(options->only, options->never, &member->line, why);
    bool wanted =
        !left_out && ml_mode_takes(
                         options->mode,
                         member->role,
                         member->draw,
                         is_alone ? ml_members_recording(&engine->members, member->role) : 0
                     );
    wanted = wanted || ml_engine_wants_name(engine, member);
    if (!wanted) {
        note_refusal(member, options->mode, left_out, why);
    }
    return wanted && engine->service_state != ML_ENGINE_ALONE;
}

/* A zygote's child would be gone before we could wake it. */
bool ml_engine_wants_forked(const struct ml_engine *engine) {
    const struct ml_options *options = engine->options;
    bool possible = engine->names.count > 0;
    for (int role = MEMLOG_SERVICE_ROLE_BROWSER; role < ML_ROLE_COUNT && !possible; role++) {
        const bool may_be =
            role != MEMLOG_SERVICE_ROLE_BROWSER || ml_patterns_count(options->roles) > 0;
        possible =
            may_be && ml_mode_take(options->mode, (enum memlog_service_role)role) != ML_TAKE_NEVER;
    }
    return possible;
}

struct ml_control_page ml_engine_control_page(const struct ml_engine *engine, bool enabled) {
    return (struct ml_control_page){
        .fork_enabled = ml_engine_wants_forked(engine) ? 1 : 0,
        .enabled = enabled ? 1 : 0,
        .sampling_bytes = engine->options->sampling_bytes,
        .all_sampled = 1, /* nothing has been recorded yet */
        .stack_mode = (uint32_t)engine->options->stack_mode,
        .overrun = (uint32_t)engine->options->overrun,
        .unwind_check = engine->options->unwind_check,
        .clock = (uint32_t)engine->clock,
        .fork_pipe_bytes = engine->fork_pipe_bytes,
    };
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
    struct ml_control_page page = ml_engine_control_page(engine, enabled);
    page.profile = member->profile;
    if (member->sampling_bytes != 0) {
        page.sampling_bytes = member->sampling_bytes;
        page.stack_mode = member->stack_mode;
    }
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

/* Bring a member to the service, whose control page lets it record. Without a service it waits for
 * the next one, in its pipe: nothing of it is lost. */
void ml_member_record(struct ml_engine *engine, struct ml_member *member) {
    const bool is_up = ml_service_link_up(&engine->link);
    ml_member_set_recording(member, is_up ? ML_RECORDING_SERVE : ML_RECORDING_WAIT);
    member->note[0] = '\0';
    if (is_up) {
        doubt_inheritance(engine, member);
        ml_service_link_add(
            &engine->link,
            member,
            member->sampling_bytes != 0 ? member->sampling_bytes : engine->options->sampling_bytes
        );
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

static void attach(struct ml_engine *engine, struct ml_member *member) {
    if (member->recording == ML_RECORDING_WAITS_TORN) {
        ml_member_empty_pipe(member);
        member->profile++;
        member->from_startup = false;
        ml_member_set_recording(member, ML_RECORDING_EMPTY);
        (void)snprintf(
            member->trouble,
            sizeof(member->trouble),
            "%s: what it had allocated before is not known",
            engine->last_ending
        );
    }
    if (ml_member_enable(engine, member, true) == ML_OK) {
        ml_member_record(engine, member);
    }
}

void ml_engine_attach_members(struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count && engine->service_state == ML_ENGINE_SERVING;
         i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && ml_recording_is_on(member->recording) &&
            !ml_recording_in_service(member->recording) && member->endpoint.control_fd >= 0) {
            attach(engine, member);
        }
    }
}

/* Walking over its mappings takes longer than smaps_rollup, and nobody but a dump's reader asks: at
 * each dump, and now and then, for the dump after its end. A process that is gone soon is spared.
 */
enum { VIEW_FROM_LOOK = 2, VIEW_EACH_LOOK = 12 };

void ml_member_show(struct ml_engine *engine, struct ml_member *member) {
    struct ml_process_view view;
    if (member->state != ML_MEMBER_RUNNING || !ml_recording_in_service(member->recording)) {
        return;
    }
    ml_process_view_init(&view, member->pid);
    if (view.threads_count > 0) { /* 0: it is gone; what was seen stays */
        const uint64_t now_ns = ml_clock_timestamp(engine->clock).boottime_ns;
        ml_service_link_show(&engine->link, member, now_ns, &view);
        if (view.libcs_count > 1 && member->libc_files <= 1) {
            member->libc_files = view.libcs_count;
            ml_service_link_update(&engine->link, member);
        }
    }
    ml_process_view_fini(&view);
}

/* Nobody has it, and it may still be had. */
static bool may_begin(enum ml_recording state) {
    return !ml_recording_is_on(state) && !ml_recording_is_lost(state) &&
           !ml_recording_in_service(state);
}

void ml_member_look(struct ml_engine *engine, struct ml_member *member) {
    if (member->state != ML_MEMBER_RUNNING) {
        return;
    }
    if (ml_member_check_image(engine, member)) {
        return;
    }
    const bool is_another = look_at_identity(engine, member);
    bool changed = is_another;
    if (member->looks >= LOOK_AT_MEMORY_FROM) {
        uint64_t footprint = 0;
        uint64_t resident = 0;
        ml_process_footprint(member->pid, &footprint, &resident);
        if (resident != 0) { /* 0: it is ending or may not be read; what was known stays */
            changed = true;  /* the heap beside it is another one, though it be the same */
            member->footprint_bytes = footprint;
            member->resident_bytes = resident;
            member->footprint_ticks = ml_engine_timestamp(engine).ticks;
        }
    }
    /* Judged anew only as somebody else: where a mode takes one at a time, the end of that one must
     * not make others begin in the middle of their lives. */
    if (is_another && may_begin(member->recording) && ml_member_is_wanted(engine, member)) {
        if (ml_member_enable(engine, member, true) == ML_OK) {
            member->from_startup = false;
            ml_member_record(engine, member);
        }
    } else if (changed && ml_recording_in_service(member->recording)) {
        ml_service_link_update(&engine->link, member);
    }
    if (is_another) {
        ml_engine_stop_forbidden(engine, member);
    }
}

void ml_member_release(struct ml_engine *engine, struct ml_member *member) {
    ml_member_unwatch(engine, member);
    ev_timer_stop(engine->loop, &member->look_timer);
    ml_endpoint_close(&member->endpoint, &engine->budget);
    ml_engine_tell_pipes(engine);
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

/* The end of a program image: tell the service, forget the rest. */
static void
end_member(struct ml_engine *engine, struct ml_member *member, enum ml_member_event event) {
    if (ml_member_set_state(member, event) != ML_OK) {
        return;
    }
    member->end = ml_engine_timestamp(engine);
    if (ml_recording_in_service(member->recording)) {
        ml_service_link_end(&engine->link, member);
    }
    ml_member_set_recording(member, ML_RECORDING_STOP);
    ml_member_release(engine, member);
}

/* What was read of it in the moments before its exec was known was the new program's. */
static void restore_identity(struct ml_engine *engine, struct ml_member *member) {
    const uint64_t now_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    if (member->before.changed_ns == 0 || now_ns - member->before.changed_ns > EXEC_WINDOW_NS ||
        member->before.line.count == 0) {
        return;
    }
    const struct ml_command_line line = member->line;
    member->line = member->before.line;
    member->before.line = line;
    (void)snprintf(member->name, sizeof(member->name), "%s", member->before.name);
    member->role =
        ml_role_of(engine->options->roles, &member->line, member->birth == ML_BIRTH_ROOT);
    if (ml_recording_in_service(member->recording)) {
        ml_service_link_update(&engine->link, member);
    }
}

void ml_member_end_process(
    struct ml_engine *engine, struct ml_member *member, const struct ml_ending *ending
) {
    if (member->before.exec_announced) { /* and a look has seen that program, this one last */
        restore_identity(engine, member);
    }
    member->ending = *ending;
    if (!ending->known) {
        member->ending.exit_code = -1;
        (void)snprintf(member->note, sizeof(member->note), "how it ended is not known");
    }
    end_member(engine, member, ending->signal != 0 ? ML_MEMBER_EVENT_KILL : ML_MEMBER_EVENT_EXIT);
    ml_engine_member_killed(engine, member);
}

void ml_member_replaced(struct ml_engine *engine, struct ml_member *member) {
    restore_identity(engine, member);
    end_member(engine, member, ML_MEMBER_EVENT_EXEC);
    ml_engine_list_replaced(engine, member);
}

bool ml_member_check_image(struct ml_engine *engine, struct ml_member *member) {
    if (member->state != ML_MEMBER_RUNNING || !ml_image_mark_is_known(&member->image)) {
        return false;
    }
    const struct ml_process_facts facts = ml_process_facts(member->pid);
    if (facts.start_ticks != member->start_ticks ||
        !ml_image_mark_differs(&member->image, &facts.image)) {
        return false;
    }
    ml_member_replaced(engine, member);
    return true;
}

void ml_engine_child_ended(struct ml_engine *engine, pid_t pid, const struct ml_ending *ending) {
    if (pid == engine->link.pid) {
        engine->service_ending = *ending;
        return;
    }
    struct ml_member *member = ml_members_running(&engine->members, pid);
    if (member != NULL) {
        ml_member_end_process(engine, member, ending);
        return;
    }
    const bool is_helper = ml_engine_is_helper(engine, pid);
    if (!ml_engine_list_child_ended(engine, pid, ending)) {
        ml_engine_keep_ending(engine, pid, ending, is_helper);
    }
}

static void on_look(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_member *member = watcher->data;
    struct ml_engine *engine = engine_of(member);
    member->looks++;
    if (member->before.exec_announced) {
        char executable[PATH_MAX];
        ml_process_executable(member->pid, executable, sizeof(executable));
        if (executable[0] != '\0' && strcmp(executable, member->executable) != 0) {
            ml_member_replaced(engine, member);
            return;
        }
    }
    ml_member_look(engine, member);
    if (member->looks == VIEW_FROM_LOOK || member->looks % VIEW_EACH_LOOK == VIEW_EACH_LOOK - 1) {
        ml_member_show(engine, member);
    }
    if (member->state == ML_MEMBER_RUNNING) {
        ml_member_look_soon(engine, member);
    }
}

/* A process that has shown itself: make it a member. NULL: there is no room or it has gone. */
struct ml_member *ml_engine_add_member(struct ml_engine *engine, pid_t pid) {
    struct ml_member *member = NULL;
    if (ml_members_add(&engine->members, pid, &member) != ML_OK) {
        ml_engine_add_not_profiled(
            engine, pid, ml_process_parent(pid), "too many processes for one run", NULL
        );
        return NULL;
    }
    const struct ml_process_facts facts = ml_process_facts(pid);
    member->start = ml_engine_timestamp(engine);
    member->parent_pid = facts.parent;
    member->start_ticks = facts.start_ticks;
    member->image = facts.image;
    member->birth = pid == engine->root ? ML_BIRTH_ROOT : ML_BIRTH_EXEC;
    uint32_t random = 0;
    (void)!getrandom(&random, sizeof(random), 0);
    member->draw = random % ML_MODE_DRAWS;
    ev_init(&member->look_timer, on_look);
    member->look_timer.data = member;
    (void)look_at_identity(engine, member);
    char executable[PATH_MAX];
    ml_process_executable(pid, executable, sizeof(executable));
    ml_member_executable(member, executable);
    return member;
}

/* The program image that a Hello leaves behind: the same process before its exec. */
uint32_t ml_engine_leave_old_image(struct ml_engine *engine, pid_t pid) {
    struct ml_member *old = ml_members_running(&engine->members, pid);
    if (old == NULL || ml_member_has_ended(engine, old)) {
        return 0;
    }
    restore_identity(engine, old);
    end_member(engine, old, ML_MEMBER_EVENT_EXEC);
    return old->id; /* never 0 */
}

#include "host/engine/members/members.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "host/engine/members/recorder.h"
#include "host/engine/members/targets.h"
#include "host/engine/views/peaks.h"
#include "host/process/clock.h"
#include "host/process/loop.h"

/* A process is looked at soon after its start, when it may give itself a title. Later looks are
 * rarer, as smaps_rollup walks the page tables. */
static const double look_after_s[] = {0.005, 0.02, 0.1, 0.5, 2.0, 5.0};
enum { LOOKS_COUNT = sizeof(look_after_s) / sizeof(look_after_s[0]) };

/* From this look on its memory is read too. */
enum { LOOK_AT_MEMORY_FROM = 1 };

static struct ml_engine *engine_of(const struct ml_member *member) {
    return member->members->context;
}

void ml_member_look_soon(struct ml_engine *engine, struct ml_member *member) {
    uint32_t index = member->looks < LOOKS_COUNT ? member->looks : LOOKS_COUNT - 1;
    ml_timer_start(engine->loop, &member->look_timer, look_after_s[index]);
}

/* A loader may take this long from the exec to memlog's constructor. A process that renames itself
 * and makes an exec within this time keeps its older name. */
enum { EXEC_WINDOW_NS = 1000000000 };

/* Read name, command line and role. True if something is new. */
static bool look_at_identity(struct ml_engine *engine, struct ml_member *member) {
    bool changed = false;
    char name[ML_PROCESS_NAME_BYTES];
    char name_before[ML_PROCESS_NAME_BYTES];
    (void)snprintf(name_before, sizeof(name_before), "%s", member->name);
    ml_process_name(member->pid, name);
    struct ml_command_line line;
    bool has_line = ml_process_command_line(member->pid, &line) == ML_OK;
    /* Read last: if the image is still the same, name and line belong to it. */
    const struct ml_image_mark now = ml_process_facts(member->pid).image;
    if (ml_image_mark_differs(&member->image, &now)) {
        if (has_line) {
            ml_command_line_fini(&line);
        }
        return false;
    }
    const bool is_sure = ml_image_mark_is_known(&member->image) && ml_image_mark_is_known(&now);
    /* Without a command line it is in the middle of an exec or has ended, and the name may be
     * another program's. */
    const bool is_first = member->name[0] == '\0';
    if ((has_line || is_first) && (is_first || strcmp(name, "?") != 0) &&
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

/* A process that is gone soon is spared; one that has lived for so long may have its peak before
 * the next round of host/engine/views/peaks.h. */
enum { PEAK_FROM_LOOK = 2 };

/* One that has so much memory beside pages of files is not spared: nobody could say whether its
 * heap explains that (service/session/coverage.h). */
#define UNSPARED_BYTES (UINT64_C(8) << 20)

static bool is_peak_due(const struct ml_member *member) {
    const bool is_large = member->footprint_bytes - member->footprint_files_bytes > UNSPARED_BYTES;
    return member->looks == PEAK_FROM_LOOK || (member->looks == LOOK_AT_MEMORY_FROM && is_large);
}

/* It is not recorded, and it can be. */
static bool may_begin(enum ml_recording state) {
    return !ml_recording_is_on(state) && !ml_recording_is_lost(state) &&
           !ml_recording_in_service(state);
}

static void on_forbidden(void *context, const char *trouble) {
    struct ml_member *member = context;
    (void)trouble;
    (void)ml_targets_forbid(engine_of(member), member);
}

/* It is another program than it was: if that one must not be recorded, stop. */
static void stop_forbidden(struct ml_engine *engine, struct ml_member *member) {
    if (ml_recording_is_on(member->recording) && !ml_request_waits(member->request) &&
        ml_targets_forbid(engine, member)) {
        ml_engine_stop_member(engine, member, on_forbidden, member);
    }
}

/* Of one that has a profile the view tells. */
static void look_at_status(struct ml_member *member) {
    const struct ml_memory_status status = ml_memory_status_read(member->pid);
    if (status.is_known) {
        member->status = status;
        member->is_unreadable = ml_memory_file_error(member->pid, "smaps") != 0;
    }
}

/* Its private memory was not to be had. Who asked for dumps by it hears so, once. */
static void note_unread(struct ml_engine *engine, struct ml_member *member) {
    member->footprint_error = ml_memory_file_error(member->pid, "smaps_rollup");
    if (member->footprint_error != 0 &&
        ml_trigger_rules_ask_footprint(&engine->options->triggers) &&
        ml_engine_says_first(engine, ML_SAID_FOOTPRINT)) {
        ml_engine_notice(
            engine,
            "no --threshold makes a dump of %s (%d): its private memory is not known "
            "(/proc/%d/smaps_rollup: %s); a rule of --triggers by what is live needs none",
            member->name,
            (int)member->pid,
            (int)member->pid,
            strerror(member->footprint_error)
        );
    }
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
    if (member->looks >= LOOK_AT_MEMORY_FROM && !ml_recording_in_service(member->recording)) {
        look_at_status(member);
    }
    if (member->looks >= LOOK_AT_MEMORY_FROM) {
        const struct ml_footprint now = ml_process_footprint(member->pid);
        /* No resident memory: it is ending or may not be read; what was known stays. */
        if (now.resident_bytes != 0) {
            changed = true; /* the heap beside it is another one, though it be the same */
            member->footprint_bytes = now.private_bytes;
            member->footprint_files_bytes = now.files_bytes;
            member->resident_bytes = now.resident_bytes;
            member->footprint_ticks = ml_engine_timestamp(engine).ticks;
            ml_engine_note_memory(engine, &member->memory, now.resident_bytes, now.private_bytes);
        } else {
            note_unread(engine, member);
        }
    }
    /* Only another identity is judged again. In a mode that takes one process at a time, the end of
     * one must not start the recording of others midway. */
    if (is_another && may_begin(member->recording) && ml_targets_want(engine, member)) {
        if (ml_member_enable(engine, member, true) == ML_OK) {
            member->from_startup = false;
            ml_member_record(engine, member);
        }
    } else if (changed && ml_recording_in_service(member->recording)) {
        ml_service_link_update(&engine->link, member);
    }
    if (is_another) {
        stop_forbidden(engine, member);
    }
}

void ml_member_release(struct ml_engine *engine, struct ml_member *member) {
    if (member->pidfd >= 0) {
        ev_io_stop(engine->loop, &member->pidfd_watcher);
        (void)close(member->pidfd);
        member->pidfd = ML_MEMBER_PIDFD_NONE;
    }
    ev_timer_stop(engine->loop, &member->look_timer);
    ml_code_files_fini(&member->code_files);
    ml_roots_leave(&engine->roots, member->root_id);
    member->root_id = 0;
    member->last_left_out = ml_endpoint_left_out(&member->endpoint);
    ml_endpoint_close(&member->endpoint, &engine->budget);
    ml_engine_tell_pipes(engine);
}

/* End a program image: tell the service and release the rest. */
static void
end_member(struct ml_engine *engine, struct ml_member *member, enum ml_member_event event) {
    if (ml_member_set_state(member, event) != ML_OK) {
        return;
    }
    member->end = ml_engine_timestamp(engine);
    if (ml_recording_in_service(member->recording)) {
        ml_member_hand_code(engine, member);
        ml_service_link_end(&engine->link, member);
    }
    ml_member_set_recording(member, ML_RECORDING_STOP);
    ml_member_release(engine, member);
}

/* What was read shortly before its exec was known belongs to the new program. */
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
    engine->on_member_end(engine, member);
}

void ml_member_end_image(struct ml_engine *engine, struct ml_member *member) {
    restore_identity(engine, member);
    end_member(engine, member, ML_MEMBER_EVENT_EXEC);
}

void ml_member_replaced(struct ml_engine *engine, struct ml_member *member) {
    ml_member_end_image(engine, member);
    engine->on_member_end(engine, member);
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
    if (is_peak_due(member)) {
        ml_peaks_look(engine, member);
    }
    if (member->state == ML_MEMBER_RUNNING) {
        ml_member_look_soon(engine, member);
    }
}

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
    ml_timer_init(&member->look_timer, on_look, member);
    (void)look_at_identity(engine, member);
    char executable[PATH_MAX];
    ml_process_executable(pid, executable, sizeof(executable));
    ml_member_executable(member, executable);
    ml_code_files_look(&member->code_files, pid);
    member->root_id = ml_roots_join(&engine->roots, pid);
    return member;
}

/* Every process of the tree from its birth: those that are no members are listed as not recorded.
 * Room: host. The kernel tells of them where it may (host/process/events.h), else the tree is
 * walked over (engine_walk.c). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/engine/internal.h"
#include "host/process/clock.h"

/* Its memory is read so long after its birth, and ever more rarely: smaps_rollup walks its page
 * tables. */
static const uint32_t look_after_ms[] = {20, 100, 500, 2000, 5000};
enum { LOOKS_COUNT = sizeof(look_after_ms) / sizeof(look_after_ms[0]), NS_PER_MS = 1000000 };

static const uint64_t ns_per_s = UINT64_C(1000000000);

/* Events that are taken in one go: the programs' own messages wait meanwhile. */
enum { EVENTS_AT_ONCE = 256, EVENTS_AT_MOST = 1 << 20 };

/* A process's report is read so long behind its end at most. */
static const uint64_t report_late_ns = UINT64_C(10000000000);

/* The name of a program that nobody could look at. */
static const char no_name[] = "?";

static const char no_image_text[] = "it ended before memlog could look at it";
static const char idle_text[] = "no allocation of it has come to memlog since it was forked";
static const char given_text[] = "memlog was given to it, but it has not reported itself";
static const char embedder_text[] =
    "a fork of the program that memlog is linked into, which is not recorded itself";
static const char raw_text[] = "it was started by a system call that memlog cannot see: its "
                               "environment did not carry memlog on";

static uint64_t now_ns(const struct ml_engine *engine) {
    return ml_clock_moment(engine->clock).monotonic_ns;
}

static struct ml_unrecorded_table *table_of(struct ml_engine *engine) {
    return &engine->list.table;
}

/* ---- who is who */

void ml_engine_add_helper(struct ml_engine *engine, pid_t pid) {
    struct ml_engine_list *list = &engine->list;
    list->helpers[list->helpers_next] = pid;
    list->helpers_next = (list->helpers_next + 1) % ML_LIST_HELPERS;
}

static void forget_helper(struct ml_engine *engine, pid_t pid) {
    for (unsigned i = 0; i < ML_LIST_HELPERS; i++) {
        if (engine->list.helpers[i] == pid) {
            engine->list.helpers[i] = 0;
        }
    }
}

bool ml_engine_is_helper(const struct ml_engine *engine, pid_t pid) {
    bool is_one = pid == engine->link.pid || pid == getpid();
    for (unsigned i = 0; i < ML_LIST_HELPERS && !is_one; i++) {
        is_one = engine->list.helpers[i] == pid;
    }
    return is_one;
}

/* A member, or one of the list, or neither. */
struct somebody {
    const struct ml_member *member;
    struct ml_unrecorded *one;
};

/* Whoever has ended is not meant. */
static const uint64_t at_present = UINT64_MAX;

/* Who was that pid at that moment (CLOCK_MONOTONIC), or is it at present. An end is noted when it
 * is noticed: whoever's end is noted behind that moment may have lived then. */
static struct somebody find(struct ml_engine *engine, pid_t pid, uint64_t at_ns) {
    const struct ml_member *member = ml_members_newest(&engine->members, pid);
    struct ml_unrecorded *one = ml_unrecorded_newest(table_of(engine), pid);
    member = member != NULL && member->pid_passed_on ? NULL : member;
    one = one != NULL && one->pid_passed_on ? NULL : one;
    const bool is_member = member != NULL && member->state == ML_MEMBER_RUNNING;
    const bool is_listed = one != NULL && one->state == ML_MEMBER_RUNNING;
    if (is_member || (!is_listed && member != NULL && member->end.monotonic_ns >= at_ns)) {
        return (struct somebody){.member = member};
    }
    const bool was_listed = is_listed || (one != NULL && one->end.monotonic_ns >= at_ns);
    return (struct somebody){.one = was_listed ? one : NULL};
}

/* 0: nobody who is known. */
static uint32_t id_of(struct somebody somebody) {
    return somebody.member != NULL ? somebody.member->id
                                   : (somebody.one != NULL ? somebody.one->id : 0);
}

/* ---- what is known of one */

static void set_reason(struct ml_unrecorded *one, const char *reason) {
    (void)snprintf(one->reason, sizeof(one->reason), "%s", reason);
}

static const char *base_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static bool has_name(const struct ml_unrecorded *one) {
    return one->executable != NULL || strcmp(one->name, no_name) != 0;
}

bool ml_engine_told_of(const struct ml_not_profiled *item, const struct ml_unrecorded *one) {
    const char *path = item->path != NULL ? item->path : "";
    const char *own = one->executable != NULL ? one->executable : one->name;
    if (!has_name(one)) { /* its own word alone, and not that of another who had its pid */
        const bool is_late = one->state != ML_MEMBER_RUNNING &&
                             item->heard_ns > one->end.monotonic_ns + report_late_ns;
        return item->pid == one->pid && !one->is_forked && !item->is_listed && !is_late &&
               item->heard_ns >= one->born_ns;
    }
    if ((item->pid != one->pid && item->pid != one->parent_pid) || one->is_forked) {
        return false;
    }
    return path[0] == '\0' ? item->pid == one->pid
                           : strcmp(base_of(path), base_of(own)) == 0 ||
                                 strncmp(base_of(path), one->name, sizeof(one->name) - 1) == 0;
}

static void
copy_identity(struct ml_unrecorded *one, const char *name, const char *path, char *const *argv) {
    struct ml_command_line line;
    (void)snprintf(one->name, sizeof(one->name), "%s", name);
    ml_unrecorded_executable(one, path);
    if (argv != NULL && ml_command_line_from_argv(&line, argv) == ML_OK) {
        ml_command_line_fini(&one->line);
        one->line = line;
    }
}

/* A report comes just before the exec that it is about: older ones are of others. */
enum { REPORTS_LOOKED_AT = 256 };

/* By what its parent, or it itself, has said of it. */
static bool take_told_reason(struct ml_engine *engine, struct ml_unrecorded *one) {
    const uint32_t count = engine->not_profiled_count;
    const uint32_t oldest = count > REPORTS_LOOKED_AT ? count - REPORTS_LOOKED_AT : 0;
    for (uint32_t i = count; i > oldest; i--) {
        struct ml_not_profiled *item = &engine->not_profiled[i - 1];
        if (ml_engine_told_of(item, one)) {
            item->is_listed = true;
            set_reason(one, item->reason);
            if (!has_name(one) && item->path != NULL && item->path[0] != '\0') {
                copy_identity(one, base_of(item->path), item->path, NULL);
            }
            return true;
        }
    }
    return false;
}

/* By what its image is. */
static void judge_image(const struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    const bool is_there = !facts.has_ended && facts.start_ticks == one->start_ticks;
    enum ml_image_kind kind = is_there ? ml_image_peek(one->pid) : ML_IMAGE_GONE;
    if (kind == ML_IMAGE_GONE && one->pid == engine->root &&
        engine->root_image != ML_IMAGE_PRELOADABLE) {
        kind = engine->root_image; /* as the file was judged before it was started */
    }
    if (kind == ML_IMAGE_PRELOADABLE && ml_process_was_given(one->pid, "MEMLOG_SOCKET")) {
        set_reason(one, given_text);
    } else if (kind == ML_IMAGE_PRELOADABLE) {
        set_reason(one, raw_text);
    } else if (kind != ML_IMAGE_GONE) {
        set_reason(one, ml_image_text(kind));
    }
}

void ml_engine_list_judge(struct ml_engine *engine, struct ml_unrecorded *one) {
    if (one->is_forked || one->has_reason || one->folded_processes > 0) {
        return;
    }
    one->has_reason = take_told_reason(engine, one);
    const bool is_judged = strcmp(one->reason, no_image_text) != 0;
    if (!one->has_reason && !is_judged && one->state == ML_MEMBER_RUNNING) {
        judge_image(engine, one);
    }
}

void ml_engine_list_root_told(struct ml_engine *engine, const struct ml_not_profiled *item) {
    struct ml_unrecorded *one = ml_unrecorded_newest(table_of(engine), item->pid);
    if (one != NULL && !one->has_reason && ml_engine_told_of(item, one)) {
        set_reason(one, item->reason);
        one->has_reason = true;
    }
}

/* Name, command line, what it runs; an unreadable part stays as it was. Of one that has ended and
 * is not waited for yet there is the name. */
static void identify(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_process_facts *facts
) {
    char name[ML_PROCESS_NAME_BYTES];
    char executable[PATH_MAX];
    struct ml_command_line line;
    one->identified_ns = now_ns(engine);
    if (facts->state == 0 || facts->start_ticks != one->start_ticks) {
        return; /* it is gone, and its pid may be another's */
    }
    ml_process_name(one->pid, name);
    if (strcmp(name, no_name) != 0) {
        (void)snprintf(one->name, sizeof(one->name), "%s", name);
    }
    if (!facts->has_ended && ml_process_command_line(one->pid, &line) == ML_OK) {
        ml_command_line_fini(&one->line);
        one->line = line;
    }
    if (!facts->has_ended) {
        ml_process_executable(one->pid, executable, sizeof(executable));
        if (executable[0] != '\0') {
            ml_unrecorded_executable(one, executable);
        }
    }
    one->role =
        ml_role_of(engine->options->roles, &one->line, one->pid == engine->root && !one->is_forked);
}

/* Its image is another one now; what was known is of the one before. */
static void forget_identity(struct ml_unrecorded *one) {
    ml_command_line_fini(&one->line);
    copy_identity(one, no_name, "", NULL);
    one->role = ML_ROLE_OTHER;
}

static void inherit_from_member(struct ml_unrecorded *one, const struct ml_member *member) {
    /* Of one that has ended it is not known any more whether it was being recorded at the fork. */
    const bool is_recorded = member->state == ML_MEMBER_RUNNING
                                 ? ml_recording_is_on(member->recording)
                                 : ml_recording_was_ever_on(member->recording);
    copy_identity(one, member->name, member->executable, member->line.arguments);
    one->image = member->image;
    one->role = member->birth == ML_BIRTH_ROOT ? ML_ROLE_OTHER : member->role;
    one->is_idle = is_recorded;
    set_reason(one, is_recorded ? idle_text : member->note);
}

/* A fork's image is its parent's, and so is what is said of it. */
static void inherit(struct ml_engine *engine, struct ml_unrecorded *one, struct somebody parent) {
    struct ml_unrecorded *other = parent.one;
    if (parent.member != NULL) {
        inherit_from_member(one, parent.member);
    } else if (other != NULL) {
        ml_engine_list_judge(engine, other); /* it may have told why since it was judged */
        copy_identity(
            one,
            other->name,
            other->executable != NULL ? other->executable : "",
            other->line.arguments
        );
        one->image = other->image;
        one->role = other->pid == engine->root ? ML_ROLE_OTHER : other->role;
        one->is_idle = other->is_idle;
        set_reason(one, other->reason);
    } else if (one->pid == engine->root && engine->root_argv != NULL) {
        /* It may have ended before anybody can look at it. */
        copy_identity(one, base_of(engine->root_argv[0]), "", engine->root_argv);
    }
}

/* ---- births, execs, ends */

static void look_later(struct ml_engine *engine, struct ml_unrecorded *one) {
    const uint32_t index = one->looks < LOOKS_COUNT ? one->looks : LOOKS_COUNT - 1;
    one->next_look_ns = now_ns(engine) + (uint64_t)look_after_ms[index] * NS_PER_MS;
    ml_engine_walk_soon(engine);
}

/* Whether a child of that parent may have come to this one: where the host is the subreaper, to one
 * of the tree. */
static bool may_be_child(struct ml_engine *engine, pid_t parent_pid, pid_t now_of) {
    return now_of == parent_pid || now_of == getpid() || engine->root == getpid() ||
           id_of(find(engine, now_of, at_present)) != 0;
}

/* One that was born then (CLOCK_MONOTONIC). Where it has ended meanwhile its pid may be another's:
 * nobody has started behind his own birth. The kernel tells of the start in ticks only; within one
 * the parent tells. */
static struct ml_process_facts
facts_of(struct ml_engine *engine, pid_t pid, pid_t parent_pid, uint64_t born_ns) {
    const struct ml_process_facts facts = ml_process_facts(pid);
    const struct memlog_service_moment now = ml_clock_moment(engine->clock);
    const uint64_t tick_ns = ns_per_s / (uint64_t)sysconf(_SC_CLK_TCK);
    const uint64_t born_since_boot_ns = born_ns + (now.boottime_ns - now.monotonic_ns);
    const bool is_it = facts.start_ticks * tick_ns <= born_since_boot_ns &&
                       may_be_child(engine, parent_pid, facts.parent);
    return is_it ? facts : (struct ml_process_facts){.has_ended = true};
}

/* A process that is no member: `is_forked` as far as is known. */
static struct ml_unrecorded *
add(struct ml_engine *engine,
    pid_t pid,
    pid_t parent_pid,
    struct somebody parent,
    bool is_forked,
    uint64_t born_ns) {
    const uint32_t parent_id = id_of(parent);
    struct ml_unrecorded *one = ml_unrecorded_add(table_of(engine), pid);
    if (one == NULL) {
        return NULL;
    }
    const struct ml_process_facts facts = facts_of(engine, pid, parent_pid, born_ns);
    one->parent_pid = parent_pid;
    one->parent_id = parent_id;
    one->start = ml_clock_moment(engine->clock);
    one->born_ns = born_ns;
    one->start_ticks = facts.start_ticks;
    one->is_forked = is_forked;
    forget_identity(one);
    set_reason(one, no_image_text);
    if (is_forked) {
        inherit(engine, one, parent);
    } else {
        one->image = facts.image;
        identify(engine, one, &facts);
        ml_engine_list_judge(engine, one);
    }
    look_later(engine, one);
    return one;
}

/* Its exec may have been told among the events that were dropped, and nobody has seen it since. */
static void doubt_image(const struct ml_engine_list *list, struct ml_unrecorded *one) {
    if (one->is_forked && one->born_ns < list->lost_ns && one->walk < list->lost_walk) {
        one->is_forked = false;
        one->is_idle = false;
        forget_identity(one);
        set_reason(one, no_image_text);
    }
}

static void
end(struct ml_engine *engine,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending) {
    doubt_image(&engine->list, one);
    ml_engine_list_judge(engine, one);
    ml_unrecorded_end(table_of(engine), one, event, ending, ml_clock_moment(engine->clock));
}

void ml_engine_list_end(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_ending *ending
) {
    /* The host may have reaped it before it has read of its birth. */
    const struct ml_ending kept = ml_engine_ending_of_gone(engine, one->pid, -1);
    const struct ml_ending *known = ending->known ? ending : &kept;
    end(engine, one, known->signal != 0 ? ML_MEMBER_EVENT_KILL : ML_MEMBER_EVENT_EXIT, known);
}

/* True, once: it has executed its own file once more, and is the program that it was. */
static bool has_begun_anew(struct ml_engine *engine, struct ml_unrecorded *one) {
    for (uint32_t i = engine->not_profiled_count; i > 0; i--) {
        struct ml_not_profiled *item = &engine->not_profiled[i - 1];
        if (item->begins_anew && item->pid == one->pid && ml_engine_told_of(item, one)) {
            item->begins_anew = false;
            return true;
        }
    }
    return false;
}

static bool is_same_program(const struct ml_unrecorded *one, const struct ml_unrecorded *other) {
    return one->executable != NULL && other->executable != NULL &&
           strcmp(one->executable, other->executable) == 0;
}

void ml_engine_list_begins_anew(struct ml_engine *engine, pid_t pid) {
    struct ml_unrecorded_table *table = table_of(engine);
    struct ml_unrecorded *one = ml_unrecorded_newest(table, pid);
    struct ml_not_profiled *item = &engine->not_profiled[engine->not_profiled_count - 1];
    item->begins_anew = true;
    /* The kernel may have told of the exec before the process has been heard. */
    for (uint32_t i = 0; one != NULL && i < table->count; i++) {
        struct ml_unrecorded *before = table->items[i];
        if (before->id == one->parent_id && before->pid == pid &&
            before->state == ML_MEMBER_REPLACED && is_same_program(before, one)) {
            one->parent_id = before->parent_id;
            one->start = before->start;
            item->begins_anew = false;
            ml_unrecorded_remove(table, before);
            return;
        }
    }
}

/* A fork becomes what it made its exec of; another program's image ends, and the next begins. */
static void replace(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_ending none = {.known = false};
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    if (!one->is_forked && has_begun_anew(engine, one)) {
        one->image = facts.image;
        return;
    }
    if (!one->is_forked) {
        const pid_t pid = one->pid;
        const pid_t parent_pid = one->parent_pid;
        const uint64_t born_ns = one->born_ns;
        const uint32_t id = one->id;
        end(engine, one, ML_MEMBER_EVENT_EXEC, &none);
        one = add(engine, pid, parent_pid, (struct somebody){.one = NULL}, false, born_ns);
        if (one != NULL) {
            one->parent_id = id;
        }
        return;
    }
    one->is_forked = false;
    one->is_idle = false;
    one->leaving = none; /* an exec by a thread that is not the first ends that one */
    one->image = facts.image;
    if (one->pid != engine->root) { /* of the first program it is known what it was to execute */
        forget_identity(one);
    }
    set_reason(one, no_image_text);
    identify(engine, one, &facts);
    ml_engine_list_judge(engine, one);
}

void ml_engine_list_replaced(struct ml_engine *engine, const struct ml_member *member) {
    if (ml_unrecorded_running(table_of(engine), member->pid) == NULL) {
        const struct somebody before = {.member = member};
        const uint64_t born_ns = member->start.monotonic_ns;
        (void)add(engine, member->pid, member->parent_pid, before, false, born_ns);
    }
}

void ml_engine_list_seen(
    struct ml_engine *engine, pid_t pid, const struct ml_process_facts *facts, uint32_t walk
) {
    struct ml_unrecorded *one = ml_unrecorded_running(table_of(engine), pid);
    if (one != NULL && (facts->has_ended || facts->start_ticks != one->start_ticks)) {
        struct ml_ending ending = one->leaving;
        if (!ending.known && facts->start_ticks == one->start_ticks) {
            ending = ml_process_ending(pid, -1);
        }
        ml_engine_list_end(engine, one, &ending);
        one = NULL;
    }
    if (facts->has_ended) {
        return;
    }
    if (one == NULL) {
        const struct somebody parent = find(engine, facts->parent, at_present);
        const struct ml_image_mark *mark = parent.member != NULL
                                               ? &parent.member->image
                                               : (parent.one != NULL ? &parent.one->image : NULL);
        const bool is_forked = mark != NULL && ml_image_mark_is_known(mark) &&
                               ml_image_mark_is_known(&facts->image) &&
                               !ml_image_mark_differs(mark, &facts->image);
        one = add(engine, pid, facts->parent, parent, is_forked, now_ns(engine));
    } else if (ml_image_mark_differs(&one->image, &facts->image)) {
        replace(engine, one);
        one = ml_unrecorded_running(table_of(engine), pid);
    } else if (!ml_image_mark_is_known(&one->image)) {
        one->image = facts->image;
    }
    if (one != NULL) {
        one->parent_pid = facts->parent;
        one->walk = walk;
    }
}

/* ---- from here on it is a member */

uint32_t ml_engine_list_recorded(struct ml_engine *engine, const struct ml_member *member) {
    struct ml_unrecorded *one = ml_unrecorded_newest(table_of(engine), member->pid);
    if (one == NULL) {
        return 0;
    }
    const uint32_t id = one->id;
    const uint32_t parent_id = one->parent_id;
    if (one->state != ML_MEMBER_RUNNING) {
        /* Its report was read behind its end: it was the same fork, or what nobody could look at.
         */
        const bool is_same =
            ((member->birth == ML_BIRTH_FORK && one->is_forked) || !has_name(one)) &&
            now_ns(engine) - one->end.monotonic_ns < report_late_ns;
        if (is_same) {
            ml_unrecorded_remove(table_of(engine), one);
        }
        return 0;
    }
    if (member->birth == ML_BIRTH_FORK && !one->is_forked) {
        one->parent_id = member->id; /* it has made its exec since it said so */
        return 0;
    }
    if (!one->is_forked && ml_image_mark_differs(&one->image, &member->image)) {
        const struct ml_ending none = {.known = false};
        end(engine, one, ML_MEMBER_EVENT_EXEC, &none);
        return id;
    }
    ml_unrecorded_remove(table_of(engine), one);
    return parent_id;
}

/* ---- the kernel's events */

/* A child of the program that the host is linked into. What starts the host's own helpers has been
 * waited for by now. */
static bool is_of_embedder(const struct ml_engine *engine, const struct ml_process_event *event) {
    return engine->root == getpid() && event->parent == getpid() &&
           !ml_engine_is_helper(engine, event->pid) && !ml_process_facts(event->pid).has_ended;
}

/* Whoever has that pid was there before. */
static bool is_known(struct ml_engine *engine, const struct ml_process_event *event) {
    struct ml_member *member = ml_members_newest(&engine->members, event->pid);
    const struct ml_unrecorded *one = ml_unrecorded_newest(table_of(engine), event->pid);
    const bool is_member =
        member != NULL &&
        (member->start.monotonic_ns >= event->monotonic_ns ||
         (member->state == ML_MEMBER_RUNNING && !ml_member_has_ended(engine, member)));
    return is_member || (one != NULL && one->born_ns >= event->monotonic_ns);
}

/* Whoever had that pid before has ended, and who has it now is the parent of what comes. */
static void pass_pid_on(struct ml_engine *engine, const struct ml_process_event *event) {
    struct ml_member *member = ml_members_newest(&engine->members, event->pid);
    if (member != NULL && member->start.monotonic_ns < event->monotonic_ns) {
        member->pid_passed_on = true;
    }
    struct ml_unrecorded *one = ml_unrecorded_newest(table_of(engine), event->pid);
    if (one != NULL && one->born_ns < event->monotonic_ns) {
        one->pid_passed_on = true;
    }
    if (one != NULL && one->pid_passed_on && one->state == ML_MEMBER_RUNNING) {
        const struct ml_ending ending = one->leaving;
        end(engine, one, ending.signal != 0 ? ML_MEMBER_EVENT_KILL : ML_MEMBER_EVENT_EXIT, &ending);
    }
}

/* Its parent may have been seen to end before this is read. */
static void on_born(struct ml_engine *engine, const struct ml_process_event *event) {
    const bool is_of_host = is_of_embedder(engine, event);
    const bool is_top = is_of_host || (event->pid == engine->root && event->parent == getpid());
    const struct somebody parent = find(engine, event->parent, event->monotonic_ns);
    const uint32_t parent_id = id_of(parent);
    pass_pid_on(engine, event);
    if ((parent_id == 0 && !is_top) || is_known(engine, event)) {
        return; /* somebody else's, or known already */
    }
    struct ml_unrecorded *one =
        add(engine, event->pid, event->parent, parent, true, event->monotonic_ns);
    if (one != NULL && is_of_host && parent_id == 0) {
        set_reason(one, embedder_text);
    }
}

static void on_exec(struct ml_engine *engine, const struct ml_process_event *event) {
    struct ml_member *member = ml_members_running(&engine->members, event->pid);
    struct ml_unrecorded *one = ml_unrecorded_running(table_of(engine), event->pid);
    if (member != NULL && event->monotonic_ns > member->start.monotonic_ns) {
        ml_member_replaced(engine, member);
    } else if (member != NULL) {
        (void)ml_member_check_image(engine, member); /* it was the exec that it came by, mostly */
    } else if (one != NULL && (one->is_forked || event->monotonic_ns > one->identified_ns)) {
        replace(engine, one);
    }
}

/* False: it is still there. */
static bool end_gone(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    if (!facts.has_ended && facts.start_ticks == one->start_ticks) {
        return false;
    }
    struct ml_ending ending = one->leaving;
    if (facts.start_ticks == one->start_ticks) { /* a zombie, which knows best */
        const struct ml_ending known = ml_process_ending(one->pid, -1);
        ending = known.known ? known : ending;
    }
    ml_engine_list_end(engine, one, &ending);
    return true;
}

/* One whose birth was among the events that were dropped. NULL: it is somebody else's, or known. */
static struct ml_unrecorded *
add_ended(struct ml_engine *engine, const struct ml_process_event *event) {
    const uint64_t at_ns = event->monotonic_ns;
    const struct somebody parent = find(engine, event->parent, at_ns);
    const struct somebody itself = find(engine, event->pid, at_ns);
    const bool is_orphan = event->parent == getpid() && engine->root != getpid() &&
                           !ml_engine_is_helper(engine, event->pid);
    if (engine->list.lost_ns == 0 || id_of(itself) != 0 || (id_of(parent) == 0 && !is_orphan)) {
        return NULL;
    }
    return add(engine, event->pid, event->parent, parent, false, at_ns);
}

static void on_ended(struct ml_engine *engine, const struct ml_process_event *event) {
    struct ml_unrecorded *one = ml_unrecorded_running(table_of(engine), event->pid);
    one = one != NULL ? one : add_ended(engine, event);
    if (one == NULL || event->monotonic_ns < one->born_ns) {
        return;
    }
    if (!one->leaving.known) { /* else it is of one who has its pid now */
        one->leaving = ml_ending_from_wait(event->wait_status);
    }
    if (!end_gone(engine, one)) { /* not yet: the kernel tells before it is done */
        one->next_look_ns = now_ns(engine) + (uint64_t)look_after_ms[0] * NS_PER_MS;
        ml_engine_walk_soon(engine);
    }
}

/* The queue is empty: what comes now is told again. True: what came before was not all. */
static bool heard_all(struct ml_engine_list *list, uint64_t now) {
    const bool has_lost = list->is_losing;
    if (has_lost) {
        list->blind_ns =
            now - list->heard_ns > list->blind_ns ? now - list->heard_ns : list->blind_ns;
        list->lost_ns = now;
        list->lost_walk = list->walk + 1;
    }
    list->is_losing = false;
    list->heard_ns = now;
    return has_lost;
}

/* Up to so many. False: the kernel had to drop some, and a walk is due. */
static bool take_events(struct ml_engine *engine, int most) {
    struct ml_engine_list *list = &engine->list;
    struct ml_process_event event;
    for (int i = 0; i < most; i++) {
        const uint64_t now = now_ns(engine);
        if (!ml_process_events_next(list->events_fd, &event, &list->is_losing)) {
            list->has_lost_events = list->has_lost_events || list->is_losing;
            return !heard_all(list, now);
        }
        if (event.kind == ML_PROCESS_EVENT_BORN) {
            on_born(engine, &event);
        } else if (event.kind == ML_PROCESS_EVENT_EXEC) {
            on_exec(engine, &event);
        } else {
            on_ended(engine, &event);
        }
    }
    return !list->is_losing;
}

void ml_engine_list_take_events(struct ml_engine *engine) {
    if (engine->list.events_fd >= 0) {
        (void)take_events(engine, EVENTS_AT_MOST);
    }
}

static void on_events(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    if (!take_events(engine, EVENTS_AT_ONCE)) {
        ml_engine_walk(engine);
    }
}

bool ml_engine_list_child_ended(
    struct ml_engine *engine, pid_t pid, const struct ml_ending *ending
) {
    forget_helper(engine, pid);
    const bool was_listed = ml_unrecorded_running(table_of(engine), pid) != NULL;
    if (was_listed) { /* its exec may not have been read yet */
        ml_engine_list_take_events(engine);
    }
    struct ml_unrecorded *one = ml_unrecorded_running(table_of(engine), pid);
    if (one != NULL) {
        ml_engine_list_end(engine, one, ending);
    }
    return was_listed || one != NULL;
}

/* ---- looks */

static void look_at_memory(struct ml_unrecorded *one) {
    uint64_t footprint = 0;
    uint64_t resident = 0;
    ml_process_footprint(one->pid, &footprint, &resident);
    if (resident != 0) { /* 0: it is ending or may not be read; what was known stays */
        one->footprint_bytes = footprint;
        one->resident_bytes = resident;
    }
}

/* Not of one that is becoming another image: the kernel, or a walk, is about to tell. */
static void look(struct ml_engine *engine, struct ml_unrecorded *one, uint64_t now) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    if (!ml_image_mark_differs(&one->image, &facts.image)) {
        identify(engine, one, &facts); /* a fork may have given itself a title */
        ml_engine_list_judge(engine, one);
        look_at_memory(one);
    }
    one->looks++;
    const uint32_t index = one->looks < LOOKS_COUNT ? one->looks : LOOKS_COUNT - 1;
    one->next_look_ns = now + (uint64_t)look_after_ms[index] * NS_PER_MS;
}

uint64_t ml_engine_list_look(struct ml_engine *engine, bool all) {
    ml_engine_list_take_events(engine
    ); /* of one that is gone they tell as what it ended, and how */
    struct ml_unrecorded_table *table = table_of(engine);
    const uint64_t now = now_ns(engine);
    uint64_t next_ns = UINT64_MAX;
    /* By id: each end may fold others, and move those that stay. */
    for (struct ml_unrecorded *one = ml_unrecorded_next_running(table, 0); one != NULL;) {
        const uint32_t id = one->id;
        const bool is_due = all || one->next_look_ns <= now;
        if (!(one->leaving.known || is_due) || !end_gone(engine, one)) {
            if (is_due) {
                look(engine, one, now);
            }
            next_ns = one->next_look_ns < next_ns ? one->next_look_ns : next_ns;
        }
        one = ml_unrecorded_next_running(table, id);
    }
    return next_ns;
}

/* ---- begin and end */

void ml_engine_list_init(struct ml_engine *engine) {
    struct ml_engine_list *list = &engine->list;
    ml_unrecorded_init(&list->table);
    list->events_fd = ml_process_events_open();
    list->heard_ns = now_ns(engine);
    if (list->events_fd >= 0) {
        ev_io_init(&list->events_watcher, on_events, list->events_fd, EV_READ);
        ev_set_priority(
            &list->events_watcher, EV_MINPRI
        ); /* what programs say of themselves first */
        list->events_watcher.data = engine;
        ev_io_start(engine->loop, &list->events_watcher);
    }
    ml_engine_walk_init(engine);
}

void ml_engine_list_fini(struct ml_engine *engine) {
    struct ml_engine_list *list = &engine->list;
    if (list->events_fd >= 0) {
        ev_io_stop(engine->loop, &list->events_watcher);
        (void)close(list->events_fd);
        list->events_fd = -1;
    }
    ml_engine_walk_fini(engine);
    ml_unrecorded_fini(&list->table);
}

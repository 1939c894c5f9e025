/* Every process of the tree from its birth: those that are no members are listed as not recorded.
 * Room: host. The kernel tells of them where it may (host/process/events.h), else the tree is
 * walked over (walk.c). */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/engine/list/internal.h"
#include "host/engine/members/watch.h"
#include "host/engine/state.h"
#include "host/process/clock.h"

/* Its memory is read so long after its birth, and ever more rarely: smaps_rollup walks its page
 * tables. */
static const uint32_t look_after_ms[] = {ML_LIST_FIRST_LOOK_MS, 100, 500, 2000, 5000};
enum { LOOKS_COUNT = sizeof(look_after_ms) / sizeof(look_after_ms[0]), NS_PER_MS = 1000000 };

static const uint64_t ns_per_s = UINT64_C(1000000000);

/* A process's report is read so long behind its end at most. */
static const uint64_t report_late_ns = UINT64_C(10000000000);

/* The name of a program that nobody could look at. */
static const char no_name[] = "?";

static const char no_image_text[] = "it ended before memlog could look at it";
static const char idle_text[] = "no allocation of it has come to memlog since it was forked";
static const char given_text[] = "memlog was given to it, but it has not reported itself";
static const char raw_text[] = "it was started by a system call that memlog cannot see: its "
                               "environment did not carry memlog on";
static const char heir_text[] =
    "it was started by a program that ran without memlog, which had none to pass on";
static const char embedder_text[] =
    "a fork of the program that memlog is linked into, which is not recorded itself";

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

/* An end is noted when it is noticed: whoever's end is noted behind that moment may have lived
 * then.
 */
struct ml_list_somebody ml_list_find(struct ml_engine *engine, pid_t pid, uint64_t at_ns) {
    const struct ml_member *member = ml_members_newest(&engine->members, pid);
    struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, pid);
    member = member != NULL && member->pid_passed_on ? NULL : member;
    one = one != NULL && one->pid_passed_on ? NULL : one;
    const bool is_member = member != NULL && member->state == ML_MEMBER_RUNNING;
    const bool is_listed = one != NULL && one->state == ML_MEMBER_RUNNING;
    if (is_member || (!is_listed && member != NULL && member->end.monotonic_ns >= at_ns)) {
        return (struct ml_list_somebody){.member = member};
    }
    const bool was_listed = is_listed || (one != NULL && one->end.monotonic_ns >= at_ns);
    return (struct ml_list_somebody){.one = was_listed ? one : NULL};
}

uint32_t ml_list_id_of(struct ml_list_somebody somebody) {
    return somebody.member != NULL ? somebody.member->id
                                   : (somebody.one != NULL ? somebody.one->id : somebody.gone_id);
}

/* ---- what is known of one */

void ml_list_set_reason(struct ml_unrecorded *one, const char *reason) {
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
            ml_list_set_reason(one, item->reason);
            if (!has_name(one) && item->path != NULL && item->path[0] != '\0') {
                copy_identity(one, base_of(item->path), item->path, NULL);
            }
            return true;
        }
    }
    return false;
}

/* Whether memlog was not there to pass itself on: not even as in a fork that has allocated nothing.
 */
static bool is_of_unrecorded(struct ml_engine *engine, const struct ml_unrecorded *one) {
    const struct ml_unrecorded_table *table = &engine->unrecorded;
    for (uint32_t i = table->count; i > 0; i--) {
        const struct ml_unrecorded *other = table->items[i - 1];
        if (other->id == one->parent_id && other != one) {
            return !other->is_idle;
        }
    }
    return false;
}

/* By what its image is. */
static void judge_image(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    const bool is_there = !facts.has_ended && facts.start_ticks == one->start_ticks;
    enum ml_image_kind kind = is_there ? ml_image_peek(one->pid) : ML_IMAGE_GONE;
    if (kind == ML_IMAGE_GONE && one->pid == engine->root &&
        engine->root_image != ML_IMAGE_PRELOADABLE) {
        kind = engine->root_image; /* as the file was judged before it was started */
    }
    if (kind == ML_IMAGE_PRELOADABLE && ml_process_was_given(one->pid, "MEMLOG_SOCKET")) {
        ml_list_set_reason(one, given_text);
    } else if (kind == ML_IMAGE_PRELOADABLE) {
        ml_list_set_reason(one, is_of_unrecorded(engine, one) ? heir_text : raw_text);
    } else if (kind != ML_IMAGE_GONE) {
        ml_list_set_reason(one, ml_image_text(kind));
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
    struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, item->pid);
    if (one != NULL && !one->has_reason && ml_engine_told_of(item, one)) {
        ml_list_set_reason(one, item->reason);
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
    one->identified_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
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
    one->role = MEMLOG_SERVICE_ROLE_OTHER;
}

static void inherit_from_member(struct ml_unrecorded *one, const struct ml_member *member) {
    /* Of one that has ended it is not known any more whether it was being recorded at the fork. */
    const bool is_recorded = member->state == ML_MEMBER_RUNNING
                                 ? ml_recording_is_on(member->recording)
                                 : ml_recording_was_ever_on(member->recording);
    copy_identity(one, member->name, member->executable, member->line.arguments);
    one->image = member->image;
    one->role = member->birth == ML_BIRTH_ROOT ? MEMLOG_SERVICE_ROLE_OTHER : member->role;
    one->is_idle = is_recorded;
    ml_list_set_reason(one, is_recorded ? idle_text : member->note);
}

/* A fork's image is its parent's, and so is what is said of it. */
static void
inherit(struct ml_engine *engine, struct ml_unrecorded *one, struct ml_list_somebody parent) {
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
        one->role = other->pid == engine->root ? MEMLOG_SERVICE_ROLE_OTHER : other->role;
        one->is_idle = other->is_idle;
        ml_list_set_reason(one, other->reason);
    } else if (one->pid == engine->root && engine->root_argv != NULL) {
        /* It may have ended before anybody can look at it. */
        copy_identity(one, base_of(engine->root_argv[0]), "", engine->root_argv);
    } else if (one->parent_pid == getpid() && engine->root == getpid()) {
        ml_list_set_reason(one, embedder_text);
    }
}

/* ---- births, execs, ends */

static void look_later(struct ml_engine *engine, struct ml_unrecorded *one) {
    const uint32_t index = one->looks < LOOKS_COUNT ? one->looks : LOOKS_COUNT - 1;
    one->next_look_ns =
        ml_clock_timestamp(engine->clock).monotonic_ns + (uint64_t)look_after_ms[index] * NS_PER_MS;
    ml_engine_walk_soon(engine);
}

/* Whether a child of that parent may have come to this one: where the host is the subreaper, to one
 * of the tree. */
static bool may_be_child(struct ml_engine *engine, pid_t parent_pid, pid_t now_of) {
    return now_of == parent_pid || now_of == getpid() || engine->root == getpid() ||
           ml_list_id_of(ml_list_find(engine, now_of, ML_LIST_AT_PRESENT)) != 0;
}

/* One that was born then (CLOCK_MONOTONIC). Where it has ended meanwhile its pid may be another's:
 * nobody has started behind his own birth. The kernel tells of the start in ticks only; within one
 * the parent tells. */
static struct ml_process_facts
facts_of(struct ml_engine *engine, pid_t pid, pid_t parent_pid, uint64_t born_ns) {
    const struct ml_process_facts facts = ml_process_facts(pid);
    const struct memlog_service_moment now = ml_clock_timestamp(engine->clock);
    const uint64_t tick_ns = ns_per_s / (uint64_t)sysconf(_SC_CLK_TCK);
    const uint64_t born_since_boot_ns = born_ns + (now.boottime_ns - now.monotonic_ns);
    const bool is_it = facts.start_ticks * tick_ns <= born_since_boot_ns &&
                       may_be_child(engine, parent_pid, facts.parent);
    return is_it ? facts : (struct ml_process_facts){.has_ended = true};
}

/* A process that is no member: `is_forked` as far as is known. */
struct ml_unrecorded *ml_list_add(
    struct ml_engine *engine,
    pid_t pid,
    pid_t parent_pid,
    struct ml_list_somebody parent,
    bool is_forked,
    uint64_t born_ns
) {
    const uint32_t parent_id = ml_list_id_of(parent);
    struct ml_unrecorded *one = ml_unrecorded_add(&engine->unrecorded, pid);
    if (one == NULL) {
        return NULL;
    }
    const struct ml_process_facts facts = facts_of(engine, pid, parent_pid, born_ns);
    one->parent_pid = parent_pid;
    one->parent_id = parent_id;
    one->start = ml_clock_timestamp(engine->clock);
    one->born_ns = born_ns;
    one->start_ticks = facts.start_ticks;
    one->is_forked = is_forked;
    forget_identity(one);
    ml_list_set_reason(one, no_image_text);
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
        ml_list_set_reason(one, no_image_text);
    }
}

void ml_list_finish(
    struct ml_engine *engine,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending
) {
    doubt_image(&engine->list, one);
    ml_engine_list_judge(engine, one);
    ml_unrecorded_end(&engine->unrecorded, one, event, ending, ml_clock_timestamp(engine->clock));
}

void ml_engine_list_end(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_ending *ending
) {
    /* The host may have reaped it before it has read of its birth. */
    const struct ml_ending kept = ml_engine_ending_of_gone(engine, one->pid, -1);
    const struct ml_ending *known = ending->known ? ending : &kept;
    ml_list_finish(
        engine, one, known->signal != 0 ? ML_MEMBER_EVENT_KILL : ML_MEMBER_EVENT_EXIT, known
    );
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
    struct ml_unrecorded_table *table = &engine->unrecorded;
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
void ml_list_replace(struct ml_engine *engine, struct ml_unrecorded *one) {
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
        const struct ml_list_somebody before = {.gone_id = one->id};
        ml_list_finish(engine, one, ML_MEMBER_EVENT_EXEC, &none);
        (void)ml_list_add(engine, pid, parent_pid, before, false, born_ns);
        return;
    }
    one->is_forked = false;
    one->is_idle = false;
    one->leaving = none; /* an exec by a thread that is not the first ends that one */
    one->image = facts.image;
    if (one->pid != engine->root) { /* of the first program it is known what it was to execute */
        forget_identity(one);
    }
    ml_list_set_reason(one, no_image_text);
    identify(engine, one, &facts);
    ml_engine_list_judge(engine, one);
}

void ml_engine_list_replaced(struct ml_engine *engine, const struct ml_member *member) {
    if (ml_unrecorded_running(&engine->unrecorded, member->pid) == NULL) {
        const struct ml_list_somebody before = {.member = member};
        const uint64_t born_ns = member->start.monotonic_ns;
        (void)ml_list_add(engine, member->pid, member->parent_pid, before, false, born_ns);
    }
}

/* Whether it is what its parent is, which may be the program that the host is linked into. */
static bool is_same_image(struct ml_list_somebody parent, const struct ml_process_facts *facts) {
    struct ml_image_mark mark = {.start_code = 0};
    if (parent.member != NULL) {
        mark = parent.member->image;
    } else if (parent.one != NULL) {
        mark = parent.one->image;
    } else if (facts->parent == getpid()) {
        mark = ml_process_facts(facts->parent).image;
    }
    return ml_image_mark_is_known(&mark) && ml_image_mark_is_known(&facts->image) &&
           !ml_image_mark_differs(&mark, &facts->image);
}

void ml_engine_list_seen(
    struct ml_engine *engine, pid_t pid, const struct ml_process_facts *facts, uint32_t walk
) {
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, pid);
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
        const struct ml_list_somebody parent =
            ml_list_find(engine, facts->parent, ML_LIST_AT_PRESENT);
        one = ml_list_add(
            engine,
            pid,
            facts->parent,
            parent,
            is_same_image(parent, facts),
            ml_clock_timestamp(engine->clock).monotonic_ns
        );
    } else if (ml_image_mark_differs(&one->image, &facts->image)) {
        ml_list_replace(engine, one);
        one = ml_unrecorded_running(&engine->unrecorded, pid);
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
    struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, member->pid);
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
            ml_clock_timestamp(engine->clock).monotonic_ns - one->end.monotonic_ns < report_late_ns;
        if (is_same) {
            ml_unrecorded_remove(&engine->unrecorded, one);
        }
        return 0;
    }
    if (member->birth == ML_BIRTH_FORK && !one->is_forked) {
        one->parent_id = member->id; /* it has made its exec since it said so */
        return 0;
    }
    if (!one->is_forked && ml_image_mark_differs(&one->image, &member->image)) {
        const struct ml_ending none = {.known = false};
        ml_list_finish(engine, one, ML_MEMBER_EVENT_EXEC, &none);
        return id;
    }
    ml_unrecorded_remove(&engine->unrecorded, one);
    return parent_id;
}

/* ---- ends that are noticed */

bool ml_list_end_gone(struct ml_engine *engine, struct ml_unrecorded *one) {
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

bool ml_engine_list_child_ended(
    struct ml_engine *engine, pid_t pid, const struct ml_ending *ending
) {
    forget_helper(engine, pid);
    const bool was_listed = ml_unrecorded_running(&engine->unrecorded, pid) != NULL;
    if (was_listed) { /* its exec may not have been read yet */
        ml_engine_list_take_events(engine);
    }
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, pid);
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
    struct ml_unrecorded_table *table = &engine->unrecorded;
    const uint64_t now = ml_clock_timestamp(engine->clock).monotonic_ns;
    uint64_t next_ns = UINT64_MAX;
    /* By id: each end may fold others, and move those that stay. */
    for (struct ml_unrecorded *one = ml_unrecorded_next_running(table, 0); one != NULL;) {
        const uint32_t id = one->id;
        const bool is_due = all || one->next_look_ns <= now;
        if (!(one->leaving.known || is_due) || !ml_list_end_gone(engine, one)) {
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
    ml_unrecorded_init(&engine->unrecorded);
    ml_engine_list_open_events(engine);
    ml_engine_walk_init(engine);
}

void ml_engine_list_fini(struct ml_engine *engine) {
    ml_engine_list_close_events(engine);
    ml_engine_walk_fini(engine);
    ml_unrecorded_fini(&engine->unrecorded);
}

#include "host/engine/list/list.h"

#include <string.h>
#include <unistd.h>

#include "host/engine/list/identity.h"
#include "host/engine/list/judge.h"
#include "host/engine/members/watch.h"
#include "host/engine/state.h"
#include "host/process/clock.h"
#include "host/process/loop.h"

/* Its memory is read this long after its birth, and ever more rarely, as smaps_rollup walks the
 * page tables. */
static const uint32_t look_after_ms[] = {20, 100, 500, 2000, 5000};
enum { LOOKS_COUNT = sizeof(look_after_ms) / sizeof(look_after_ms[0]), NS_PER_MS = 1000000 };

static const char idle_text[] = "no allocation of it has come to memlog since it was forked";

static const char embedder_text[] =
    "a fork of the program that memlog is linked into, which is not recorded itself";

static const uint64_t ns_per_s = UINT64_C(1000000000);

/* Whether a process that has ended was recorded at the fork is not known any more. */
bool ml_list_was_recorded(const struct ml_member *parent) {
    return parent->state == ML_MEMBER_RUNNING ? ml_recording_is_on(parent->recording)
                                              : ml_recording_was_ever_on(parent->recording);
}

static void inherit_from_member(struct ml_unrecorded *one, const struct ml_member *member) {
    const bool is_before = ml_list_is_from_before(one, member);
    const bool is_recorded = ml_list_was_recorded(member) && !is_before;
    ml_list_copy_identity(one, member->name, member->executable, member->line.arguments);
    one->image = member->image;
    one->role = member->birth == ML_BIRTH_ROOT ? MEMLOG_SERVICE_ROLE_OTHER : member->role;
    one->kind = is_recorded ? ML_UNRECORDED_IDLE_FORK : ML_UNRECORDED_FORK;
    ml_list_set_reason(
        one,
        is_recorded ? idle_text
        : is_before ? ml_list_before_text
                    : member->note
    );
}

/* A fork runs its parent's image, and so the parent's reason holds for it. */
static void
inherit(struct ml_engine *engine, struct ml_unrecorded *one, struct ml_list_somebody parent) {
    struct ml_unrecorded *other = parent.one;
    if (parent.member != NULL) {
        inherit_from_member(one, parent.member);
    } else if (other != NULL) {
        ml_list_judge(engine, other); /* a report may have come since it was judged */
        ml_list_copy_identity(
            one,
            other->name,
            other->executable != NULL ? other->executable : "",
            other->line.arguments
        );
        one->image = other->image;
        one->role = other->pid == engine->root ? MEMLOG_SERVICE_ROLE_OTHER : other->role;
        /* A fork that could not be recorded may have one that can. */
        const bool is_of_lost = other->kind == ML_UNRECORDED_LOST_FORK;
        one->kind = is_of_lost || other->kind == ML_UNRECORDED_IDLE_FORK ? ML_UNRECORDED_IDLE_FORK
                                                                         : ML_UNRECORDED_FORK;
        ml_list_set_reason(one, is_of_lost ? idle_text : other->reason);
    } else if (one->pid == engine->root && engine->root_argv != NULL) {
        /* It may end before the first look. */
        ml_list_copy_identity(one, basename(engine->root_argv[0]), "", engine->root_argv);
    } else if (one->parent_pid == getpid() && engine->root == getpid()) {
        ml_list_set_reason(one, embedder_text);
    }
}

void ml_list_look_later(struct ml_unrecorded *one, uint64_t now_ns) {
    const uint32_t index = one->looks < LOOKS_COUNT ? one->looks : LOOKS_COUNT - 1;
    one->next_look_ns = now_ns + (uint64_t)look_after_ms[index] * NS_PER_MS;
}

void ml_list_walk_after(struct ml_engine *engine, double after_s) {
    struct ml_list *list = engine->list;
    if (!ev_is_active(&list->walk_timer) ||
        ev_timer_remaining(engine->loop, &list->walk_timer) > after_s) {
        ml_timer_start(engine->loop, &list->walk_timer, after_s);
    }
}

void ml_list_walk_soon(struct ml_engine *engine) {
    engine->list->every_s = engine->list->least_s;
    ml_list_walk_after(engine, engine->list->least_s);
}

/* Whether a child of that parent may have been given to this one. Where the host is the subreaper,
 * a process of the tree may get it. */
static bool may_be_child(struct ml_engine *engine, pid_t parent_pid, pid_t now_of) {
    return now_of == parent_pid || now_of == getpid() || engine->root == getpid() ||
           ml_list_id_of(ml_list_find(engine, now_of, ML_LIST_AT_PRESENT)) != 0;
}

/* The facts of the process that was born then (CLOCK_MONOTONIC). If it has ended, its pid may
 * belong to a process that started later. The kernel tells of the start in ticks; within one tick
 * the parent decides. */
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
    one->kind = is_forked ? ML_UNRECORDED_FORK : ML_UNRECORDED_PROGRAM;
    ml_list_forget_identity(one);
    ml_list_forget_reason(one);
    if (is_forked) {
        inherit(engine, one, parent);
    } else {
        one->is_before_event = true;
        ml_list_identify_newest(engine, one, &facts);
        ml_list_judge(engine, one);
    }
    ml_list_look_later(one, one->start.monotonic_ns);
    ml_list_walk_soon(engine);
    return one;
}

/* Its exec may be among the events that were dropped, and no walk has seen it since. */
static void doubt_image(const struct ml_list *list, struct ml_unrecorded *one) {
    if (ml_unrecorded_is_fork(one) && !ml_unrecorded_is_told(one) && one->born_ns < list->lost_ns &&
        one->walk < list->lost_walk) {
        ml_unrecorded_set_kind(one, ML_UNRECORDED_EXEC);
        ml_list_forget_identity(one);
        ml_list_forget_reason(one);
    }
}

void ml_list_finish(
    struct ml_engine *engine,
    struct ml_unrecorded *one,
    enum ml_member_event event,
    const struct ml_ending *ending
) {
    doubt_image(engine->list, one);
    ml_list_judge_at_end(engine, one);
    ml_unrecorded_end(&engine->unrecorded, one, event, ending, ml_clock_timestamp(engine->clock));
}

void ml_list_end(
    struct ml_engine *engine, struct ml_unrecorded *one, const struct ml_ending *ending
) {
    /* The host may reap it before it reads the event of its birth. */
    const struct ml_ending kept = ml_engine_ending_of_gone(engine, one->pid, -1);
    const struct ml_ending *known = ending->known ? ending : &kept;
    ml_list_finish(
        engine, one, known->signal != 0 ? ML_MEMBER_EVENT_KILL : ML_MEMBER_EVENT_EXIT, known
    );
}

/* True, once: it has executed its own file again, and is the same program. */
static bool has_begun_anew(struct ml_engine *engine, struct ml_unrecorded *one) {
    for (uint32_t i = engine->not_profiled_count; i > 0; i--) {
        struct ml_not_profiled *item = &engine->not_profiled[i - 1];
        if (item->told_of == ML_TOLD_OF_ANEW && item->pid == one->pid &&
            ml_list_told_of(item, one)) {
            item->told_of = ML_TOLD_OF_PROGRAM;
            return true;
        }
    }
    return false;
}

static bool is_same_program(const struct ml_unrecorded *one, const struct ml_unrecorded *other) {
    return one->executable != NULL && other->executable != NULL &&
           strcmp(one->executable, other->executable) == 0;
}

void ml_list_begins_anew(struct ml_engine *engine, pid_t pid) {
    struct ml_unrecorded_table *table = &engine->unrecorded;
    struct ml_unrecorded *one = ml_unrecorded_newest(table, pid);
    struct ml_not_profiled *item = &engine->not_profiled[engine->not_profiled_count - 1];
    item->told_of = ML_TOLD_OF_ANEW;
    /* The event of the exec may be read before the process's own report. */
    for (uint32_t i = 0; one != NULL && i < table->count; i++) {
        struct ml_unrecorded *before = table->items[i];
        if (before->id == one->parent_id && before->pid == pid &&
            before->state == ML_MEMBER_REPLACED && is_same_program(before, one)) {
            one->parent_id = before->parent_id;
            one->start = before->start;
            item->told_of = ML_TOLD_OF_PROGRAM;
            ml_unrecorded_remove(table, before);
            return;
        }
    }
}

/* A fork that could not be recorded stays in the list, whatever it executes. */
static bool is_lost_fork(struct ml_engine *engine, struct ml_unrecorded *one) {
    if (ml_unrecorded_is_fork(one)) {
        ml_list_judge(engine, one);
    }
    return one->kind == ML_UNRECORDED_LOST_FORK;
}

void ml_list_replace(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_ending none = {.known = false};
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    if (!ml_unrecorded_is_fork(one) && has_begun_anew(engine, one)) {
        one->image = facts.image;
        return;
    }
    if (!ml_unrecorded_is_fork(one) && ml_list_is_identified(one)) {
        return; /* what is told of now had happened before its name was read */
    }
    if (!ml_unrecorded_is_fork(one) || is_lost_fork(engine, one)) {
        const pid_t pid = one->pid;
        const pid_t parent_pid = one->parent_pid;
        const uint64_t born_ns = one->born_ns;
        const struct ml_list_somebody before = {.gone_id = one->id};
        ml_list_finish(engine, one, ML_MEMBER_EVENT_EXEC, &none);
        (void)ml_list_add(engine, pid, parent_pid, before, false, born_ns);
        return;
    }
    ml_unrecorded_set_kind(one, ML_UNRECORDED_EXEC);
    one->leaving = none;            /* an exec by another thread ends the first one */
    if (one->pid != engine->root) { /* what the first program executes is known */
        ml_list_forget_identity(one);
    }
    ml_list_forget_reason(one);
    one->is_before_event = true;
    ml_list_identify_newest(engine, one, &facts);
    ml_list_judge(engine, one);
}

void ml_list_member_replaced(struct ml_engine *engine, const struct ml_member *member) {
    if (ml_unrecorded_running(&engine->unrecorded, member->pid) == NULL) {
        const struct ml_list_somebody before = {.member = member};
        const uint64_t born_ns = member->start.monotonic_ns;
        (void)ml_list_add(engine, member->pid, member->parent_pid, before, false, born_ns);
    }
}

/* Whether it runs its parent's image. The parent may be the program that the host is linked into.
 */
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

void ml_list_seen(
    struct ml_engine *engine, pid_t pid, const struct ml_process_facts *facts, uint32_t walk
) {
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, pid);
    if (one != NULL && (facts->has_ended || facts->start_ticks != one->start_ticks)) {
        struct ml_ending ending = one->leaving;
        if (!ending.known && facts->start_ticks == one->start_ticks) {
            ending = ml_process_ending(pid, -1);
        }
        ml_list_end(engine, one, &ending);
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

uint32_t ml_list_recorded(struct ml_engine *engine, const struct ml_member *member) {
    struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, member->pid);
    if (one == NULL) {
        return 0;
    }
    const uint32_t id = one->id;
    const uint32_t parent_id = one->parent_id;
    if (one->state != ML_MEMBER_RUNNING) {
        /* Its report was read after its end: it is the same fork, or an unknown program. */
        const bool is_same =
            ((member->birth == ML_BIRTH_FORK && ml_unrecorded_is_fork(one)) ||
             !ml_list_has_name(one)) &&
            ml_clock_timestamp(engine->clock).monotonic_ns - one->end.monotonic_ns <
                ml_list_report_late_ns;
        if (is_same) {
            ml_unrecorded_remove(&engine->unrecorded, one);
        }
        return 0;
    }
    if (member->birth == ML_BIRTH_FORK && !ml_unrecorded_is_fork(one)) {
        one->parent_id = member->id; /* it has made an exec since */
        return 0;
    }
    const bool is_another =
        !ml_unrecorded_is_fork(one) && ml_image_mark_differs(&one->image, &member->image);
    if (is_another || is_lost_fork(engine, one)) {
        const struct ml_ending none = {.known = false};
        ml_list_finish(engine, one, ML_MEMBER_EVENT_EXEC, &none);
        return id;
    }
    ml_unrecorded_remove(&engine->unrecorded, one);
    return parent_id;
}

bool ml_list_end_gone(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    if (!facts.has_ended && facts.start_ticks == one->start_ticks) {
        return false;
    }
    struct ml_ending ending = one->leaving;
    if (facts.start_ticks == one->start_ticks) { /* a zombie's ending is exact */
        const struct ml_ending known = ml_process_ending(one->pid, -1);
        ending = known.known ? known : ending;
    }
    ml_list_end(engine, one, &ending);
    return true;
}

#include "host/engine/list/events.h"

#include <unistd.h>

#include "host/engine/list/known.h"
#include "host/engine/list/list.h"
#include "host/engine/members/members.h"
#include "host/engine/members/watch.h"
#include "host/process/clock.h"
#include "host/process/events.h"

/* Events that are read at once; the programs' own messages wait meanwhile. */
enum { EVENTS_AT_ONCE = 256, EVENTS_AT_MOST = 1 << 20 };

/* A process that is ending is looked at again this soon. */
static const uint64_t ending_look_ns = UINT64_C(20000000);

/* The longest that the kernel is taken to be between an image and its event. */
static const uint64_t seen_before_ns = UINT64_C(1000000000);

/* A child of the program that the host is linked into. The process that starts a helper of the host
 * has been reaped by now. */
static bool is_of_embedder(const struct ml_engine *engine, const struct ml_process_event *event) {
    return engine->root == getpid() && event->parent == getpid() &&
           !ml_list_is_helper(engine, event->pid) && !ml_process_facts(event->pid).has_ended;
}

/* What the host starts for itself, in the program that it is linked into: a child of its thread. */
static bool is_of_host(const struct ml_engine *engine, const struct ml_process_event *event) {
    return engine->root == getpid() && event->parent == getpid() &&
           event->parent_thread == gettid();
}

/* Whether the process that has that pid is known already. */
static bool is_known(struct ml_engine *engine, const struct ml_process_event *event) {
    struct ml_member *member = ml_members_newest(&engine->members, event->pid);
    const struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, event->pid);
    const bool is_member =
        member != NULL &&
        (member->start.monotonic_ns >= event->monotonic_ns ||
         (member->state == ML_MEMBER_RUNNING && !ml_member_has_ended(engine, member)));
    return is_member || (one != NULL && one->born_ns >= event->monotonic_ns);
}

/* The process that had that pid before has ended. The one that has it now is the parent of later
 * children. */
static void pass_pid_on(struct ml_engine *engine, const struct ml_process_event *event) {
    struct ml_member *member = ml_members_newest(&engine->members, event->pid);
    if (member != NULL && member->start.monotonic_ns < event->monotonic_ns) {
        member->pid_passed_on = true;
    }
    struct ml_unrecorded *one = ml_unrecorded_newest(&engine->unrecorded, event->pid);
    if (one != NULL && one->born_ns < event->monotonic_ns) {
        one->pid_passed_on = true;
    }
    if (one != NULL && one->pid_passed_on && one->state == ML_MEMBER_RUNNING) {
        const struct ml_ending ending = one->leaving;
        ml_list_finish(
            engine, one, ending.signal != 0 ? ML_MEMBER_EVENT_KILL : ML_MEMBER_EVENT_EXIT, &ending
        );
    }
}

/* The end of its parent may be known before this event is read. */
static void on_born(struct ml_engine *engine, const struct ml_process_event *event) {
    const bool is_top =
        is_of_embedder(engine, event) || (event->pid == engine->root && event->parent == getpid());
    const struct ml_list_somebody parent = ml_list_find(engine, event->parent, event->monotonic_ns);
    const uint32_t parent_id = ml_list_id_of(parent);
    pass_pid_on(engine, event);
    if (is_of_host(engine, event) || (parent_id == 0 && !is_top) || is_known(engine, event)) {
        return; /* of another tree, or known already */
    }
    (void)ml_list_add(engine, event->pid, event->parent, parent, true, event->monotonic_ns);
}

/* Whether what the event tells was read already. The kernel shows an image before it tells of its
 * exec, and a process of a busy machine may wait in between: so may the event be of the image that
 * was seen a moment before it. While it runs its image says so (ml_list_replace); this is of one
 * that has ended. */
static bool was_seen(const struct ml_unrecorded *one, const struct ml_process_event *event) {
    if (event->monotonic_ns <= one->identified_ns) {
        return true;
    }
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    return one->is_before_event && ml_image_mark_is_known(&one->image) &&
           event->monotonic_ns - one->identified_ns < seen_before_ns &&
           (facts.has_ended || facts.start_ticks != one->start_ticks);
}

static void follow_exec(struct ml_engine *engine, const struct ml_process_event *event) {
    struct ml_member *member = ml_members_running(&engine->members, event->pid);
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, event->pid);
    if (member != NULL && event->monotonic_ns > member->start.monotonic_ns) {
        ml_member_replaced(engine, member);
    } else if (member != NULL) {
        (void)ml_member_check_image(engine, member); /* mostly the exec that made it */
    } else if (one != NULL && (ml_unrecorded_is_fork(one) || !was_seen(one, event))) {
        ml_list_replace(engine, one);
    }
}

static void on_exec(struct ml_engine *engine, const struct ml_process_event *event) {
    follow_exec(engine, event);
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, event->pid);
    if (one != NULL) { /* the next event is of the next exec */
        one->is_before_event = false;
    }
}

/* Add a process whose birth was among the dropped events. NULL: it is of another tree, or known. */
static struct ml_unrecorded *
add_ended(struct ml_engine *engine, const struct ml_process_event *event) {
    const uint64_t at_ns = event->monotonic_ns;
    const struct ml_list_somebody parent = ml_list_find(engine, event->parent, at_ns);
    const struct ml_list_somebody itself = ml_list_find(engine, event->pid, at_ns);
    const bool is_orphan = event->parent == getpid() && engine->root != getpid() &&
                           !ml_list_is_helper(engine, event->pid);
    if (engine->list->lost_ns == 0 || ml_list_id_of(itself) != 0 ||
        (ml_list_id_of(parent) == 0 && !is_orphan)) {
        return NULL;
    }
    return ml_list_add(engine, event->pid, event->parent, parent, false, at_ns);
}

static void on_ended(struct ml_engine *engine, const struct ml_process_event *event) {
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, event->pid);
    one = one != NULL ? one : add_ended(engine, event);
    if (one == NULL || event->monotonic_ns < one->born_ns) {
        return;
    }
    if (!one->leaving.known) { /* else the event is of a process that has its pid now */
        one->leaving = ml_ending_from_wait(event->wait_status);
    }
    if (!ml_list_end_gone(engine, one)) { /* the event comes before the end is complete */
        one->next_look_ns = ml_clock_timestamp(engine->clock).monotonic_ns + ending_look_ns;
        ml_list_walk_soon(engine);
    }
}

/* The queue is empty, and events are reported again. True: some were dropped before. */
static bool heard_all(struct ml_list *list, uint64_t now) {
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

/* Read a bounded number. False: the kernel dropped events, and a walk is due. */
static bool take_events(struct ml_engine *engine, int most) {
    struct ml_list *list = engine->list;
    struct ml_process_event event;
    for (int i = 0; i < most; i++) {
        const uint64_t now = ml_clock_timestamp(engine->clock).monotonic_ns;
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

void ml_list_events_take(struct ml_engine *engine) {
    if (engine->list->events_fd >= 0) {
        (void)take_events(engine, EVENTS_AT_MOST);
    }
}

bool ml_list_events_take_some(struct ml_engine *engine) {
    return take_events(engine, EVENTS_AT_ONCE);
}

bool ml_list_child_ended(struct ml_engine *engine, pid_t pid, const struct ml_ending *ending) {
    ml_list_forget_helper(engine, pid);
    const bool was_listed = ml_unrecorded_running(&engine->unrecorded, pid) != NULL;
    if (was_listed) { /* its exec may not have been read yet */
        ml_list_events_take(engine);
    }
    struct ml_unrecorded *one = ml_unrecorded_running(&engine->unrecorded, pid);
    if (one != NULL) {
        ml_list_end(engine, one, ending);
    }
    return was_listed || one != NULL;
}

void ml_list_events_open(struct ml_engine *engine) {
    engine->list->events_fd = ml_process_events_open();
    engine->list->heard_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
}

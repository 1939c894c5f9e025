#include "host/engine/members/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "host/engine/members/members.h"
#include "host/process/loop.h"

/* Without pidfds all members are polled this often, and less often when there are many: a look
 * costs some 10 us. */
static const double poll_s = 0.05;
static const double poll_each_s = 0.0005;

static struct ml_engine *engine_of(const struct ml_member *member) {
    return member->members->context;
}

void ml_engine_keep_ending(
    struct ml_engine *engine, pid_t pid, const struct ml_ending *ending, bool is_helper
) {
    struct ml_reaped *reaped = &engine->watch->reaped[engine->watch->reaped_next];
    engine->watch->unknown_count += reaped->pid != 0 && reaped->is_unknown;
    *reaped = (struct ml_reaped
    ){.pid = pid,
      .ending = *ending,
      .is_unknown = !is_helper && ml_members_newest(&engine->members, pid) == NULL &&
                    ml_unrecorded_newest(&engine->unrecorded, pid) == NULL};
    engine->watch->reaped_next = (engine->watch->reaped_next + 1) % ML_REAPED_MAX;
}

struct ml_ending ml_engine_ending_of_gone(struct ml_engine *engine, pid_t pid, int pidfd) {
    for (uint32_t i = 0; i < ML_REAPED_MAX; i++) {
        if (engine->watch->reaped[i].pid == pid) {
            engine->watch->reaped[i].pid = 0;
            return engine->watch->reaped[i].ending;
        }
    }
    return ml_process_ending(pid, pidfd);
}

static void on_pidfd(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_member *member = watcher->data;
    struct ml_ending ending =
        ml_engine_ending_of_gone(engine_of(member), member->pid, member->pidfd);
    ml_member_end_process(engine_of(member), member, &ending);
}

/* By /proc: it is gone, or another process has its pid. */
static bool is_gone(const struct ml_member *member) {
    const struct ml_process_facts facts = ml_process_facts(member->pid);
    return facts.has_ended ||
           (member->start_ticks != 0 && facts.start_ticks != member->start_ticks);
}

static void end_gone(struct ml_engine *engine, struct ml_member *member) {
    const struct ml_ending ending = ml_engine_ending_of_gone(engine, member->pid, member->pidfd);
    ml_member_end_process(engine, member, &ending);
}

static void start_polling(struct ml_engine *engine) {
    if (!ev_is_active(&engine->watch->poll_timer)) {
        const double count = (double)engine->members.running_count;
        ml_timer_start(engine->loop, &engine->watch->poll_timer, poll_s + count * poll_each_s);
    }
}

void ml_engine_poll_members(struct ml_engine *engine) {
    bool any = false;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && member->pidfd == ML_MEMBER_PIDFD_POLLED) {
            if (is_gone(member)) {
                end_gone(engine, member);
            } else {
                any = true;
            }
        }
    }
    if (any) {
        start_polling(engine);
    }
}

static void on_poll(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    ml_engine_poll_members(watcher->data);
}

void ml_watch_init(struct ml_engine *engine) {
    ml_timer_init(&engine->watch->poll_timer, on_poll, engine);
}

void ml_watch_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->watch->poll_timer);
}

void ml_member_watch(struct ml_engine *engine, struct ml_member *member, int borrowed_pidfd) {
    member->pidfd = borrowed_pidfd >= 0 ? fcntl(borrowed_pidfd, F_DUPFD_CLOEXEC, 0)
                                        : (int)syscall(SYS_pidfd_open, member->pid, 0);
    if (member->pidfd >= 0) {
        ml_watch_readable(engine->loop, &member->pidfd_watcher, on_pidfd, member->pidfd, member);
    } else if (is_gone(member)) {
        end_gone(engine, member);
        return;
    } else { /* an old kernel, a seccomp filter, or no descriptors left */
        member->pidfd = ML_MEMBER_PIDFD_POLLED;
        start_polling(engine);
    }
    ml_member_look_soon(engine, member);
}

bool ml_member_has_ended(struct ml_engine *engine, struct ml_member *member) {
    if (member->pidfd >= 0 && syscall(SYS_pidfd_send_signal, member->pidfd, 0, NULL, 0) == 0) {
        const struct ml_ending ending = ml_process_ending(member->pid, member->pidfd);
        if (!ending.known) {
            return false;
        }
    } else if ((member->pidfd < 0 || errno != ESRCH) && !is_gone(member)) {
        return false; /* the kernel lacks the call, or a filter forbids it */
    }
    end_gone(engine, member);
    return true;
}

uint32_t ml_engine_leave_old_image(struct ml_engine *engine, pid_t pid) {
    struct ml_member *old = ml_members_running(&engine->members, pid);
    if (old == NULL || ml_member_has_ended(engine, old)) {
        return 0;
    }
    ml_member_end_image(engine, old);
    return old->id; /* never 0 */
}

uint64_t ml_engine_unknown_endings(const struct ml_engine *engine) {
    uint64_t count = engine->watch->unknown_count;
    for (uint32_t i = 0; i < ML_REAPED_MAX; i++) {
        count += engine->watch->reaped[i].pid != 0 && engine->watch->reaped[i].is_unknown;
    }
    return count;
}

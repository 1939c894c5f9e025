/* The end of a run: memlog leaves every process that it was attached to. Room: host. */
#include <stdio.h>
#include <stdlib.h>

#include "host/engine/attach/attach.h"
#include "host/process/loop.h"

/* A tracer has a bound of its own, but with many processes they take turns. */
static const double leave_s = 45.0;

/* A process that is being left. */
struct left {
    struct ml_engine *engine;
    pid_t pid;
    char name[ML_PROCESS_NAME_BYTES];
};

static void on_detached(void *context, const char *trouble) {
    struct left *left = context;
    if (trouble[0] != '\0') {
        ml_engine_notice(left->engine, "%s (%d): %s", left->name, (int)left->pid, trouble);
    }
    free(left);
}

static void leave(struct ml_engine *engine, pid_t pid, uint64_t start_ticks) {
    struct left *left = malloc(sizeof(*left));
    if (left != NULL) {
        *left = (struct left){.engine = engine, .pid = pid};
        ml_process_name(pid, left->name);
        ml_attach_detach(engine, pid, start_ticks, on_detached, left);
    }
}

static const struct ml_unrecorded *
unrecorded_of(const struct ml_unrecorded_table *table, uint32_t id) {
    for (uint32_t i = 0; i < table->count; i++) {
        if (table->items[i]->id == id) {
            return table->items[i];
        }
    }
    return NULL;
}

/* A fork has its parent's functions as they were, hooked. One that has not allocated since is no
 * member. */
static bool is_hooked_fork(const struct ml_engine *engine, const struct ml_unrecorded *one) {
    while (one != NULL && one->state == ML_MEMBER_RUNNING &&
           (one->kind == ML_UNRECORDED_IDLE_FORK || one->kind == ML_UNRECORDED_LOST_FORK)) {
        const struct ml_member *parent = ml_members_find(&engine->members, one->parent_id);
        if (parent != NULL) {
            return parent->attachment != ML_ATTACHMENT_NONE;
        }
        one = unrecorded_of(&engine->unrecorded, one->parent_id);
    }
    return false;
}

static void on_late(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    struct ml_attaches *all = engine->attaches;
    ml_attach_on_idle *on_idle = all->on_idle;
    const struct ml_attach_job *job = TAILQ_FIRST(&all->jobs);
    all->on_idle = NULL;
    if (on_idle == NULL) {
        return;
    }
    if (job != NULL) {
        ml_engine_notice(
            engine,
            "memlog has not left all processes in time; it does nothing in them, and 'memlog "
            "doctor "
            "--repair %d' takes it out of the first",
            (int)job->pid
        );
    }
    on_idle(all->idle_context);
}

void ml_engine_let_go(struct ml_engine *engine, void (*on_done)(void *context), void *context) {
    struct ml_attaches *all = engine->attaches;
    all->is_leaving = true;
    ml_attach_jobs_drop_waiting(engine);
    for (uint32_t i = 0; i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && member->attachment == ML_ATTACHMENT_ATTACHED) {
            leave(engine, member->pid, member->start_ticks);
        }
    }
    for (uint32_t i = 0; i < engine->unrecorded.count; i++) {
        const struct ml_unrecorded *one = engine->unrecorded.items[i];
        if (is_hooked_fork(engine, one)) {
            leave(engine, one->pid, one->start_ticks);
        }
    }
    if (TAILQ_EMPTY(&all->jobs)) {
        on_done(context);
        return;
    }
    all->on_idle = on_done;
    all->idle_context = context;
    ml_timer_start(engine->loop, &all->leave_timer, leave_s);
}

void ml_attach_let_go_init(struct ml_engine *engine) {
    ml_timer_init(&engine->attaches->leave_timer, on_late, engine);
}

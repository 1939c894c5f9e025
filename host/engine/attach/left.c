/* Whether anybody runs whom memlog was attached to. Room: host. */
#include <stdlib.h>

#include "host/engine/attach/attach.h"
#include "host/process/loop.h"

/* A process that has made an exec may be no member any more, so that nobody tells of its end. */
static const double look_every_s = 0.5;

static bool has_hooked_member(const struct ml_engine *engine) {
    for (uint32_t i = 0; i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && member->attachment != ML_ATTACHMENT_NONE) {
            return true;
        }
    }
    return false;
}

static void forget_ended(struct ml_attaches *all) {
    size_t kept = 0;
    for (size_t i = 0; i < all->attached_count; i++) {
        const struct ml_process_facts facts = ml_process_facts(all->attached[i].pid);
        if (!facts.has_ended && facts.start_ticks == all->attached[i].start_ticks) {
            all->attached[kept++] = all->attached[i];
        }
    }
    all->attached_count = kept;
}

static void look(struct ml_engine *engine) {
    struct ml_attaches *all = engine->attaches;
    if (!ev_is_active(&all->left_timer)) {
        return;
    }
    forget_ended(all);
    if (all->attached_count == 0 && !has_hooked_member(engine)) {
        ev_timer_stop(engine->loop, &all->left_timer);
        all->on_left(engine->context);
    }
}

static void on_look(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    look(watcher->data);
}

void ml_attach_left_add(struct ml_engine *engine, pid_t pid, uint64_t start_ticks) {
    struct ml_attaches *all = engine->attaches;
    if (all->on_left == NULL) {
        return;
    }
    struct ml_attached *attached =
        reallocarray(all->attached, all->attached_count + 1, sizeof(*attached));
    if (attached != NULL) {
        all->attached = attached;
        attached[all->attached_count++] =
            (struct ml_attached){.pid = pid, .start_ticks = start_ticks};
        ev_timer_again(engine->loop, &all->left_timer);
    }
}

void ml_attach_member_ended(struct ml_engine *engine, const struct ml_member *member) {
    if (member->attachment != ML_ATTACHMENT_NONE) {
        look(engine);
    }
}

void ml_attach_left_init(struct ml_engine *engine) {
    ml_timer_init_every(&engine->attaches->left_timer, on_look, look_every_s, engine);
}

void ml_attach_left_fini(struct ml_engine *engine) {
    ev_timer_stop(engine->loop, &engine->attaches->left_timer);
    free(engine->attaches->attached);
}

#include "host/engine/list/walk.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "host/engine/list/events.h"
#include "host/engine/list/identity.h"
#include "host/engine/list/judge.h"
#include "host/engine/list/known.h"
#include "host/engine/list/list.h"
#include "host/engine/members/members.h"
#include "host/process/clock.h"
#include "host/process/loop.h"

static const double least_every_s = 0.02;
static const double most_every_s = 0.25;
static const double share_of_time = 0.02;
static const uint64_t ns_per_s = UINT64_C(1000000000);

/* Processes that a walk has still to visit. */
struct todo {
    pid_t *items;
    size_t count, capacity;
};

static void todo_add(struct todo *todo, pid_t pid) {
    if (todo->count == todo->capacity) {
        const size_t capacity = todo->capacity == 0 ? 256 : todo->capacity * 2;
        pid_t *items = reallocarray(todo->items, capacity, sizeof(*items));
        if (items == NULL) {
            return; /* the next walk visits it */
        }
        todo->items = items;
        todo->capacity = capacity;
    }
    todo->items[todo->count++] = pid;
}

static void add_children_of_thread(struct todo *todo, pid_t pid, const char *thread) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%.16s/children", (int)pid, thread);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    long child = 0;
    while (fscanf(file, "%ld", &child) == 1) {
        todo_add(todo, (pid_t)child);
    }
    (void)fclose(file);
}

static void add_children(struct todo *todo, pid_t pid) {
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] != '.') {
            add_children_of_thread(todo, pid, entry->d_name);
        }
    }
    (void)closedir(folder);
}

/* A kernel without lists of children: each walk finds the children of processes that are known. */
static void add_by_parent(struct ml_engine *engine, struct todo *todo) {
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(proc); entry != NULL; entry = readdir(proc)) {
        const pid_t pid = (pid_t)atol(entry->d_name); /* 0 for the entries that are no processes */
        const pid_t parent = pid > 0 ? ml_process_parent(pid) : 0;
        if (parent > 0 &&
            (parent == getpid() || ml_members_running(&engine->members, parent) != NULL ||
             ml_unrecorded_running(&engine->unrecorded, parent) != NULL)) {
            todo_add(todo, pid);
        }
    }
    (void)closedir(proc);
}

/* Visit one process; its children come next. */
static void visit(struct ml_engine *engine, struct todo *todo, pid_t pid) {
    const uint32_t walk = engine->list->walk;
    if (ml_list_is_helper(engine, pid)) {
        return;
    }
    const struct ml_process_facts facts = ml_process_facts(pid);
    struct ml_member *member = ml_members_running(&engine->members, pid);
    const struct ml_member *newest =
        member == NULL ? ml_members_newest(&engine->members, pid) : NULL;
    if (member != NULL && !facts.has_ended && facts.start_ticks == member->start_ticks) {
        member->walk = walk;
        (void)ml_member_check_image(engine, member);
    } else if (newest != NULL && newest->start_ticks == facts.start_ticks && newest->state != ML_MEMBER_REPLACED) {
        return; /* a member that has just ended */
    } else if (member == NULL) {
        ml_list_seen(engine, pid, &facts, walk);
    }
    if (!facts.has_ended && engine->list->has_children_files) {
        add_children(todo, pid);
    }
}

static void visit_all(struct ml_engine *engine, struct todo *todo) {
    while (todo->count > 0) {
        visit(engine, todo, todo->items[--todo->count]);
    }
}

/* Visit processes that the walk has not seen: they have ended, or left the tree. */
static void visit_rest(struct ml_engine *engine, struct todo *todo) {
    struct ml_unrecorded_table *table = &engine->unrecorded;
    for (uint32_t i = 0; i < engine->members.count; i++) {
        const struct ml_member *member = engine->members.items[i];
        if (member->state == ML_MEMBER_RUNNING && member->walk != engine->list->walk) {
            todo_add(todo, member->pid);
        }
    }
    for (uint32_t i = table->folds_count; i < table->count; i++) {
        const struct ml_unrecorded *one = table->items[i];
        if (one->state == ML_MEMBER_RUNNING && one->walk != engine->list->walk) {
            todo_add(todo, one->pid);
        }
    }
    visit_all(engine, todo);
}

void ml_list_walk(struct ml_engine *engine) {
    struct ml_list *list = engine->list;
    struct todo todo = {.items = NULL};
    const uint64_t begun_ns = ml_clock_timestamp(engine->clock).monotonic_ns;
    ml_list_events_take(engine); /* they know more of processes that are gone */
    list->walk++;
    if (list->has_children_files) {
        add_children(&todo, getpid());
    } else {
        add_by_parent(engine, &todo);
    }
    visit_all(engine, &todo);
    visit_rest(engine, &todo);
    free(todo.items);
    if (list->events_fd < 0 && list->walked_ns != 0 &&
        begun_ns - list->walked_ns > list->blind_ns) {
        list->blind_ns = begun_ns - list->walked_ns;
    }
    list->walked_ns = begun_ns;
    const uint64_t cost_ns = ml_clock_timestamp(engine->clock).monotonic_ns - begun_ns;
    list->least_s = (double)cost_ns / (double)ns_per_s / share_of_time;
    list->least_s = list->least_s > least_every_s ? list->least_s : least_every_s;
}

static void look_at_memory(struct ml_engine *engine, struct ml_unrecorded *one) {
    const struct ml_memory_status status = ml_memory_status_read(one->pid);
    if (status.is_known) {
        one->status = status;
        one->is_unreadable = ml_memory_file_error(one->pid, "smaps") != 0;
    }
    const struct ml_footprint now = ml_process_footprint(one->pid);
    if (now.resident_bytes != 0) { /* 0: it is ending or may not be read; what was known stays */
        one->footprint_bytes = now.private_bytes;
        one->resident_bytes = now.resident_bytes;
        ml_engine_note_memory(engine, &one->memory, now.resident_bytes, now.private_bytes);
    }
}

/* Skip a process whose image changes: an event or a walk is about to tell. */
static void look(struct ml_engine *engine, struct ml_unrecorded *one, uint64_t now) {
    const struct ml_process_facts facts = ml_process_facts(one->pid);
    if (!ml_image_mark_differs(&one->image, &facts.image) &&
        ml_list_identify(engine, one, &facts)) { /* a fork may have given itself a title */
        one->image = ml_image_mark_is_known(&one->image) ? one->image : facts.image;
        ml_list_judge(engine, one);
        look_at_memory(engine, one);
    }
    one->looks++;
    ml_list_look_later(one, now);
}

uint64_t ml_list_look(struct ml_engine *engine, bool all) {
    ml_list_events_take(engine); /* they tell how a process ended, and as which program */
    struct ml_unrecorded_table *table = &engine->unrecorded;
    const uint64_t now = ml_clock_timestamp(engine->clock).monotonic_ns;
    uint64_t next_ns = UINT64_MAX;
    /* Go by id: each end may fold other entries and move those that stay. */
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

static void on_walk(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    struct ml_list *list = engine->list;
    const uint32_t known = engine->unrecorded.last_id;
    /* Without a program of its own the tree is that of the processes that memlog is attached to. */
    const bool walks = list->events_fd < 0 && (engine->root != 0 || engine->members.count > 0);
    if (walks) {
        ml_list_walk(engine);
    }
    const uint64_t next_ns = ml_list_look(engine, false);
    /* Double the interval after each walk that found nothing new. */
    list->every_s = engine->unrecorded.last_id != known ? list->least_s : list->every_s * 2;
    const double most_s = list->least_s > most_every_s ? list->least_s : most_every_s;
    list->every_s = list->every_s < most_s ? list->every_s : most_s;
    if (walks) {
        ml_list_walk_after(engine, list->every_s);
    } else if (next_ns != UINT64_MAX) {
        const uint64_t now = ml_clock_timestamp(engine->clock).monotonic_ns;
        const double left_s = next_ns > now ? (double)(next_ns - now) / (double)ns_per_s : 0.;
        ml_list_walk_after(engine, left_s > least_every_s ? left_s : least_every_s);
    }
}

static void on_events(struct ev_loop *loop, ev_io *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_engine *engine = watcher->data;
    if (!ml_list_events_take_some(engine)) {
        ml_list_walk(engine);
    }
}

void ml_list_init(struct ml_engine *engine) {
    struct ml_list *list = engine->list;
    ml_unrecorded_init(&engine->unrecorded);
    ml_list_events_open(engine);
    ev_init(&list->events_watcher, on_events);
    if (list->events_fd >= 0) {
        ev_io_set(&list->events_watcher, list->events_fd, EV_READ);
        ev_set_priority(&list->events_watcher, EV_MINPRI); /* after what programs say themselves */
        list->events_watcher.data = engine;
        ev_io_start(engine->loop, &list->events_watcher);
    }
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    list->has_children_files = access(path, R_OK) == 0;
    list->least_s = least_every_s;
    list->every_s = least_every_s;
    ml_timer_init(&list->walk_timer, on_walk, engine);
}

void ml_list_fini(struct ml_engine *engine) {
    ev_io_stop(engine->loop, &engine->list->events_watcher);
    ml_descriptor_close(&engine->list->events_fd);
    ev_timer_stop(engine->loop, &engine->list->walk_timer);
    ml_unrecorded_fini(&engine->unrecorded);
}

#include "host/collect/storing/removals.h"

#include <stdlib.h>
#include <sys/queue.h>

#include "host/collect/crash_point.h"
#include "host/collect/storing/store_thread.h"

struct removal {
    struct ml_entry entry;
    ml_on_removed *on_removed;
    void *context;
    STAILQ_ENTRY(removal) next;
};

struct ml_removals {
    struct ml_removals_setup setup;
    STAILQ_HEAD(, removal) list; /* the first is at the store */
    struct ml_store_job job;
    bool is_at_one, is_stopped;
};

static void go_on(struct ml_removals *removals);

static void end_first(
    struct ml_removals *removals, enum ml_status status, const struct ml_error_message *error
) {
    struct removal *removal = STAILQ_FIRST(&removals->list);
    STAILQ_REMOVE_HEAD(&removals->list, next);
    removals->is_at_one = false;
    if (!removals->is_stopped) {
        removal->on_removed(removal->context, status, error);
    }
    free(removal);
}

static void on_removed(void *context, struct ml_store_job *job) {
    struct ml_removals *removals = context;
    const struct removal *removal = STAILQ_FIRST(&removals->list);
    /* One that waited may have been read meanwhile, and be on its way again. */
    if (removals->setup.drop(removals->setup.context, &removal->entry) && !removals->is_stopped) {
        ml_store_thread_do(removals->setup.thread, job);
        return;
    }
    enum ml_status status = job->status;
    if (status == ML_OK && ml_ledger_remove(removals->setup.ledger, &removal->entry) != ML_OK) {
        ml_error_set(&job->error, "the spool or its ledger refuses");
        status = ML_ENV_SYSTEM;
    }
    ml_crash_point("line-removed");
    end_first(removals, status, &job->error);
    go_on(removals);
}

/* It may be gone already, and another of its name have come. */
static bool is_there(struct ml_removals *removals, const struct ml_entry *entry) {
    struct ml_entry found;
    return ml_ledger_find(removals->setup.ledger, entry->team, entry->guid, &found) &&
           found.id == entry->id;
}

static void go_on(struct ml_removals *removals) {
    static const struct ml_error_message none = {.text = ""};
    while (!removals->is_at_one && !removals->is_stopped && !STAILQ_EMPTY(&removals->list)) {
        const struct removal *removal = STAILQ_FIRST(&removals->list);
        removals->is_at_one = true;
        if (!is_there(removals, &removal->entry)) {
            end_first(removals, ML_OK, &none);
            continue;
        }
        (void)removals->setup.drop(removals->setup.context, &removal->entry);
        /* The store may have one that the ledger does not know to be stored. */
        removals->job = (struct ml_store_job){
            .kind = ML_STORE_REMOVE,
            .team = removal->entry.team,
            .guid = removal->entry.guid,
            .on_done = on_removed,
            .context = removals,
        };
        ml_store_thread_do(removals->setup.thread, &removals->job);
    }
}

struct ml_removals *ml_removals_new(const struct ml_removals_setup *setup) {
    struct ml_removals *removals = calloc(1, sizeof(*removals));
    if (removals != NULL) {
        removals->setup = *setup;
        STAILQ_INIT(&removals->list);
    }
    return removals;
}

bool ml_removals_add(
    struct ml_removals *removals,
    const struct ml_entry *entry,
    ml_on_removed *on_removed_one,
    void *context
) {
    struct removal *removal = calloc(1, sizeof(*removal));
    if (removal == NULL) {
        return false;
    }
    removal->entry = *entry;
    removal->on_removed = on_removed_one;
    removal->context = context;
    STAILQ_INSERT_TAIL(&removals->list, removal, next);
    go_on(removals);
    return true;
}

void ml_removals_stop(struct ml_removals *removals) {
    if (removals != NULL) {
        removals->is_stopped = true;
    }
}

void ml_removals_free(struct ml_removals *take_removals) {
    if (take_removals == NULL) {
        return;
    }
    struct removal *removal = STAILQ_FIRST(&take_removals->list);
    while (removal != NULL) {
        struct removal *next = STAILQ_NEXT(removal, next);
        free(removal);
        removal = next;
    }
    free(take_removals);
}

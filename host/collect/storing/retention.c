#include "host/collect/storing/retention.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <ev.h>

#include "host/collect/storing/removals.h"
#include "host/collect/storing/store_thread.h"
#include "host/process/loop.h"

enum { FIRST_S = 1, EVERY_S = 60 };

/* How long a slice of the ledger's lines may take, and the others' time after it. */
#define SLICE_S 0.02
#define PAUSE_S 0.01

/* Between two steps of the store's upkeep: reports are added in between. */
#define MORE_S 0.1

struct ml_retention {
    struct ml_retention_setup setup;
    ev_timer timer;
    struct ml_store_job job;
    uint64_t end_ms; /* what came before it is removed now; 0: the store's upkeep is due */
    bool is_one_by_one, is_more, is_stopped;
};

static void later(struct ml_retention *retention, double seconds) {
    if (!retention->is_stopped) {
        ml_timer_start(retention->setup.loop, &retention->timer, seconds);
    }
}

static void end_round(struct ml_retention *retention, const char *what, const char *why) {
    if (what != NULL) {
        char text[512];
        (void)snprintf(text, sizeof(text), "%s: %s", what, why);
        retention->setup.on_trouble(retention->setup.context, text);
    }
    retention->end_ms = 0;
    later(retention, what == NULL && retention->is_more ? MORE_S : EVERY_S);
}

static void on_removed(void *context, enum ml_status status, const struct ml_error_message *error) {
    struct ml_retention *retention = context;
    if (status != ML_OK) {
        end_round(retention, "old reports cannot be removed", error->text);
        return;
    }
    later(retention, 0);
}

/* The store has dropped them by itself. */
static void remove_lines(struct ml_retention *retention) {
    struct ml_ledger *ledger = retention->setup.ledger;
    const double begun = ev_time();
    struct ml_entry entry;
    while (ml_ledger_oldest(ledger, &entry) && entry.received_ms < retention->end_ms) {
        if (ml_ledger_remove(ledger, &entry) != ML_OK) {
            end_round(retention, "old reports cannot be removed", "the spool refuses");
            return;
        }
        if (ev_time() - begun > SLICE_S) {
            later(retention, PAUSE_S);
            return;
        }
    }
    end_round(retention, NULL, NULL);
}

static void remove_old(struct ml_retention *retention) {
    struct ml_entry entry;
    if (!retention->is_one_by_one) {
        remove_lines(retention);
    } else if (!ml_ledger_oldest(retention->setup.ledger, &entry) || entry.received_ms >= retention->end_ms) {
        end_round(retention, NULL, NULL);
    } else if (!ml_removals_add(retention->setup.removals, &entry, on_removed, retention)) {
        end_round(retention, "old reports cannot be removed", "memory ran out");
    }
}

static void on_kept(void *context, struct ml_store_job *job) {
    struct ml_retention *retention = context;
    if (job->status != ML_OK) {
        end_round(retention, "the store's upkeep waits", job->error.text);
        return;
    }
    retention->is_more = job->kept.is_more;
    retention->is_one_by_one = job->kept.gone_ms == UINT64_MAX;
    retention->end_ms = retention->is_one_by_one ? job->before_ms : job->kept.gone_ms;
    if (retention->end_ms == 0) {
        end_round(retention, NULL, NULL);
    } else {
        later(retention, 0);
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_retention *retention = watcher->data;
    const uint64_t now_ms = (uint64_t)time(NULL) * 1000;
    const uint64_t kept_ms = retention->setup.retention_s * 1000;
    if (retention->end_ms != 0) {
        remove_old(retention);
        return;
    }
    retention->job = (struct ml_store_job){
        .kind = ML_STORE_UPKEEP,
        .before_ms = kept_ms > 0 && kept_ms < now_ms ? now_ms - kept_ms : 0,
        .on_done = on_kept,
        .context = retention,
    };
    ml_store_thread_do(retention->setup.thread, &retention->job);
}

struct ml_retention *ml_retention_new(const struct ml_retention_setup *setup) {
    struct ml_retention *retention = calloc(1, sizeof(*retention));
    if (retention != NULL) {
        retention->setup = *setup;
        ml_timer_init(&retention->timer, on_timer, retention);
        later(retention, FIRST_S);
    }
    return retention;
}

void ml_retention_stop(struct ml_retention *retention) {
    if (retention != NULL) {
        retention->is_stopped = true;
        ev_timer_stop(retention->setup.loop, &retention->timer);
    }
}

void ml_retention_free(struct ml_retention *take_retention) {
    free(take_retention);
}

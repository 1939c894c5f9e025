#include "host/collect/storing/collector.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include <ev.h>

#include "host/collect/crash_point.h"
#include "host/collect/storing/reading.h"
#include "host/collect/storing/removals.h"
#include "host/collect/storing/retention.h"
#include "host/collect/storing/store_thread.h"
#include "host/process/loop.h"

enum {
    READINGS_MAX = 6, /* a team that is alone has half of them */
    BATCH = 32,       /* reports in one transaction */
    RETRY_S = 5
};

/* Of reports that were read and wait for the store: then it gets them, full batch or not. */
#define READ_BYTES ((size_t)32 << 20)
#define READ_S 0.5

/* After a try that the store did not take. */
#define PAUSE_FIRST_S 0.1

/* A team as it is read: the teams in turn, and none has all readings. */
struct lane {
    int64_t last_id; /* of the ledger's entries that were taken up */
    unsigned reading_count;
};

/* A report on its way. */
struct work {
    struct ml_collector *collector;
    uint64_t team; /* its number in the ledger */
    struct ml_entry entry;
    struct ml_reading *reading;
    const struct ml_collect_report *report; /* NULL: it is being read */
    bool is_at_store;                       /* the store's thread looks at it */
    bool is_dropped;                        /* in that time */
    unsigned tries;                         /* that came to nothing */
    double again_at;                        /* when it is read anew, where `reading` is NULL */
    uint8_t team_key[ML_TEAM_KEY_BYTES];
    TAILQ_ENTRY(work) links;
};

/* What the store's thread is at. */
struct batch {
    struct ml_store_job job;
    struct ml_store_item items[BATCH];
    struct work *works[BATCH];
    size_t count; /* 0: at nothing */
};

struct ml_collector {
    struct ml_collector_setup setup;
    struct ml_store_thread *thread;
    struct ml_removals *removals;
    struct ml_retention *retention;
    struct batch batch;
    bool is_one_alone;  /* one of the next ones cannot be added: they go one by one */
    double store_at;    /* not before; after a try that it did not take */
    double pause_s;     /* after the next one: longer each time */
    struct lane *lanes; /* by teams' numbers */
    uint64_t lanes_count, turn;
    TAILQ_HEAD(, work) works;
    unsigned reading_count, read_count;
    size_t read_bytes; /* of those that were read */
    double read_since; /* when the first of them came */
    ev_timer timer;    /* goes on at the next turn of the loop, or tries again */
    uint64_t store_failures;
};

static void trouble(struct ml_collector *collector, const char *what, const char *why) {
    char text[512];
    (void)snprintf(text, sizeof(text), "%s: %s", what, why);
    collector->setup.on_trouble(collector->setup.context, text);
}

static void go_on_soon(struct ml_collector *collector, double seconds) {
    ml_timer_start(collector->setup.loop, &collector->timer, seconds);
}

static void work_free(struct work *work) {
    struct ml_collector *collector = work->collector;
    TAILQ_REMOVE(&collector->works, work, links);
    if (work->report != NULL) {
        collector->read_count--;
        collector->read_bytes -= ml_collect_report_bytes(work->report);
    } else {
        collector->reading_count--;
        collector->lanes[work->team].reading_count--;
    }
    ml_reading_free(work->reading);
    free(work);
}

/* Where the ledger cannot be written the report stays accepted, and comes again. */
static void settle(struct work *work, enum ml_entry_state state, const char *reason) {
    const struct ml_string host =
        work->report != NULL ? work->report->head.host : (struct ml_string){.data = NULL};
    if (ml_ledger_settle(
            work->collector->setup.ledger,
            &work->entry,
            state,
            reason,
            host.count_bytes > 0 ? host.data : ""
        ) != ML_OK) {
        trouble(work->collector, "the ledger cannot be written", work->entry.guid);
    }
    work_free(work);
}

/* ---- reading */

/* The machine's fault is none of the report's: it is read anew, later. It keeps its place. */
static void read_later(struct work *work) {
    ml_reading_free(work->reading);
    work->reading = NULL;
    work->again_at = ev_now(work->collector->setup.loop) + RETRY_S;
    if (!ev_is_active(&work->collector->timer)) {
        go_on_soon(work->collector, RETRY_S);
    }
}

static void
on_read(void *context, struct ml_reading *reading, const struct ml_collect_report *report) {
    struct work *work = context;
    struct ml_collector *collector = work->collector;
    if (report->state != ML_COLLECT_REPORT_WHOLE && work->tries < ml_reading_tries(reading)) {
        work->tries++;
        trouble(collector, work->entry.guid, report->reason);
        read_later(work);
        return;
    }
    collector->reading_count--;
    collector->lanes[work->team].reading_count--;
    if (collector->read_count++ == 0) {
        collector->read_since = ev_now(collector->setup.loop);
    }
    collector->read_bytes += ml_collect_report_bytes(report);
    work->report = report;
    ml_crash_point("read");
    if (report->state != ML_COLLECT_REPORT_WHOLE) {
        char reason[ML_REASON_BYTES];
        (void)snprintf(reason, sizeof(reason), "%s", report->reason);
        settle(work, ML_ENTRY_REFUSED, reason);
    }
    go_on_soon(collector, 0);
}

enum begun { BEGUN, BEGUN_NOT_NOW, BEGUN_NEVER };

static enum begun begin_reading(struct work *work, struct ml_error_message *error) {
    struct ml_collector *collector = work->collector;
    const struct ml_reading_setup setup = {
        .loop = collector->setup.loop,
        .analyzer_path = collector->setup.analyzer_path,
        .on_read = on_read,
        .context = work,
    };
    const int fd = ml_ledger_body(collector->setup.ledger, &work->entry);
    if (fd < 0) {
        /* One that was being removed when its collector died; it must not hold up all others. */
        const bool is_gone = errno == ENOENT;
        ml_error_set(error, "its body cannot be opened: %s", strerror(errno));
        return is_gone ? BEGUN_NEVER : BEGUN_NOT_NOW;
    }
    work->reading = ml_reading_start(&setup, fd, error);
    (void)close(fd);
    return work->reading != NULL ? BEGUN : BEGUN_NOT_NOW;
}

static enum begun begin_work(struct work *work, struct ml_error_message *error) {
    if (ml_ledger_team_key(work->collector->setup.ledger, work->entry.team, work->team_key) !=
        ML_OK) {
        ml_error_set(error, "its team has no key: the ledger cannot be written");
        return BEGUN_NOT_NOW;
    }
    return begin_reading(work, error);
}

static bool lanes_reserve(struct ml_collector *collector) {
    const uint64_t wanted = ml_ledger_teams(collector->setup.ledger);
    if (wanted <= collector->lanes_count) {
        return true;
    }
    struct lane *grown = reallocarray(collector->lanes, wanted, sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    memset(grown + collector->lanes_count, 0, (wanted - collector->lanes_count) * sizeof(*grown));
    collector->lanes = grown;
    collector->lanes_count = wanted;
    return true;
}

/* The next entry of the team whose turn it is. A team has no more readings than are left for those
 * of others: reports that are read for ever hold up their own team. False: there is none that may
 * be read now. */
static bool choose(struct ml_collector *collector, struct work *work) {
    const uint64_t count = lanes_reserve(collector) ? collector->lanes_count : 0;
    const unsigned left = READINGS_MAX - collector->reading_count;
    for (uint64_t i = 0; i < count; i++) {
        work->team = (collector->turn + i) % count;
        const struct lane *lane = &collector->lanes[work->team];
        if (lane->reading_count < left &&
            ml_ledger_next_of_team(
                collector->setup.ledger, work->team, lane->last_id, &work->entry
            )) {
            collector->turn = work->team + 1;
            return true;
        }
    }
    return false;
}

/* False: there is nothing more to take up now. */
static bool take_up(struct ml_collector *collector) {
    struct work *work = calloc(1, sizeof(*work));
    struct ml_error_message error = {.text = ""};
    if (work == NULL || !choose(collector, work)) {
        free(work);
        return false;
    }
    work->collector = collector;
    TAILQ_INSERT_TAIL(&collector->works, work, links);
    collector->reading_count++;
    collector->lanes[work->team].reading_count++;
    const enum begun begun = begin_work(work, &error);
    if (begun != BEGUN) {
        trouble(collector, work->entry.guid, error.text);
    }
    if (begun == BEGUN_NOT_NOW) {
        work_free(work);
        go_on_soon(collector, RETRY_S);
        return false;
    }
    collector->lanes[work->team].last_id = work->entry.id;
    if (begun == BEGUN_NEVER) {
        settle(work, ML_ENTRY_REFUSED, "its body is gone");
    }
    return true;
}

/* ---- storing */

/* The first reports that were read. */
static void fill(struct ml_collector *collector, size_t most) {
    struct batch *batch = &collector->batch;
    struct work *work = NULL;
    TAILQ_FOREACH(work, &collector->works, links) {
        if (work->report != NULL && batch->count < most) {
            work->is_at_store = true;
            batch->works[batch->count] = work;
            batch->items[batch->count++] = (struct ml_store_item
            ){.entry = &work->entry, .report = work->report, .team_key = work->team_key};
        }
    }
}

static void settle_batch(struct ml_collector *collector) {
    struct batch *batch = &collector->batch;
    ml_ledger_begin(collector->setup.ledger);
    for (size_t i = 0; i < batch->count; i++) {
        settle(batch->works[i], ML_ENTRY_STORED, "");
    }
    ml_crash_point("counting");
    ml_ledger_commit(collector->setup.ledger);
    ml_crash_point("counted");
}

/* They wait again, but for those that nobody wants any more. */
static void take_back(struct ml_collector *collector) {
    struct batch *batch = &collector->batch;
    for (size_t i = 0; i < batch->count; i++) {
        struct work *work = batch->works[i];
        work->is_at_store = false;
        if (work->is_dropped) {
            work_free(work);
        }
    }
}

/* It did not take them. */
static void not_taken(struct ml_collector *collector, const struct ml_store_job *job) {
    struct batch *batch = &collector->batch;
    collector->store_failures++;
    if (job->status == ML_PEER_RANGE && batch->count > 1) {
        collector->is_one_alone = true; /* one of them; the others go on without it */
        take_back(collector);
        return;
    }
    trouble(collector, batch->works[0]->entry.guid, job->error.text);
    if (job->status == ML_PEER_RANGE) {
        settle(batch->works[0], ML_ENTRY_REFUSED, job->error.text);
        return;
    }
    collector->store_at = ev_now(collector->setup.loop) + collector->pause_s;
    collector->pause_s = fmin(2 * collector->pause_s, RETRY_S);
    take_back(collector);
}

static void on_added(void *context, struct ml_store_job *job) {
    struct ml_collector *collector = context;
    if (job->status == ML_OK) {
        collector->pause_s = PAUSE_FIRST_S;
        settle_batch(collector);
    } else {
        not_taken(collector, job);
    }
    collector->batch.count = 0;
    go_on_soon(collector, 0);
}

static void add(struct ml_collector *collector) {
    struct batch *batch = &collector->batch;
    fill(collector, collector->is_one_alone ? 1 : BATCH);
    collector->is_one_alone = false;
    batch->job = (struct ml_store_job){
        .kind = ML_STORE_ADD,
        .items = batch->items,
        .items_count = batch->count,
        .on_done = on_added,
        .context = collector,
    };
    ml_store_thread_do(collector->thread, &batch->job);
}

/* Those whose reading came to nothing. False: none waits any longer. */
static bool take_up_again(struct ml_collector *collector) {
    struct work *work = TAILQ_FIRST(&collector->works);
    struct work *next = NULL;
    bool waits = false;
    for (; work != NULL; work = next) {
        struct ml_error_message error = {.text = ""};
        next = TAILQ_NEXT(work, links);
        if (work->report != NULL || work->reading != NULL) {
            continue;
        }
        if (ev_now(collector->setup.loop) < work->again_at) {
            waits = true;
            continue;
        }
        switch (begin_work(work, &error)) {
        case BEGUN:
            break;
        case BEGUN_NOT_NOW:
            trouble(collector, work->entry.guid, error.text);
            read_later(work);
            waits = true;
            break;
        case BEGUN_NEVER:
            settle(work, ML_ENTRY_REFUSED, "its body is gone");
            break;
        }
    }
    return waits;
}

static void take_up_more(struct ml_collector *collector) {
    while (collector->reading_count < READINGS_MAX && collector->read_count < 2 * BATCH &&
           collector->read_bytes <= READ_BYTES && take_up(collector)) {
    }
}

/* Whether the store gets what was read. One report that is read for long holds up no others. */
static bool is_due(const struct ml_collector *collector) {
    const double now = ev_now(collector->setup.loop);
    return collector->read_count > 0 && collector->batch.count == 0 && now >= collector->store_at &&
           (collector->read_count >= BATCH || collector->reading_count == 0 ||
            collector->read_bytes > READ_BYTES || now - collector->read_since >= READ_S);
}

static void go_on(struct ml_collector *collector) {
    const bool waits = take_up_again(collector);
    take_up_more(collector);
    if (is_due(collector)) {
        add(collector);
    }
    if (ev_is_active(&collector->timer)) {
        return;
    }
    if (collector->read_count > 0 && collector->batch.count == 0) {
        const double left_s = collector->store_at - ev_now(collector->setup.loop);
        go_on_soon(collector, left_s > 0 ? left_s : READ_S);
    } else if (waits) {
        go_on_soon(collector, RETRY_S);
    } else if (collector->setup.ends_when_idle && TAILQ_EMPTY(&collector->works)) {
        ev_break(collector->setup.loop, EVBREAK_ALL);
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    go_on(watcher->data);
}

/* ---- removing */

/* Nothing of it is on its way any more, or it is dropped when the store has looked at it. */
static bool drop(void *context, const struct ml_entry *entry) {
    struct ml_collector *collector = context;
    struct work *work = NULL;
    TAILQ_FOREACH(work, &collector->works, links) {
        if (work->entry.id == entry->id) {
            break;
        }
    }
    if (work != NULL && work->is_at_store) {
        work->is_dropped = true;
        return true;
    }
    if (work != NULL) {
        work_free(work);
        go_on_soon(collector, 0);
    }
    return false;
}

bool ml_collector_remove(
    struct ml_collector *collector,
    const struct ml_entry *entry,
    ml_on_removed *on_removed,
    void *context
) {
    return ml_removals_add(collector->removals, entry, on_removed, context);
}

/* ---- birth and end */

static bool open_parts(struct ml_collector *collector) {
    const struct ml_collector_setup *setup = &collector->setup;
    collector->thread = ml_store_thread_new(setup->loop, setup->store);
    if (collector->thread == NULL) {
        return false;
    }
    const struct ml_removals_setup removals = {
        .ledger = setup->ledger,
        .thread = collector->thread,
        .drop = drop,
        .context = collector,
    };
    collector->removals = ml_removals_new(&removals);
    if (collector->removals == NULL || setup->ends_when_idle) {
        return collector->removals != NULL;
    }
    const struct ml_retention_setup retention = {
        .loop = setup->loop,
        .ledger = setup->ledger,
        .thread = collector->thread,
        .removals = collector->removals,
        .retention_s = setup->retention_s,
        .on_trouble = setup->on_trouble,
        .context = setup->context,
    };
    collector->retention = ml_retention_new(&retention);
    return collector->retention != NULL;
}

struct ml_collector *ml_collector_new(const struct ml_collector_setup *setup) {
    struct ml_collector *collector = calloc(1, sizeof(*collector));
    if (collector == NULL) {
        return NULL;
    }
    collector->setup = *setup;
    collector->pause_s = PAUSE_FIRST_S;
    TAILQ_INIT(&collector->works);
    ml_timer_init(&collector->timer, on_timer, collector);
    if (!open_parts(collector)) {
        ml_collector_free(collector);
        return NULL;
    }
    go_on_soon(collector, 0);
    return collector;
}

void ml_collector_free(struct ml_collector *take_collector) {
    struct ml_collector *collector = take_collector;
    if (collector == NULL) {
        return;
    }
    ml_retention_stop(collector->retention);
    ml_removals_stop(collector->removals);
    ml_store_thread_free(collector->thread); /* what it has done is settled */
    ml_retention_free(collector->retention);
    ml_removals_free(collector->removals);
    struct work *work = TAILQ_FIRST(&collector->works);
    while (work != NULL) {
        struct work *next = TAILQ_NEXT(work, links);
        work_free(work);
        work = next;
    }
    ev_timer_stop(collector->setup.loop, &collector->timer);
    free(collector->lanes);
    free(collector);
}

void ml_collector_wake(struct ml_collector *collector) {
    if (!ev_is_active(&collector->timer)) {
        go_on_soon(collector, 0);
    }
}

uint64_t ml_collector_store_failures(const struct ml_collector *collector) {
    return collector->store_failures;
}

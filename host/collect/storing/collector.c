#include "host/collect/storing/collector.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include <ev.h>

#include "host/collect/storing/reading.h"
#include "host/process/loop.h"

enum {
    READINGS_MAX = 6, /* a team that is alone has half of them */
    BATCH = 32,       /* reports in one transaction */
    RETRY_S = 5,
    RETENTION_FIRST_S = 1,
    RETENTION_S = 60,   /* between two looks at what is too old */
    RETENTION_STEP = 50 /* removed at one look, as the loop waits for it */
};

/* Of reports that were read and wait for the store: then it gets them, full batch or not. */
#define READ_BYTES ((size_t)32 << 20)
#define READ_S 0.5

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
    unsigned tries;                         /* that came to nothing */
    double again_at;                        /* when it is read anew, where `reading` is NULL */
    uint8_t team_key[ML_TEAM_KEY_BYTES];
    TAILQ_ENTRY(work) links;
};

struct ml_collector {
    struct ml_collector_setup setup;
    struct lane *lanes; /* by teams' numbers */
    uint64_t lanes_count, turn;
    TAILQ_HEAD(, work) works;
    unsigned reading_count, read_count;
    size_t read_bytes; /* of those that were read */
    double read_since; /* when the first of them came */
    ev_timer timer;    /* goes on at the next turn of the loop, or tries again */
    ev_timer retention_timer;
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

/* The store may have waited long for a server: readings did not have that time. */
static void waited(struct ml_collector *collector) {
    struct work *work = NULL;
    ev_now_update(collector->setup.loop);
    TAILQ_FOREACH(work, &collector->works, links) {
        if (work->report == NULL && work->reading != NULL) {
            ml_reading_go_on(work->reading);
        }
    }
}

/* The first `most` reports that were read. */
static size_t items_of(
    const struct ml_collector *collector,
    struct ml_store_item *out_items,
    struct work **out_works,
    size_t most
) {
    size_t count = 0;
    struct work *work = NULL;
    TAILQ_FOREACH(work, &collector->works, links) {
        if (work->report != NULL && count < most) {
            out_works[count] = work;
            out_items[count++] = (struct ml_store_item
            ){.entry = &work->entry, .report = work->report, .team_key = work->team_key};
        }
    }
    return count;
}

/* False: the machine refuses, and it is tried again later. */
static bool add(struct ml_collector *collector, size_t most) {
    struct ml_store_item items[BATCH];
    struct work *works[BATCH];
    struct ml_error_message error = {.text = ""};
    const size_t count = items_of(collector, items, works, most);
    const enum ml_status status =
        count > 0 ? ml_store_add(collector->setup.store, items, count, &error) : ML_OK;
    waited(collector);
    if (status == ML_OK) {
        ml_ledger_begin(collector->setup.ledger);
        for (size_t i = 0; i < count; i++) {
            settle(works[i], ML_ENTRY_STORED, "");
        }
        ml_ledger_commit(collector->setup.ledger);
        return true;
    }
    collector->store_failures++;
    if (status == ML_PEER_RANGE && count > 1) {
        return add(collector, 1); /* one of them; the others go on without it */
    }
    trouble(collector, items[0].entry->guid, error.text);
    if (status == ML_PEER_RANGE) {
        settle(works[0], ML_ENTRY_REFUSED, error.text);
        return true;
    }
    return false;
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
    return collector->read_count > 0 &&
           (collector->read_count >= BATCH || collector->reading_count == 0 ||
            collector->read_bytes > READ_BYTES ||
            ev_now(collector->setup.loop) - collector->read_since >= READ_S);
}

static void go_on(struct ml_collector *collector) {
    const bool waits = take_up_again(collector);
    take_up_more(collector);
    if (is_due(collector)) {
        /* One batch a turn of the loop: requests are answered in between. */
        go_on_soon(collector, add(collector, BATCH) ? 0 : RETRY_S);
    } else if (collector->read_count > 0 && !ev_is_active(&collector->timer)) {
        go_on_soon(collector, READ_S);
    }
    if (waits && !ev_is_active(&collector->timer)) {
        go_on_soon(collector, RETRY_S);
    }
    if (collector->setup.ends_when_idle && TAILQ_EMPTY(&collector->works) &&
        !ev_is_active(&collector->timer)) {
        ev_break(collector->setup.loop, EVBREAK_ALL);
    }
}

static void on_timer(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    go_on(watcher->data);
}

/* ---- removing */

enum ml_status ml_collector_remove(
    struct ml_collector *collector, const struct ml_entry *entry, struct ml_error_message *error
) {
    struct work *work = NULL;
    TAILQ_FOREACH(work, &collector->works, links) {
        if (work->entry.id == entry->id) {
            work_free(work);
            go_on_soon(collector, 0);
            break;
        }
    }
    /* The store may have one that the ledger does not know to be stored. */
    const enum ml_status status =
        ml_store_remove(collector->setup.store, entry->team, entry->guid, error);
    if (status != ML_OK) {
        return status;
    }
    if (ml_ledger_remove(collector->setup.ledger, entry) != ML_OK) {
        ml_error_set(error, "the spool or its ledger refuses");
        return ML_ENV_SYSTEM;
    }
    return ML_OK;
}

/* ---- what is too old */

static void on_retention(struct ev_loop *loop, ev_timer *watcher, int events) {
    (void)loop;
    (void)events;
    struct ml_collector *collector = watcher->data;
    struct ml_ledger *ledger = collector->setup.ledger;
    struct ml_error_message error = {.text = ""};
    struct ml_entry entry;
    const uint64_t now_ms = (uint64_t)time(NULL) * 1000;
    const uint64_t kept_ms = collector->setup.retention_s * 1000;
    const uint64_t before_ms = kept_ms > 0 && kept_ms < now_ms ? now_ms - kept_ms : 0;
    uint64_t gone_ms = 0;
    const enum ml_status kept =
        ml_store_upkeep(collector->setup.store, before_ms, &gone_ms, &error);
    waited(collector);
    if (kept != ML_OK) {
        trouble(collector, "the store's upkeep waits", error.text);
        return;
    }
    const bool is_one_by_one = gone_ms == UINT64_MAX;
    const uint64_t end_ms = is_one_by_one ? before_ms : gone_ms;
    for (unsigned i = 0;
         i < RETENTION_STEP && ml_ledger_oldest(ledger, &entry) && entry.received_ms < end_ms;
         i++) {
        if ((is_one_by_one ? ml_collector_remove(collector, &entry, &error)
                           : ml_ledger_remove(ledger, &entry)) != ML_OK) {
            trouble(collector, "old reports cannot be removed", error.text);
            return;
        }
    }
}

/* ---- birth and end */

struct ml_collector *ml_collector_new(const struct ml_collector_setup *setup) {
    struct ml_collector *collector = calloc(1, sizeof(*collector));
    if (collector == NULL) {
        return NULL;
    }
    collector->setup = *setup;
    TAILQ_INIT(&collector->works);
    ml_timer_init(&collector->timer, on_timer, collector);
    ev_timer_init(&collector->retention_timer, on_retention, RETENTION_FIRST_S, RETENTION_S);
    collector->retention_timer.data = collector;
    if (!setup->ends_when_idle) {
        ev_timer_start(setup->loop, &collector->retention_timer);
    }
    go_on_soon(collector, 0);
    return collector;
}

void ml_collector_free(struct ml_collector *take_collector) {
    struct ml_collector *collector = take_collector;
    if (collector == NULL) {
        return;
    }
    struct work *work = TAILQ_FIRST(&collector->works);
    while (work != NULL) {
        struct work *next = TAILQ_NEXT(work, links);
        work_free(work);
        work = next;
    }
    ev_timer_stop(collector->setup.loop, &collector->timer);
    ev_timer_stop(collector->setup.loop, &collector->retention_timer);
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

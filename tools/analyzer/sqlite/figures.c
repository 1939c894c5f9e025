#include "tools/analyzer/sqlite/figures.h"

#include <string.h>

enum { NS_PER_MS = 1000000, NS_PER_US = 1000 };

struct writer {
    sqlite3 *database;
    const struct ml_profile *profile;
    int code;
};

static void check(struct writer *writer, int code) {
    if (code != SQLITE_OK && code != SQLITE_DONE && writer->code == SQLITE_OK) {
        writer->code = code;
    }
}

static sqlite3_stmt *prepare(struct writer *writer, const char *sql) {
    sqlite3_stmt *statement = NULL;

    check(writer, sqlite3_prepare_v2(writer->database, sql, -1, &statement, NULL));
    return statement;
}

static void bind(struct writer *writer, sqlite3_stmt *into, int column, uint64_t value) {
    check(writer, sqlite3_bind_int64(into, column, (sqlite3_int64)value));
}

static void
bind_text(struct writer *writer, sqlite3_stmt *into, int column, struct ml_profile_text text) {
    check(
        writer,
        sqlite3_bind_text64(
            into, column, text.bytes, text.count_bytes, SQLITE_TRANSIENT, SQLITE_UTF8
        )
    );
}

static void step(struct writer *writer, sqlite3_stmt *into) {
    check(writer, sqlite3_step(into));
    check(writer, sqlite3_reset(into));
}

static struct ml_profile_text text_of(const char *text) {
    return (struct ml_profile_text){.bytes = text, .count_bytes = strlen(text)};
}

/* Of each process the main thread. The names of others are those that stacks have at their roots;
 * the dump does not number them. */
static void put_threads(struct writer *writer) {
    const size_t recorded = writer->profile->processes_count;
    sqlite3_stmt *into = prepare(
        writer, "INSERT INTO thread(tid,name,upid,is_main_thread,start_ts) VALUES (?1,?2,?3,1,?4)"
    );

    for (size_t i = 0; i < recorded + writer->profile->others_count; i++) {
        const struct ml_profile_process *process =
            i < recorded ? &writer->profile->processes[i] : &writer->profile->others[i - recorded];
        bind(writer, into, 1, process->pid);
        bind_text(writer, into, 2, process->name);
        bind(writer, into, 3, i + 1);
        bind(writer, into, 4, process->start.boottime_ns);
        step(writer, into);
    }
    sqlite3_finalize(into);
    into = prepare(
        writer,
        "INSERT INTO thread(tid,name,upid,is_main_thread) SELECT DISTINCT NULL, s.thread, s.upid, 0"
        " FROM memlog_stack s JOIN process p USING (upid) WHERE s.thread <> '' AND s.thread <> "
        "p.name"
    );
    step(writer, into);
    sqlite3_finalize(into);
    into = prepare(writer, "UPDATE thread SET utid = id");
    step(writer, into);
    sqlite3_finalize(into);
}

static void put_stat(
    struct writer *writer,
    sqlite3_stmt *into,
    const char *name,
    const char *severity,
    const struct ml_profile_process *process,
    uint64_t value
) {
    bind_text(writer, into, 1, text_of(name));
    bind(writer, into, 2, process->pid);
    bind_text(writer, into, 3, text_of(severity));
    bind(writer, into, 4, value);
    step(writer, into);
}

/* Whether the dump knows of a time that it knows nothing of, while the process lived. */
static bool has_gap(const struct ml_profile *profile, const struct ml_profile_process *process) {
    for (size_t i = 0; i < profile->gaps_count; i++) {
        const struct ml_profile_gap *gap = &profile->gaps[i];
        if (gap->process_id == process->id ||
            (gap->process_id == 0 && process->start.monotonic_ns < gap->to.monotonic_ns)) {
            return true;
        }
    }
    return false;
}

/* As trace_processor counts what a dump's packets tell it. */
static void put_stats(struct writer *writer) {
    sqlite3_stmt *into = prepare(
        writer,
        "INSERT INTO stats(name,key,idx,severity,source,value) VALUES (?1,?1,?2,?3,'trace',?4)"
    );

    for (size_t i = 0; i < writer->profile->processes_count; i++) {
        const struct ml_profile_process *one = &writer->profile->processes[i];
        const bool is_short = one->lost_events > 0 || has_gap(writer->profile, one);
        put_stat(writer, into, "heapprofd_buffer_overran", "data_loss", one, is_short);
        put_stat(writer, into, "heapprofd_client_disconnected", "info", one, one->left_tree);
        put_stat(writer, into, "heapprofd_unwind_samples", "info", one, one->events);
        put_stat(
            writer,
            into,
            "heapprofd_client_spinlock_blocked",
            "info",
            one,
            one->accounting.waited_ns / NS_PER_US
        );
        put_stat(writer, into, "memlog_lost_events", "data_loss", one, one->lost_events);
        put_stat(writer, into, "memlog_broken_stacks", "info", one, one->broken_stacks);
    }
    sqlite3_finalize(into);
}

static void
put_point(struct writer *writer, sqlite3_stmt *into, uint64_t track, uint64_t ms, uint64_t value) {
    const struct ml_profile_timestamp *now = &writer->profile->now;

    /* The difference may wrap; the sum wraps back. */
    bind(writer, into, 1, now->boottime_ns - now->monotonic_ns + ms * NS_PER_MS);
    bind(writer, into, 2, track);
    bind(writer, into, 3, value);
    step(writer, into);
}

static uint64_t
put_track(struct writer *writer, sqlite3_stmt *into, const char *name, uint64_t upid) {
    bind_text(writer, into, 1, text_of(name));
    bind(writer, into, 2, upid);
    step(writer, into);
    return (uint64_t)sqlite3_last_insert_rowid(writer->database);
}

/* Live and allocated bytes over time, of each process. */
static void put_counters(struct writer *writer) {
    sqlite3_stmt *tracks =
        prepare(writer, "INSERT INTO process_counter_track(name,upid,unit) VALUES (?1,?2,'bytes')");
    sqlite3_stmt *points =
        prepare(writer, "INSERT INTO counter(ts,track_id,value) VALUES (?1,?2,?3)");

    for (size_t i = 0; writer->code == SQLITE_OK && i < writer->profile->processes_count; i++) {
        const struct ml_profile_process *process = &writer->profile->processes[i];
        const struct ml_profile_series *series = &writer->profile->series[process->series_first];
        if (process->series_count == 0 || series->is_stack) {
            continue;
        }
        const uint64_t live = put_track(writer, tracks, "live bytes", i + 1);
        const uint64_t total = put_track(writer, tracks, "allocated bytes", i + 1);
        for (size_t at = 0; at < series->points_count; at++) {
            const struct ml_profile_point *point = &series->points[at];
            put_point(writer, points, live, point->end_ms, point->last_bytes);
            put_point(writer, points, total, point->end_ms, point->total_bytes);
        }
    }
    sqlite3_finalize(tracks);
    sqlite3_finalize(points);
}

int ml_sqlite_figures_put(sqlite3 *database, const struct ml_stacks *stacks) {
    struct writer writer = {.database = database, .profile = stacks->profile};

    put_threads(&writer);
    put_stats(&writer);
    put_counters(&writer);
    return writer.code;
}

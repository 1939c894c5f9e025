/* The store by itself: what a batch leaves that was not taken. */
#include "host/collect/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "host/collect/db.h"
#include "tests/suite.h"

static struct ml_store *store;
static struct ml_db beside; /* another connection to it */
static char folder[64];
static char path[128];
static const uint8_t key[ML_TEAM_KEY_BYTES] = {7};
static struct ml_error_message error;

/* A report of one stack of two frames. */
static struct memlog_fleet_frame frames[2];
static struct memlog_fleet_stack stacks[] = {{.parent = 0, .frame = 1}, {.parent = 1, .frame = 2}};
static struct memlog_fleet_row rows[1];
static struct ml_collect_report report;

static void setup(void) {
    frames[0].function = ml_string_of("main");
    frames[1].function = ml_string_of("leak");
    rows[0] = (struct memlog_fleet_row){.stack = 2, .figures = {.live_bytes = 100}};
    report = (struct ml_collect_report){
        .state = ML_COLLECT_REPORT_WHOLE,
        .frames = frames,
        .frames_count = 2,
        .stacks = stacks,
        .stacks_count = 2,
        .rows = rows,
        .rows_count = 1,
        .sums = {.live_bytes = 100},
    };
    ck_assert_ptr_nonnull(mkdtemp(strcpy(folder, "/tmp/memlog-store-test.XXXXXX")));
    (void)snprintf(path, sizeof(path), "%s/store.db", folder);
    ck_assert_int_eq(ml_store_open(path, &store, &error), ML_OK);
    ck_assert_int_eq(ml_db_open(&beside, path, "", &error), ML_OK);
}

static void teardown(void) {
    static const char *const ends[] = {"", "-wal", "-shm"};

    ml_db_close(&beside);
    ml_store_close(store);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        char name[sizeof(path) + 8];
        (void)snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        (void)unlink(name);
    }
    (void)rmdir(folder);
}

static struct ml_entry entry_of(const char *guid) {
    struct ml_entry entry = {.team = "default", .received_ms = 1000};

    (void)snprintf(entry.guid, sizeof(entry.guid), "%s", guid);
    return entry;
}

/* Add both together; NULL: one alone. */
static enum ml_status add(const char *one, const char *other) {
    const struct ml_entry entries[] = {entry_of(one), entry_of(other != NULL ? other : one)};
    const struct ml_store_item items[] = {
        {.entry = &entries[0], .report = &report, .team_key = key},
        {.entry = &entries[1], .report = &report, .team_key = key}};

    return ml_store_add(store, items, other != NULL ? 2 : 1, &error);
}

static int64_t count_of(const char *table) {
    char sql[64];
    (void)snprintf(sql, sizeof(sql), "SELECT count(*) FROM %s", table);
    sqlite3_stmt *statement = ml_db_prepare(&beside, sql, &error);
    const int64_t count = ml_db_number(statement, -1);

    (void)sqlite3_finalize(statement);
    return count;
}

START_TEST(a_report_is_there_once) {
    ck_assert_int_eq(add("one", "one"), ML_OK);
    ck_assert_int_eq(add("one", NULL), ML_OK);
    ck_assert_int_eq(count_of("dumps"), 1);
    ck_assert_int_eq(add("other", NULL), ML_OK);
    ck_assert_int_eq(count_of("dumps"), 2);
    ck_assert_int_eq(count_of("frames"), 2);
    ck_assert_int_eq(count_of("stacks"), 2);
}
END_TEST

/* What was remembered as stored while the batch ran is forgotten with it. */
START_TEST(a_batch_that_is_not_taken_leaves_nothing_and_its_stacks_come_again) {
    const char *refuse = "CREATE TRIGGER refuse BEFORE INSERT ON dumps WHEN NEW.guid = 'bad'"
                         " BEGIN SELECT RAISE(ABORT, 'no'); END";

    ck_assert_int_eq(ml_db_do(&beside, refuse), ML_OK);
    ck_assert_int_eq(add("good", "bad"), ML_PEER_RANGE);
    ck_assert_int_eq(count_of("dumps"), 0);
    ck_assert_int_eq(count_of("stacks"), 0);
    ck_assert_int_eq(add("good", NULL), ML_OK);
    ck_assert_int_eq(count_of("dumps"), 1);
    ck_assert_int_eq(count_of("frames"), 2);
    ck_assert_int_eq(count_of("stacks"), 2);
}
END_TEST

static int64_t number_of(const char *sql) {
    sqlite3_stmt *statement = ml_db_prepare(&beside, sql, &error);
    ck_assert_ptr_nonnull(statement);
    const int64_t number = ml_db_number(statement, -1);

    (void)sqlite3_finalize(statement);
    return number;
}

/* Rows that want what is not there. */
static int64_t broken(void) {
    return number_of(
        "SELECT (SELECT count(*) FROM samples WHERE stack NOT IN (SELECT id FROM stacks))"
        " + (SELECT count(*) FROM stacks WHERE parent <> 0 AND parent NOT IN (SELECT id FROM "
        "stacks))"
        " + (SELECT count(*) FROM stacks WHERE frame NOT IN (SELECT id FROM frames))"
        " + (SELECT count(*) FROM frames WHERE function NOT IN (SELECT id FROM words)"
        " OR module NOT IN (SELECT id FROM words) OR build_id NOT IN (SELECT id FROM words))"
        " + (SELECT count(*) FROM samples WHERE role NOT IN (SELECT id FROM words) OR process NOT "
        "IN"
        " (SELECT id FROM words) OR heap NOT IN (SELECT id FROM words) OR type NOT IN (SELECT id "
        "FROM"
        " words)) + (SELECT count(*) FROM dumps WHERE team NOT IN (SELECT id FROM words) OR program"
        " NOT IN (SELECT id FROM words) OR build NOT IN (SELECT id FROM words) OR version NOT IN"
        " (SELECT id FROM words) OR host NOT IN (SELECT id FROM words) OR reason NOT IN (SELECT id"
        " FROM words) OR cause NOT IN (SELECT id FROM words))"
    );
}

/* One step; whether there is more to do. */
static bool keep(void) {
    struct ml_store_kept kept;

    ck_assert_int_eq(ml_store_upkeep(store, 0, &kept, &error), ML_OK);
    ck_assert_uint_eq(kept.gone_ms, UINT64_MAX);
    return kept.is_more;
}

/* Words are due once an hour. */
static void keep_all(void) {
    ck_assert_int_eq(ml_db_do(&beside, "UPDATE swept SET at_s = 0"), ML_OK);
    while (keep()) {
    }
}

static void drop(const char *guid) {
    ck_assert_int_eq(ml_store_remove(store, "default", guid, &error), ML_OK);
}

START_TEST(what_no_dump_has_any_more_is_swept_and_may_come_again) {
    ck_assert_int_eq(add("one", "other"), ML_OK);
    frames[1].function = ml_string_of("secret");
    report.head.host = ml_string_of("hidden");
    ck_assert_int_eq(add("third", NULL), ML_OK);
    ck_assert_int_eq(count_of("stacks"), 3);
    drop("one");
    keep_all();
    ck_assert_int_eq(count_of("stacks"), 3); /* the other one has them still */
    drop("third");
    keep_all();
    ck_assert_int_eq(count_of("stacks"), 2);
    ck_assert_int_eq(count_of("frames"), 2);
    ck_assert_int_eq(number_of("SELECT count(*) FROM words WHERE word IN ('secret', 'hidden')"), 0);
    ck_assert_int_eq(broken(), 0);
    ck_assert_int_eq(
        add("third", NULL), ML_OK
    ); /* the same ids, which nothing remembers as there */
    ck_assert_int_eq(count_of("stacks"), 3);
    ck_assert_int_eq(broken(), 0);
    drop("third");
    drop("other");
    keep_all();
    ck_assert_int_eq(count_of("stacks") + count_of("frames") + count_of("words"), 0);
    ck_assert(!keep());
}
END_TEST

START_TEST(a_stack_without_rows_is_not_kept) {
    rows[0].stack = 1;
    ck_assert_int_eq(add("one", NULL), ML_OK);
    ck_assert_int_eq(count_of("stacks"), 1);
    ck_assert_int_eq(number_of("SELECT count(*) FROM words WHERE word = 'leak'"), 0);
}
END_TEST

/* Steps of the sweep, and what is added and removed in between, in any order. */
START_TEST(what_is_added_while_it_is_swept_stays) {
    static char words[40][8];
    bool is_there[40] = {false};
    unsigned chance = 7;
    for (unsigned i = 0; i < 4000; i++) {
        chance = chance * 1103515245 + 12345;
        const unsigned which = (chance >> 16) % 40;
        char guid[16];
        (void)snprintf(guid, sizeof(guid), "g%u", which);
        (void)snprintf(words[which], sizeof(words[which]), "w%u", which / 2);
        frames[1].function = ml_string_of(words[which]);
        frames[1].offset = which % 3;
        report.head.host = ml_string_of(words[which]);
        if ((chance >> 8) % 3 != 0) {
            (void)keep();
            ck_assert_int_eq(ml_db_do(&beside, "UPDATE swept SET at_s = 0"), ML_OK);
        } else if (is_there[which]) {
            drop(guid);
            is_there[which] = false;
        } else {
            ck_assert_int_eq(add(guid, NULL), ML_OK);
            is_there[which] = true;
        }
        if (i % 50 == 0) {
            ck_assert_int_eq(broken(), 0);
        }
    }
    ck_assert_int_eq(broken(), 0);
    keep_all();
    ck_assert_int_eq(broken(), 0);
    ck_assert_int_gt(count_of("dumps"), 5);
    ck_assert_int_eq(
        number_of("SELECT count(*) FROM stacks WHERE id NOT IN (SELECT stack FROM samples)"
                  " AND id NOT IN (SELECT parent FROM stacks)"),
        0
    );
    ck_assert_int_eq(
        number_of("SELECT count(*) FROM words WHERE word LIKE 'w%' AND id NOT IN (SELECT host FROM"
                  " dumps) AND id NOT IN (SELECT function FROM frames)"),
        0
    );
}
END_TEST

/* As after a collector that was killed in the middle of its sweep. */
START_TEST(a_sweep_that_was_cut_off_begins_again) {
    ck_assert_int_eq(add("one", NULL), ML_OK);
    drop("one");
    while (number_of("SELECT state FROM swept") != 2) {
        ck_assert(keep());
    }
    ml_store_close(store);
    ck_assert_int_eq(ml_store_open(path, &store, &error), ML_OK);
    keep_all();
    ck_assert_int_eq(count_of("words"), 0);
    ck_assert_int_eq(number_of("SELECT state FROM swept"), 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("store");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_report_is_there_once);
    tcase_add_test(tests, a_batch_that_is_not_taken_leaves_nothing_and_its_stacks_come_again);
    tcase_add_test(tests, what_no_dump_has_any_more_is_swept_and_may_come_again);
    tcase_add_test(tests, a_stack_without_rows_is_not_kept);
    tcase_add_test(tests, what_is_added_while_it_is_swept_stays);
    tcase_add_test(tests, a_sweep_that_was_cut_off_begins_again);
    tcase_set_timeout(tests, 0); /* the disk may be slow; the runner has a bound */
    return run_suite("store", tests);
}

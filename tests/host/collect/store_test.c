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

int main(void) {
    TCase *tests = tcase_create("store");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_report_is_there_once);
    tcase_add_test(tests, a_batch_that_is_not_taken_leaves_nothing_and_its_stacks_come_again);
    return run_suite("store", tests);
}

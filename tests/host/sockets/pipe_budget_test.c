#include "host/sockets/pipe_budget.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/suite.h"

enum { USER = 4321, OTHER = 4322, MIB = 1 << 20 };

static char folder[64];

static void write_pages(const char *name, const char *pages) {
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(pages, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void setup(void) {
    (void)snprintf(folder, sizeof(folder), "/tmp/pipe-budget-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void teardown(void) {
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/pipe-user-pages-soft", folder);
    (void)unlink(path);
    (void)snprintf(path, sizeof(path), "%s/pipe-user-pages-hard", folder);
    (void)unlink(path);
    (void)rmdir(folder);
}

static uint64_t limit_for(const char *soft, const char *hard) {
    struct ml_pipe_budget budget;
    write_pages("pipe-user-pages-soft", soft);
    write_pages("pipe-user-pages-hard", hard);
    ml_pipe_budget_init(&budget, folder, USER, false, 0);
    return budget.limit_bytes;
}

/* Bytes in use of that user. */
static uint64_t used_by(const struct ml_pipe_budget *budget, uid_t uid) {
    for (uint32_t i = 0; i < budget->accounts_count; i++) {
        if (budget->accounts[i].uid == uid) {
            return budget->accounts[i].used_bytes;
        }
    }
    return 0;
}

START_TEST(it_is_half_of_the_least_quota_there_is) {
    const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    ck_assert_uint_eq(limit_for("16384\n", "0\n"), 8192 * page_bytes);
    ck_assert_uint_eq(limit_for("16384\n", "1000\n"), 500 * page_bytes);
    ck_assert_uint_eq(limit_for("0\n", "1000\n"), 500 * page_bytes);
    ck_assert_uint_eq(limit_for("0\n", "0\n"), UINT64_MAX);
    ck_assert_uint_eq(limit_for("nonsense\n", "\n"), 8192 * page_bytes);
    struct ml_pipe_budget budget;
    ml_pipe_budget_init(&budget, "/nowhere", USER, false, 0);
    ck_assert_uint_eq(budget.limit_bytes, 8192 * page_bytes);
    /* The second host of a user, the third, and so on: never the whole of it. */
    ml_pipe_budget_init(&budget, "/nowhere", USER, false, 2);
    ck_assert_uint_eq(budget.limit_bytes, 2048 * page_bytes);
    ml_pipe_budget_init(&budget, "/nowhere", USER, false, 1000);
    ck_assert_uint_lt(budget.limit_bytes, page_bytes);
}
END_TEST

/* One more pipe of that user; its size. */
static uint32_t take(struct ml_pipe_budget *budget, uid_t uid) {
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    const uint32_t bytes = ml_pipe_budget_take(budget, uid, ends[0]);
    ck_assert_int_eq(fcntl(ends[1], F_GETPIPE_SZ), (int)bytes);
    (void)close(ends[0]);
    (void)close(ends[1]);
    return bytes;
}

START_TEST(pipes_get_smaller_as_it_is_used_up_and_never_pass_it) {
    struct ml_pipe_budget budget = {.limit_bytes = 8 * MIB};
    uint32_t counts[4] = {0};
    while (used_by(&budget, USER) + ML_PIPE_SMALL_BYTES <= 8 * MIB) {
        const uint32_t bytes = take(&budget, USER);
        counts[0] += bytes == ML_PIPE_LARGE_BYTES ? 1 : 0;
        counts[1] += bytes == ML_PIPE_MIDDLE_BYTES ? 1 : 0;
        counts[2] += bytes == ML_PIPE_SMALL_BYTES ? 1 : 0;
        counts[3]++;
    }
    ck_assert_uint_eq(counts[0], 4);
    ck_assert_uint_eq(counts[1], 32);
    ck_assert_uint_eq(counts[2], 256);
    ck_assert_uint_eq(counts[3], 292);
    ck_assert_uint_eq(used_by(&budget, USER), 8 * MIB);
    /* Nothing smaller works at all. */
    ck_assert_uint_eq(take(&budget, USER), ML_PIPE_LEAST_BYTES);
}
END_TEST

START_TEST(each_user_has_his_own) {
    struct ml_pipe_budget budget = {.limit_bytes = 2 * MIB, .exempt = true, .exempt_uid = OTHER};
    ck_assert_uint_eq(take(&budget, USER), ML_PIPE_LARGE_BYTES);
    ck_assert_uint_eq(take(&budget, USER), ML_PIPE_MIDDLE_BYTES);
    for (int i = 0; i < 5; i++) {
        ck_assert_uint_eq(take(&budget, OTHER), ML_PIPE_LARGE_BYTES);
    }
    ck_assert_uint_eq(take(&budget, OTHER + 1), ML_PIPE_LARGE_BYTES);
    ml_pipe_budget_give(&budget, USER, ML_PIPE_LARGE_BYTES);
    ck_assert_uint_eq(used_by(&budget, USER), ML_PIPE_MIDDLE_BYTES);
    ml_pipe_budget_give(&budget, USER, ML_PIPE_LARGE_BYTES);
    ck_assert_uint_eq(used_by(&budget, USER), 0);
}
END_TEST

START_TEST(more_users_than_accounts_share_the_last_one) {
    struct ml_pipe_budget budget = {.limit_bytes = 2 * MIB};
    for (uid_t uid = 0; uid < ML_PIPE_USERS_MAX; uid++) {
        ck_assert_uint_eq(take(&budget, 1000 + uid), ML_PIPE_LARGE_BYTES);
    }
    ck_assert_uint_eq(take(&budget, 5000), ML_PIPE_MIDDLE_BYTES);
    ml_pipe_budget_give(&budget, 5000, ML_PIPE_MIDDLE_BYTES);
    ck_assert_uint_eq(used_by(&budget, 1000 + ML_PIPE_USERS_MAX - 1), ML_PIPE_LARGE_BYTES);
}
END_TEST

START_TEST(forked_children_start_small_once_half_is_used) {
    struct ml_pipe_budget budget = {.limit_bytes = 4 * MIB, .exempt = true, .exempt_uid = OTHER};
    for (int i = 0; i < 9; i++) {
        (void)take(&budget, OTHER);
    }
    ck_assert_uint_eq(ml_pipe_budget_fork_bytes(&budget), ML_PIPE_MIDDLE_BYTES);
    (void)take(&budget, USER);
    (void)take(&budget, USER);
    ck_assert_uint_eq(ml_pipe_budget_fork_bytes(&budget), ML_PIPE_MIDDLE_BYTES);
    (void)take(&budget, USER);
    ck_assert_uint_eq(ml_pipe_budget_fork_bytes(&budget), ML_PIPE_SMALL_BYTES);
    ml_pipe_budget_give(&budget, USER, ML_PIPE_LARGE_BYTES);
    ck_assert_uint_eq(ml_pipe_budget_fork_bytes(&budget), ML_PIPE_MIDDLE_BYTES);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("pipe_budget");
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_test(tcase, it_is_half_of_the_least_quota_there_is);
    tcase_add_test(tcase, pipes_get_smaller_as_it_is_used_up_and_never_pass_it);
    tcase_add_test(tcase, each_user_has_his_own);
    tcase_add_test(tcase, more_users_than_accounts_share_the_last_one);
    tcase_add_test(tcase, forked_children_start_small_once_half_is_used);
    return run_suite("host/pipe_budget", tcase);
}

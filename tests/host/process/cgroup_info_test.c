#include "host/process/cgroup_info.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/suite.h"

static char root[] = "/tmp/memlog-cgroup-test.XXXXXX";

static void put(const char *path, const char *text) {
    char full[512];
    (void)snprintf(full, sizeof(full), "%s/%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void set_up(void) {
    (void)strcpy(root + strlen(root) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(root));
}

static void tear_down(void) {
    char command[600];
    (void)snprintf(command, sizeof(command), "rm -r %s", root);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(version_2_is_read_without_what_the_cache_gives_back) {
    struct ml_cgroup group;
    struct memlog_service_observed_memory info;
    put("a/b/memory.current", "5000\n");
    put("a/b/memory.max", "9000\n");
    put("a/b/memory.high", "max\n");
    put("a/b/memory.stat", "anon 1\ninactive_file 1000\n");
    put("a/b/memory.events", "low 0\nhigh 3\nmax 4\noom 1\noom_kill 1\n");
    put("a/b/memory.pressure",
        "some avg10=12.34 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.05 avg60=0.00 avg300=0 "
        "total=1\n");
    ck_assert(ml_cgroup_find(root, "0::/a/b\n", &group));
    ck_assert(group.unified);
    ck_assert_str_eq(group.name, "cgroup /a/b");
    ck_assert(ml_cgroup_read(&group, &info));
    ck_assert_uint_eq(info.used_bytes, 4000);
    ck_assert_uint_eq(info.limit_bytes, 9000);
    ck_assert_uint_eq(info.high_events, 3);
    ck_assert_uint_eq(info.max_events, 4);
    ck_assert_uint_eq(info.some_percent_100, 1234);
    ck_assert_uint_eq(info.full_percent_100, 5);
}
END_TEST

/* Up from there: the names and limits of the groups around it. */
static void
check_way_up(struct ml_cgroup *group, const char *const names[], const uint64_t limits[]) {
    for (size_t i = 0; names[i] != NULL; i++) {
        ck_assert_str_eq(group->name, names[i]);
        ck_assert_uint_eq(ml_cgroup_limit_bytes(group), limits[i]);
        ck_assert(ml_cgroup_up(group) == (names[i + 1] != NULL));
    }
}

START_TEST(each_group_around_a_process_is_met_on_the_way_up_in_version_2) {
    struct ml_cgroup group;
    put("a/memory.current", "1\n");
    put("a/memory.max", "5555\n");
    put("a/b/memory.max", "1\n"); /* of no memory: it has no figures */
    put("a/b/c/memory.current", "1\n");
    put("a/b/c/memory.max", "max\n");
    put("a/b/c/d/memory.current", "1\n");
    put("a/b/c/d/memory.max", "7777\n");
    ck_assert(ml_cgroup_find(root, "0::/a/b/c/d\n", &group));
    ck_assert_uint_eq(ml_cgroup_least_limit_bytes(&group), 5555);
    check_way_up(
        &group,
        (const char *const[]){"cgroup /a/b/c/d", "cgroup /a/b/c", "cgroup /a", NULL},
        (const uint64_t[]){7777, 0, 5555}
    );
    ck_assert_str_eq(group.name, "cgroup /a"); /* it stays where it was */
    put("a/b/c/d/memory.high", "4444\n");
    ck_assert(ml_cgroup_find(root, "0::/a/b/c/d\n", &group));
    ck_assert_uint_eq(ml_cgroup_least_limit_bytes(&group), 4444);
}
END_TEST

START_TEST(each_group_around_a_process_is_met_on_the_way_up_in_version_1) {
    struct ml_cgroup group;
    put("memory/memory.usage_in_bytes", "1\n");
    put("memory/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/a/memory.usage_in_bytes", "1\n");
    put("memory/a/memory.limit_in_bytes", "5555\n");
    put("memory/a/b/memory.usage_in_bytes", "1\n");
    put("memory/a/b/memory.limit_in_bytes", "7777\n");
    ck_assert(ml_cgroup_find(root, "4:memory:/a/b\n0::/\n", &group));
    ck_assert_uint_eq(ml_cgroup_least_limit_bytes(&group), 5555);
    check_way_up(
        &group,
        (const char *const[]){"cgroup /a/b", "cgroup /a", "cgroup /", NULL},
        (const uint64_t[]){7777, 5555, 0}
    );
    ck_assert_uint_eq(ml_cgroup_least_limit_bytes(&group), 0);
}
END_TEST

START_TEST(groups_whose_long_paths_begin_alike_have_names_of_their_own) {
    enum { LONG = 100, DEEP = 4 };
    char path[DEEP * (LONG + 1) + 64] = "";
    char file[sizeof(path) + 32];
    char line[sizeof(path) + 8];
    char names[DEEP][ML_MEMORY_NAME_BYTES];
    struct ml_cgroup group;
    for (unsigned i = 0; i < DEEP; i++) {
        const size_t used = strlen(path);
        path[used] = '/';
        for (unsigned k = 0; k < LONG; k += 2) {
            memcpy(path + used + 1 + k, "\xc3\xa4", 3);
        }
        path[used + LONG] = (char)('0' + i); /* in the place of half a letter */
        path[used + LONG - 1] = '-';
        (void)snprintf(file, sizeof(file), "%s/memory.current", path + 1);
        put(file, "1\n");
    }
    (void)snprintf(line, sizeof(line), "0::%s\n", path);
    ck_assert(ml_cgroup_find(root, line, &group));
    for (unsigned i = 0; i < DEEP; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s", group.name);
        ck_assert(ml_cgroup_up(&group) == (i + 1 < DEEP));
    }
    ck_assert_int_eq(strncmp(names[0], "cgroup ...\xc3\xa4", 12), 0);
    ck_assert_uint_gt(strlen(names[0]), ML_MEMORY_NAME_BYTES - 4);
    for (unsigned i = 1; i < DEEP; i++) {
        ck_assert_str_ne(names[i - 1], names[i]);
    }
}
END_TEST

START_TEST(a_group_outside_of_the_namespace_that_we_see_is_none) {
    struct ml_cgroup group;
    put("memory.current", "1\n");
    put("a/memory.current", "1\n");
    ck_assert(ml_cgroup_find(root, "0::/a\n", &group));
    ck_assert(!ml_cgroup_find(root, "0::/../a\n", &group));
    ck_assert(!ml_cgroup_find(root, "0::/..\n", &group));
}
END_TEST

START_TEST(version_1_is_found_by_its_controller_and_no_limit_is_none) {
    struct ml_cgroup group;
    struct memlog_service_observed_memory info;
    static const char cgroups[] = "5:cpuset:/z\n4:memory:/x\n1:name=systemd:/\n0::/\n";
    put("memory/x/memory.usage_in_bytes", "300\n");
    put("memory/x/memory.limit_in_bytes", "1000\n");
    put("memory/x/memory.failcnt", "2\n");
    put("memory/x/memory.memsw.failcnt", "5\n");
    put("memory/x/memory.stat", "inactive_file 5\ntotal_inactive_file 100\n");
    ck_assert(ml_cgroup_find(root, cgroups, &group));
    ck_assert(!group.unified);
    ck_assert(ml_cgroup_read(&group, &info));
    ck_assert_uint_eq(info.used_bytes, 200);
    ck_assert_uint_eq(info.limit_bytes, 1000);
    ck_assert_uint_eq(info.max_events, 7);
    put("memory/x/memory.limit_in_bytes", "9223372036854771712\n");
    ck_assert(ml_cgroup_read(&group, &info));
    ck_assert_uint_eq(info.limit_bytes, 0);
}
END_TEST

START_TEST(a_group_whose_folder_is_not_seen_is_its_mounts_root) {
    struct ml_cgroup group;
    put("memory/memory.usage_in_bytes", "300\n");
    put("memory/memory.limit_in_bytes", "1000\n");
    ck_assert(ml_cgroup_find(root, "4:memory:/docker/abc\n", &group));
    ck_assert_str_eq(group.name, "cgroup /");
    ck_assert(!ml_cgroup_find(root, "4:cpu:/docker/abc\n", &group));
    ck_assert(!ml_cgroup_find(root, "nonsense", &group));
    ck_assert(!ml_cgroup_find(root, "", &group));
}
END_TEST

/* Who is in a group that lies in one with a limit counts into that; a brother of alike name does
 * not. */
static void check_members(const char *cgroups, const char *brothers, const char *name) {
    struct ml_cgroup own;
    struct ml_cgroup brother;
    ck_assert(ml_cgroup_find(root, cgroups, &own));
    struct ml_cgroup group = own;
    ck_assert(ml_cgroup_up(&group));
    ck_assert_str_eq(group.name, name);
    ck_assert(ml_cgroup_holds(&own, own.folder));
    ck_assert(ml_cgroup_holds(&group, own.folder));
    ck_assert(!ml_cgroup_holds(&own, group.folder));
    ck_assert(ml_cgroup_find(root, brothers, &brother));
    ck_assert(!ml_cgroup_holds(&group, brother.folder));
    ck_assert(!ml_cgroup_holds(&brother, own.folder));
    ck_assert(ml_cgroup_holds(&brother, brother.folder));
}

START_TEST(who_is_below_a_group_is_in_it_in_version_2) {
    put("pod/memory.current", "1\n");
    put("pod/memory.max", "7777\n");
    put("pod/app/memory.current", "1\n");
    put("pod/app/memory.max", "max\n");
    put("pod2/memory.current", "1\n");
    put("pod2/memory.max", "5\n");
    check_members("0::/pod/app\n", "0::/pod2\n", "cgroup /pod");
}
END_TEST

START_TEST(who_is_below_a_group_is_in_it_in_version_1) {
    put("memory/memory.usage_in_bytes", "1\n");
    put("memory/pod/memory.usage_in_bytes", "1\n");
    put("memory/pod/memory.limit_in_bytes", "7777\n");
    put("memory/pod/app/memory.usage_in_bytes", "1\n");
    put("memory/pod/app/memory.limit_in_bytes", "9223372036854771712\n");
    put("memory/pod2/memory.usage_in_bytes", "1\n");
    put("memory/pod2/memory.limit_in_bytes", "5\n");
    check_members(
        "5:cpuset:/z\n4:memory:/pod/app\n", "5:cpuset:/z\n4:memory:/pod2\n", "cgroup /pod"
    );
}
END_TEST

START_TEST(this_machine_has_memory) {
    struct memlog_service_observed_memory info;
    ck_assert(ml_machine_read(&info));
    ck_assert_uint_gt(info.limit_bytes, info.used_bytes);
    ck_assert_uint_gt(info.used_bytes, 1 << 20);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("cgroup_info");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, version_2_is_read_without_what_the_cache_gives_back);
    tcase_add_test(cases, each_group_around_a_process_is_met_on_the_way_up_in_version_2);
    tcase_add_test(cases, each_group_around_a_process_is_met_on_the_way_up_in_version_1);
    tcase_add_test(cases, groups_whose_long_paths_begin_alike_have_names_of_their_own);
    tcase_add_test(cases, a_group_outside_of_the_namespace_that_we_see_is_none);
    tcase_add_test(cases, version_1_is_found_by_its_controller_and_no_limit_is_none);
    tcase_add_test(cases, a_group_whose_folder_is_not_seen_is_its_mounts_root);
    tcase_add_test(cases, who_is_below_a_group_is_in_it_in_version_2);
    tcase_add_test(cases, who_is_below_a_group_is_in_it_in_version_1);
    tcase_add_test(cases, this_machine_has_memory);
    return run_suite("host/cgroup_info", cases);
}

#include "host/engine/list/identity.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/host/engine/list/listing.h"
#include "tests/suite.h"

static struct listing listing;
static int told[2];

static void set_up(void) {
    listing_init(&listing);
    ck_assert_int_eq(pipe(told), 0);
}

static void tear_down(void) {
    listing_fini(&listing);
    (void)close(told[0]);
    (void)close(told[1]);
}

/* A shell that does `then` once it is told to. */
static pid_t start_shell(const char *then) {
    char script[128];
    (void)snprintf(script, sizeof(script), "exec <&%d; read word; %s", told[0], then);
    return listing_start((char *[]){"/bin/sh", "-c", script, NULL});
}

static struct ml_process_facts facts_of_zombie(pid_t pid) {
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    const struct ml_process_facts facts = ml_process_facts(pid);
    ck_assert(facts.has_ended && facts.state == 'Z');
    return facts;
}

START_TEST(the_name_of_a_zombie_is_not_put_beside_another_programs_line) {
    const pid_t pid = start_shell("exec /bin/true");
    struct ml_unrecorded *one = listing_add(&listing, pid);
    ck_assert_str_eq(one->name, "sh");
    ck_assert_int_eq(write(told[1], "go\n", 3), 3);
    const struct ml_process_facts facts = facts_of_zombie(pid);
    char name[ML_PROCESS_NAME_BYTES];
    ml_process_name(pid, name);
    ck_assert_str_eq(name, "true"); /* it would have been read */
    ck_assert(ml_list_identify(&listing.engine, one, &facts));
    ck_assert_str_eq(one->name, "sh");
    ck_assert_uint_eq(one->line.count, 3);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(the_name_of_a_zombie_is_noted_where_none_is_known) {
    const pid_t pid = start_shell("exec /bin/true");
    struct ml_unrecorded *one = listing_add(&listing, pid);
    ml_list_forget_identity(one);
    ck_assert(!ml_list_has_name(one));
    ck_assert_int_eq(write(told[1], "go\n", 3), 3);
    const struct ml_process_facts facts = facts_of_zombie(pid);
    ck_assert(ml_list_identify(&listing.engine, one, &facts));
    ck_assert_str_eq(one->name, "true");
    ck_assert_uint_eq(one->line.count, 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

START_TEST(a_title_that_a_running_program_gives_itself_is_noted) {
    const pid_t pid = start_shell("printf title > /proc/$$/comm; read other");
    struct ml_unrecorded *one = listing_add(&listing, pid);
    ck_assert_str_eq(one->name, "sh");
    char name[ML_PROCESS_NAME_BYTES] = "";
    ck_assert_int_eq(write(told[1], "go\n", 3), 3);
    while (strcmp(name, "title") != 0) {
        ml_process_name(pid, name);
    }
    const struct ml_process_facts facts = ml_process_facts(pid);
    ck_assert(ml_list_identify(&listing.engine, one, &facts));
    ck_assert_str_eq(one->name, "title");
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("identity");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, the_name_of_a_zombie_is_not_put_beside_another_programs_line);
    tcase_add_test(tcase, the_name_of_a_zombie_is_noted_where_none_is_known);
    tcase_add_test(tcase, a_title_that_a_running_program_gives_itself_is_noted);
    return run_suite("host/engine/list/identity", tcase);
}

/* The sandbox, attacked from inside: tests/service/sandbox/compromised.c is the attacker. */
#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/sandbox/sandbox.h"
#include "tests/service/sandbox/attacks.h"

enum { REFUSED = 1, NOT_ENTERED = 3 };

static char missing[ML_SANDBOX_MISSING_BYTES + 1];

static void find_attacker(char *out_path, size_t size_bytes) {
    const ssize_t count = readlink("/proc/self/exe", out_path, size_bytes - 1);
    ck_assert_int_gt(count, 0);
    out_path[count] = '\0';
    char *slash = strrchr(out_path, '/');
    ck_assert_ptr_nonnull(slash);
    (void)snprintf(slash, size_bytes - (size_t)(slash - out_path), "/compromised");
}

/* Run the attacker with these words; answers its wait status, and what it missed in `missing`. */
static int run(const char *const *words) {
    char path[4096];
    find_attacker(path, sizeof(path));
    const char *all[8] = {"compromised"};
    for (size_t i = 0; words[i] != NULL; i++) {
        ck_assert_uint_lt(i, 6);
        all[i + 1] = words[i];
    }
    int output[2];
    ck_assert_int_eq(pipe(output), 0);
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)dup2(output[1], STDOUT_FILENO);
        (void)close(output[0]);
        (void)execv(path, (char *const *)(const void *)all);
        _exit(99);
    }
    (void)close(output[1]);
    size_t used = 0;
    for (;;) {
        const ssize_t count = read(output[0], missing + used, sizeof(missing) - 1 - used);
        if (count <= 0) {
            break;
        }
        used += (size_t)count;
    }
    missing[used] = '\0';
    (void)close(output[0]);
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* All of the table but the last one, which is none. */
static const char *forbidden(int number) {
    return attacks[number].name;
}

/* A kernel without calls of 32-bit programs answers their instruction with SIGSEGV, filter or not.
 */
static bool is_answer_of_kernel(int signal, const char *attack) {
    return signal == SIGSEGV && strcmp(attack, "other_architecture") == 0;
}

static void assert_killed(int status, const char *attack) {
    ck_assert_msg(
        WIFSIGNALED(status) &&
            (WTERMSIG(status) == SIGSYS || is_answer_of_kernel(WTERMSIG(status), attack)),
        "%s: wait status %x, not killed by SIGSYS",
        attack,
        (unsigned)status
    );
}

START_TEST(kills_every_attack) {
    const char *attack = forbidden(_i);
    assert_killed(run((const char *const[]){attack, NULL}), attack);
}
END_TEST

START_TEST(kills_every_attack_of_a_worker) {
    const char *attack = forbidden(_i);
    assert_killed(run((const char *const[]){"--worker", attack, NULL}), attack);
}
END_TEST

START_TEST(kills_every_attack_of_an_ordinary_user) {
    const char *attack = forbidden(_i);
    assert_killed(
        run(geteuid() == 0 ? (const char *const[]){"--user", attack, NULL}
                           : (const char *const[]){attack, NULL}),
        attack
    );
}
END_TEST

START_TEST(kills_every_attack_where_a_container_forbids_namespaces) {
    const char *attack = forbidden(_i);
    assert_killed(run((const char *const[]){"--container", attack, NULL}), attack);
}
END_TEST

/* Layers without seccomp: what holds should the filter have a hole. */
static void assert_refused(const char *user, uint32_t layers, const char *attack) {
    char layers_word[32];
    (void)snprintf(layers_word, sizeof(layers_word), "--layers=%u", layers);
    const int status = run((const char *const[]){layers_word, attack, user, NULL});
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == REFUSED,
        "%s with layers %x: wait status %x, not refused",
        attack,
        layers,
        (unsigned)status
    );
}

static const struct {
    uint32_t layers;
    const char *attack;
} alone[] = {
    {ML_SANDBOX_NAMESPACES | ML_SANDBOX_ROOT, "open_file"},
    {ML_SANDBOX_NAMESPACES | ML_SANDBOX_ROOT, "create_file"},
    {ML_SANDBOX_NAMESPACES | ML_SANDBOX_ROOT, "read_proc"},
    {ML_SANDBOX_NAMESPACES | ML_SANDBOX_ROOT, "read_host_memory_map"},
    {ML_SANDBOX_NAMESPACES | ML_SANDBOX_ROOT, "run_program"},
    {ML_SANDBOX_NAMESPACES, "connect_tcp"},
    {ML_SANDBOX_NAMESPACES, "trace_host"},
    {ML_SANDBOX_NAMESPACES, "read_host_memory"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "open_file"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "open_root"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "create_file"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "read_proc"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "run_program"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "connect_tcp"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "kill_host"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "trace_host"},
    {ML_SANDBOX_LANDLOCK | ML_SANDBOX_PRIVILEGES, "new_mount"},
    {ML_SANDBOX_PRIVILEGES, "new_mount"},
    {ML_SANDBOX_LIMITS | ML_SANDBOX_PRIVILEGES, "raise_limit"},
};
enum { ALONE_COUNT = sizeof(alone) / sizeof(alone[0]) };

START_TEST(refuses_by_each_layer_alone) {
    assert_refused(NULL, alone[_i].layers, alone[_i].attack);
}
END_TEST

START_TEST(refuses_a_worker_by_each_layer_alone) {
    assert_refused("--worker", alone[_i].layers, alone[_i].attack);
}
END_TEST

START_TEST(refuses_an_ordinary_user_by_each_layer_alone) {
    assert_refused(geteuid() == 0 ? "--user" : NULL, alone[_i].layers, alone[_i].attack);
}
END_TEST

START_TEST(refuses_new_processes_by_limit_alone) {
    /* Root of the first user namespace is exempt from this limit. */
    if (geteuid() == 0) {
        assert_refused("--user", ML_SANDBOX_LIMITS, "new_process");
    }
}
END_TEST

/* Those that root may make and others may not stand last. */
static const char *const working[] = {
    "open_file",
    "read_proc",
    "connect_tcp",
    "run_program",
    "kill_host",
    "map_code",
    "new_process",
    "new_thread_of_its_own",
    "make_memfd",
    "make_code",
    "signal_by_thread",
    "signal_queued",
    "signal_by_owner",
    "signal_by_pidfd",
    "share_memory",
    "send_to_a_queue",
    "make_socket_pair",
    "make_link",
    "be_dumped",
    "create_file",
    "slow_host_down",
    "pin_host",
    "steal_descriptor",
    "open_host_memory",
    "read_host_memory_map",
    "trace_host",
    "limit_host",
    "make_device",
    "change_mode",
    "new_namespace",
};
enum { WORKING_COUNT = sizeof(working) / sizeof(working[0]), WORKING_FOR_ALL_COUNT = 22 };

/* Without it every refusal above would prove nothing. */
START_TEST(lets_attacks_work_outside_the_sandbox) {
    if (_i >= WORKING_FOR_ALL_COUNT && geteuid() != 0) {
        return;
    }
    const int status = run((const char *const[]){"--layers=0", working[_i], NULL});
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == 0,
        "%s: wait status %x",
        working[_i],
        (unsigned)status
    );
}
END_TEST

START_TEST(enters_whole_and_names_nothing) {
    const int status = run((const char *const[]){"--level=strict", "nothing", NULL});
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
    ck_assert_str_eq(missing, "");
}
END_TEST

START_TEST(enters_whole_as_an_ordinary_user) {
    if (geteuid() == 0) {
        const int status = run((const char *const[]){"--user", "--level=strict", "nothing", NULL});
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
        ck_assert_str_eq(missing, "");
    }
}
END_TEST

START_TEST(names_what_a_container_forbids_and_goes_on) {
    const int status = run((const char *const[]){"--container", "nothing", NULL});
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
    ck_assert_ptr_nonnull(strstr(missing, "user namespace (Operation not permitted)"));
    ck_assert_ptr_nonnull(strstr(missing, "empty root"));
    ck_assert_ptr_nonnull(strstr(missing, "Landlock"));
    ck_assert_ptr_null(strstr(missing, "seccomp"));
    ck_assert_ptr_null(strstr(missing, "no_new_privs"));
}
END_TEST

/* Root may mount, but not in a namespace of its own: the root must stay, it is everybody's. */
START_TEST(leaves_mounts_alone_that_are_not_its_own) {
    if (geteuid() != 0) {
        return;
    }
    char layers[32];
    (void)snprintf(layers, sizeof(layers), "--layers=%d", ML_SANDBOX_NAMESPACES | ML_SANDBOX_ROOT);
    const int status = run((const char *const[]){"--without-unshare", layers, "open_file", NULL});
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
    ck_assert_ptr_nonnull(strstr(missing, "mount namespace"));
    ck_assert_ptr_nonnull(strstr(missing, "empty root"));
}
END_TEST

START_TEST(strict_refuses_where_a_container_forbids_namespaces) {
    const int status = run((const char *const[]){"--container", "--level=strict", "nothing", NULL});
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == NOT_ENTERED, "%x", (unsigned)status);
}
END_TEST

START_TEST(none_says_so) {
    const int status = run((const char *const[]){"--level=none", "open_file", NULL});
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
    ck_assert_ptr_nonnull(strstr(missing, "--sandbox=none"));
}
END_TEST

START_TEST(knows_its_levels_by_name) {
    enum ml_sandbox_level level = ML_SANDBOX_NONE;
    ck_assert_int_eq(ml_sandbox_level_parse("strict", &level), ML_OK);
    ck_assert_int_eq(level, ML_SANDBOX_STRICT);
    ck_assert_int_eq(ml_sandbox_level_parse("auto", &level), ML_OK);
    ck_assert_int_eq(level, ML_SANDBOX_AUTO);
    ck_assert_int_eq(ml_sandbox_level_parse("none", &level), ML_OK);
    ck_assert_int_eq(level, ML_SANDBOX_NONE);
    ck_assert_int_eq(ml_sandbox_level_parse("", &level), ML_PEER_UNKNOWN);
    ck_assert_int_eq(ml_sandbox_level_parse("Auto", &level), ML_PEER_UNKNOWN);
}
END_TEST

/* A port that answers, so that a refused connection was refused by the sandbox. */
static void listen_for_attackers(void) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size_bytes = sizeof(address);
    char port[16];
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(fd, 64) != 0 || getsockname(fd, (struct sockaddr *)&address, &size_bytes) != 0) {
        return;
    }
    (void)snprintf(port, sizeof(port), "%u", ntohs(address.sin_port));
    (void)setenv("COMPROMISED_PORT", port, 1);
}

int main(void) {
    listen_for_attackers();
    Suite *suite = suite_create("service/sandbox");
    TCase *attempts = tcase_create("attacks");
    tcase_set_timeout(attempts, 20);
    tcase_add_loop_test(attempts, kills_every_attack, 0, (int)attacks_count - 1);
    tcase_add_loop_test(attempts, kills_every_attack_of_a_worker, 0, (int)attacks_count - 1);
    tcase_add_loop_test(
        attempts, kills_every_attack_of_an_ordinary_user, 0, (int)attacks_count - 1
    );
    tcase_add_loop_test(
        attempts, kills_every_attack_where_a_container_forbids_namespaces, 0, (int)attacks_count - 1
    );
    tcase_add_loop_test(attempts, refuses_by_each_layer_alone, 0, ALONE_COUNT);
    tcase_add_loop_test(attempts, refuses_a_worker_by_each_layer_alone, 0, ALONE_COUNT);
    tcase_add_loop_test(attempts, refuses_an_ordinary_user_by_each_layer_alone, 0, ALONE_COUNT);
    tcase_add_test(attempts, refuses_new_processes_by_limit_alone);
    tcase_add_loop_test(attempts, lets_attacks_work_outside_the_sandbox, 0, WORKING_COUNT);
    suite_add_tcase(suite, attempts);
    TCase *levels = tcase_create("levels");
    tcase_add_test(levels, enters_whole_and_names_nothing);
    tcase_add_test(levels, enters_whole_as_an_ordinary_user);
    tcase_add_test(levels, names_what_a_container_forbids_and_goes_on);
    tcase_add_test(levels, leaves_mounts_alone_that_are_not_its_own);
    tcase_add_test(levels, strict_refuses_where_a_container_forbids_namespaces);
    tcase_add_test(levels, none_says_so);
    tcase_add_test(levels, knows_its_levels_by_name);
    suite_add_tcase(suite, levels);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

/* Clean profiles one after another: what belongs to which, and that each explains itself. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client/capture.h"
#include "tests/suite.h"

static struct capture capture;

static void run(const char *behaviour, uint32_t stack_mode, bool every_profile) {
    static char target[] = "./client_target";
    static char below[] = "out/client_target";
    char name[64];
    (void)strcpy(name, behaviour);
    char *const arguments[] = {access(target, X_OK) == 0 ? target : below, name, NULL};
    const struct capture_options options = {
        .signals = every_profile ? SIGNALS_READ_EACH_TIME : SIGNALS_ANSWERED,
        .stack_mode = stack_mode};
    capture_run(&capture, &options, arguments);
    ck_assert_int_eq(capture.exit_status, 0);
}

static size_t
count_of(const struct captured_process *process, enum ml_event_kind kind, uint64_t size_bytes) {
    size_t count = 0;
    for (size_t i = 0; i < process->events_count; i++) {
        const struct ml_event *event = &process->events[i].event;
        count += event->kind == kind && (size_bytes == 0 || event->block.size_bytes == size_bytes);
    }
    return count;
}

/* What a profile has defined: node id -> parent + 1, module id, string id. */
struct definitions {
    uint32_t *parents;
    bool *modules, *strings;
};

/* Every stack of the profile down to its root, by the profile's own records alone. */
static void check_explains_itself(const struct captured_process *part) {
    struct definitions known = {
        .parents = calloc(ML_NODES_MAX, sizeof(uint32_t)),
        .modules = calloc(ML_MODULES_MAX, 1),
        .strings = calloc(ML_STRINGS_MAX, 1),
    };
    for (size_t i = 0; i < part->events_count; i++) {
        const struct ml_event *event = &part->events[i].event;
        if (event->kind == ML_EVENT_NODE) {
            known.parents[event->node.id] = event->node.parent + 1;
        } else if (event->kind == ML_EVENT_MODULE) {
            known.modules[event->module.id] = true;
        } else if (event->kind == ML_EVENT_STRING) {
            known.strings[event->name.id] = true;
        }
    }
    for (size_t i = 0; i < part->events_count; i++) {
        const struct ml_event *event = &part->events[i].event;
        if (event->kind == ML_EVENT_NODE && event->node.module != 0) {
            ck_assert(known.modules[event->node.module]);
        } else if (event->kind == ML_EVENT_NODE && event->node.frame == ML_FRAME_THREAD) {
            ck_assert(known.strings[event->node.string_id]);
        } else if (event->kind == ML_EVENT_ALLOC) {
            ck_assert_uint_ne(event->block.node, 0);
            for (uint32_t id = event->block.node; id != 0; id = known.parents[id] - 1) {
                ck_assert_msg(
                    known.parents[id] != 0, "node %u of profile %u", id, part->events[i].profile
                );
            }
        }
    }
    free(known.parents);
    free(known.modules);
    free(known.strings);
}

START_TEST(a_new_profile_knows_nothing_of_the_one_before) {
    struct captured_process parts[3];
    run("profiles", _i == 0 ? ML_STACK_NATIVE : ML_STACK_NATIVE_WITH_THREAD_NAMES, true);
    for (uint32_t profile = 0; profile < 3; profile++) {
        capture_profile(&capture.processes[0], profile, &parts[profile]);
        ck_assert_uint_eq(count_of(&parts[profile], ML_EVENT_START, 0), 1);
        check_explains_itself(&parts[profile]);
    }
    ck_assert_uint_eq(capture_sums(&parts[0]).live_bytes, 71111 + 71112);
    const struct captured_sums second = capture_sums(&parts[1]);
    ck_assert_uint_eq(second.total_bytes, 72111 + 72222);
    ck_assert_uint_eq(second.unknown_frees, 2); /* the free, and the old half of the realloc */
    ck_assert_uint_eq(second.double_allocs, 0);
    ck_assert_uint_eq(capture_sums(&parts[2]).total_bytes, 75555);
    ck_assert_uint_eq(count_of(&capture.processes[0], ML_EVENT_ALLOC, 74444), 0);
    capture_free(&capture);
}
END_TEST

START_TEST(profiles_begun_under_threads_are_each_whole) {
    run("many_profiles", _i == 0 ? ML_STACK_NATIVE : ML_STACK_NATIVE_WITH_THREAD_NAMES, false);
    uint64_t blocks = 0;
    for (uint32_t profile = 1; profile < 520; profile += 2) {
        struct captured_process part;
        capture_profile(&capture.processes[0], profile, &part);
        ck_assert_uint_eq(count_of(&part, ML_EVENT_START, 0), 1);
        check_explains_itself(&part);
        const struct captured_sums sums = capture_sums(&part);
        ck_assert_msg(sums.double_allocs == 0, "profile %u", profile);
        blocks += sums.total_blocks;
    }
    ck_assert_uint_gt(blocks, 10000);
    ck_assert_uint_eq(capture.processes[0].lost_events, 0);
    capture_free(&capture);
}
END_TEST

START_TEST(a_forked_child_begins_with_its_own_first_profile) {
    struct captured_process part;
    run("profile_forks", ML_STACK_NATIVE, true);
    ck_assert_uint_eq(capture.processes_count, 2);
    ck_assert(capture.processes[1].forked);
    capture_profile(&capture.processes[1], 0, &part);
    ck_assert_uint_eq(part.events_count, capture.processes[1].events_count);
    ck_assert_uint_eq(capture_sums(&part).total_bytes, 77777);
    check_explains_itself(&part);
    capture_free(&capture);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("profile");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, a_new_profile_knows_nothing_of_the_one_before, 0, 2);
    tcase_add_loop_test(cases, profiles_begun_under_threads_are_each_whole, 0, 2);
    tcase_add_test(cases, a_forked_child_begins_with_its_own_first_profile);
    return run_suite("profile", cases);
}

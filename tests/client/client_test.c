/* The client inside real programs: what it streams, and that the program does not notice. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/client/capture.h"
#include "tests/suite.h"

static struct capture capture;

static void run(const char *behaviour, struct capture_options options) {
    static char target[] = "./client_target";
    static char below[] = "out/client_target";
    char name[64];
    (void)strcpy(name, behaviour);
    char *const arguments[] = {access(target, X_OK) == 0 ? target : below, name, NULL};
    capture_run(&capture, &options, arguments);
    ck_assert_msg(
        WIFEXITED(capture.exit_status) && WEXITSTATUS(capture.exit_status) == 0,
        "%s ended with status %x",
        behaviour,
        (unsigned)capture.exit_status
    );
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

static uint64_t events_of(const struct captured_process *process) {
    return count_of(process, ML_EVENT_ALLOC, 0) + count_of(process, ML_EVENT_FREE, 0) +
           count_of(process, ML_EVENT_RESIZE, 0) + count_of(process, ML_EVENT_CANCEL, 0);
}

START_TEST(every_way_to_allocate_is_in_the_stream) {
    run("basic", (struct capture_options){0});
    ck_assert_uint_eq(capture.processes_count, 1);
    const struct captured_process *process = &capture.processes[0];
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, 77777), 1000);
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, 88888), 1);
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, 99999), 1);
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, (size_t)3 * 31111), 1);
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, (size_t)4096 * 5), 1);
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, 11111), 1);
    ck_assert_uint_eq(count_of(process, ML_EVENT_CANCEL, 0), 1);
    ck_assert_uint_eq(count_of(process, ML_EVENT_END, 0), 1);
    ck_assert_uint_eq(process->lost_events, 0);
    ck_assert_uint_eq(process->produced, events_of(process));
    const struct captured_sums sums = capture_sums(process);
    ck_assert_uint_eq(sums.live_bytes, 99999 + 3 * 31111 + 4096 * 5 + 11111);
    ck_assert_uint_eq(sums.double_allocs, 0);
    ck_assert_uint_eq(sums.unknown_frees, 0);
    capture_free(&capture);
}
END_TEST

START_TEST(threads_that_free_each_others_blocks_leave_nothing_live) {
    run("threads", (struct capture_options){0});
    const struct captured_process *process = &capture.processes[0];
    const struct captured_sums sums = capture_sums(process);
    ck_assert_uint_eq(process->lost_events, 0);
    ck_assert_uint_eq(process->produced, events_of(process));
    ck_assert_uint_eq(sums.double_allocs, 0);
    ck_assert_uint_eq(sums.unknown_frees, 0);
    ck_assert_uint_ge(sums.total_blocks, 8 * 20000);
    ck_assert_uint_le(sums.live_blocks, 16);
    capture_free(&capture);
}
END_TEST

START_TEST(threads_that_come_and_go_give_their_lanes_back) {
    run("many_threads", (struct capture_options){0});
    const struct captured_process *process = &capture.processes[0];
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, 1234), 1000);
    ck_assert_uint_le(process->lanes_used, 4);
    const struct captured_sums sums = capture_sums(process);
    ck_assert_uint_eq(sums.double_allocs, 0);
    ck_assert_uint_eq(sums.unknown_frees, 0);
    capture_free(&capture);
}
END_TEST

START_TEST(a_forked_child_starts_empty_and_names_its_parents_fork) {
    run("forks", (struct capture_options){0});
    ck_assert_uint_eq(capture.processes_count, 2);
    const struct captured_process *parent = &capture.processes[0];
    const struct captured_process *child = &capture.processes[1];
    ck_assert(child->forked);
    ck_assert_uint_eq(child->fork_serial, 1);
    ck_assert_uint_eq(count_of(parent, ML_EVENT_FORK, 0), 1);
    ck_assert_uint_eq(count_of(parent, ML_EVENT_REAPED, 0), 1);
    ck_assert_uint_eq(count_of(parent, ML_EVENT_ALLOC, 55555), 1);
    ck_assert_uint_eq(count_of(parent, ML_EVENT_ALLOC, 44444), 0);
    ck_assert_uint_eq(count_of(parent, ML_EVENT_ALLOC, 33333), 1);
    ck_assert_uint_eq(count_of(child, ML_EVENT_ALLOC, 44444), 1);
    ck_assert_uint_eq(capture_sums(child).total_bytes, 44444);
    ck_assert_uint_eq(count_of(child, ML_EVENT_END, 0), 1);
    capture_free(&capture);
}
END_TEST

START_TEST(a_vfork_child_writes_into_its_parents_heap_and_its_exec_is_profiled) {
    run("vforks", (struct capture_options){0});
    ck_assert_uint_eq(capture.processes_count, 2);
    ck_assert(!capture.processes[1].forked);
    ck_assert_uint_eq(count_of(&capture.processes[0], ML_EVENT_ALLOC, 22222), 1);
    /* Its end is its own: the child's exec and _exit are not. */
    ck_assert_uint_eq(count_of(&capture.processes[0], ML_EVENT_END, 0), 1);
    capture_free(&capture);
}
END_TEST

START_TEST(an_exec_with_an_empty_environment_is_followed) {
    run("raw_exec", (struct capture_options){0});
    ck_assert_uint_eq(capture.processes_count, 2);
    ck_assert_int_eq(capture.processes[0].pid, capture.processes[1].pid);
    ck_assert_uint_eq(capture_sums(&capture.processes[0]).live_bytes, 66666);
    capture_free(&capture);
}
END_TEST

START_TEST(the_program_sees_neither_our_environment_nor_a_descriptor) {
    run("environment", (struct capture_options){0});
    capture_free(&capture);
}
END_TEST

START_TEST(closing_and_reusing_every_descriptor_harms_nobody) {
    run("descriptors", (struct capture_options){0});
    capture_free(&capture);
}
END_TEST

START_TEST(handlers_that_allocate_and_jump_away_are_recorded) {
    run("signals", (struct capture_options){0});
    const struct captured_process *process = &capture.processes[0];
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, 555), 1000);
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, 444), 1000);
    ck_assert_uint_eq(process->produced, events_of(process));
    capture_free(&capture);
}
END_TEST

START_TEST(a_child_that_stops_or_goes_on_has_not_ended) {
    run("stops", (struct capture_options){0});
    const struct captured_process *parent = &capture.processes[0];
    ck_assert_uint_eq(count_of(parent, ML_EVENT_ALLOC, 321), 5);
    ck_assert_uint_eq(count_of(parent, ML_EVENT_REAPED, 0), 1);
    size_t before = 0; /* of the five news, those in front of the end */
    for (size_t i = 0; parent->events[i].event.kind != ML_EVENT_REAPED; i++) {
        const struct ml_event *event = &parent->events[i].event;
        before += event->kind == ML_EVENT_ALLOC && event->block.size_bytes == 321;
    }
    ck_assert_uint_eq(before, 5);
    capture_free(&capture);
}
END_TEST

START_TEST(errno_is_the_programs_own) {
    run("errno", (struct capture_options){0});
    capture_free(&capture);
}
END_TEST

START_TEST(a_dormant_process_streams_no_event) {
    run("flood", (struct capture_options){.dormant = true});
    ck_assert_uint_eq(capture_sums(&capture.processes[0]).total_blocks, 0);
    capture_free(&capture);
}
END_TEST

START_TEST(a_pipe_that_stays_full_costs_counted_events_and_about_a_second) {
    run("flood", (struct capture_options){.read_nothing = true});
    const struct captured_process *process = &capture.processes[0];
    ck_assert_uint_eq(process->waits, 1);
    ck_assert_uint_ge(process->longest_wait_ns, 1000000000);
    const struct captured_sums sums = capture_sums(process);
    ck_assert_uint_gt(process->lost_events, 0);
    ck_assert_uint_ge(sums.total_blocks + sums.unknown_frees + process->lost_events + 4, 200000);
    ck_assert_uint_eq(process->produced, events_of(process) + process->lost_events);
    capture_free(&capture);
}
END_TEST

START_TEST(a_full_pipe_costs_a_process_one_second_however_many_threads_it_has) {
    run("flood_threads", (struct capture_options){.read_nothing = true});
    const struct captured_process *process = &capture.processes[0];
    ck_assert_uint_gt(process->lost_events, 0);
    ck_assert_uint_eq(process->produced, events_of(process) + process->lost_events);
    ck_assert_uint_ge(process->waits, 1);
    ck_assert_uint_le(process->waits, 32);
    ck_assert_uint_ge(process->longest_wait_ns, 900000000);
    /* The second of all threads is the same one; the rest is for a loaded machine. */
    ck_assert_uint_lt(process->longest_wait_ns, 10 * UINT64_C(1000000000));
    ck_assert_uint_le(process->waited_ns, process->waits * process->longest_wait_ns);
    capture_free(&capture);
}
END_TEST

START_TEST(wide_staging_takes_what_the_pipe_cannot) {
    run("flood", (struct capture_options){.read_nothing = true, .slots = 256});
    const struct captured_process *process = &capture.processes[0];
    const uint64_t lost_events = process->lost_events;
    ck_assert_uint_eq(process->produced, events_of(process) + lost_events);
    capture_free(&capture);
    run("flood", (struct capture_options){.read_nothing = true, .slots = 1});
    /* 255 chunks, of which none holds fewer events than this. */
    ck_assert_uint_ge(process->lost_events, lost_events + (uint64_t)255 * 500);
    capture_free(&capture);
}
END_TEST

static const struct ml_event *node_of(const struct captured_process *process, uint32_t id) {
    for (size_t i = 0; i < process->events_count; i++) {
        const struct ml_event *event = &process->events[i].event;
        if (event->kind == ML_EVENT_NODE && event->node.id == id) {
            return event;
        }
    }
    return NULL;
}

START_TEST(dropped_chunks_leave_what_they_define) {
    run("flood_paths", (struct capture_options){.read_nothing = true});
    const struct captured_process *process = &capture.processes[0];
    ck_assert_uint_gt(process->lost_events, 100000);
    ck_assert_uint_eq(process->produced, events_of(process) + process->lost_events);
    ck_assert_uint_eq(count_of(process, ML_EVENT_ALLOC, 7777), 1);
    uint32_t frames = 0;
    for (size_t i = 0; i < process->events_count; i++) {
        const struct ml_event *event = &process->events[i].event;
        if (event->kind == ML_EVENT_ALLOC && event->block.size_bytes == 7777) {
            const struct ml_event *node = node_of(process, event->block.node);
            ck_assert_ptr_nonnull(node);
            for (frames = 1; node->node.parent != 0; frames++) {
                node = node_of(process, node->node.parent);
                ck_assert_ptr_nonnull(node);
            }
        }
    }
    ck_assert_uint_ge(frames, 41);
    capture_free(&capture);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("client");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, every_way_to_allocate_is_in_the_stream);
    tcase_add_test(cases, threads_that_free_each_others_blocks_leave_nothing_live);
    tcase_add_test(cases, threads_that_come_and_go_give_their_lanes_back);
    tcase_add_test(cases, a_forked_child_starts_empty_and_names_its_parents_fork);
    tcase_add_test(cases, a_vfork_child_writes_into_its_parents_heap_and_its_exec_is_profiled);
    tcase_add_test(cases, an_exec_with_an_empty_environment_is_followed);
    tcase_add_test(cases, the_program_sees_neither_our_environment_nor_a_descriptor);
    tcase_add_test(cases, closing_and_reusing_every_descriptor_harms_nobody);
    tcase_add_test(cases, handlers_that_allocate_and_jump_away_are_recorded);
    tcase_add_test(cases, a_child_that_stops_or_goes_on_has_not_ended);
    tcase_add_test(cases, errno_is_the_programs_own);
    tcase_add_test(cases, a_dormant_process_streams_no_event);
    tcase_add_test(cases, a_pipe_that_stays_full_costs_counted_events_and_about_a_second);
    tcase_add_test(cases, a_full_pipe_costs_a_process_one_second_however_many_threads_it_has);
    tcase_add_test(cases, wide_staging_takes_what_the_pipe_cannot);
    tcase_add_test(cases, dropped_chunks_leave_what_they_define);
    return run_suite("client", cases);
}

/* Who may stamp an event with the stamp of the one before (ipc/wire/lease.h): that the order of
 * events is what it was, whoever takes turns with whom, and that it is done at all. Each with every
 * clock.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ipc/wire/lease.h"
#include "tests/client/capture.h"
#include "tests/client/stream/lease_target.h"
#include "tests/suite.h"

static struct capture capture;

static void run(int clock, const char *a, const char *b, const char *c) {
    static char target[] = "./lease_target";
    static char below[] = "out/lease_target";
    char texts[3][16] = {""};
    const char *const given[] = {a, b, c};
    char *arguments[] = {access(target, X_OK) == 0 ? target : below, NULL, NULL, NULL, NULL};
    for (int i = 0; i < 3 && given[i] != NULL; i++) {
        (void)snprintf(texts[i], sizeof(texts[i]), "%s", given[i]);
        arguments[i + 1] = texts[i];
    }
    const struct capture_options options = {.slots = 1, .clock = (uint32_t)clock};
    capture_run(&capture, &options, arguments);
    ck_assert_int_eq(capture.exit_status, 0);
}

/* How often an event of that size has the stamp of the event before it in its lane, and how many
 * have one stamp at most. */
struct repeats {
    uint64_t events, again, longest;
};

static struct repeats repeats_of(const struct captured_process *process, uint64_t size_bytes) {
    struct repeats found = {0};
    uint64_t last = 0;
    uint64_t run_events = 0;
    uint64_t block = 0;
    for (size_t i = 0; i < process->events_count; i++) {
        const struct ml_event *event = &process->events[i].event;
        const bool alloc = event->kind == ML_EVENT_ALLOC;
        if (!alloc && event->kind != ML_EVENT_FREE) {
            continue;
        }
        run_events = event->time == last ? run_events + 1 : 1;
        last = event->time;
        if (alloc) {
            block = event->block.size_bytes;
        }
        if (block == size_bytes) {
            found.events++;
            found.again += run_events > 1;
            found.longest = run_events > found.longest ? run_events : found.longest;
        }
    }
    return found;
}

static void check_repeats(const struct captured_process *process, uint64_t size_bytes) {
    const struct repeats found = repeats_of(process, size_bytes);
    ck_assert_uint_eq(found.events, 2 * LEASE_PAIRS);
    ck_assert_msg(
        found.again >= found.events * 9 / 10,
        "%lu of %lu events have the stamp of the one before",
        (unsigned long)found.again,
        (unsigned long)found.events
    );
    ck_assert_uint_le(found.longest, ML_LEASE_EVENTS);
}

START_TEST(one_thread_alone_reads_the_clock_rarely) {
    run(_i, "alone", NULL, NULL);
    ck_assert_uint_eq(capture.processes_count, 1);
    check_repeats(&capture.processes[0], LEASE_FIRST_BYTES);
    capture_free(&capture);
}
END_TEST

START_TEST(who_died_with_the_lease_does_not_keep_it) {
    run(_i, "orphaned", NULL, NULL);
    ck_assert_uint_eq(capture.processes_count, 2);
    const struct captured_process *child = &capture.processes[capture.processes[0].forked ? 0 : 1];
    check_repeats(child, LEASE_FIRST_BYTES);
    check_repeats(
        &capture.processes[child == &capture.processes[0] ? 1 : 0], LEASE_FIRST_BYTES + 1
    );
    capture_free(&capture);
}
END_TEST

/* Only the order among lanes may suffer: nothing is lost, nothing counts twice. */
START_TEST(who_lies_about_it_takes_nothing_from_others) {
    run(_i, "lied_to", NULL, NULL);
    ck_assert_uint_eq(capture.processes_count, 2);
    for (size_t i = 0; i < capture.processes_count; i++) {
        const struct captured_process *process = &capture.processes[i];
        const struct captured_sums sums = capture_sums(process);
        const uint64_t pairs = process->forked ? LEASE_PAIRS : 2 * LEASE_PAIRS;
        ck_assert_uint_eq(repeats_of(process, LEASE_FIRST_BYTES).events, 2 * pairs);
        ck_assert_uint_eq(sums.double_allocs, 0);
        ck_assert_uint_le(sums.unknown_frees, process->forked ? 16 : 0);
        ck_assert_uint_eq(process->lost_events, 0);
    }
    capture_free(&capture);
}
END_TEST

/* The least and the greatest stamp of a turn's blocks. */
struct turn {
    uint64_t first, last;
    uint32_t process, lane;
    bool taken;
};

static uint64_t
note_turns(const struct captured_process *process, uint32_t index, struct turn *turns) {
    uint64_t again = 0;
    uint64_t last = 0;
    for (size_t i = 0; i < process->events_count; i++) {
        const struct ml_event *event = &process->events[i].event;
        const uint64_t number = event->block.size_bytes - LEASE_FIRST_BYTES;
        if (event->kind != ML_EVENT_ALLOC || event->block.size_bytes < LEASE_FIRST_BYTES ||
            number >= LEASE_TURNS) {
            continue;
        }
        struct turn *turn = &turns[number];
        ck_assert(!turn->taken || turn->process == index);
        if (!turn->taken) {
            *turn = (struct turn){event->time, event->time, index, process->events[i].lane, true};
        }
        ck_assert_uint_eq(turn->lane, process->events[i].lane);
        turn->last = event->time;
        again += event->time == last;
        last = event->time;
    }
    return again;
}

static uint64_t lost_events(void) {
    uint64_t lost = 0;
    for (uint32_t i = 0; i < capture.processes_count; i++) {
        lost += capture.processes[i].lost_events;
    }
    return lost;
}

static void
check_turns(int clock, const char *processes, const char *threads, bool in_one_process) {
    static struct turn turns[LEASE_TURNS];
    memset(turns, 0, sizeof(turns));
    char count[16];
    (void)snprintf(count, sizeof(count), "%d", LEASE_TURNS);
    /* A stream with a hole says nothing of order. On a busy machine the reader may sleep for longer
     * than a client waits for it (ML_PIPE_WAIT_MAX_NS). */
    for (int tries = 1; run(clock, processes, threads, count), lost_events() != 0; tries++) {
        ck_assert_msg(tries < 4, "events were lost in each of %d runs", tries);
        capture_free(&capture);
    }
    ck_assert_uint_eq(capture.processes_count, (size_t)atoi(processes));
    uint64_t again = 0;
    for (uint32_t i = 0; i < capture.processes_count; i++) {
        again += note_turns(&capture.processes[i], i, turns);
        const struct captured_sums sums = capture_sums(&capture.processes[i]);
        ck_assert_uint_eq(sums.double_allocs, 0);
        /* A forked child may free what it inherited. */
        ck_assert_uint_le(sums.unknown_frees, in_one_process ? 0 : 16);
    }
    uint64_t changes = 0;
    for (uint32_t i = 0; i < LEASE_TURNS; i++) {
        ck_assert_msg(turns[i].taken, "turn %u has left no trace", i);
        if (i == 0) {
            continue;
        }
        const struct turn *now = &turns[i];
        const struct turn *before = &turns[i - 1];
        const bool same = now->process == before->process && now->lane == before->lane;
        changes += !same;
        ck_assert_msg(
            same ? now->first >= before->last : now->first > before->last,
            "turn %u begins %lu ticks before the end of the one before it",
            i,
            (unsigned long)(before->last - now->first)
        );
    }
    ck_assert_uint_ge(changes, LEASE_TURNS / 3);
    /* Else there was nothing to be put into order. */
    ck_assert_uint_ge(again, 50000);
    capture_free(&capture);
}

START_TEST(threads_that_take_turns_are_in_order) {
    check_turns(_i, "1", "4", true);
}
END_TEST

START_TEST(processes_that_take_turns_are_in_order) {
    check_turns(_i, "4", "1", false);
}
END_TEST

START_TEST(threads_of_several_processes_that_take_turns_are_in_order) {
    check_turns(_i, "3", "3", false);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("lease");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(
        cases, one_thread_alone_reads_the_clock_rarely, ML_CLOCK_TSC, ML_CLOCK_COUNT
    );
    tcase_add_loop_test(
        cases, who_died_with_the_lease_does_not_keep_it, ML_CLOCK_TSC, ML_CLOCK_COUNT
    );
    tcase_add_loop_test(
        cases, who_lies_about_it_takes_nothing_from_others, ML_CLOCK_TSC, ML_CLOCK_COUNT
    );
    tcase_add_loop_test(cases, threads_that_take_turns_are_in_order, ML_CLOCK_TSC, ML_CLOCK_COUNT);
    tcase_add_loop_test(
        cases, processes_that_take_turns_are_in_order, ML_CLOCK_TSC, ML_CLOCK_COUNT
    );
    tcase_add_loop_test(
        cases,
        threads_of_several_processes_that_take_turns_are_in_order,
        ML_CLOCK_TSC,
        ML_CLOCK_COUNT
    );
    return run_suite("lease", cases);
}

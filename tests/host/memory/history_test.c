#include <stdbool.h>
#include <stdint.h>

#include <check.h>

#include "tests/suite.h"

#include "host/memory/history.h"

enum {
    EVERY_MS = 5000,
    MANY = 20000,
    POINTS_MAX = ML_MEMORY_HISTORY_LEVELS * ML_MEMORY_HISTORY_POINTS,
    ROOM_BYTES = 1 << 20
};

static bool
note(struct ml_memory_history *history, struct ml_memory_room *room, uint64_t ms, uint64_t bytes) {
    const struct ml_memory_figures figures = {.resident_bytes = bytes * 2, .private_bytes = bytes};
    return ml_memory_history_note(history, room, ms, &figures);
}

/* Differs from reading to reading, and is largest where the test wants it. */
static uint64_t figure_of(uint32_t reading, uint32_t largest) {
    return reading == largest ? 1000000 : 1000 + reading % 7;
}

static void check_order(const struct ml_memory_history *history) {
    uint32_t sum = 0;
    bool is_fine = true;
    for (unsigned i = 0; i < ML_MEMORY_HISTORY_LEVELS; i++) {
        is_fine = is_fine && history->counts[i] <= ML_MEMORY_HISTORY_POINTS;
        sum += history->counts[i];
    }
    for (uint32_t i = 1; i < history->count; i++) {
        is_fine = is_fine && history->points[i].end_ms > history->points[i - 1].end_ms;
    }
    ck_assert(is_fine);
    ck_assert_uint_eq(sum, history->count);
}

START_TEST(recent_readings_stay_and_old_ones_are_joined_by_four) {
    struct ml_memory_room room = {.most_bytes = ROOM_BYTES};
    struct ml_memory_history history = {.points = NULL};
    for (uint32_t i = 1; i <= MANY; i++) {
        ck_assert(note(&history, &room, (uint64_t)i * EVERY_MS, figure_of(i, 77)));
        check_order(&history);
    }
    ck_assert_uint_le(history.count, POINTS_MAX);
    for (uint32_t back = 0; back < ML_MEMORY_HISTORY_POINTS - ML_MEMORY_HISTORY_FACTOR; back++) {
        const struct ml_memory_point *point = &history.points[history.count - 1 - back];
        ck_assert_uint_eq(point->end_ms, (uint64_t)(MANY - back) * EVERY_MS);
        ck_assert_uint_eq(point->last.private_bytes, figure_of(MANY - back, 0));
        ck_assert_uint_eq(point->most.private_bytes, point->last.private_bytes);
    }
    ml_memory_history_fini(&history);
    ck_assert_uint_eq(room.used_bytes, 0);
}
END_TEST

START_TEST(the_most_of_all_time_is_never_lost_and_each_point_has_a_reading_of_its_time) {
    static const uint32_t largest[] = {1, 77, 1000, MANY};
    for (size_t which = 0; which < sizeof(largest) / sizeof(largest[0]); which++) {
        struct ml_memory_room room = {.most_bytes = ROOM_BYTES};
        struct ml_memory_history history = {.points = NULL};
        uint64_t most = 0;
        for (uint32_t i = 1; i <= MANY; i++) {
            ck_assert(note(&history, &room, (uint64_t)i * EVERY_MS, figure_of(i, largest[which])));
        }
        for (uint32_t i = 0; i < history.count; i++) {
            const struct ml_memory_point *point = &history.points[i];
            const uint64_t at = figure_of((uint32_t)(point->end_ms / EVERY_MS), largest[which]);
            ck_assert_uint_eq(point->last.private_bytes, at);
            ck_assert_uint_eq(point->last.resident_bytes, at * 2);
            ck_assert_uint_ge(point->most.private_bytes, at);
            most = point->most.private_bytes > most ? point->most.private_bytes : most;
        }
        ck_assert_uint_eq(most, 1000000);
        ml_memory_history_fini(&history);
    }
}
END_TEST

START_TEST(readings_of_one_second_are_one_point_with_their_most) {
    struct ml_memory_room room = {.most_bytes = ROOM_BYTES};
    struct ml_memory_history history = {.points = NULL};
    ck_assert(note(&history, &room, 5025, 10));
    ck_assert(note(&history, &room, 5125, 30));
    ck_assert(note(&history, &room, 5999, 20));
    ck_assert_uint_eq(history.count, 1);
    ck_assert_uint_eq(history.points[0].end_ms, 5999);
    ck_assert_uint_eq(history.points[0].most.resident_bytes, 60);
    ck_assert_uint_eq(history.points[0].last.private_bytes, 20);
    ck_assert(note(&history, &room, 6000, 20));
    ck_assert_uint_eq(history.count, 2);
    ml_memory_history_fini(&history);
}
END_TEST

START_TEST(what_stays_the_same_is_a_line_between_two_points) {
    struct ml_memory_room room = {.most_bytes = ROOM_BYTES};
    struct ml_memory_history history = {.points = NULL};
    for (uint32_t i = 1; i <= MANY; i++) {
        ck_assert(note(&history, &room, (uint64_t)i * EVERY_MS, 5));
    }
    ck_assert_uint_eq(history.count, 2);
    ck_assert_uint_eq(history.points[0].end_ms, EVERY_MS);
    ck_assert_uint_eq(history.points[1].end_ms, (uint64_t)MANY * EVERY_MS);
    ml_memory_history_fini(&history);
}
END_TEST

START_TEST(without_room_old_points_become_coarser_and_nothing_is_taken_beyond) {
    struct ml_memory_room room = {.most_bytes = 64 * sizeof(struct ml_memory_point)};
    struct ml_memory_history history = {.points = NULL};
    struct ml_memory_history other = {.points = NULL};
    for (uint32_t i = 1; i <= MANY; i++) {
        ck_assert(note(&history, &room, (uint64_t)i * EVERY_MS, figure_of(i, 77)));
        check_order(&history);
        ck_assert_uint_le(room.used_bytes, room.most_bytes);
    }
    ck_assert_uint_le(history.count, 64);
    ck_assert(!note(&other, &room, EVERY_MS, 1));
    ml_memory_history_fini(&history);
    ck_assert(note(&other, &room, EVERY_MS, 1));
    ml_memory_history_fini(&other);
    ck_assert_uint_eq(room.used_bytes, 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");
    tcase_add_test(tests, recent_readings_stay_and_old_ones_are_joined_by_four);
    tcase_add_test(
        tests, the_most_of_all_time_is_never_lost_and_each_point_has_a_reading_of_its_time
    );
    tcase_add_test(tests, readings_of_one_second_are_one_point_with_their_most);
    tcase_add_test(tests, what_stays_the_same_is_a_line_between_two_points);
    tcase_add_test(tests, without_room_old_points_become_coarser_and_nothing_is_taken_beyond);
    return run_suite("host/memory_history", tests);
}

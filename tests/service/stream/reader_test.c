#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/stream/staging_reader.h"
#include "tests/suite.h"
#include "service/stream/reader.h"

/* CANCELs, told apart by their times: what the reader gives out is a list of times. */

static struct ml_budget budget;
static struct ml_stream_reader reader;
static struct ml_staging_reader staging;
static uint64_t times[64];
static size_t times_count;
static uint64_t holes;

static enum ml_status on_event(void *context, uint32_t lane, const struct ml_event *event) {
    (void)context;
    (void)lane;
    ck_assert_int_eq(event->kind, ML_EVENT_CANCEL);
    times[times_count++] = event->time;
    return ML_OK;
}

/* A CANCEL is no plain record. */
static enum ml_status
on_room(void *context, uint32_t lane, uint32_t count, struct ml_event_plain **out_events) {
    static struct ml_event_plain events[ML_STREAM_RUN_EVENTS];
    (void)context;
    (void)lane;
    ck_assert_uint_le(count, ML_STREAM_RUN_EVENTS);
    *out_events = events;
    return ML_OK;
}

static enum ml_status on_run(void *context, uint32_t lane, uint32_t count, uint64_t size_bytes) {
    (void)context;
    (void)lane;
    (void)size_bytes;
    ck_assert_uint_eq(count, 0);
    return ML_OK;
}

static enum ml_status on_hole(void *context, uint32_t lane, uint64_t chunks) {
    (void)context;
    (void)lane;
    holes += chunks;
    return ML_OK;
}

static void set_up(void) {
    const struct ml_stream_sink sink = {
        .on_room = on_room, .on_run = on_run, .on_event = on_event, .on_hole = on_hole};
    budget = (struct ml_budget){.max_bytes = UINT64_MAX};
    times_count = 0;
    holes = 0;
    ml_stream_reader_init(&reader, &budget, &sink, 0);
    ml_staging_reader_init(&staging, &budget, &reader);
}

static void tear_down(void) {
    ml_staging_reader_fini(&staging);
    ml_stream_reader_fini(&reader);
    ck_assert_uint_eq(budget.used_bytes, 0);
}

enum { RECORD_BYTES = 2 };

/* A chunk of three records, at the times number * 10, + 1, + 2. */
static void chunk_bytes(uint64_t number, uint8_t *bytes) {
    const uint8_t first = (uint8_t)(number * 10);
    const uint8_t records[] = {ML_OP_CANCEL, first, ML_OP_CANCEL, 1, ML_OP_CANCEL, 1};
    memcpy(bytes, records, sizeof(records));
}

static enum ml_status pipe_frame(uint64_t number, uint16_t start, uint16_t end) {
    uint8_t frame[ML_FRAME_HEADER_BYTES + 6];
    uint8_t chunk[6];
    const struct ml_frame_header header = {
        .chunk_number = number, .start_bytes = start, .end_bytes = end};
    chunk_bytes(number, chunk);
    ml_frame_header_write(frame, &header);
    memcpy(frame + ML_FRAME_HEADER_BYTES, chunk + start, (size_t)(end - start));
    return ml_stream_reader_feed(&reader, frame, (size_t)(ML_FRAME_HEADER_BYTES + end - start));
}

static enum ml_status staged(uint64_t number, uint32_t start, uint32_t end) {
    uint8_t chunk[6];
    chunk_bytes(number, chunk);
    return ml_stream_reader_staged(&reader, 0, number, start, end, chunk + start, false);
}

static void expect_times(const char *expected) {
    char is[512] = "";
    for (size_t i = 0; i < times_count; i++) {
        snprintf(is + strlen(is), sizeof(is) - strlen(is), " %llu", (unsigned long long)times[i]);
    }
    ck_assert_str_eq(is, expected);
}

START_TEST(what_staging_gave_is_skipped_in_the_pipe) {
    ck_assert_int_eq(staged(1, 0, 2), ML_OK);
    ck_assert_int_eq(staged(1, 2, 4), ML_OK);
    ck_assert_int_eq(pipe_frame(1, 0, 6), ML_OK);
    expect_times(" 10 11 12");
    ck_assert_uint_eq(reader.decoded_bytes, times_count * RECORD_BYTES);
}
END_TEST

START_TEST(what_the_pipe_gave_is_skipped_in_staging) {
    ck_assert_int_eq(pipe_frame(0, 0, 4), ML_OK);
    ck_assert_int_eq(staged(0, 0, 6), ML_OK);
    ck_assert_int_eq(pipe_frame(0, 4, 6), ML_OK);
    expect_times(" 0 1 2");
    ck_assert_uint_eq(reader.decoded_bytes, times_count * RECORD_BYTES);
}
END_TEST

START_TEST(numbers_that_the_pipe_jumps_over_are_lost) {
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_OK);
    ck_assert_int_eq(pipe_frame(3, 0, 6), ML_OK);
    expect_times(" 0 1 2 30 31 32");
    ck_assert_uint_eq(reader.lost_chunks, 2);
    ck_assert_uint_eq(holes, 2);
}
END_TEST

START_TEST(a_frame_that_comes_twice_counts_once) {
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_OK);
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_OK);
    ck_assert_int_eq(pipe_frame(1, 0, 6), ML_OK);
    expect_times(" 0 1 2 10 11 12");
    ck_assert_uint_eq(reader.lost_chunks, 0);
    /* Only the last one, and only word for word. */
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_PEER_STATE);
}
END_TEST

START_TEST(a_chunk_that_staging_ran_ahead_of_is_still_taken_from_the_pipe) {
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_OK);
    ck_assert_int_eq(staged(2, 0, 2), ML_OK);
    ck_assert_uint_eq(reader.lost_chunks, 1);
    ck_assert_int_eq(pipe_frame(1, 0, 2), ML_OK);
    ck_assert_int_eq(pipe_frame(1, 2, 6), ML_OK);
    ck_assert_int_eq(pipe_frame(2, 0, 6), ML_OK);
    ck_assert_uint_eq(reader.lost_chunks, 0);
    expect_times(" 0 1 2 20 10 11 12 21 22");
    ck_assert_uint_eq(reader.decoded_bytes, times_count * RECORD_BYTES);
}
END_TEST

START_TEST(the_rest_of_a_chunk_is_taken_after_its_successor_was_staged) {
    ck_assert_int_eq(staged(0, 0, 2), ML_OK);
    ck_assert_int_eq(staged(1, 0, 2), ML_OK);
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_OK);
    ck_assert_int_eq(pipe_frame(1, 0, 6), ML_OK);
    expect_times(" 0 10 1 2 11 12");
}
END_TEST

START_TEST(a_missing_middle_costs_the_rest_of_its_chunk) {
    ck_assert_int_eq(pipe_frame(0, 0, 2), ML_OK);
    ck_assert_int_eq(pipe_frame(0, 4, 6), ML_OK);
    ck_assert_int_eq(pipe_frame(1, 0, 6), ML_OK);
    expect_times(" 0 10 11 12");
    ck_assert_uint_eq(reader.lost_chunks, 1);
}
END_TEST

START_TEST(the_pipe_never_goes_back) {
    ck_assert_int_eq(pipe_frame(1, 0, 4), ML_OK);
    ck_assert_int_eq(pipe_frame(1, 2, 6), ML_PEER_STATE);
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_PEER_STATE);
    expect_times(" 10 11");
}
END_TEST

START_TEST(what_was_sent_is_missing_until_the_pipe_brings_it_or_goes_past) {
    ck_assert_uint_eq(ml_stream_reader_missing(&reader, 0, 0), 0);
    ck_assert_uint_eq(ml_stream_reader_missing(&reader, 0, 1), 1);
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_OK);
    ck_assert_uint_eq(ml_stream_reader_missing(&reader, 0, 3), 2);
    ck_assert_int_eq(pipe_frame(2, 0, 6), ML_OK);
    ck_assert_uint_eq(ml_stream_reader_missing(&reader, 0, 3), 0);
    ck_assert_uint_eq(ml_stream_reader_missing(&reader, 0, 4), 2);
}
END_TEST

/* Two slots: chunk 0 is whole and not sent yet, chunk 1 has begun. */
START_TEST(with_several_slots_whole_chunks_are_read_by_their_frame_headers) {
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 2, .lanes_used = 1};
    struct ml_staging_lane lane = {.published = 1 << ML_PUBLISHED_SHIFT | 2};
    struct ml_client_want wants[4];
    size_t count = 0;
    ck_assert_int_eq(ml_staging_reader_look(&staging, &header, &lane, 1, wants, 4, &count), ML_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert(!ml_staging_reader_settled(&staging));
    ck_assert_uint_eq(wants[0].offset, ml_staging_slot_offset(0, 0, 2));
    ck_assert_uint_eq(wants[1].offset, ml_staging_slot_offset(0, 1, 2) + ML_FRAME_HEADER_BYTES);
    uint8_t slot[ML_FRAME_MAX_BYTES] = {0};
    const struct ml_frame_header frame = {.chunk_number = 0, .end_bytes = 6};
    ml_frame_header_write(slot, &frame);
    chunk_bytes(0, slot + ML_FRAME_HEADER_BYTES);
    ck_assert_int_eq(ml_staging_reader_take(&staging, &wants[0], slot, &lane), ML_OK);
    chunk_bytes(1, slot);
    ck_assert_int_eq(ml_staging_reader_take(&staging, &wants[1], slot, &lane), ML_OK);
    ck_assert(ml_staging_reader_settled(&staging));
    expect_times(" 0 1 2 10");
    /* Then all of it comes down the pipe. */
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_OK);
    ck_assert_int_eq(pipe_frame(1, 0, 6), ML_OK);
    expect_times(" 0 1 2 10 11 12");
}
END_TEST

START_TEST(a_piece_that_was_overwritten_meanwhile_is_dropped) {
    const struct ml_staging_header header = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 1, .lanes_used = 1};
    struct ml_staging_lane lane = {.published = 4};
    struct ml_client_want want;
    size_t count = 0;
    uint8_t bytes[6];
    ck_assert_int_eq(ml_staging_reader_look(&staging, &header, &lane, 1, &want, 1, &count), ML_OK);
    ck_assert_uint_eq(count, 1);
    lane.published = 1 << ML_PUBLISHED_SHIFT;
    chunk_bytes(7, bytes);
    ck_assert_int_eq(ml_staging_reader_take(&staging, &want, bytes, &lane), ML_OK);
    expect_times("");
    ck_assert(!ml_staging_reader_settled(&staging));
    ck_assert_int_eq(pipe_frame(0, 0, 6), ML_OK);
    ck_assert(ml_staging_reader_settled(&staging));
}
END_TEST

START_TEST(staging_that_is_none_is_refused) {
    const struct ml_staging_header good = {
        .magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = 1};
    struct ml_staging_header bad[] = {good, good, good, good};
    const enum ml_status expected[] = {ML_PEER_FORM, ML_PEER_VERSION, ML_PEER_RANGE, ML_PEER_RANGE};
    bad[0].magic = 0;
    bad[1].version = ML_STAGING_VERSION + 1;
    bad[2].slots = 0;
    bad[3].slots = ML_STAGING_SLOTS_MAX + 1;
    size_t count = 0;
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(
            ml_staging_reader_look(&staging, &bad[i], NULL, 0, NULL, 0, &count), expected[i]
        );
    }
    const struct ml_staging_lane lane = {.published = ML_CHUNK_MAX_BYTES + 1};
    ck_assert_int_eq(
        ml_staging_reader_look(&staging, &good, &lane, 1, NULL, 0, &count), ML_PEER_RANGE
    );
    ck_assert_int_eq(
        ml_staging_reader_look(&staging, &good, NULL, ML_LANES_MAX + 1, NULL, 0, &count),
        ML_PEER_LIMIT
    );
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("stream_reader");
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    tcase_add_test(tcase, what_staging_gave_is_skipped_in_the_pipe);
    tcase_add_test(tcase, what_the_pipe_gave_is_skipped_in_staging);
    tcase_add_test(tcase, numbers_that_the_pipe_jumps_over_are_lost);
    tcase_add_test(tcase, a_frame_that_comes_twice_counts_once);
    tcase_add_test(tcase, a_chunk_that_staging_ran_ahead_of_is_still_taken_from_the_pipe);
    tcase_add_test(tcase, the_rest_of_a_chunk_is_taken_after_its_successor_was_staged);
    tcase_add_test(tcase, a_missing_middle_costs_the_rest_of_its_chunk);
    tcase_add_test(tcase, the_pipe_never_goes_back);
    tcase_add_test(tcase, what_was_sent_is_missing_until_the_pipe_brings_it_or_goes_past);
    tcase_add_test(tcase, with_several_slots_whole_chunks_are_read_by_their_frame_headers);
    tcase_add_test(tcase, a_piece_that_was_overwritten_meanwhile_is_dropped);
    tcase_add_test(tcase, staging_that_is_none_is_refused);
    return run_suite("service/stream_reader", tcase);
}

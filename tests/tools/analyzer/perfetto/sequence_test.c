#include "tools/analyzer/perfetto/sequence.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "ipc/trace/trace.pb.h"
#include "tests/suite.h"

static struct ml_sequence sequence;
static struct ml_pb_buffer packets[2]; /* of the dump that is made: interned data, profile */
static char *written;
static size_t written_count;

static void begin(void) {
    sequence = (struct ml_sequence){.id = 3, .pid = 77};
}

static void end(void) {
    ml_sequence_fini(&sequence);
    ml_pb_buffer_fini(&packets[0]);
    ml_pb_buffer_fini(&packets[1]);
    free(written);
    written = NULL;
}

/* A frame with that name, and a stack of it alone; both have the same number. */
static void intern(struct ml_pb_buffer *interned, uint64_t number, const char *name) {
    const struct ml_pb_span text = {.bytes = (const uint8_t *)name, .count = strlen(name)};
    struct ml_pb_buffer one = {0};

    ml_pb_put_number(&one, ml_trace_InternedString_iid_tag, number);
    ml_pb_put_bytes(&one, ml_trace_InternedString_str_tag, text);
    ml_pb_put_bytes(interned, ml_trace_InternedData_function_names_tag, ml_pb_span_of(&one));
    one.count = 0;
    ml_pb_put_number(&one, ml_trace_Frame_iid_tag, number);
    ml_pb_put_number(&one, ml_trace_Frame_function_name_id_tag, number);
    ml_pb_put_bytes(interned, ml_trace_InternedData_frames_tag, ml_pb_span_of(&one));
    one.count = 0;
    ml_pb_put_number(&one, ml_trace_Callstack_iid_tag, number);
    ml_pb_put_number(&one, ml_trace_Callstack_frame_ids_tag, number);
    ml_pb_put_bytes(interned, ml_trace_InternedData_callstacks_tag, ml_pb_span_of(&one));
    ml_pb_buffer_fini(&one);
}

struct told {
    uint64_t number, allocated, freed; /* a block is a byte */
};

static struct ml_pb_buffer interned;

static void name_stack(uint64_t number, const char *name) {
    intern(&interned, number, name);
}

/* Put a dump of what was named and of these samples, add it, and keep what it writes. */
static void add(uint64_t at_ns, const struct told *samples, size_t count) {
    struct ml_pb_buffer dump = {0};
    struct ml_pb_buffer profile = {0};
    FILE *out = NULL;

    ml_pb_put_number(&dump, ml_trace_ProfilePacket_ProcessHeapSamples_pid_tag, 5);
    ml_pb_put_number(&dump, ml_trace_ProfilePacket_ProcessHeapSamples_timestamp_tag, at_ns);
    for (size_t i = 0; i < count; i++) {
        struct ml_pb_buffer one = {0};
        ml_pb_put_number(&one, 1, samples[i].number);
        ml_pb_put_number(&one, 2, samples[i].allocated);
        ml_pb_put_number(&one, 3, samples[i].freed);
        ml_pb_put_number(&one, 5, samples[i].allocated);
        ml_pb_put_number(&one, 6, samples[i].freed);
        ml_pb_put_bytes(&dump, 2, ml_pb_span_of(&one));
        ml_pb_buffer_fini(&one);
    }
    ml_pb_put_bytes(&profile, ml_trace_ProfilePacket_process_dumps_tag, ml_pb_span_of(&dump));
    packets[0].count = packets[1].count = 0;
    ml_pb_put_bytes(&packets[0], ml_trace_TracePacket_interned_data_tag, ml_pb_span_of(&interned));
    ml_pb_put_bytes(&packets[1], ml_trace_TracePacket_profile_packet_tag, ml_pb_span_of(&profile));
    const struct ml_pb_span spans[] = {ml_pb_span_of(&packets[0]), ml_pb_span_of(&packets[1])};
    const struct ml_sequence_dump all = {.packets = spans, .packets_count = 2};
    free(written);
    written = NULL;
    out = open_memstream(&written, &written_count);
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(ml_sequence_add(&sequence, &all, out), ML_OK);
    fclose(out);
    ml_pb_buffer_fini(&dump);
    ml_pb_buffer_fini(&profile);
    ml_pb_buffer_fini(&interned);
}

/* What was written of that kind, one after another, as the fields of one message. */
static uint64_t count_of(uint32_t payload, uint32_t tag) {
    struct ml_pb_span rest = {.bytes = (const uint8_t *)written, .count = written_count};
    struct ml_pb_field packet;
    struct ml_pb_field field;
    uint64_t count = 0;

    while (ml_pb_next(&rest, &packet)) {
        struct ml_pb_span message = ml_pb_bytes(packet.inside, payload);
        while (ml_pb_next(&message, &field)) {
            count += field.tag == tag;
        }
    }
    return count;
}

static void assert_told(size_t number, uint64_t allocated, uint64_t freed) {
    ck_assert_uint_le(number, sequence.stacks_count);
    ck_assert_uint_eq(sequence.stacks[number - 1].told.allocated, allocated);
    ck_assert_uint_eq(sequence.stacks[number - 1].told.freed, freed);
}

START_TEST(a_stack_keeps_its_number_in_every_dump) {
    name_stack(1, "a");
    name_stack(2, "b");
    add(10, (struct told[]){{1, 100, 0}, {2, 20, 0}}, 2);
    ck_assert_uint_eq(count_of(ml_trace_TracePacket_interned_data_tag, 7), 2);
    name_stack(1, "b");
    name_stack(2, "c");
    name_stack(3, "a");
    add(20, (struct told[]){{1, 25, 5}, {2, 7, 0}, {3, 130, 100}}, 3);
    ck_assert_uint_eq(count_of(ml_trace_TracePacket_interned_data_tag, 7), 1); /* c */
    ck_assert_uint_eq(sequence.stacks_count, 3);
    assert_told(1, 130, 100);
    assert_told(2, 25, 5);
    assert_told(3, 7, 0);
}
END_TEST

START_TEST(equal_stacks_of_one_dump_are_one) {
    name_stack(1, "a");
    name_stack(2, "a");
    add(10, (struct told[]){{1, 100, 10}, {2, 20, 1}}, 2);
    ck_assert_uint_eq(sequence.stacks_count, 1);
    assert_told(1, 120, 11);
}
END_TEST

/* Where a dump has less than the one before: what is live is right, and nothing falls. */
START_TEST(figures_never_fall_and_live_is_the_dumps) {
    name_stack(1, "a");
    add(10, (struct told[]){{1, 100, 60}}, 1);
    name_stack(1, "a");
    add(20, (struct told[]){{1, 50, 20}}, 1);
    assert_told(1, 100, 70);
    name_stack(1, "a");
    add(30, (struct told[]){{1, 90, 0}}, 1);
    assert_told(1, 160, 70);
}
END_TEST

START_TEST(a_stack_that_is_missing_holds_nothing_any_more) {
    name_stack(1, "a");
    name_stack(2, "b");
    add(10, (struct told[]){{1, 100, 60}, {2, 5, 0}}, 2);
    name_stack(1, "a");
    add(20, (struct told[]){{1, 100, 60}}, 1);
    assert_told(1, 100, 60);
    assert_told(2, 5, 5);
}
END_TEST

START_TEST(a_process_that_has_ended_is_told_once) {
    name_stack(1, "a");
    add(10, (struct told[]){{1, 100, 60}}, 1);
    ck_assert_uint_eq(sequence.next_index, 1);
    name_stack(1, "a");
    add(10, (struct told[]){{1, 100, 60}}, 1);
    ck_assert_uint_eq(written_count, 0);
    ck_assert_uint_eq(sequence.next_index, 1);
}
END_TEST

START_TEST(a_process_that_is_listed_no_more_is_closed_once) {
    FILE *out = NULL;

    name_stack(1, "a");
    add(10, (struct told[]){{1, 100, 60}}, 1);
    free(written);
    out = open_memstream(&written, &written_count);
    ck_assert_int_eq(ml_sequence_close(&sequence, 20, 20, out), ML_OK);
    fflush(out);
    assert_told(1, 100, 100);
    ck_assert_uint_eq(sequence.last_monotonic_ns, 20);
    const size_t count = written_count;
    ck_assert_uint_gt(count, 0);
    ck_assert_int_eq(ml_sequence_close(&sequence, 30, 30, out), ML_OK);
    fclose(out);
    ck_assert_uint_eq(written_count, count);
}
END_TEST

START_TEST(what_refers_to_nothing_is_left_out) {
    struct ml_pb_buffer stack = {0};

    ml_pb_put_number(&stack, ml_trace_Callstack_iid_tag, 9);
    ml_pb_put_number(&stack, ml_trace_Callstack_frame_ids_tag, 4);
    ml_pb_put_bytes(&interned, ml_trace_InternedData_callstacks_tag, ml_pb_span_of(&stack));
    ml_pb_buffer_fini(&stack);
    add(10, (struct told[]){{9, 100, 0}, {8, 5, 0}}, 2);
    ck_assert_uint_eq(sequence.stacks_count, 0);
    ck_assert_uint_eq(count_of(ml_trace_TracePacket_interned_data_tag, 7), 0);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("all");

    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_stack_keeps_its_number_in_every_dump);
    tcase_add_test(tests, equal_stacks_of_one_dump_are_one);
    tcase_add_test(tests, figures_never_fall_and_live_is_the_dumps);
    tcase_add_test(tests, a_stack_that_is_missing_holds_nothing_any_more);
    tcase_add_test(tests, a_process_that_has_ended_is_told_once);
    tcase_add_test(tests, a_process_that_is_listed_no_more_is_closed_once);
    tcase_add_test(tests, what_refers_to_nothing_is_left_out);
    return run_suite("tools/perfetto/sequence", tests);
}

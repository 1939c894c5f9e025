#include <stdio.h>
#include <string.h>

#include <check.h>
#include <pb_encode.h>

#include "ipc/trace/crc32.h"
#include "ipc/trace/trace.pb.h"
#include "tests/suite.h"
#include "tools/analyzer/model/profile.h"
#include "tools/analyzer/model/trace_reader.h"

/* A dump written by hand: a process with one node, two strings, two regions, and what each test
 * holds of them. */
static uint8_t file_bytes[4096];
static size_t file_count;
static struct ml_profile profile;

static void setup(void) {
    file_count = 0;
    profile = (struct ml_profile){0};
}

static void teardown(void) {
    ml_profile_fini(&profile);
}

static void put_bytes(pb_ostream_t *stream, uint32_t tag, const void *bytes, size_t count) {
    ck_assert(pb_encode_tag(stream, PB_WT_STRING, tag));
    ck_assert(pb_encode_string(stream, bytes, count));
}

static void put_number(pb_ostream_t *stream, uint32_t tag, uint64_t number) {
    ck_assert(pb_encode_tag(stream, PB_WT_VARINT, tag));
    ck_assert(pb_encode_varint(stream, number));
}

/* One packet of ours around the body. */
static void put_packet(uint8_t kind, const uint8_t *body, size_t body_bytes) {
    uint8_t memlog_bytes[1024], packet_bytes[1024];
    pb_ostream_t memlog = pb_ostream_from_buffer(memlog_bytes, sizeof memlog_bytes);
    pb_ostream_t packet = pb_ostream_from_buffer(packet_bytes, sizeof packet_bytes);
    pb_ostream_t file =
        pb_ostream_from_buffer(file_bytes + file_count, sizeof file_bytes - file_count);
    const uint32_t crc32 = ml_crc32(ml_crc32(0, &kind, 1), body, body_bytes);

    ck_assert(pb_encode_tag(&memlog, PB_WT_32BIT, ml_trace_Memlog_crc32_tag));
    ck_assert(pb_encode_fixed32(&memlog, &crc32));
    put_number(&memlog, ml_trace_Memlog_kind_tag, kind);
    put_bytes(&memlog, ml_trace_Memlog_body_tag, body, body_bytes);
    put_bytes(&packet, ml_trace_TracePacket_memlog_tag, memlog_bytes, memlog.bytes_written);
    put_bytes(&file, 1, packet_bytes, packet.bytes_written);
    file_count += file.bytes_written;
}

static void put_run(void) {
    static const uint8_t version[] = {0x08, 1}; /* MemlogRun.version */
    put_packet(ml_trace_MemlogKind_MEMLOG_RUN, version, sizeof version);
}

static void put_process(uint32_t holdings) {
    uint8_t bytes[64];
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof bytes);

    put_number(&stream, ml_trace_MemlogProcess_id_tag, 1);
    put_number(&stream, ml_trace_MemlogProcess_strings_count_tag, 2);
    put_number(&stream, ml_trace_MemlogProcess_nodes_count_tag, 1);
    put_number(&stream, ml_trace_MemlogProcess_regions_count_tag, 2);
    put_number(&stream, ml_trace_MemlogProcess_holdings_count_tag, holdings);
    put_packet(ml_trace_MemlogKind_MEMLOG_PROCESS, bytes, stream.bytes_written);
}

static void put_region(pb_ostream_t *table, uint64_t start) {
    uint8_t bytes[64];
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof bytes);

    put_number(&stream, ml_trace_MemlogRegion_start_tag, start);
    put_number(&stream, ml_trace_MemlogRegion_end_tag, start + 0x10000);
    put_bytes(table, ml_trace_MemlogTable_regions_tag, bytes, stream.bytes_written);
}

static void put_table(const uint8_t *holdings, size_t holdings_bytes) {
    static const uint8_t node[] = {0x08, 1, 0x12, 1, 2 * 7}; /* count 1, id 7 */
    uint8_t bytes[512];
    pb_ostream_t stream = pb_ostream_from_buffer(bytes, sizeof bytes);

    put_number(&stream, ml_trace_MemlogTable_process_id_tag, 1);
    put_bytes(&stream, ml_trace_MemlogTable_strings_tag, "", 0);
    put_bytes(&stream, ml_trace_MemlogTable_strings_tag, "arena", 5);
    put_bytes(&stream, ml_trace_MemlogTable_nodes_tag, node, sizeof node);
    put_region(&stream, 0x10000);
    put_region(&stream, 0x20000);
    if (holdings_bytes > 0) {
        put_bytes(&stream, ml_trace_MemlogTable_holdings_tag, holdings, holdings_bytes);
    }
    put_packet(ml_trace_MemlogKind_MEMLOG_TABLE, bytes, stream.bytes_written);
}

static void put_end(uint8_t packets) {
    const uint8_t body[] = {0x08, packets};
    put_packet(ml_trace_MemlogKind_MEMLOG_END, body, sizeof body);
}

/* The process of a dump with these holdings. */
static const struct ml_profile_process *
read_holdings(const uint8_t *holdings, size_t holdings_bytes, uint32_t announced) {
    put_run();
    put_process(announced);
    put_table(holdings, holdings_bytes);
    put_end(4);
    FILE *file = fmemopen(file_bytes, file_count, "rb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(ml_trace_read(file, 0, &profile), ML_OK);
    fclose(file);
    ck_assert_uint_eq(profile.processes_count, 1);
    return &profile.processes[0];
}

/* Columns by hand: count, then tag, bytes, values; deltas as zigzag. */
START_TEST(holdings_are_read_column_by_column) {
    static const uint8_t holdings[] = {
        0x08, 2,              /* count */
        0x12, 2, 0,    2,     /* regions 0, 1 */
        0x1a, 2, 0,    2,     /* MAPPED, STACK */
        0x22, 2, 14,   13,    /* nodes 7, 0 */
        0x2a, 2, 1,    0,     /* "arena", none */
        0x32, 3, 0x80, 32, 8, /* 4096, 8 bytes of address space */
        0x3a, 2, 5,    6,     /* private */
        0x42, 2, 0,    9,     /* shared */
    };
    const struct ml_profile_process *process = read_holdings(holdings, sizeof holdings, 2);

    ck_assert(!profile.damaged);
    ck_assert(!process->partial);
    ck_assert_uint_eq(process->holdings_count, 2);
    const struct ml_profile_region_holding *first = &process->holdings[0];
    ck_assert_uint_eq(first->region, 0);
    ck_assert_uint_eq(first->kind, ML_HOLDING_MAPPED);
    ck_assert_uint_eq(first->node, 7);
    ck_assert_uint_eq(first->string, 1);
    ck_assert_uint_eq(first->mapped_bytes, 4096);
    ck_assert_uint_eq(first->private_bytes, 5);
    ck_assert_uint_eq(first->shared_bytes, 0);
    const struct ml_profile_region_holding *second = &process->holdings[1];
    ck_assert_uint_eq(second->region, 1);
    ck_assert_uint_eq(second->kind, ML_HOLDING_STACK);
    ck_assert_uint_eq(second->node, 0);
    ck_assert_uint_eq(second->string, 0);
    ck_assert_uint_eq(second->mapped_bytes, 8);
    ck_assert_uint_eq(second->private_bytes, 6);
    ck_assert_uint_eq(second->shared_bytes, 9);
}
END_TEST

START_TEST(a_dump_without_holdings_is_whole) {
    const struct ml_profile_process *process = read_holdings(NULL, 0, 0);

    ck_assert(!profile.damaged);
    ck_assert(!process->partial);
    ck_assert_uint_eq(process->holdings_count, 0);
}
END_TEST

START_TEST(announced_holdings_that_are_missing_make_a_process_partial) {
    ck_assert(read_holdings(NULL, 0, 1)->partial);
    ck_assert(!profile.damaged);
}
END_TEST

START_TEST(a_holding_of_no_region_or_of_an_unknown_kind_is_refused) {
    static const uint8_t no_region[] = {0x08, 2, 0x12, 2, 0, 4};
    static const uint8_t no_kind[] = {0x08, 1, 0x12, 1, 0, 0x1a, 1, ML_HOLDING_KINDS};
    static const uint8_t below_zero[] = {0x08, 1, 0x12, 1, 1};

    ck_assert_uint_eq(read_holdings(no_region, sizeof no_region, 2)->holdings_count, 0);
    ck_assert(profile.damaged);
    teardown();
    setup();
    ck_assert_uint_eq(read_holdings(no_kind, sizeof no_kind, 1)->holdings_count, 0);
    ck_assert(profile.damaged);
    teardown();
    setup();
    ck_assert_uint_eq(read_holdings(below_zero, sizeof below_zero, 1)->holdings_count, 0);
    ck_assert(profile.damaged);
}
END_TEST

START_TEST(a_missing_stack_or_name_of_a_holding_is_removed) {
    static const uint8_t holdings[] = {
        0x08, 1, 0x12, 1, 2, 0x22, 1, 16, 0x2a, 1, 2}; /* node 8, string 2 */
    const struct ml_profile_process *process = read_holdings(holdings, sizeof holdings, 1);

    ck_assert(profile.damaged);
    ck_assert_uint_eq(process->holdings_count, 1);
    ck_assert_uint_eq(process->holdings[0].region, 1);
    ck_assert_uint_eq(process->holdings[0].node, 0);
    ck_assert_uint_eq(process->holdings[0].string, 0);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("trace_table");
    tcase_add_checked_fixture(cases, setup, teardown);
    tcase_add_test(cases, holdings_are_read_column_by_column);
    tcase_add_test(cases, a_dump_without_holdings_is_whole);
    tcase_add_test(cases, announced_holdings_that_are_missing_make_a_process_partial);
    tcase_add_test(cases, a_holding_of_no_region_or_of_an_unknown_kind_is_refused);
    tcase_add_test(cases, a_missing_stack_or_name_of_a_holding_is_removed);
    return run_suite("trace_table", cases);
}

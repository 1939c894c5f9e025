#include "ipc/wire/message.h"

#include <string.h>

#include <check.h>

#include "tests/suite.h"

enum { SHARE_MAX_BYTES = ML_PACKET_MAX_BYTES - ML_PACKET_HEADER_BYTES };

static uint8_t packet[ML_PACKET_MAX_BYTES + 1];

static const struct ml_packet_header good = {
    .kind = ML_MESSAGE_REPLY, .method = 0x01020304, .request_id = 0x05060708, .body_bytes = 3};

START_TEST(a_header_has_sixteen_bytes_as_specified) {
    static const uint8_t expected[ML_PACKET_HEADER_BYTES] = {
        1, 2, 0, 0, 4, 3, 2, 1, 8, 7, 6, 5, 3, 0, 0, 0};
    ml_packet_header_write(&good, packet);
    ck_assert_int_eq(memcmp(packet, expected, sizeof(expected)), 0);
    struct ml_packet_header header = {0};
    ck_assert_int_eq(ml_packet_header_read(packet, ML_PACKET_HEADER_BYTES + 3, &header), ML_OK);
    ck_assert_int_eq(header.kind, good.kind);
    ck_assert_uint_eq(header.flags, 0);
    ck_assert_uint_eq(header.method, good.method);
    ck_assert_uint_eq(header.request_id, good.request_id);
    ck_assert_uint_eq(header.body_bytes, good.body_bytes);
}
END_TEST

START_TEST(each_wrong_byte_has_its_status) {
    static const struct {
        size_t at;
        uint8_t byte;
        enum ml_status status;
    } cases[] = {
        {0, 0, ML_PEER_VERSION},
        {0, 2, ML_PEER_VERSION},
        {1, 0, ML_PEER_UNKNOWN},
        {1, 3, ML_PEER_UNKNOWN},
        {2, 1, ML_PEER_FORM}, /* more to come of a message that is complete */
        {2, 2, ML_PEER_FORM},
        {2, 128, ML_PEER_FORM},
        {3, 1, ML_PEER_FORM},
        {12, 2, ML_PEER_FORM}, /* a share longer than its message */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_packet_header header = {.method = 99};
        ml_packet_header_write(&good, packet);
        packet[cases[i].at] = cases[i].byte;
        ck_assert_int_eq(
            ml_packet_header_read(packet, ML_PACKET_HEADER_BYTES + 3, &header), cases[i].status
        );
        ck_assert_uint_eq(header.method, 99);
    }
}
END_TEST

START_TEST(a_reply_answers_a_request) {
    struct ml_packet_header header = good;
    header.request_id = 0;
    ml_packet_header_write(&header, packet);
    ck_assert_int_eq(
        ml_packet_header_read(packet, ML_PACKET_HEADER_BYTES + 3, &header), ML_PEER_FORM
    );
    header.kind = ML_MESSAGE_REQUEST;
    ml_packet_header_write(&header, packet);
    ck_assert_int_eq(ml_packet_header_read(packet, ML_PACKET_HEADER_BYTES + 3, &header), ML_OK);
}
END_TEST

START_TEST(a_packet_brings_a_share) {
    struct ml_packet_header header = {0};
    ml_packet_header_write(&good, packet);
    for (size_t count = 0; count <= ML_PACKET_HEADER_BYTES; count++) {
        ck_assert_int_eq(ml_packet_header_read(packet, count, &header), ML_PEER_SHORT);
    }
}
END_TEST

/* All packets of a message but the last are full. */
START_TEST(a_share_fits_flags_and_total) {
    static const struct {
        uint32_t flags;
        uint32_t body_bytes;
        size_t share_bytes;
        enum ml_status status;
    } cases[] = {
        {ML_PACKET_MORE, SHARE_MAX_BYTES + 1, SHARE_MAX_BYTES, ML_OK},
        {ML_PACKET_MORE, SHARE_MAX_BYTES + 1, SHARE_MAX_BYTES - 1, ML_PEER_FORM},
        {ML_PACKET_MORE, SHARE_MAX_BYTES, SHARE_MAX_BYTES, ML_PEER_FORM},
        {0, SHARE_MAX_BYTES, SHARE_MAX_BYTES, ML_OK},
        {0, UINT32_MAX, 1, ML_OK}, /* the last one of many */
        {0, UINT32_MAX, SHARE_MAX_BYTES + 1, ML_PEER_FORM},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ml_packet_header header = good;
        header.flags = cases[i].flags;
        header.body_bytes = cases[i].body_bytes;
        ml_packet_header_write(&header, packet);
        ck_assert_int_eq(
            ml_packet_header_read(packet, ML_PACKET_HEADER_BYTES + cases[i].share_bytes, &header),
            cases[i].status
        );
    }
}
END_TEST

START_TEST(methods_are_found_by_number) {
    static const struct ml_message_type two = {.method = 2};
    static const struct ml_message_type nine = {.method = 9};
    static const struct ml_method methods[] = {{&two, NULL}, {&nine, NULL}};
    const struct ml_interface interface = {.methods = methods, .method_count = 2};
    ck_assert_ptr_eq(ml_interface_method(&interface, 9), &methods[1]);
    ck_assert_ptr_null(ml_interface_method(&interface, 3));
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("message");
    tcase_add_test(tcase, a_header_has_sixteen_bytes_as_specified);
    tcase_add_test(tcase, each_wrong_byte_has_its_status);
    tcase_add_test(tcase, a_reply_answers_a_request);
    tcase_add_test(tcase, a_packet_brings_a_share);
    tcase_add_test(tcase, a_share_fits_flags_and_total);
    tcase_add_test(tcase, methods_are_found_by_number);
    return run_suite("message", tcase);
}

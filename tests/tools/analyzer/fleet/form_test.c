#include "tools/analyzer/fleet/form.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <zlib.h>

#include "tests/suite.h"

#define BODY                                                                                       \
    "--b\r\nContent-Disposition: form-data; name=\"prod\"\r\n\r\nsh\r\n"                           \
    "--b\r\nContent-Disposition: form-data; name=\"trace\"; filename=\"trace.json.gz\"\r\n"        \
    "Content-Type: application/gzip\r\n\r\n\x1f\x8b\r\n-- not an end\r\n--b--\r\n"

static struct ml_fleet_piece piece_of(const char *text, size_t count) {
    return (struct ml_fleet_piece){.bytes = (const uint8_t *)text, .count_bytes = count};
}

START_TEST(finds_a_part_by_its_name) {
    struct ml_fleet_piece part;

    ck_assert(ml_fleet_is_multipart(piece_of(BODY, sizeof BODY - 1)));
    ck_assert(ml_fleet_part(piece_of(BODY, sizeof BODY - 1), "trace", &part));
    ck_assert_uint_eq(part.count_bytes, strlen("\x1f\x8b\r\n-- not an end"));
    ck_assert(!ml_fleet_is_gzip(piece_of("\x1f", 1)));
    ck_assert(ml_fleet_is_gzip(part));
    ck_assert(ml_fleet_part(piece_of(BODY, sizeof BODY - 1), "prod", &part));
    ck_assert_uint_eq(part.count_bytes, 2);
    ck_assert_mem_eq(part.bytes, "sh", 2);
    ck_assert(!ml_fleet_part(piece_of(BODY, sizeof BODY - 1), "file", &part));
}
END_TEST

/* Wherever the body ends, nothing is read behind it: the sanitizers' runs see to that. */
START_TEST(a_body_that_was_cut_has_no_part_that_was_cut) {
    for (size_t count = 0; count < sizeof BODY - 1; count++) {
        uint8_t *cut = malloc(count + 1);
        struct ml_fleet_piece part;
        ck_assert_ptr_nonnull(cut);
        memcpy(cut, BODY, count);
        const bool is_there = ml_fleet_part((struct ml_fleet_piece){cut, count}, "trace", &part);
        ck_assert(is_there == (count >= sizeof BODY - 1 - strlen("--\r\n")));
        free(cut);
    }
}
END_TEST

static struct ml_fleet_piece packed(const uint8_t *bytes, size_t count, uint8_t *out, size_t room) {
    z_stream stream = {.next_in = (uint8_t *)(uintptr_t)bytes, .avail_in = (unsigned)count};

    ck_assert_int_eq(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_out = out;
    stream.avail_out = (unsigned)room;
    ck_assert_int_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    (void)deflateEnd(&stream);
    return (struct ml_fleet_piece){out, room - stream.avail_out};
}

START_TEST(unpacks_what_was_packed) {
    enum { COUNT = 300000, ROOM = 400000 };
    static uint8_t bytes[COUNT];
    static uint8_t room[ROOM];
    uint8_t *got = NULL;
    size_t count = 0;

    for (size_t i = 0; i < COUNT; i++) {
        bytes[i] = (uint8_t)(i * i >> 3);
    }
    const struct ml_fleet_piece piece = packed(bytes, COUNT, room, ROOM);
    ck_assert_int_eq(ml_fleet_unpack(piece, &got, &count), ML_OK);
    ck_assert_uint_eq(count, COUNT);
    ck_assert_mem_eq(got, bytes, COUNT);
    free(got);
    for (size_t cut = 0; cut < piece.count_bytes; cut += 997) {
        ck_assert_int_eq(
            ml_fleet_unpack((struct ml_fleet_piece){room, cut}, &got, &count), ML_PEER_FORM
        );
        ck_assert_ptr_null(got);
    }
}
END_TEST

/* Some hundred KB that would be more than the bound. */
START_TEST(a_bomb_is_refused) {
    enum { COUNT = ML_FLEET_UNPACKED_MAX + 1, ROOM = 1 << 20 };
    uint8_t *zeros = calloc(1, COUNT);
    uint8_t *room = malloc(ROOM);
    uint8_t *got = NULL;
    size_t count = 0;

    ck_assert(zeros != NULL && room != NULL);
    const struct ml_fleet_piece bomb = packed(zeros, COUNT, room, ROOM);
    free(zeros);
    ck_assert_int_eq(ml_fleet_unpack(bomb, &got, &count), ML_PEER_LIMIT);
    ck_assert_ptr_null(got);
    free(room);
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("form");
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, finds_a_part_by_its_name);
    tcase_add_test(tests, a_body_that_was_cut_has_no_part_that_was_cut);
    tcase_add_test(tests, unpacks_what_was_packed);
    tcase_add_test(tests, a_bomb_is_refused);
    return run_suite("form", tests);
}

#include "mojom_like_idl/runtime/codec.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "ipc/wire/writer.h"
#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "mojom_like_idl/idlc/pool.h"
#include "tests/mojom_like_idl/compile.h"
#include "tests/mojom_like_idl/golden/example_mojom.h"
#include "tests/mojom_like_idl/oracle.h"
#include "tests/mojom_like_idl/samples.h"
#include "tests/mojom_like_idl/values.h"
#include "tests/suite.h"

static struct pool pool;

static void set_up(void) {
    pool = (struct pool){0};
}

static void tear_down(void) {
    pool_fini(&pool);
}

/* Memory of exactly this size, so that a sanitizer sees a step behind it. */
static void *exactly(size_t size_bytes) {
    return malloc(size_bytes == 0 ? 1 : size_bytes);
}

/* A body in memory of exactly its size. */
struct body {
    const struct ml_message_type *type;
    uint8_t *bytes;
    size_t count_bytes;
    struct ml_handles handles;
};

static struct body encode(const struct ml_message_type *type, const void *value) {
    struct body body = {.type = type};
    size_t measured = 0;
    ck_assert_int_eq(type->codec->encode(type, value, NULL, 0, &measured, &body.handles), ML_OK);
    body.bytes = exactly(measured);
    ck_assert_int_eq(
        type->codec->encode(type, value, body.bytes, measured, &body.count_bytes, &body.handles),
        ML_OK
    );
    ck_assert_uint_eq(measured, body.count_bytes);
    return body;
}

/* Decode into memory of exactly the sizes asked for; *out_value and *out_arena are the caller's. */
static enum ml_status decode(const struct body *body, void **out_value, void **out_arena) {
    size_t arena_bytes = 0;
    struct ml_handles declared = {0};
    *out_value = exactly(body->type->size_bytes);
    *out_arena = NULL;
    enum ml_status status = body->type->codec->check(
        body->type, body->bytes, body->count_bytes, &arena_bytes, &declared
    );
    if (status == ML_OK && declared.count != body->handles.count) {
        status = ML_PEER_HANDLE;
    }
    if (status == ML_OK) {
        *out_arena = exactly(arena_bytes);
        status = body->type->codec->decode(
            body->type,
            body->bytes,
            body->count_bytes,
            &body->handles,
            *out_arena,
            arena_bytes,
            *out_value
        );
        ck_assert_int_eq(status, ML_OK); /* checked is checked */
        ck_assert_int_eq(memcmp(declared.kinds, body->handles.kinds, sizeof(declared.kinds)), 0);
    }
    return status;
}

/* decode(encode(value)) is value, and msgpack-c reads the same. */
static void round_trip(const struct ml_message_type *type, const void *value) {
    struct body body = encode(type, value);
    ck_assert_msg(
        oracle_agrees(type->layout, value, body.bytes, body.count_bytes), "%s", type->name
    );
    void *back = NULL;
    void *arena = NULL;
    ck_assert_int_eq(decode(&body, &back, &arena), ML_OK);
    ck_assert_msg(values_equal(type->layout, value, back), "%s", type->name);
    free(back);
    free(arena);
    free(body.bytes);
}

static const struct ml_interface *const interfaces[] = {
    &memlog_example_keeper_interface,
    &memlog_client_host_for_client_interface,
    &memlog_host_host_interface,
    &memlog_service_service_interface,
    &memlog_service_host_for_service_interface,
};

START_TEST(any_value_of_any_message_comes_back_as_it_was) {
    struct values values = {.pool = &pool, .state = (uint64_t)_i + 1, .count_max = 5};
    for (size_t i = 0; i < sizeof(interfaces) / sizeof(interfaces[0]); i++) {
        for (uint32_t m = 0; m < interfaces[i]->method_count; m++) {
            const struct ml_method *method = &interfaces[i]->methods[m];
            const struct ml_message_type *types[] = {method->request, method->reply};
            for (int k = 0; k < 2 && types[k] != NULL; k++) {
                void *value = pool_take(&pool, types[k]->size_bytes);
                values_random(&values, types[k]->layout, value);
                round_trip(types[k], value);
            }
        }
    }
}
END_TEST

START_TEST(long_values_come_back_as_they_were) {
    struct values values = {.pool = &pool, .state = 7, .count_max = 70000};
    const struct ml_message_type *types[] = {
        &memlog_service_client_lost_request_type,
        &memlog_client_not_profiled_request_type,
        &memlog_service_configure_reply_type,
        &memlog_host_dump_request_type};
    for (size_t i = 0; i < 200; i++) {
        const struct ml_message_type *type = types[i % 4];
        void *value = pool_take(&pool, type->size_bytes);
        values_random(&values, type->layout, value);
        round_trip(type, value);
    }
}
END_TEST

START_TEST(the_golden_messages_are_as_they_were) {
    const char *golden = read_text(&pool, SAMPLES_PATH);
    ck_assert_msg(golden != NULL, "run in the root of the tree");
    /* Both are too long for a message of Check's. */
    ck_assert_msg(
        strcmp(samples_text(&pool), golden) == 0,
        "%s is not what the messages are now: ninja -C out regen_golden, and look at the "
        "difference",
        SAMPLES_PATH
    );
    round_trip(samples[_i].type, samples[_i].value);
}
END_TEST

/* Whatever is taken has one form: it encodes to the very bytes that it came from. */
static void expect_refused_or_another_value(const struct body *body) {
    void *value = NULL;
    void *arena = NULL;
    const enum ml_status status = decode(body, &value, &arena);
    if (status == ML_OK) {
        struct body again = encode(body->type, value);
        ck_assert_uint_eq(again.count_bytes, body->count_bytes);
        ck_assert_int_eq(memcmp(again.bytes, body->bytes, body->count_bytes), 0);
        free(again.bytes);
    } else {
        ck_assert_int_eq(ml_status_family(status), ML_FAMILY_PEER);
    }
    free(value);
    free(arena);
}

START_TEST(every_other_byte_is_refused_or_another_value) {
    struct body body = encode(samples[_i].type, samples[_i].value);
    for (size_t at = 0; at < body.count_bytes; at++) {
        const uint8_t right = body.bytes[at];
        for (unsigned wrong = 0; wrong < 256; wrong++) {
            body.bytes[at] = (uint8_t)wrong;
            expect_refused_or_another_value(&body);
        }
        body.bytes[at] = right;
    }
    free(body.bytes);
}
END_TEST

START_TEST(every_truncated_message_is_short_and_a_byte_more_is_trailing) {
    struct body body = encode(samples[_i].type, samples[_i].value);
    size_t arena_bytes = 0;
    struct ml_handles declared = {0};
    for (size_t count = 0; count < body.count_bytes; count++) {
        uint8_t *cut = exactly(count);
        memcpy(cut, body.bytes, count);
        ck_assert_int_eq(
            body.type->codec->check(body.type, cut, count, &arena_bytes, &declared), ML_PEER_SHORT
        );
        free(cut);
    }
    uint8_t *more = exactly(body.count_bytes + 1);
    memcpy(more, body.bytes, body.count_bytes);
    more[body.count_bytes] = 0;
    ck_assert_int_eq(
        body.type->codec->check(body.type, more, body.count_bytes + 1, &arena_bytes, &declared),
        ML_PEER_TRAILING
    );
    free(more);
    free(body.bytes);
}
END_TEST

START_TEST(a_buffer_or_arena_a_byte_too_small_is_our_bug) {
    struct body body = encode(samples[_i].type, samples[_i].value);
    const struct ml_message_type *type = body.type;
    for (size_t size = 0; size < body.count_bytes; size++) {
        uint8_t *small = exactly(size);
        size_t count_bytes = 0;
        struct ml_handles handles = {0};
        ck_assert_int_eq(
            type->codec->encode(type, samples[_i].value, small, size, &count_bytes, &handles),
            ML_BUG_SPACE
        );
        free(small);
    }
    size_t arena_bytes = 0;
    struct ml_handles declared = {0};
    ck_assert_int_eq(
        type->codec->check(type, body.bytes, body.count_bytes, &arena_bytes, &declared), ML_OK
    );
    void *value = exactly(type->size_bytes);
    for (size_t size = 0; size < arena_bytes; size++) {
        void *arena = exactly(size);
        ck_assert_int_eq(
            type->codec->decode(
                type, body.bytes, body.count_bytes, &body.handles, arena, size, value
            ),
            ML_BUG_SPACE
        );
        free(arena);
    }
    free(value);
    free(body.bytes);
}
END_TEST

/* Bytes of a Hello request or another message, and what they are. */
START_TEST(each_way_to_break_a_contract_has_its_status) {
    static const struct {
        const struct ml_message_type *type;
        const char *bytes;
        size_t count_bytes;
        enum ml_status status;
    } cases[] = {
#define CASE(message, literal, status) {&message##_type, literal, sizeof(literal) - 1, status}
        CASE(memlog_client_hello_request, "\x92\x01\x02", ML_OK),
        CASE(memlog_client_hello_request, "\x92\x01", ML_PEER_SHORT),
        CASE(memlog_client_hello_request, "\x92\x01\x02\x03", ML_PEER_TRAILING),
        CASE(memlog_client_hello_request, "\x91\x01", ML_PEER_FORM),
        CASE(memlog_client_hello_request, "\x90", ML_PEER_FORM),
        CASE(memlog_client_hello_request, "\x93\x01\x02\x03", ML_PEER_VERSION),
        CASE(memlog_client_hello_request, "\x81\x01\x02", ML_PEER_TYPE),
        CASE(memlog_client_hello_request, "\x92\x01\xc3", ML_PEER_TYPE),
        CASE(memlog_client_hello_request, "\x92\x01\xc0", ML_PEER_TYPE),
        CASE(memlog_client_hello_request, "\x92\x01\xff", ML_PEER_RANGE),
        CASE(
            memlog_client_hello_request,
            "\x92\x01\xcf\x00\x00\x00\x01\x00\x00\x00\x00",
            ML_PEER_RANGE
        ),
        CASE(memlog_client_hello_request, "\x92\x01\xcc\x02", ML_PEER_FORM),
        CASE(memlog_client_not_profiled_request, "\x92\x06\xa1x", ML_OK),
        CASE(memlog_client_not_profiled_request, "\x92\x7f\xa1x", ML_PEER_UNKNOWN),
        CASE(memlog_client_not_profiled_request, "\x92\xff\xa1x", ML_PEER_UNKNOWN),
        CASE(memlog_client_not_profiled_request, "\x92\x06\xa2x\x00", ML_PEER_FORM),
        CASE(memlog_client_not_profiled_request, "\x92\x06\xda\x10\x01", ML_PEER_LIMIT),
        CASE(memlog_client_not_profiled_request, "\x92\x06\xc4\x01x", ML_PEER_TYPE),
        CASE(memlog_example_plug_request, "\x91\x94\x00\x01\x02\x03", ML_PEER_LIMIT),
        CASE(memlog_example_plug_request, "\x91\x92\x00\x01", ML_OK),
        CASE(memlog_example_plug_request, "\x91\x92\x01\x00", ML_PEER_HANDLE),
        CASE(memlog_example_plug_request, "\x91\x92\x00\x00", ML_PEER_HANDLE),
        CASE(memlog_example_plug_request, "\x91\x91\x10", ML_PEER_HANDLE),
        CASE(memlog_example_plug_request, "\x91\x91\xff", ML_PEER_RANGE),
        CASE(memlog_example_knock_request, "\x90", ML_OK),
        CASE(memlog_example_knock_request, "", ML_PEER_SHORT),
#undef CASE
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        size_t arena_bytes = 0;
        struct ml_handles declared = {0};
        const enum ml_status status = cases[i].type->codec->check(
            cases[i].type, cases[i].bytes, cases[i].count_bytes, &arena_bytes, &declared
        );
        ck_assert_msg(status == cases[i].status, "case %zu: %s", i, ml_status_name(status));
    }
}
END_TEST

/* The box of "keep, everything absent" with another map in it. */
static size_t
put_box(uint8_t body[256], const char *prices, size_t price_bytes, const char *things) {
    static const char numbers[] = "\x9c\xc2\x00\x00\x00\x00\x00\x00\x00\x00\xca\x00\x00\x00\x00\xcb"
                                  "\x00\x00\x00\x00\x00\x00\x00\x00\x01";
    struct ml_writer w = ml_writer_into(body, 256);
    ml_writer_u8(&w, 0x94);
    ml_writer_u8(&w, 0x96);
    ml_writer_bytes(&w, numbers, sizeof(numbers) - 1);
    ml_writer_bytes(&w, things, strlen(things));
    ml_writer_u8(&w, 0x90);
    ml_writer_bytes(&w, prices, price_bytes);
    ml_writer_bytes(&w, "\x80\x80\x00\xc0\x01", 5);
    return ml_writer_count(&w);
}

static enum ml_status check_box(const char *prices, size_t price_bytes, const char *things) {
    uint8_t body[256];
    const size_t body_bytes = put_box(body, prices, price_bytes, things);
    size_t arena_bytes = 0;
    struct ml_handles declared = {0};
    const struct ml_message_type *type = &memlog_example_keep_request_type;
    return type->codec->check(type, body, body_bytes, &arena_bytes, &declared);
}

START_TEST(keys_of_a_map_ascend) {
    ck_assert_int_eq(check_box("\x80", 1, "\x90"), ML_OK);
    ck_assert_int_eq(
        check_box(
            "\x82\xa1"
            "a\x01\xa1"
            "b\x01",
            7,
            "\x90"
        ),
        ML_OK
    );
    ck_assert_int_eq(
        check_box(
            "\x82\xa1"
            "b\x01\xa1"
            "a\x01",
            7,
            "\x90"
        ),
        ML_PEER_FORM
    );
    ck_assert_int_eq(
        check_box(
            "\x82\xa1"
            "a\x01\xa1"
            "a\x01",
            7,
            "\x90"
        ),
        ML_PEER_FORM
    );
    ck_assert_int_eq(
        check_box(
            "\x82\xa2"
            "aa\x01\xa1"
            "a\x01",
            8,
            "\x90"
        ),
        ML_PEER_FORM
    );
    ck_assert_int_eq(
        check_box(
            "\x85\xa1"
            "a\x01\xa1"
            "b\x01\xa1"
            "c\x01\xa1"
            "d\x01\xa1"
            "e\x01",
            16,
            "\x90"
        ),
        ML_PEER_LIMIT
    );
}
END_TEST

START_TEST(unions_hold_one_known_member) {
    ck_assert_int_eq(
        check_box("\x80", 1, "\x91\x98\xa1x\x92\x01\x05\xc0\xc0\xc0\xc0\xc0\xc0"), ML_OK
    );
    ck_assert_int_eq(
        check_box("\x80", 1, "\x91\x98\xa1x\x92\x03\x05\xc0\xc0\xc0\xc0\xc0\xc0"), ML_PEER_UNKNOWN
    );
    ck_assert_int_eq(
        check_box("\x80", 1, "\x91\x98\xa1x\x91\x01\xc0\xc0\xc0\xc0\xc0\xc0"), ML_PEER_FORM
    );
    ck_assert_int_eq(
        check_box("\x80", 1, "\x91\x98\xa1x\x92\x01\xa1y\xc0\xc0\xc0\xc0\xc0\xc0"), ML_PEER_TYPE
    );
}
END_TEST

START_TEST(an_older_message_ends_where_its_version_ends) {
    static const struct {
        const char *things;
        enum ml_status status;
    } cases[] = {
        {"\x91\x95\xa1x\x92\x01\x05\xc0\xc0\xc0", ML_OK},                /* version 0 */
        {"\x91\x96\xa1x\x92\x01\x05\xc0\xc0\xc0\xc0", ML_OK},            /* 1 and 2 */
        {"\x91\x97\xa1x\x92\x01\x05\xc0\xc0\xc0\xc0\xc0", ML_PEER_FORM}, /* within 3 */
        {"\x91\x98\xa1x\x92\x01\x05\xc0\xc0\xc0\xc0\xc0\xc0", ML_OK},    /* 3 */
        {"\x91\x94\xa1x\x92\x01\x05\xc0\xc0", ML_PEER_FORM},
        {"\x91\x99\xa1x\x92\x01\x05\xc0\xc0\xc0\xc0\xc0\xc0\xc0", ML_PEER_VERSION},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert_int_eq(check_box("\x80", 1, cases[i].things), cases[i].status);
    }
}
END_TEST

START_TEST(a_field_that_an_older_message_lacks_is_absent) {
    uint8_t bytes[256];
    struct body body = {
        .type = &memlog_example_keep_request_type,
        .bytes = bytes,
        .count_bytes = put_box(bytes, "\x80", 1, "\x91\x96\xa1x\x92\x01\x05\xc0\xc0\xc0\xa1t"),
        .handles = {.count = 2, .kinds = {ML_HANDLE_PIPE, ML_HANDLE_FILE}}};
    void *back = NULL;
    void *arena = NULL;
    ck_assert_int_eq(decode(&body, &back, &arena), ML_OK);
    const struct memlog_example_thing *thing =
        &((const struct memlog_example_keep_request *)back)->box.things.items[0];
    ck_assert(thing->has_tag);
    ck_assert(!thing->has_colour);
    ck_assert(!thing->has_plug);
    ck_assert_int_eq(thing->plug, -1);
    free(back);
    free(arena);
}
END_TEST

START_TEST(a_descriptor_that_is_not_there_is_not_number_0) {
    struct body body = encode(samples[2].type, samples[2].value);
    void *back = NULL;
    void *arena = NULL;
    ck_assert_int_eq(decode(&body, &back, &arena), ML_OK);
    ck_assert_int_eq(((const struct memlog_example_keep_reply *)back)->way_out, -1);
    free(back);
    free(arena);
    free(body.bytes);
}
END_TEST

/* Each of them would not survive the other side's check. */
START_TEST(what_the_contract_does_not_permit_is_not_encoded) {
    const struct memlog_example_keep_request good = {
        .box.numbers.colour = MEMLOG_EXAMPLE_COLOUR_RED, .way_in = 3, .list = 4};
    static const struct memlog_example_string_uint32_entry falling[] = {
        {{"b", 1}, 1}, {{"a", 1}, 1}};
    static const uint8_t many[4];
    static const struct memlog_example_uint8_array wide[] = {{many, 4}};
    static const struct memlog_example_thing things[] = {
        {.shape.tag = MEMLOG_EXAMPLE_SHAPE_TAG_RADIUS},
        {.name = {"12345678901234567", 17}, .shape.tag = MEMLOG_EXAMPLE_SHAPE_TAG_RADIUS},
        {.name = {"a\0b", 3}, .shape.tag = MEMLOG_EXAMPLE_SHAPE_TAG_RADIUS},
        {.name = {NULL, 0}},
        {.shape = {.tag = MEMLOG_EXAMPLE_SHAPE_TAG_PICTURE, .picture = -1}},
        {.shape.tag = MEMLOG_EXAMPLE_SHAPE_TAG_RADIUS, .has_blob = true, .blob = {many, 301}}};
    struct memlog_example_keep_request bad[11];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        bad[i] = good;
    }
    bad[0].box.numbers.colour = 0;
    bad[1].way_in = -1;
    bad[2].box.prices.items = falling;
    bad[2].box.prices.count = 2;
    bad[3].box.grid.items = wide;
    bad[3].box.grid.count = 1;
    for (uint32_t i = 1; i < 6; i++) {
        bad[3 + i].box.things.items = &things[i];
        bad[3 + i].box.things.count = 1;
    }
    bad[9].box.numbers.twofold = __builtin_nan("");
    bad[10].box.numbers.single = __builtin_nanf("");
    const struct ml_message_type *type = &memlog_example_keep_request_type;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        size_t count_bytes = 99;
        struct ml_handles handles = {0};
        ck_assert_msg(
            type->codec->encode(type, &bad[i], NULL, 0, &count_bytes, &handles) == ML_BUG_CONTRACT,
            "case %zu",
            i
        );
        ck_assert_uint_eq(count_bytes, 99);
    }
}
END_TEST

START_TEST(the_promised_sizes_hold_the_longest_message) {
    static char text[4096];
    memset(text, 'x', sizeof(text));
    const struct memlog_client_not_profiled_request request = {
        .reason = MEMLOG_CLIENT_NOT_PROFILED_REASON_HANDSHAKE_FAILED, .path = {text, sizeof(text)}};
    uint8_t packet[MEMLOG_CLIENT_NOT_PROFILED_REQUEST_MAX_BYTES];
    struct ml_handles handles = {0};
    size_t count_bytes = 0;
    ck_assert_int_eq(
        memlog_client_not_profiled_request_encode(
            &request, 0, packet, sizeof(packet), &count_bytes, &handles
        ),
        ML_OK
    );
    struct memlog_client_not_profiled_request back;
    ck_assert_int_eq(
        memlog_client_not_profiled_request_decode(0, packet, count_bytes, NULL, 0, NULL, 0, &back),
        ML_OK
    );
    ck_assert_uint_eq(back.path.count_bytes, sizeof(text));
    uint8_t other[MEMLOG_EXAMPLE_KEEP_REQUEST_MAX_BYTES];
    _Alignas(8) uint8_t arena[MEMLOG_EXAMPLE_KEEP_REQUEST_ARENA_BYTES];
    struct memlog_example_keep_request keep;
    ck_assert_int_eq(
        memlog_example_keep_request_encode(
            samples[0].value, 0, other, sizeof(other), &count_bytes, &handles
        ),
        ML_OK
    );
    ck_assert_int_eq(
        memlog_example_keep_request_decode(
            0, other, count_bytes, handles.fds, handles.count, arena, sizeof(arena), &keep
        ),
        ML_OK
    );
    ck_assert(values_equal(memlog_example_keep_request_type.layout, samples[0].value, &keep));
}
END_TEST

START_TEST(a_packet_is_taken_only_as_what_it_is) {
    const struct memlog_client_hello_reply reply = {.params.sampling_bytes = 1};
    uint8_t packet[MEMLOG_CLIENT_HELLO_REPLY_MAX_BYTES];
    struct ml_handles handles = {0};
    size_t count_bytes = 0;
    ck_assert_int_eq(
        memlog_client_hello_reply_encode(&reply, 5, packet, sizeof(packet), &count_bytes, &handles),
        ML_OK
    );
    struct memlog_client_hello_reply back;
    struct memlog_client_hello_request request;
    const int fds[ML_HANDLES_MAX + 1] = {0};
#define DECODE(id, bytes, fd_count)                                                                \
    memlog_client_hello_reply_decode(id, packet, bytes, fds, fd_count, NULL, 0, &back)
    ck_assert_int_eq(DECODE(5, count_bytes, 0), ML_OK);
    ck_assert_int_eq(DECODE(6, count_bytes, 0), ML_PEER_STATE);
    ck_assert_int_eq(DECODE(5, count_bytes - 1, 0), ML_PEER_FORM);
    ck_assert_int_eq(DECODE(5, 15, 0), ML_PEER_SHORT);
    ck_assert_int_eq(DECODE(5, count_bytes, 1), ML_PEER_HANDLE);
    ck_assert_int_eq(DECODE(5, count_bytes, ML_HANDLES_MAX + 1), ML_PEER_HANDLE);
    packet[0]++;
    ck_assert_int_eq(DECODE(5, count_bytes, 0), ML_PEER_VERSION);
#undef DECODE
    packet[0]--;
    ck_assert_int_eq(
        memlog_client_hello_request_decode(5, packet, count_bytes, NULL, 0, NULL, 0, &request),
        ML_PEER_STATE
    );
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("codec");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    const int values = FEWER_IF_SANITIZED(100);
    tcase_add_loop_test(tcase, any_value_of_any_message_comes_back_as_it_was, 0, values);
    tcase_add_test(tcase, long_values_come_back_as_they_were);
    tcase_add_loop_test(tcase, the_golden_messages_are_as_they_were, 0, sample_count);
    tcase_add_loop_test(tcase, every_other_byte_is_refused_or_another_value, 0, sample_count);
    tcase_add_loop_test(
        tcase, every_truncated_message_is_short_and_a_byte_more_is_trailing, 0, sample_count
    );
    tcase_add_loop_test(tcase, a_buffer_or_arena_a_byte_too_small_is_our_bug, 0, sample_count);
    tcase_add_test(tcase, each_way_to_break_a_contract_has_its_status);
    tcase_add_test(tcase, keys_of_a_map_ascend);
    tcase_add_test(tcase, unions_hold_one_known_member);
    tcase_add_test(tcase, an_older_message_ends_where_its_version_ends);
    tcase_add_test(tcase, a_field_that_an_older_message_lacks_is_absent);
    tcase_add_test(tcase, a_descriptor_that_is_not_there_is_not_number_0);
    tcase_add_test(tcase, what_the_contract_does_not_permit_is_not_encoded);
    tcase_add_test(tcase, the_promised_sizes_hold_the_longest_message);
    tcase_add_test(tcase, a_packet_is_taken_only_as_what_it_is);
    return run_suite("codec", tcase);
}

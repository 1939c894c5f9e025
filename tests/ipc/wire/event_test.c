#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/suite.h"

#include "ipc/wire/event.h"

/* One of every kind, with values at both ends of their ranges. */
static const uint8_t some_bytes[] = {'a', 0, 0xff, 'z'};
static struct ml_event samples[64];
static size_t samples_count;

static struct ml_event *add(enum ml_event_kind kind, uint64_t time) {
    struct ml_event *event = &samples[samples_count++];
    memset(event, 0, sizeof(*event));
    event->kind = kind;
    event->time = time;
    return event;
}

static void add_alloc(uint64_t time, struct ml_event_block block) {
    if (block.weight_blocks == 0) {
        block.weight_blocks = 1;
        block.weight_bytes = block.size_bytes;
    }
    add(ML_EVENT_ALLOC, time)->block = block;
}

static void add_definitions(void) {
    add(ML_EVENT_START, 0)->start = (struct ml_event_start){
        .version = ML_STREAM_VERSION,
        .clock = ML_CLOCK_MONOTONIC,
        .pid = UINT32_MAX,
        .thread_id = 7,
        .ticks = UINT64_MAX,
        .monotonic_ns = 1,
        .sampling_bytes = ML_SIZE_MAX_BYTES,
        .stack_mode = ML_STACK_MIXED,
        .page_bytes = 4096,
        .fork_serial = UINT64_MAX,
    };
    add(ML_EVENT_THREAD, 0)->thread =
        (struct ml_event_thread){.thread_id = 9, .name = some_bytes, .name_bytes = 4};
    add(ML_EVENT_MODULE, 0)->module = (struct ml_event_module){
        .id = ML_MODULES_MAX - 1,
        .start = 0x400000,
        .end = ML_ADDRESS_MAX,
        .bias = INT64_MIN,
        .build_id = some_bytes,
        .build_id_bytes = 4,
        .path = some_bytes,
        .path_bytes = 3,
        .code_address = ML_ADDRESS_MAX,
        .code_offset = 0x1000,
    };
    add(ML_EVENT_STRING, 0)->name =
        (struct ml_event_name){.id = 1, .bytes = some_bytes, .bytes_count = 2};
    add(ML_EVENT_TYPE, 0)->name = (struct ml_event_name){.id = 65535, .string_id = 1};
    add(ML_EVENT_HEAP, 0)->name = (struct ml_event_name){.id = 255, .string_id = 1};
    add(ML_EVENT_NODE, 0)->node =
        (struct ml_event_node){.id = 1, .frame = ML_FRAME_THREAD, .string_id = 1};
    add(ML_EVENT_NODE, 0)->node =
        (struct ml_event_node){.id = 2, .parent = 1, .module = 3, .address = 0x401000};
    add(ML_EVENT_NODE, 0)->node =
        (struct ml_event_node){.id = 3, .parent = 2, .module = 3, .address = 0x400ff0};
    add(ML_EVENT_NODE, 0)->node =
        (struct ml_event_node){.id = ML_NODES_MAX - 1, .parent = 2, .address = ML_ADDRESS_MAX - 1};
    add(ML_EVENT_NODE, 0)->node = (struct ml_event_node){.id = 5, .frame = ML_FRAME_CUT};
    add(ML_EVENT_NODE, 0)->node = (struct ml_event_node){.id = 6, .frame = ML_FRAME_BROKEN};
    add(ML_EVENT_NODE, 0)->node =
        (struct ml_event_node){.id = 7, .parent = 6, .frame = ML_FRAME_SCOPE, .string_id = 65535};
    add(ML_EVENT_NODE, 0)->node =
        (struct ml_event_node){.id = 8, .parent = 7, .frame = ML_FRAME_SCRIPT, .string_id = 2};
}

static void add_blocks(void) {
    add_alloc(5, (struct ml_event_block){.address = 0x1000, .size_bytes = 24, .node = 2});
    add_alloc(6, (struct ml_event_block){.address = 0x1020, .size_bytes = 0, .node = 2});
    add_alloc(6, (struct ml_event_block){.address = 0x1028, .size_bytes = 1, .node = 0});
    add_alloc(
        7,
        (struct ml_event_block
        ){.address = ML_ADDRESS_MAX - 1,
          .size_bytes = ML_SIZE_MAX_BYTES,
          .node = ML_NODES_MAX - 1,
          .heap = 255,
          .type = 65535}
    );
    add_alloc(
        8,
        (struct ml_event_block
        ){.address = 1,
          .size_bytes = 3,
          .weight_bytes = 100,
          .weight_blocks = 33,
          .marks = ML_BLOCK_SAMPLED}
    );
    add_alloc(8, (struct ml_event_block){.address = 2, .marks = ML_BLOCK_SAMPLED});
    add(ML_EVENT_FREE, 8)->block = (struct ml_event_block){.address = 0x1020};
    add(ML_EVENT_FREE, 8)->block = (struct ml_event_block){.address = 0x1021, .heap = 9};
    add(ML_EVENT_FREE, 9)->block =
        (struct ml_event_block){.address = 0x1020, .marks = ML_BLOCK_SKIPPED};
    add(ML_EVENT_RESIZE, 9)->block = (struct ml_event_block){.address = 0x1001};
    add(ML_EVENT_RESIZE, 9)->block = (struct ml_event_block
    ){.address = 0x1001, .heap = 1, .marks = ML_BLOCK_SKIPPED | ML_BLOCK_UNSURE};
    add(ML_EVENT_CANCEL, 1000000);
}

static void add_timed(void) {
    add(ML_EVENT_SAMPLING, 1000000)->sampling_bytes = 1;
    add(ML_EVENT_FORK, 1000001)->fork_serial = UINT64_MAX;
    add(ML_EVENT_REAPED, 1000001)->reaped_pid = UINT32_MAX;
    add(ML_EVENT_MAPPING, 1000001)->mapping = (struct ml_event_mapping){
        .kind = ML_MAPPING_MAP,
        .address = 0x7000,
        .length_bytes = ML_ADDRESS_MAX - 0x7000,
        .flags = ML_MAPPING_NESTED | ML_MAPPING_EARLY,
        .node = 2,
    };
    add(ML_EVENT_MAPPING, 1000001)->mapping = (struct ml_event_mapping
    ){.kind = ML_MAPPING_NAME,
      .address = ML_ADDRESS_MAX - 4096,
      .length_bytes = 4096,
      .string_id = ML_STRINGS_MAX - 1};
    for (uint32_t kind = 0; kind < ML_MAPPING_KIND_COUNT; kind++) {
        add(ML_EVENT_MAPPING, 1000001)->mapping =
            (struct ml_event_mapping){.kind = kind, .address = 0x7000};
    }
    add(ML_EVENT_UNLOAD, 1000001)->unload_module = 1;
    struct ml_event *loss = add(ML_EVENT_LOSS, 1000002);
    loss->loss.reason = ML_LOSS_NESTED;
    loss->loss.count = ML_SIZE_MAX_BYTES;
    add(ML_EVENT_END, UINT64_MAX)->end_kind = ML_END_EXEC;
}

static void make_samples(void) {
    samples_count = 0;
    add_definitions();
    add_blocks();
    add_timed();
}

static size_t encode_all(uint8_t *bytes, size_t size_bytes) {
    struct ml_writer w = ml_writer_into(bytes, size_bytes);
    struct ml_event_state state = {0};
    for (size_t i = 0; i < samples_count; i++) {
        ck_assert_int_eq(ml_event_encode(&w, &state, &samples[i]), ML_OK);
    }
    return ml_writer_count(&w);
}

static bool same_bytes(const uint8_t *a, uint32_t a_count, const uint8_t *b, uint32_t b_count) {
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count) == 0);
}

static bool same_state(const struct ml_event_state *a, const struct ml_event_state *b) {
    return a->time == b->time && a->address == b->address && a->node == b->node &&
           a->node_id == b->node_id && a->node_address == b->node_address &&
           a->node_module == b->node_module;
}

/* Pointers differ, what they point to must not. */
static bool same_event(const struct ml_event *a, const struct ml_event *b) {
    struct ml_event x = *a;
    struct ml_event y = *b;
    if (x.kind != y.kind || x.time != y.time) {
        return false;
    }
    switch (x.kind) {
    case ML_EVENT_START:
        return memcmp(&x.start, &y.start, sizeof(x.start)) == 0;
    case ML_EVENT_THREAD:
        return x.thread.thread_id == y.thread.thread_id &&
               same_bytes(x.thread.name, x.thread.name_bytes, y.thread.name, y.thread.name_bytes);
    case ML_EVENT_MODULE:
        return x.module.id == y.module.id && x.module.start == y.module.start &&
               x.module.end == y.module.end && x.module.bias == y.module.bias &&
               x.module.code_address == y.module.code_address &&
               x.module.code_offset == y.module.code_offset &&
               same_bytes(
                   x.module.build_id,
                   x.module.build_id_bytes,
                   y.module.build_id,
                   y.module.build_id_bytes
               ) &&
               same_bytes(x.module.path, x.module.path_bytes, y.module.path, y.module.path_bytes);
    case ML_EVENT_STRING:
    case ML_EVENT_TYPE:
    case ML_EVENT_HEAP:
        return x.name.id == y.name.id && x.name.string_id == y.name.string_id &&
               same_bytes(x.name.bytes, x.name.bytes_count, y.name.bytes, y.name.bytes_count);
    case ML_EVENT_ALLOC:
    case ML_EVENT_FREE:
    case ML_EVENT_RESIZE:
    case ML_EVENT_CANCEL:
        return memcmp(&x.block, &y.block, sizeof(x.block)) == 0;
    case ML_EVENT_NODE:
        return x.node.id == y.node.id && x.node.parent == y.node.parent &&
               x.node.frame == y.node.frame && x.node.module == y.node.module &&
               x.node.address == y.node.address && x.node.string_id == y.node.string_id;
    case ML_EVENT_MAPPING:
        return x.mapping.kind == y.mapping.kind && x.mapping.address == y.mapping.address &&
               x.mapping.length_bytes == y.mapping.length_bytes &&
               x.mapping.flags == y.mapping.flags && x.mapping.node == y.mapping.node &&
               x.mapping.string_id == y.mapping.string_id;
    case ML_EVENT_SAMPLING:
        return x.sampling_bytes == y.sampling_bytes;
    case ML_EVENT_FORK:
        return x.fork_serial == y.fork_serial;
    case ML_EVENT_REAPED:
        return x.reaped_pid == y.reaped_pid;
    case ML_EVENT_END:
        return x.end_kind == y.end_kind;
    case ML_EVENT_UNLOAD:
        return x.unload_module == y.unload_module;
    case ML_EVENT_LOSS:
        return x.loss.reason == y.loss.reason && x.loss.count == y.loss.count;
    default:
        return false;
    }
}

START_TEST(every_kind_comes_back_as_it_was_written) {
    uint8_t bytes[4096];
    make_samples();
    const size_t count = encode_all(bytes, sizeof(bytes));
    struct ml_reader r = ml_reader_over(bytes, count);
    struct ml_event_state state = {0};
    for (size_t i = 0; i < samples_count; i++) {
        struct ml_event event;
        memset(&event, 0, sizeof(event));
        ck_assert_int_eq(ml_event_decode(&r, &state, &event), ML_OK);
        ck_assert_msg(same_event(&event, &samples[i]), "record %zu", i);
    }
    ck_assert_int_eq(ml_reader_finish(&r), ML_OK);
}
END_TEST

START_TEST(truncation_at_each_byte_is_short_and_moves_nothing) {
    uint8_t bytes[4096];
    make_samples();
    struct ml_event_state state = {0};
    for (size_t i = 0; i < samples_count; i++) {
        struct ml_writer w = ml_writer_into(bytes, sizeof(bytes));
        struct ml_event_state after = state;
        ck_assert_int_eq(ml_event_encode(&w, &after, &samples[i]), ML_OK);
        const size_t count = ml_writer_count(&w);
        for (size_t cut = 0; cut < count; cut++) {
            /* A heap copy of exactly that size, so that the sanitizers see a read behind it. */
            uint8_t *copy = malloc(cut > 0 ? cut : 1);
            ck_assert_ptr_nonnull(copy);
            memcpy(copy, bytes, cut);
            struct ml_reader r = ml_reader_over(copy, cut);
            struct ml_event_state before = state;
            struct ml_event event;
            ck_assert_int_eq(ml_event_decode(&r, &before, &event), ML_PEER_SHORT);
            ck_assert_ptr_eq(r.pos, copy);
            ck_assert(same_state(&before, &state));
            free(copy);
        }
        state = after;
    }
}
END_TEST

/* Far from the end of the bytes hot records are decoded by another way: to the same end. */
static void compare_in_midst(
    const uint8_t *bytes,
    size_t count,
    const struct ml_event_state *state,
    enum ml_status status,
    const struct ml_event *event
) {
    uint8_t longer[4096 + 64] = {0};
    memcpy(longer, bytes, count);
    struct ml_reader r = ml_reader_over(longer, count + 64);
    struct ml_event_state after = *state;
    struct ml_event again;
    memset(&again, 0, sizeof(again));
    const enum ml_status in_midst = ml_event_decode(&r, &after, &again);
    if (status == ML_OK) {
        ck_assert_int_eq(in_midst, ML_OK);
        ck_assert(same_event(&again, event));
    } else if (status != ML_PEER_SHORT) {
        ck_assert_int_eq(in_midst, status);
        ck_assert_ptr_eq(r.pos, longer);
        ck_assert(same_state(&after, state));
    }
}

START_TEST(a_flipped_bit_is_refused_or_reads_as_the_only_form_of_something_else) {
    uint8_t bytes[4096];
    uint8_t again[4096];
    make_samples();
    struct ml_event_state state = {0};
    for (size_t i = 0; i < samples_count; i++) {
        struct ml_writer w = ml_writer_into(bytes, sizeof(bytes));
        struct ml_event_state after = state;
        ck_assert_int_eq(ml_event_encode(&w, &after, &samples[i]), ML_OK);
        const size_t count = ml_writer_count(&w);
        for (size_t bit = 0; bit < count * 8; bit++) {
            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
            struct ml_reader r = ml_reader_over(bytes, count);
            struct ml_event_state decoded = state;
            struct ml_event event;
            memset(&event, 0, sizeof(event));
            const enum ml_status status = ml_event_decode(&r, &decoded, &event);
            if (status == ML_OK) {
                /* Canonical: what reads must be written back byte for byte. */
                struct ml_writer back = ml_writer_into(again, sizeof(again));
                struct ml_event_state encoded = state;
                ck_assert_int_eq(ml_event_encode(&back, &encoded, &event), ML_OK);
                ck_assert_uint_eq(ml_writer_count(&back), (size_t)(r.pos - bytes));
                ck_assert_mem_eq(again, bytes, ml_writer_count(&back));
                ck_assert(same_state(&encoded, &decoded));
            } else {
                ck_assert_int_eq(ml_status_family(status), ML_FAMILY_PEER);
            }
            compare_in_midst(bytes, count, &state, status, &event);
            bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        }
        state = after;
    }
}
END_TEST

struct refusal {
    const char *what;
    uint8_t bytes[32];
    size_t count;
    enum ml_status status;
};

#define BYTES(...) {__VA_ARGS__}, sizeof((uint8_t[]){__VA_ARGS__})

static const struct refusal refusals[] = {
    {"a page of zeros", BYTES(0, 0, 0), ML_PEER_UNKNOWN},
    {"kind 6", BYTES(6, 0), ML_PEER_UNKNOWN},
    {"kind 7", BYTES(7, 0), ML_PEER_UNKNOWN},
    {"sub-kind 14", BYTES(14 << 3, 0, 0), ML_PEER_UNKNOWN},
    {"a flag of ALLOC that does not exist", BYTES(1 | 0x80, 0, 2, 1, 2), ML_PEER_UNKNOWN},
    {"a flag of FREE that does not exist", BYTES(2 | 0x80, 0, 2), ML_PEER_UNKNOWN},
    {"a flag of CANCEL", BYTES(5 | 8, 0), ML_PEER_UNKNOWN},
    {"frame kind 6", BYTES(4 | 6 << 4, 2, 1), ML_PEER_UNKNOWN},
    {"same module on a cut", BYTES(4 | 8 | 3 << 4, 2, 1), ML_PEER_UNKNOWN},
    {"a block at 0", BYTES(1 | 0x10, 0, 0, 1), ML_PEER_RANGE},
    {"a block below 0", BYTES(1 | 0x10, 0, 1, 1), ML_PEER_RANGE},
    {"a long 0", BYTES(2, 0x80, 0, 2), ML_PEER_FORM},
    {"unaligned without need", BYTES(2 | 8, 0, 32), ML_PEER_FORM},
    {"the same node by difference", BYTES(1, 0, 2, 1, 0), ML_PEER_FORM},
    {"heap 0 named", BYTES(2 | 0x10, 0, 2, 0), ML_PEER_FORM},
    {"heap 256", BYTES(2 | 0x10, 0, 2, 0x80, 2), ML_PEER_RANGE},
    {"heap and type 0 named", BYTES(1 | 0x10 | 0x20, 0, 2, 1, 0, 0), ML_PEER_FORM},
    {"a weight below the size", BYTES(1 | 0x10 | 0x40, 0, 2, 9, 8, 2), ML_PEER_RANGE},
    {"no blocks", BYTES(1 | 0x10 | 0x40, 0, 2, 9, 9, 0), ML_PEER_RANGE},
    {"the same module by number", BYTES(4, 2, 1, 0, 0), ML_PEER_FORM},
    {"node 0", BYTES(4 | 3 << 4, 0, 1), ML_PEER_RANGE},
    {"a node its own parent", BYTES(4 | 3 << 4, 2, 0), ML_PEER_RANGE},
    {"a parent below 0", BYTES(4 | 3 << 4, 2, 2), ML_PEER_RANGE},
    {"a thread frame without name", BYTES(4 | 1 << 4, 2, 1, 0), ML_PEER_RANGE},
    {"stream version 2", BYTES(1 << 3, 2), ML_PEER_VERSION},
    {"clock 2", BYTES(1 << 3, 1, 2), ML_PEER_RANGE},
    {"a thread's name of 16", BYTES(2 << 3, 1, 16), ML_PEER_LIMIT},
    {"module 0", BYTES(3 << 3, 0), ML_PEER_RANGE},
    {"an empty module", BYTES(3 << 3, 1, 1, 0), ML_PEER_RANGE},
    {"a build id of 65", BYTES(3 << 3, 1, 1, 1, 0, 65), ML_PEER_LIMIT},
    {"code beyond all addresses",
     BYTES(3 << 3, 1, 1, 1, 0, 0, 0, 129, 128, 128, 128, 128, 128, 128, 128, 1),
     ML_PEER_RANGE},
    {"code beyond all files",
     BYTES(3 << 3, 1, 1, 1, 0, 0, 0, 0, 129, 128, 128, 128, 128, 128, 128, 128, 1),
     ML_PEER_RANGE},
    {"a name for heap 0", BYTES(6 << 3, 0, 1), ML_PEER_RANGE},
    {"a type named by string 0", BYTES(5 << 3, 1, 0), ML_PEER_RANGE},
    {"sampling at 0", BYTES(7 << 3, 1, 0), ML_PEER_RANGE},
    {"end kind 2", BYTES(10 << 3, 1, 2), ML_PEER_RANGE},
    {"a loss of nothing", BYTES(13 << 3, 1, 0, 0), ML_PEER_RANGE},
    {"a size over 2^48",
     BYTES(1 | 0x10, 0, 2, 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1),
     ML_PEER_RANGE},
    {"an address that wraps to a good one",
     BYTES(2, 0, 0x82, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20),
     ML_PEER_RANGE},
};

START_TEST(each_wrong_record_has_its_status) {
    const struct refusal *refusal = &refusals[_i];
    struct ml_reader r = ml_reader_over(refusal->bytes, refusal->count);
    struct ml_event_state state = {0};
    struct ml_event event;
    const enum ml_status status = ml_event_decode(&r, &state, &event);
    ck_assert_msg(status == refusal->status, "%s: %s", refusal->what, ml_status_name(status));
    ck_assert_ptr_eq(r.pos, refusal->bytes);
}
END_TEST

START_TEST(time_does_not_wrap) {
    const uint8_t bytes[] = {5, 1};
    struct ml_reader r = ml_reader_over(bytes, sizeof(bytes));
    struct ml_event_state state = {.time = UINT64_MAX};
    struct ml_event event;
    ck_assert_int_eq(ml_event_decode(&r, &state, &event), ML_PEER_RANGE);
}
END_TEST

START_TEST(the_encoder_refuses_what_could_not_be_read) {
    uint8_t bytes[64];
    struct ml_writer w = ml_writer_into(bytes, sizeof(bytes));
    struct ml_event_state state = {.time = 10};
    struct ml_event event = {.kind = ML_EVENT_CANCEL, .time = 9};
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event = (struct ml_event){.kind = ML_EVENT_NODE, .node = {.id = 4, .parent = 4}};
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event = (struct ml_event){.kind = ML_EVENT_FREE, .time = 10};
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event.block = (struct ml_event_block){.address = 16, .marks = ML_BLOCK_SAMPLED};
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event.kind = ML_EVENT_ALLOC;
    event.block.marks = ML_BLOCK_SKIPPED;
    event.block.weight_blocks = 1;
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event.block.marks = 0;
    event.block.weight_blocks = 2; /* stands for two, and was not sampled */
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event = (struct ml_event){.kind = ML_EVENT_MAPPING, .time = 10, .mapping = {.address = 1}};
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event.mapping =
        (struct ml_event_mapping){.address = ML_ADDRESS_MAX - 4096, .length_bytes = 8192};
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event.mapping = (struct ml_event_mapping){.address = 4096, .string_id = 1}; /* no NAME */
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    event = (struct ml_event){.kind = ML_EVENT_NONE};
    ck_assert_int_eq(ml_event_encode(&w, &state, &event), ML_BUG_CONTRACT);
    ck_assert_uint_eq(ml_writer_count(&w), 0);
}
END_TEST

START_TEST(a_record_that_does_not_fit_leaves_no_trace) {
    uint8_t bytes[4096];
    make_samples();
    struct ml_event_state state = {0};
    for (size_t i = 0; i < samples_count; i++) {
        struct ml_writer whole = ml_writer_into(bytes, sizeof(bytes));
        struct ml_event_state after = state;
        ck_assert_int_eq(ml_event_encode(&whole, &after, &samples[i]), ML_OK);
        for (size_t size = 0; size < ml_writer_count(&whole); size++) {
            struct ml_writer w = ml_writer_into(bytes, size);
            struct ml_event_state before = state;
            ck_assert_int_eq(ml_event_encode(&w, &before, &samples[i]), ML_BUG_SPACE);
            ck_assert_uint_eq(ml_writer_count(&w), 0);
            ck_assert(!w.overflow);
            ck_assert(same_state(&before, &state));
        }
        state = after;
    }
}
END_TEST

START_TEST(a_frame_header_comes_back_and_its_bounds_are_checked) {
    uint8_t bytes[ML_FRAME_HEADER_BYTES];
    const struct ml_frame_header good = {
        .chunk_number = ((uint64_t)1 << 48) - 1,
        .end_bytes = ML_CHUNK_MAX_BYTES,
        .start_bytes = 17,
        .lane = ML_LANES_MAX - 1,
        .thread_id = 0xdeadbeef,
    };
    ml_frame_header_write(bytes, &good);
    struct ml_reader r = ml_reader_over(bytes, sizeof(bytes));
    struct ml_frame_header header;
    memset(&header, 0, sizeof(header));
    ck_assert_int_eq(ml_frame_header_read(&r, &header), ML_OK);
    ck_assert_uint_eq(header.chunk_number, good.chunk_number);
    ck_assert_uint_eq(header.end_bytes, good.end_bytes);
    ck_assert_uint_eq(header.start_bytes, good.start_bytes);
    ck_assert_uint_eq(header.lane, good.lane);
    ck_assert_uint_eq(header.thread_id, good.thread_id);
    for (size_t cut = 0; cut < sizeof(bytes); cut++) {
        r = ml_reader_over(bytes, cut);
        ck_assert_int_eq(ml_frame_header_read(&r, &header), ML_PEER_SHORT);
    }
    struct ml_frame_header bad[] = {good, good, good};
    bad[0].lane = ML_LANES_MAX;
    bad[1].end_bytes = ML_CHUNK_MAX_BYTES + 1;
    bad[2].start_bytes = good.end_bytes;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        ml_frame_header_write(bytes, &bad[i]);
        r = ml_reader_over(bytes, sizeof(bytes));
        ck_assert_int_eq(ml_frame_header_read(&r, &header), ML_PEER_RANGE);
        ck_assert_ptr_eq(r.pos, bytes);
    }
}
END_TEST

START_TEST(each_kind_has_a_name) {
    ck_assert_str_eq(ml_event_kind_name(ML_EVENT_ALLOC), "ALLOC");
    ck_assert_str_eq(ml_event_kind_name(ML_EVENT_LOSS), "LOSS");
    ck_assert_str_eq(ml_event_kind_name(ML_EVENT_NONE), "?");
    ck_assert_str_eq(ml_event_kind_name((enum ml_event_kind)99), "?");
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("event");
    tcase_add_test(tcase, every_kind_comes_back_as_it_was_written);
    tcase_add_test(tcase, truncation_at_each_byte_is_short_and_moves_nothing);
    tcase_add_test(tcase, a_flipped_bit_is_refused_or_reads_as_the_only_form_of_something_else);
    tcase_add_loop_test(
        tcase, each_wrong_record_has_its_status, 0, (int)(sizeof(refusals) / sizeof(*refusals))
    );
    tcase_add_test(tcase, time_does_not_wrap);
    tcase_add_test(tcase, the_encoder_refuses_what_could_not_be_read);
    tcase_add_test(tcase, a_record_that_does_not_fit_leaves_no_trace);
    tcase_add_test(tcase, a_frame_header_comes_back_and_its_bounds_are_checked);
    tcase_add_test(tcase, each_kind_has_a_name);
    return run_suite("ipc/event", tcase);
}

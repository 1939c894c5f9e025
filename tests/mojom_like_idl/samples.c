#include "tests/mojom_like_idl/samples.h"

#include <stdlib.h>

#include "mojom_like_idl/contracts/heap_client_mojom.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "tests/mojom_like_idl/golden/example_mojom.h"

#define TEXT(literal)                                                                              \
    { .data = (literal), .count_bytes = sizeof(literal) - 1 }

static const int16_t corners[] = {-1, 300, -32768};

static const struct memlog_example_thing things[] = {
    {.name = TEXT("plain"), .shape = {.tag = MEMLOG_EXAMPLE_SHAPE_TAG_RADIUS, .radius = 70000}},
    {.name = TEXT(""),
     .shape = {.tag = MEMLOG_EXAMPLE_SHAPE_TAG_CORNERS, .corners = {corners, 3}},
     .has_shadow = true,
     .shadow = {.tag = MEMLOG_EXAMPLE_SHAPE_TAG_PICTURE, .picture = 100},
     .has_blob = true,
     .blob = {(const uint8_t *)"\0\xff", 2},
     .has_age = true,
     .age = 65535,
     .has_tag = true,
     .tag = TEXT("tag"),
     .has_colour = true,
     .colour = MEMLOG_EXAMPLE_COLOUR_ANTI_COLOUR,
     .has_plug = true,
     .plug = 101},
};

static const uint8_t row[] = {0, 127, 128};
static const struct memlog_example_uint8_array grid[] = {{row, 3}, {NULL, 0}};
static const struct memlog_example_string_uint32_entry prices[] = {
    {TEXT(""), 0}, {TEXT("egg"), 25}, {TEXT("eggs"), UINT32_MAX}};
static const struct ml_string german[] = {TEXT("rot"), TEXT("hell")};
static const struct memlog_example_colour_string_array_entry words[] = {
    {MEMLOG_EXAMPLE_COLOUR_DEEP_BLUE, {NULL, 0}}, {MEMLOG_EXAMPLE_COLOUR_RED, {german, 2}}};
static const struct memlog_example_int32_bool_entry answers[] = {{-33, true}, {-32, false}};

static const struct memlog_example_keep_request keep_full = {
    .box =
        {.numbers =
             {.truth = true,
              .i8 = INT8_MIN,
              .i16 = INT16_MIN,
              .i32 = INT32_MIN,
              .i64 = INT64_MIN,
              .u8 = UINT8_MAX,
              .u16 = UINT16_MAX,
              .u32 = UINT32_MAX,
              .u64 = UINT64_MAX,
              .single = 1.5F,
              .twofold = -0.1,
              .colour = MEMLOG_EXAMPLE_COLOUR_NO_COLOUR},
         .things = {things, 2},
         .grid = {grid, 2},
         .prices = {prices, 3},
         .words = {words, 2},
         .answers = {answers, 2}},
    .way_in = 102,
    .has_sealed = true,
    .sealed = 103,
    .list = 104};

static const struct memlog_example_keep_request keep_empty = {
    .box.numbers.colour = MEMLOG_EXAMPLE_COLOUR_RED, .way_in = 100, .list = 101};
static const struct memlog_example_keep_reply keep_reply = {.ticket = 127};
static const struct memlog_example_keep_reply keep_reply_full = {
    .ticket = 128, .has_way_out = true, .way_out = 100};
static const struct memlog_example_knock_request knock = {0};
static const int sockets[] = {100, 101, 102};
static const struct memlog_example_plug_request plug = {.sockets = {sockets, 3}};

static const struct memlog_client_hello_request hello = {.version = 1, .parent_pid = 4194304};
static const struct memlog_client_hello_reply hello_reply = {
    .params =
        {.verdict = MEMLOG_CLIENT_VERDICT_RECORD,
         .stack_mode = MEMLOG_CLIENT_STACK_MODE_NATIVE_WITH_THREAD_NAMES,
         .sampling_bytes = 1,
         .staging_slots = 1},
    .has_event_pipe = true,
    .event_pipe = 100,
    .has_staging = true,
    .staging = 101,
    .has_control = true,
    .control = 102,
    .has_lease = true,
    .lease = 103};
static const struct memlog_client_forked_request forked = {
    .version = 1,
    .parent_pid = 7,
    .fork_serial = 300,
    .event_pipe = 100,
    .staging = 101,
    .control = 102,
    .title = {(const uint8_t *)"x\0--type=y", 11}};
static const struct memlog_client_not_profiled_request not_profiled = {
    .reason = MEMLOG_CLIENT_NOT_PROFILED_REASON_SETUID, .path = TEXT("/usr/bin/sudo")};

static const struct memlog_client_allocators_request allocators = {
    .owner = TEXT("libjemalloc.so.2"),
    .entry_point = TEXT("mallocx"),
    .entry_point_of = TEXT("libjemalloc.so.2")};

static const struct memlog_client_connected_request connected = {.version = 4, .connection = 100};

static const struct memlog_client_dump_asked_request dump_asked = {
    .version = 2,
    .role = {(const uint8_t *)"gpu", 3},
    .reason = {(const uint8_t *)"\xff\n", 2},
    .passed_over = 7};

static const uint32_t ids[] = {1, 2, 300};
static const struct memlog_service_not_profiled unprofiled[] = {
    {.pid = 9, .parent_pid = 8, .reason = TEXT("static"), .path = TEXT("/bin/busybox")}};
static const struct memlog_service_gap gaps[] = {
    {.id = 1, .from = {1, 2, 3, 4}, .to = {5, 6, 7, 8}, .reason = TEXT("the service died")}};
static const struct memlog_service_dump_request dump = {
    .order =
        {.reason = MEMLOG_SERVICE_DUMP_REASON_EXIT,
         .now = {.ticks = UINT64_MAX, .realtime_ns = 1000000000},
         .deadline_ms = 5000,
         .ids = {ids, 3},
         .not_profiled = {unprofiled, 1},
         .lost_forks = 2,
         .gaps = {gaps, 1},
         .program = TEXT("sqlite3")},
    .file = 100};
static const struct memlog_service_client_figures figures[] = {
    {.id = 1,
     .totals = {.live_bytes = 1 << 20, .peak_bytes = 1 << 21},
     .complete = true,
     .held_at_tree_peak_bytes = 1 << 21,
     .held_at_tree_peak_blocks = 2},
    {.id = 2,
     .lost_events = 3,
     .trouble = TEXT("3 events lost"),
     .left_tree = true,
     .allocator = TEXT("glibc"),
     .coverage_heap_bytes = 1,
     .coverage_private_bytes = 300,
     .unseen = TEXT("most"),
     .coverage_was_read = true}};
static const struct memlog_service_figures_reply figures_reply = {
    .tree = {.live_bytes = 5}, .clients = {figures, 2}, .left_bytes = 7, .left_blocks = 1};
static const struct memlog_service_thread_view threads[] = {
    {.tid = 300, .name = TEXT("python3")}, {.tid = 70000, .name = TEXT("")}};
static const struct memlog_service_memory_region regions[] = {
    {.start = 0x55d0a0000000,
     .end = 0x55d0a0021000,
     .permissions = 3,
     .name = TEXT("[heap]"),
     .size_kb = 132,
     .resident_kb = 128,
     .private_dirty_kb = 128,
     .proportional_kb = 128,
     .anonymous_kb = 128,
     .has_pages = true},
    {.start = 0x7f0000000000,
     .end = 0x7f00001db000,
     .permissions = 5,
     .offset = 0x28000,
     .device = 0xfe01,
     .inode = 99,
     .name = TEXT("/usr/lib/libc.so.6"),
     .size_kb = 1900,
     .private_clean_kb = 1,
     .shared_clean_kb = 1600,
     .shared_dirty_kb = UINT64_MAX,
     .proportional_kb = 20,
     .swap_kb = 4}};
static const struct memlog_service_page_run pages[] = {
    {.address = 0x55d0a0000000, .bytes = 0x1f000},
    {.address = 0x55d0a001f000, .bytes = 0x1000, .shared = true}};
static const struct memlog_service_word first_words[] = {
    {.address = 0x55d0a0001010, .word = 0x7f0000002d10}};
static const struct memlog_service_show_process_request show_process = {
    .view = {
        .id = 2,
        .boottime_ns = UINT64_C(5000000000),
        .ticks = 11,
        .threads = {threads, 2},
        .regions = {regions, 2},
        .pages = {pages, 2},
        .status =
            {.known = true,
             .anonymous_kb = 20,
             .file_kb = 1,
             .shared_kb = 2,
             .swap_kb = 4,
             .page_tables_kb = 48,
             .kernel_stacks_kb = 32},
        .held_ns = 3000000,
        .trouble = TEXT("strace (7) traces it"),
        .tree_reading = 5,
        .words = {first_words, 1},
        .words_are_python = true,
        .words_were_read = true,
        .words_read_bytes = 126976}};
static const struct memlog_host_ps_request ps = {.version = 1};
static const struct memlog_host_dump_request host_dump = {
    .version = 2, .pids = {ids, 3}, .role = TEXT("renderer"), .reason = TEXT("before the leak")};

const struct sample samples[] = {
    {"keep, everything there", &memlog_example_keep_request_type, &keep_full},
    {"keep, everything absent", &memlog_example_keep_request_type, &keep_empty},
    {"keep reply, absent", &memlog_example_keep_reply_type, &keep_reply},
    {"keep reply, there", &memlog_example_keep_reply_type, &keep_reply_full},
    {"knock", &memlog_example_knock_request_type, &knock},
    {"plug", &memlog_example_plug_request_type, &plug},
    {"hello", &memlog_client_hello_request_type, &hello},
    {"hello reply", &memlog_client_hello_reply_type, &hello_reply},
    {"forked", &memlog_client_forked_request_type, &forked},
    {"not profiled", &memlog_client_not_profiled_request_type, &not_profiled},
    {"allocators", &memlog_client_allocators_request_type, &allocators},
    {"dump asked", &memlog_client_dump_asked_request_type, &dump_asked},
    {"connected", &memlog_client_connected_request_type, &connected},
    {"dump", &memlog_service_dump_request_type, &dump},
    {"figures reply", &memlog_service_figures_reply_type, &figures_reply},
    {"show process", &memlog_service_show_process_request_type, &show_process},
    {"ps", &memlog_host_ps_request_type, &ps},
    {"host dump", &memlog_host_dump_request_type, &host_dump},
};
const int sample_count = sizeof(samples) / sizeof(samples[0]);

char *samples_text(struct pool *pool) {
    char *text =
        pool_print(pool, "# Golden messages: the name of a sample (samples.c), then its body.\n");
    for (int i = 0; i < sample_count; i++) {
        const struct ml_message_type *type = samples[i].type;
        uint8_t body[1024];
        size_t count_bytes = 0;
        struct ml_handles handles = {0};
        if (type->codec->encode(
                type, samples[i].value, body, sizeof(body), &count_bytes, &handles
            ) != ML_OK) {
            abort();
        }
        text = pool_print(pool, "%s\n%s (%s)\n", text, samples[i].name, type->name);
        for (size_t at = 0; at < count_bytes; at++) {
            const char *blank = at % 32 == 0 ? "   " : "";
            const char *end = at % 32 == 31 || at + 1 == count_bytes ? "\n" : "";
            text = pool_print(pool, "%s%s %02x%s", text, blank, body[at], end);
        }
    }
    return text;
}

/* Pipes while a dump is taken. The readers and the answer run in this process, over real pipes. A
 * test waits for an empty pipe, never for a time. */
#include <check.h>
#include <errno.h>
#include <ev.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "service/control/answer.h"
#include "service/ingest/readers.h"
#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "service/session/snapshot_build.h"
#include "service/workers/workers.h"
#include "tests/service/fixture.h"
#include "tests/suite.h"

/* So many stacks that copying them takes many rests; a round in between for the pipe's sake. */
enum { STACKS = 6000, STACKS_A_ROUND = 500, BLOCK_BYTES = 32 };

static struct ev_loop *loop;
static int epoll_fd;
static struct ml_clock_source clock_source;
static struct ml_workers *workers;
static struct ml_session *session;
static struct ml_readers *readers;
static struct client client;

static void on_lost(void *context, uint32_t id, const char *reason) {
    (void)context;
    ck_abort_msg("client %u was lost: %s", id, reason);
}

static void on_round(void *context, uint64_t known_ticks) {
    (void)context;
    (void)known_ticks;
}

static uint64_t live_bytes(void) {
    return ml_client_figures(ml_session_find(session, 1)).totals.live_bytes;
}

/* Everything that was written is applied. */
static void read_all(void) {
    const uint64_t now = fixture_now();
    do {
        ml_readers_round(readers);
    } while (ml_session_known(session) < now);
}

static void put_stacks(void) {
    client_put_start(&client);
    for (uint32_t i = 0; i < STACKS; i++) {
        const struct ml_event node = {
            .kind = ML_EVENT_NODE,
            .node = {.id = 3 + i, .parent = 2, .module = 1, .address = 0x400300 + i}};
        const struct ml_event alloc = {
            .kind = ML_EVENT_ALLOC,
            .time = fixture_now(),
            .block = {
                .address = UINT64_C(0x100000) + i * 64,
                .size_bytes = BLOCK_BYTES,
                .weight_bytes = BLOCK_BYTES,
                .weight_blocks = 1,
                .node = 3 + i}};
        client_put(&client, 0, &node);
        client_put(&client, 0, &alloc);
        if (i % STACKS_A_ROUND == 0) {
            ml_readers_round(readers);
        }
    }
    read_all();
    ck_assert_uint_eq(live_bytes(), STACKS * BLOCK_BYTES);
}

static void set_up_with(unsigned workers_count) {
    const uint64_t now = fixture_now();
    clock_source = (struct ml_clock_source
    ){.kind = ML_CLOCK_MONOTONIC, .start = {.ticks = now, .monotonic_ns = now}};
    loop = ev_loop_new(0);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    workers = workers_count > 0 ? ml_workers_new(workers_count) : NULL;
    session = ml_session_new(&clock_source.start, 0);
    ck_assert_ptr_nonnull(session);
    ml_session_workers(session, workers, 0);
    const struct ml_readers_options options = {
        .loop = loop,
        .pipes_fd = epoll_fd,
        .session = session,
        .workers = workers,
        .clock = &clock_source,
        .on_lost = on_lost,
        .on_round = on_round};
    readers = ml_readers_new(&options);
    ck_assert_ptr_nonnull(readers);
    const struct ml_client_setup setup = {
        .id = 1, .pid = 1001, .sampling_bytes = 1, .start = clock_source.start};
    struct ml_client *added = NULL;
    ck_assert_int_eq(ml_session_add(session, &setup, &added), ML_OK);
    client_open(&client, 1, 1);
    ck_assert_int_eq(
        ml_readers_add(readers, added, dup(client.read_fd), dup(client.staging_fd)), ML_OK
    );
    put_stacks();
}

static void tear_down(void) {
    ml_readers_free(readers);
    ml_session_free(session);
    ml_workers_free(workers);
    client_close(&client);
    (void)close(epoll_fd);
    ev_loop_destroy(loop);
}

static bool has_room(void) {
    struct pollfd out = {.fd = client.write_fd, .events = POLLOUT};
    return poll(&out, 1, 0) == 1;
}

static bool is_empty(void) {
    int count_bytes = -1;
    ck_assert_int_eq(ioctl(client.read_fd, FIONREAD, &count_bytes), 0);
    return count_bytes == 0;
}

/* A program that would wait now. Returns how many more bytes are live in it. */
static uint64_t fill_pipe(uint64_t first_address) {
    uint64_t blocks = 0;
    while (has_room()) {
        client_put_alloc(&client, 0, first_address + blocks++ * 64, BLOCK_BYTES);
    }
    ck_assert(!is_empty());
    return blocks * BLOCK_BYTES;
}

struct writer {
    uint64_t more_bytes;
    unsigned filled;
};

/* The pipe is full each time, and is emptied all the same. */
static void fill_and_wait(void *context) {
    struct writer *writer = context;
    writer->more_bytes += fill_pipe(UINT64_C(0x1000000) * ++writer->filled);
    do {
        ml_readers_empty(readers);
    } while (!is_empty());
}

START_TEST(pipes_are_emptied_while_a_snapshot_is_copied) {
    static const unsigned counts[] = {0, 2};
    set_up_with(counts[_i]);
    struct writer writer = {.filled = 0};
    const struct ml_rest rest = {.take = fill_and_wait, .context = &writer, .steps = STACKS};
    struct ml_snapshot *snapshot = NULL;
    ck_assert_int_eq(ml_session_begin_snapshot(session, NULL, 0, &snapshot), ML_OK);
    ck_assert_int_eq(ml_session_copy_tables(session, snapshot, &rest), ML_OK);
    ck_assert_uint_gt(writer.filled, 3);
    ck_assert_uint_eq(snapshot->processes[0].totals.live_bytes, STACKS * BLOCK_BYTES);
    uint64_t sum_bytes = 0;
    for (uint32_t i = 0; i < snapshot->processes[0].cells_count; i++) {
        sum_bytes += snapshot->processes[0].cells[i].own.live_bytes;
    }
    ck_assert_uint_eq(sum_bytes, STACKS * BLOCK_BYTES);
    ml_snapshot_free(snapshot);
    read_all();
    ck_assert_uint_eq(live_bytes(), STACKS * BLOCK_BYTES + writer.more_bytes);
    ck_assert(ml_client_figures(ml_session_find(session, 1)).complete);
    tear_down();
}
END_TEST

struct reply_port {
    struct ml_port port; /* first */
    bool replied, whole, complete;
};

static enum ml_status keep_reply(
    struct ml_port *port, const struct ml_message_type *type, uint32_t request_id, const void *value
) {
    struct reply_port *to = (struct reply_port *)port;
    const struct memlog_service_dump_reply *reply = value;
    (void)type;
    (void)request_id;
    to->replied = true;
    to->whole = reply->whole;
    to->complete = reply->complete;
    return ML_OK;
}

/* The file takes nothing, so all of the time goes into copying. */
START_TEST(a_dump_reads_pipes_before_its_first_byte_is_written) {
    set_up_with(0);
    const struct memlog_service_dump_request request = {
        .order = {.now = fixture_timestamp()}, .file = open("/dev/full", O_WRONLY | O_CLOEXEC)};
    const struct ml_answer_scene scene = {
        .session = session,
        .readers = readers,
        .target_ticks = request.order.now.ticks,
        .sandbox_missing = ""};
    struct reply_port port = {.port = {.send = keep_reply}};
    const struct ml_call call = {.port = &port.port, .request_id = 1};
    read_all();
    const uint64_t more_bytes = fill_pipe(UINT64_C(0x1000000));
    ck_assert_int_eq(ml_answer_dump(&scene, &call, &request), ML_OK);
    ck_assert(port.replied);
    ck_assert(!port.whole);
    ck_assert(has_room());
    ck_assert(is_empty());
    read_all();
    ck_assert_uint_eq(live_bytes(), STACKS * BLOCK_BYTES + more_bytes);
    (void)close(request.file);
    tear_down();
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, pipes_are_emptied_while_a_snapshot_is_copied, 0, 2);
    tcase_add_test(all, a_dump_reads_pipes_before_its_first_byte_is_written);
    return run_suite("service/drain", all);
}

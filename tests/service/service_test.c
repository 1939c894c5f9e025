/* The real memlog-service in its real sandbox: a host and hand-made clients around it. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/service/fixture.h"

enum { MANY_CLIENTS = 1000, HOSTILE_CLIENTS = 300, PATIENCE_US = 1500000, LONG_MS = 3000 };

static void assert_quiet_end(int status) {
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %x", (unsigned)status
    );
}

static void assert_broken_end(int status) {
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %x", (unsigned)status
    );
}

/* Ten blocks of 100 bytes at one stack, four freed: half of it by pipe, half left in staging. */
static void ten_blocks(struct client *client) {
    client_put_start(client);
    for (uint64_t i = 0; i < 10; i++) {
        client_put_alloc(client, 0, 0x10000 + i * 0x100, 100);
        if (i == 4) {
            client_flush(client, 0);
        }
    }
    for (uint64_t i = 0; i < 4; i++) {
        client_put_free(client, 0, 0x10000 + i * 0x100);
    }
}

static void assert_ten_blocks(const struct memlog_service_client_figures *figures) {
    ck_assert_uint_eq(figures->totals.live_bytes, 600);
    ck_assert_uint_eq(figures->totals.live_blocks, 6);
    ck_assert_uint_eq(figures->totals.peak_bytes, 1000);
    ck_assert_uint_eq(figures->totals.total_bytes, 1000);
    ck_assert_uint_eq(figures->totals.total_blocks, 10);
    ck_assert_uint_eq(figures->lost_events, 0);
}

START_TEST(serves_a_client) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_add(&service, &client);
    ten_blocks(&client);
    struct memlog_service_totals tree;
    const struct memlog_service_client_figures figures = service_client(&service, 1, &tree);
    assert_ten_blocks(&figures);
    ck_assert(figures.complete);
    ck_assert_uint_eq(tree.live_bytes, 600);
    ck_assert_uint_eq(tree.peak_bytes, 1000);
    struct memlog_service_dump_reply reply;
    const int file_fd = service_dump(&service, LONG_MS, &reply);
    struct stat about;
    ck_assert_int_eq(fstat(file_fd, &about), 0);
    ck_assert(reply.complete);
    ck_assert_uint_eq(reply.trouble.count_bytes, 0);
    ck_assert_uint_gt(reply.written_bytes, 100);
    ck_assert_int_eq((int64_t)reply.written_bytes, about.st_size);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(sees_the_unflushed_staging_of_an_idle_thread) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_put_start(&client);
    client_flush(&client, 0);
    client_put_alloc(&client, 1, 0x20000, 4321);
    client_add(&service, &client);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    ck_assert_uint_eq(figures.totals.live_bytes, 4321);
    ck_assert(figures.complete);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(keeps_the_profile_of_a_process_that_ended) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_add(&service, &client);
    ten_blocks(&client);
    /* Our end of the pipe stays open, as a forked child's would. */
    service_end_client(&service, 1);
    const struct memlog_service_drain_request drain = {.deadline_ms = LONG_MS};
    struct memlog_service_drain_reply drained;
    ck_assert_int_eq(
        memlog_service_drain_wait(service.port, &drain, FIXTURE_WAIT_MS, &drained), ML_OK
    );
    ck_assert(drained.complete);
    client_close(&client);
    struct memlog_service_totals tree;
    const struct memlog_service_client_figures figures = service_client(&service, 1, &tree);
    assert_ten_blocks(&figures);
    ck_assert_uint_eq(tree.peak_bytes, 1000);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(reads_what_a_killed_process_left_behind) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_add(&service, &client);
    ten_blocks(&client);
    /* Killed between stamp and publishing. */
    struct ml_staging_lane *lane = client_lane_header(&client, 0);
    lane->published |= ML_PUBLISHED_BUSY;
    client_close(&client);
    service_end_client(&service, 1);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    assert_ten_blocks(&figures);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(does_not_wait_for_a_stopped_thread) {
    struct service service;
    struct client stopped;
    struct client other;
    service_start(&service);
    client_open(&stopped, 1, 1);
    client_open(&other, 2, 1);
    client_add(&service, &stopped);
    client_add(&service, &other);
    ten_blocks(&stopped);
    ten_blocks(&other);
    struct ml_staging_lane *lane = client_lane_header(&stopped, 0);
    lane->published |= ML_PUBLISHED_BUSY;
    const uint64_t before = fixture_now();
    struct memlog_service_dump_reply reply;
    (void)close(service_dump(&service, 100, &reply));
    ck_assert_uint_lt(fixture_now() - before, UINT64_C(2000000000));
    const struct memlog_service_client_figures figures = service_client(&service, 2, NULL);
    assert_ten_blocks(&figures);
    ck_assert(figures.complete);
    lane->published &= ~(uint64_t)ML_PUBLISHED_BUSY;
    const struct memlog_service_client_figures later = service_client(&service, 1, NULL);
    assert_ten_blocks(&later);
    ck_assert(later.complete);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(ends_with_its_host) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_add(&service, &client);
    ten_blocks(&client);
    assert_quiet_end(service_stop(&service));
    char complaint[512];
    service_complaint(&service, complaint, sizeof(complaint));
    ck_assert_str_eq(complaint, "");
}
END_TEST

START_TEST(drops_a_host_that_sends_garbage) {
    struct service service;
    service_start_with(&service, "memlog-service", (const char *const[]){"--sandbox=auto", NULL});
    ck_assert_int_eq(send(service.host_fd, "no message at all", 17, 0), 17);
    assert_broken_end(service_wait(&service));
    char complaint[512];
    service_complaint(&service, complaint, sizeof(complaint));
    ck_assert_ptr_nonnull(strstr(complaint, "memlog-service: the host's connection ended"));
}
END_TEST

START_TEST(drops_a_host_that_speaks_before_configuring) {
    struct service service;
    service_start_with(&service, "memlog-service", (const char *const[]){"--sandbox=auto", NULL});
    service_speak(&service);
    const struct memlog_service_figures_request request = {0};
    struct memlog_service_figures_reply reply;
    ck_assert_int_eq(
        memlog_service_figures_wait(service.port, &request, FIXTURE_WAIT_MS, &reply), ML_PEER_CLOSED
    );
    assert_broken_end(service_wait(&service));
}
END_TEST

START_TEST(drops_a_host_of_another_version) {
    struct service service;
    service_start_with(&service, "memlog-service", (const char *const[]){"--sandbox=auto", NULL});
    service_speak(&service);
    const struct memlog_service_configure_request request = {
        .setup = {.version = 99, .clock = MEMLOG_SERVICE_CLOCK_MONOTONIC}};
    struct memlog_service_configure_reply reply;
    ck_assert_int_eq(
        memlog_service_configure_wait(service.port, &request, FIXTURE_WAIT_MS, &reply),
        ML_PEER_CLOSED
    );
    assert_broken_end(service_wait(&service));
    char complaint[512];
    service_complaint(&service, complaint, sizeof(complaint));
    ck_assert_ptr_nonnull(strstr(complaint, "another version"));
}
END_TEST

START_TEST(drops_a_host_that_adds_a_client_twice) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_add(&service, &client);
    client_add(&service, &client);
    assert_broken_end(service_wait(&service));
}
END_TEST

/* Descriptors of the wrong kind end the host's connection: it made them. */
START_TEST(drops_a_host_that_sends_the_wrong_kind_of_descriptor) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    const int unsealed_fd = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const int fds[][2] = {
        {client.staging_fd, client.staging_fd},
        {client.read_fd, client.read_fd},
        {client.read_fd, unsealed_fd},
    };
    client_add_with(&service, &client, fds[_i][0], fds[_i][1]);
    assert_broken_end(service_wait(&service));
}
END_TEST

START_TEST(loses_only_the_client_that_sends_garbage) {
    struct service service;
    struct client good;
    struct client bad;
    service_start(&service);
    client_open(&good, 1, 1);
    client_open(&bad, 2, 1);
    client_add(&service, &good);
    client_add(&service, &bad);
    uint8_t garbage[256];
    memset(garbage, 0xee, sizeof(garbage));
    ck_assert_int_eq(write(bad.write_fd, garbage, sizeof(garbage)), sizeof(garbage));
    service_await_lost(&service, 1);
    ck_assert_uint_eq(service.lost_ids[0], 2);
    ck_assert_str_ne(service.lost_reasons[0], "");
    ten_blocks(&good);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    assert_ten_blocks(&figures);
    ck_assert(figures.complete);
    const struct memlog_service_client_figures lost = service_client(&service, 2, NULL);
    ck_assert(!lost.complete);
    ck_assert_uint_gt(lost.trouble.count_bytes, 0);
    /* The host says what became of it; the id is known still. */
    service_end_client(&service, 2);
    (void)service_client(&service, 2, NULL);
    ck_assert_uint_eq(service.lost_count, 1);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(loses_a_client_whose_staging_is_shorter_than_it_says) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    const int short_fd = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(write(short_fd, client.staging, 4096), 4096);
    ck_assert_int_eq(fcntl(short_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    struct ml_staging_header *header =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, short_fd, 0);
    ck_assert_ptr_ne(header, MAP_FAILED);
    header->lanes_used = ML_LANES_MAX;
    client_add_with(&service, &client, client.read_fd, short_fd);
    service_await_lost(&service, 1);
    ck_assert_uint_eq(service.lost_ids[0], 1);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(loses_a_client_with_more_lanes_than_there_are) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    ((struct ml_staging_header *)client.staging)->lanes_used = UINT32_MAX;
    client_add(&service, &client);
    service_await_lost(&service, 1);
    ck_assert_uint_eq(service.lost_ids[0], 1);
    assert_quiet_end(service_stop(&service));
}
END_TEST

/* A number from a fixed sequence, so that a failure comes again. */
static uint32_t next_random(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void flip_bits(uint8_t *bytes, size_t count_bytes, uint32_t flips, uint32_t *random) {
    for (uint32_t i = 0; i < flips && count_bytes > 0; i++) {
        const size_t at = next_random(random) % count_bytes;
        bytes[at] = (uint8_t)(bytes[at] ^ 1U << next_random(random) % 8);
    }
}

/* What such a client has in its pipe, its staging's head, its first lanes and its first slot. */
static void damage(struct client *client, uint32_t flips, uint32_t *random) {
    uint8_t bytes[8192];
    const ssize_t count = read(client->read_fd, bytes, sizeof(bytes));
    ck_assert_int_gt(count, 0);
    flip_bits(bytes, (size_t)count, flips, random);
    ck_assert_int_eq(write(client->write_fd, bytes, (size_t)count), count);
    flip_bits(client->staging, sizeof(struct ml_staging_header), flips, random);
    flip_bits(client->staging + ML_STAGING_LANES_OFFSET, ML_STAGING_LANE_BYTES, flips, random);
    flip_bits(client->staging + ML_STAGING_DATA_OFFSET, 128, flips, random);
}

START_TEST(survives_clients_whose_every_byte_may_be_wrong) {
    struct service service;
    struct client good;
    service_start(&service);
    client_open(&good, 1, 1);
    client_add(&service, &good);
    ten_blocks(&good);
    uint32_t random = 42;
    for (uint32_t i = 0; i < HOSTILE_CLIENTS; i++) {
        struct client bad;
        client_open(&bad, 100 + i, 1 + i % 3);
        ten_blocks(&bad);
        damage(&bad, 1 + i % 8, &random);
        client_add(&service, &bad);
        /* Half of them end, half stay. */
        if (i % 2 == 0) {
            service_end_client(&service, 100 + i);
        }
        client_close(&bad);
    }
    struct memlog_service_dump_reply reply;
    (void)close(service_dump(&service, LONG_MS, &reply));
    ck_assert_uint_gt(reply.written_bytes, 0);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    assert_ten_blocks(&figures);
    ck_assert(figures.complete);
    ck_assert_uint_gt(service.lost_count, 0);
    assert_quiet_end(service_stop(&service));
}
END_TEST

/* A lane that is always between stamp and publishing, moves all the time, and whose events are an
 * hour old: what it does not say yet could be older than anything. */
static void dawdle(struct client *client) {
    uint64_t time = fixture_now() - UINT64_C(3600000000000);
    for (;;) {
        const struct ml_event event = {
            .kind = ML_EVENT_FREE, .time = time++, .block = {.address = 0x1000}};
        client_put(client, 0, &event);
        client_lane_header(client, 0)->published |= ML_PUBLISHED_BUSY;
        (void)usleep(100);
    }
}

START_TEST(does_not_let_one_client_hold_the_others_back) {
    struct service service;
    struct client good;
    struct client bad;
    service_start(&service);
    client_open(&good, 1, 1);
    client_open(&bad, 2, 1);
    client_put_start(&bad);
    const pid_t dawdler = fork();
    if (dawdler == 0) {
        dawdle(&bad);
    }
    client_add(&service, &good);
    client_add(&service, &bad);
    ten_blocks(&good);
    (void)service_client(&service, 1, NULL);
    (void)usleep(PATIENCE_US);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    (void)kill(dawdler, SIGKILL);
    (void)waitpid(dawdler, NULL, 0);
    assert_ten_blocks(&figures);
    ck_assert(figures.complete);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(refuses_more_clients_than_it_has_descriptors_for) {
    struct service service;
    fixture_descriptors_max = 64;
    service_start(&service);
    static struct client clients[60];
    const uint32_t count = sizeof(clients) / sizeof(clients[0]);
    for (uint32_t i = 0; i < count; i++) {
        client_open(&clients[i], i + 1, 1);
        client_add(&service, &clients[i]);
        ten_blocks(&clients[i]);
    }
    struct memlog_service_figures_reply reply;
    service_figures(&service, &reply);
    ck_assert_uint_eq(reply.clients.count, count);
    ck_assert_uint_gt(service.lost_count, 0);
    const uint32_t read_count = count - service.lost_count;
    ck_assert_uint_gt(read_count, 10);
    ck_assert_uint_eq(reply.tree.live_bytes, UINT64_C(600) * read_count);
    ck_assert_str_eq(service.lost_reasons[0], "more processes at once than can be read");
    /* Room again, once some have ended. */
    for (uint32_t i = 0; i < count; i++) {
        service_end_client(&service, i + 1);
    }
    (void)service_client(&service, 1, NULL);
    struct client later;
    client_open(&later, 1000, 1);
    client_add(&service, &later);
    ten_blocks(&later);
    const struct memlog_service_client_figures figures = service_client(&service, 1000, NULL);
    ck_assert_uint_eq(service.lost_count, count - read_count);
    assert_ten_blocks(&figures);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(says_why_a_dump_cannot_be_written) {
    struct service service;
    service_start(&service);
    char path[] = "/tmp/memlog-service-test-XXXXXX";
    const int made_fd = mkstemp(path);
    ck_assert_int_ge(made_fd, 0);
    const int read_only_fd = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(read_only_fd, 0);
    (void)unlink(path);
    const struct memlog_service_dump_request request = {
        .order = {.now = fixture_moment(), .deadline_ms = LONG_MS}, .file = read_only_fd};
    struct memlog_service_dump_reply reply;
    ck_assert_int_eq(
        memlog_service_dump_wait(service.port, &request, FIXTURE_WAIT_MS, &reply), ML_OK
    );
    ck_assert(!reply.complete);
    static const char expected[] = "cannot write the dump: Bad file descriptor";
    ck_assert_uint_eq(reply.trouble.count_bytes, sizeof(expected) - 1);
    ck_assert_mem_eq(reply.trouble.data, expected, sizeof(expected) - 1);
    assert_quiet_end(service_stop(&service));
}
END_TEST

/* Far more than pipe and staging hold: who writes must not wait for ever. */
START_TEST(drains_a_busy_client_without_being_asked) {
    struct service service;
    struct client client;
    service_start(&service);
    client_open(&client, 1, 1);
    client_add(&service, &client);
    client_put_start(&client);
    const uint64_t blocks_count = 400000;
    for (uint64_t i = 0; i < blocks_count; i++) {
        client_put_alloc(&client, (uint32_t)(i % FIXTURE_LANES), 0x100000 + i * 16, 16);
    }
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    ck_assert_uint_eq(figures.totals.live_blocks, blocks_count);
    ck_assert_uint_eq(figures.totals.live_bytes, blocks_count * 16);
    ck_assert(figures.complete);
    assert_quiet_end(service_stop(&service));
}
END_TEST

enum { BUSY_CLIENTS = 4, BUSY_EVENTS = 400000, BUSY_BLOCKS = 4096 };

/* What the test knows of a busy client: its blocks, the oldest first. */
struct busy {
    struct client client;
    uint64_t sizes[BUSY_BLOCKS];
    uint64_t first, count;
    uint64_t live_bytes;
};

static uint64_t busy_address(uint64_t block) {
    return 0x100000 + block * 8192;
}

/* Each takes and gives back by turns, more and more of it; how much is live at once is known here
 * to the byte. */
static uint64_t keep_busy(struct busy *busy) {
    uint64_t live_bytes = 0;
    uint64_t peak_bytes = 0;
    uint64_t state = 1;
    for (uint64_t i = 0; i < BUSY_EVENTS; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        struct busy *one = &busy[(state >> 33) % BUSY_CLIENTS];
        const uint64_t most = i * 7919 % (i / 200 + 3);
        if (one->count > most || one->count == BUSY_BLOCKS) {
            const uint64_t size = one->sizes[one->first % BUSY_BLOCKS];
            client_put_free(&one->client, 0, busy_address(one->first++));
            one->count--;
            one->live_bytes -= size;
            live_bytes -= size;
            continue;
        }
        const uint64_t block = one->first + one->count++;
        const uint64_t size = 1 + (state >> 40) % 5000;
        one->sizes[block % BUSY_BLOCKS] = size;
        client_put_alloc(&one->client, 0, busy_address(block), size);
        one->live_bytes += size;
        live_bytes += size;
        peak_bytes = live_bytes > peak_bytes ? live_bytes : peak_bytes;
    }
    return peak_bytes;
}

START_TEST(keeps_the_books_of_busy_clients_on_several_cores) {
    static const char *const workers[] = {"--workers=1", "--workers=2", "--workers=5"};
    struct service service;
    struct memlog_service_totals tree;
    struct busy *busy = calloc(BUSY_CLIENTS, sizeof(*busy));
    ck_assert_ptr_nonnull(busy);
    service_start_with(
        &service, "memlog-service", (const char *const[]){"--sandbox=auto", workers[_i], NULL}
    );
    service_speak(&service);
    (void)service_configure(&service);
    for (uint32_t i = 0; i < BUSY_CLIENTS; i++) {
        client_open(&busy[i].client, i + 1, 1);
        client_add(&service, &busy[i].client);
        client_put_start(&busy[i].client);
    }
    const uint64_t peak_bytes = keep_busy(busy);
    for (uint32_t i = 0; i < BUSY_CLIENTS; i++) {
        const struct memlog_service_client_figures figures = service_client(&service, i + 1, &tree);
        ck_assert_uint_eq(figures.totals.live_blocks, busy[i].count);
        ck_assert_uint_eq(figures.totals.live_bytes, busy[i].live_bytes);
        ck_assert(figures.complete);
    }
    ck_assert_uint_eq(tree.peak_bytes, peak_bytes);
    assert_quiet_end(service_stop(&service));
    free(busy);
}
END_TEST

START_TEST(serves_a_thousand_clients) {
    struct rlimit files;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &files), 0);
    ck_assert_uint_gt(files.rlim_cur, 3 * MANY_CLIENTS + 100);
    struct service service;
    service_start(&service);
    static struct client clients[MANY_CLIENTS];
    for (uint32_t i = 0; i < MANY_CLIENTS; i++) {
        client_open(&clients[i], i + 1, 1);
        client_add(&service, &clients[i]);
        ten_blocks(&clients[i]);
    }
    struct memlog_service_figures_reply reply;
    service_figures(&service, &reply);
    ck_assert_uint_eq(reply.clients.count, MANY_CLIENTS);
    ck_assert_uint_eq(reply.tree.live_bytes, 600 * MANY_CLIENTS);
    for (uint32_t i = 0; i < MANY_CLIENTS; i++) {
        assert_ten_blocks(&reply.clients.items[i]);
        ck_assert(reply.clients.items[i].complete);
    }
    for (uint32_t i = 0; i < MANY_CLIENTS; i++) {
        service_end_client(&service, i + 1);
        client_close(&clients[i]);
    }
    struct memlog_service_dump_reply dumped;
    (void)close(service_dump(&service, LONG_MS, &dumped));
    ck_assert(dumped.complete);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(serves_where_a_container_forbids_namespaces) {
    struct service service;
    struct client client;
    service_start_contained(
        &service, "memlog-service", (const char *const[]){"--sandbox=auto", NULL}
    );
    service_speak(&service);
    const struct memlog_service_configure_reply reply = service_configure(&service);
    static const char expected[] = "no user namespace (Operation not permitted)";
    ck_assert_uint_gt(reply.missing_sandbox.count_bytes, sizeof(expected));
    ck_assert_mem_eq(reply.missing_sandbox.data, expected, sizeof(expected) - 1);
    client_open(&client, 1, 1);
    client_add(&service, &client);
    ten_blocks(&client);
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    assert_ten_blocks(&figures);
    struct memlog_service_dump_reply dumped;
    (void)close(service_dump(&service, LONG_MS, &dumped));
    ck_assert(dumped.complete);
    assert_quiet_end(service_stop(&service));
}
END_TEST

START_TEST(refuses_a_container_when_strict) {
    struct service service;
    service_start_contained(
        &service, "memlog-service", (const char *const[]){"--sandbox=strict", NULL}
    );
    const int status = service_wait(&service);
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == 3, "wait status %x", (unsigned)status
    );
    char complaint[2048];
    service_complaint(&service, complaint, sizeof(complaint));
    ck_assert_ptr_nonnull(strstr(complaint, "the sandbox is refused here: no user namespace"));
}
END_TEST

#ifdef __x86_64__
/* Every clock that a host may choose. */
START_TEST(serves_by_the_tsc) {
    struct service service;
    service_start_with(&service, "memlog-service", (const char *const[]){"--sandbox=strict", NULL});
    service_speak(&service);
    struct memlog_service_configure_request request = {
        .setup = {
            .version = MEMLOG_SERVICE_SERVICE_VERSION,
            .clock = MEMLOG_SERVICE_CLOCK_TSC,
            .start = fixture_moment()}};
    request.setup.start.ticks = __builtin_ia32_rdtsc();
    struct memlog_service_configure_reply configured;
    ck_assert_int_eq(
        memlog_service_configure_wait(service.port, &request, FIXTURE_WAIT_MS, &configured), ML_OK
    );
    struct memlog_service_dump_request dump = {
        .order = {.now = fixture_moment(), .deadline_ms = LONG_MS},
        .file = memfd_create("dump", MFD_CLOEXEC)};
    dump.order.now.ticks = __builtin_ia32_rdtsc();
    struct memlog_service_dump_reply dumped;
    ck_assert_int_eq(
        memlog_service_dump_wait(service.port, &dump, FIXTURE_WAIT_MS, &dumped), ML_OK
    );
    ck_assert(dumped.complete);
    (void)close(dump.file);
    assert_quiet_end(service_stop(&service));
}
END_TEST
#endif

START_TEST(refuses_to_start_without_a_level) {
    struct service service;
    service_start_with(&service, "memlog-service", (const char *const[]){NULL});
    int status = service_wait(&service);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
    service_start_with(
        &service, "memlog-service", (const char *const[]){"--sandbox=perhaps", NULL}
    );
    status = service_wait(&service);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 2);
}
END_TEST

START_TEST(does_not_die_of_signals_that_mean_the_program) {
    struct service service;
    service_start(&service);
    static const int signals[] = {SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTERM, SIGUSR1};
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        ck_assert_int_eq(kill(service.pid, signals[i]), 0);
    }
    struct memlog_service_figures_reply reply;
    service_figures(&service, &reply);
    assert_quiet_end(service_stop(&service));
}
END_TEST

int main(void) {
    Suite *suite = suite_create("service/service");
    TCase *all = tcase_create("all");
    tcase_set_timeout(all, 60);
    tcase_add_test(all, serves_a_client);
    tcase_add_test(all, sees_the_unflushed_staging_of_an_idle_thread);
    tcase_add_test(all, keeps_the_profile_of_a_process_that_ended);
    tcase_add_test(all, reads_what_a_killed_process_left_behind);
    tcase_add_test(all, does_not_wait_for_a_stopped_thread);
    tcase_add_test(all, ends_with_its_host);
    tcase_add_test(all, drops_a_host_that_sends_garbage);
    tcase_add_test(all, drops_a_host_that_speaks_before_configuring);
    tcase_add_test(all, drops_a_host_of_another_version);
    tcase_add_test(all, drops_a_host_that_adds_a_client_twice);
    tcase_add_loop_test(all, drops_a_host_that_sends_the_wrong_kind_of_descriptor, 0, 3);
    tcase_add_test(all, loses_only_the_client_that_sends_garbage);
    tcase_add_test(all, loses_a_client_whose_staging_is_shorter_than_it_says);
    tcase_add_test(all, loses_a_client_with_more_lanes_than_there_are);
    tcase_add_test(all, survives_clients_whose_every_byte_may_be_wrong);
    tcase_add_test(all, does_not_let_one_client_hold_the_others_back);
    tcase_add_test(all, refuses_more_clients_than_it_has_descriptors_for);
    tcase_add_test(all, says_why_a_dump_cannot_be_written);
    tcase_add_test(all, drains_a_busy_client_without_being_asked);
    tcase_add_loop_test(all, keeps_the_books_of_busy_clients_on_several_cores, 0, 3);
    tcase_add_test(all, serves_a_thousand_clients);
    tcase_add_test(all, serves_where_a_container_forbids_namespaces);
    tcase_add_test(all, refuses_a_container_when_strict);
#ifdef __x86_64__
    tcase_add_test(all, serves_by_the_tsc);
#endif
    tcase_add_test(all, refuses_to_start_without_a_level);
    tcase_add_test(all, does_not_die_of_signals_that_mean_the_program);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

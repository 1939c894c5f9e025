/* The real memlog-service, and hosts and clients that lie to it. */
#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/service/fixture.h"

enum { HOSTILE_CLIENTS = 300 };

START_TEST(drops_a_host_that_sends_garbage) {
    struct service service;
    service_start_with(&service, "memlog-service", (const char *const[]){"--sandbox=auto", NULL});
    ck_assert_int_eq(send(service.host_fd, "no message at all", 17, 0), 17);
    service_ended_broken(service_wait(&service));
    char error[512];
    service_error(&service, error, sizeof(error));
    ck_assert_ptr_nonnull(strstr(error, "memlog-service: the host's connection ended"));
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
    service_ended_broken(service_wait(&service));
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
    service_ended_broken(service_wait(&service));
    char error[512];
    service_error(&service, error, sizeof(error));
    ck_assert_ptr_nonnull(strstr(error, "another version"));
}
END_TEST

START_TEST(drops_a_host_that_adds_a_client_twice) {
    struct service service;
    struct client client;
    service_start(&service);
    client_join(&service, &client, 1);
    client_add(&service, &client);
    service_ended_broken(service_wait(&service));
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
    service_ended_broken(service_wait(&service));
}
END_TEST

START_TEST(loses_only_the_client_that_sends_garbage) {
    struct service service;
    struct client good;
    struct client bad;
    service_start(&service);
    client_join(&service, &good, 1);
    client_join(&service, &bad, 2);
    uint8_t garbage[256];
    memset(garbage, 0xee, sizeof(garbage));
    ck_assert_int_eq(write(bad.write_fd, garbage, sizeof(garbage)), sizeof(garbage));
    service_await_lost(&service, 1);
    ck_assert_uint_eq(service.lost_ids[0], 2);
    ck_assert_str_ne(service.lost_reasons[0], "");
    client_put_ten_blocks(&good);
    service_has_ten_blocks(&service, 1);
    const struct memlog_service_client_figures lost = service_client(&service, 2, NULL);
    ck_assert(!lost.complete);
    ck_assert_uint_gt(lost.trouble.count_bytes, 0);
    /* The host says what became of it; the id is known still. */
    service_end_client(&service, 2);
    (void)service_client(&service, 2, NULL);
    ck_assert_uint_eq(service.lost_count, 1);
    service_stop_quietly(&service);
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
    service_stop_quietly(&service);
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
    service_stop_quietly(&service);
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
    client_join(&service, &good, 1);
    client_put_ten_blocks(&good);
    uint32_t random = 42;
    for (uint32_t i = 0; i < HOSTILE_CLIENTS; i++) {
        struct client bad;
        client_open(&bad, 100 + i, 1 + i % 3);
        client_put_ten_blocks(&bad);
        damage(&bad, 1 + i % 8, &random);
        client_add(&service, &bad);
        /* Half of them end, half stay. */
        if (i % 2 == 0) {
            service_end_client(&service, 100 + i);
        }
        client_close(&bad);
    }
    struct memlog_service_dump_reply reply;
    (void)close(service_dump(&service, FIXTURE_DEADLINE_MS, &reply));
    ck_assert_uint_gt(reply.written_bytes, 0);
    service_has_ten_blocks(&service, 1);
    ck_assert_uint_gt(service.lost_count, 0);
    service_stop_quietly(&service);
}
END_TEST

/* What the host has seen of a process: a heap whose pages were told, one whose pages were not, a
 * file, and all that had no room. Answers whether its blocks were laid. */
static bool show(struct service *service, uint32_t id) {
    static const struct memlog_service_memory_region regions[] = {
        {.start = 0x1000000,
         .end = 0x2000000,
         .size_kb = 16384,
         .resident_kb = 8192,
         .private_dirty_kb = 8192,
         .has_pages = true},
        {.start = 0x10000000,
         .end = 0x7fff00000000,
         .size_kb = (0x7fff00000000 - 0x10000000) >> 10,
         .resident_kb = 4096,
         .private_dirty_kb = 4096},
        {.start = 0x7fff00000000,
         .end = 0x7fff00100000,
         .inode = 7,
         .size_kb = 1024,
         .resident_kb = 1024,
         .shared_clean_kb = 1024},
        {.size_kb = 100, .resident_kb = 100}};
    static const struct memlog_service_page_run pages[] = {
        {.address = 0x1000000, .bytes = 0x800000}};
    const struct memlog_service_moment now = fixture_timestamp();
    const struct memlog_service_show_process_request request = {
        .view = {
            .id = id,
            .boottime_ns = now.boottime_ns,
            .ticks = now.ticks,
            .regions = {regions, sizeof(regions) / sizeof(regions[0])},
            .pages = {pages, 1}}};
    struct memlog_service_show_process_reply reply;
    ck_assert_int_eq(
        memlog_service_show_process_wait(service->port, &request, FIXTURE_WAIT_MS, &reply), ML_OK
    );
    return reply.laid;
}

/* Blocks as no allocator hands them out: `count` of `size_bytes`, so far apart. */
static const struct {
    uint64_t address, step, size_bytes;
    uint32_t count;
} lies[] = {
    {0x1000000, 1, 0x800000, 2000},                           /* over one another */
    {0x1000000, 16, 1 << 20, 2000},                           /* likewise, over its end */
    {0x10000000, 1 << 12, UINT64_C(1) << 46, 50},             /* huge */
    {0x10000000, UINT64_C(1) << 36, UINT64_C(1) << 36, 1000}, /* on too many pages */
    {(UINT64_C(1) << 47) - 8192, 16, UINT64_C(1) << 46, 100}, /* beyond the end of a process */
    {16, 16, 4096, 100},
    {0x7fff00000000, 4096, 4096, 256}, /* on a file's pages */
    {0x7fff00000000 - 8, 16, UINT64_C(1) << 46, 100},
    {0x1000000, 4096, 0, 1000}, /* on nothing */
};

START_TEST(blocks_that_a_client_makes_up_harm_no_other_view) {
    struct service service;
    struct client liar;
    struct client honest;
    service_start(&service);
    client_join(&service, &honest, 1);
    client_put_ten_blocks(&honest);
    client_join(&service, &liar, 2);
    client_put_start(&liar);
    for (uint64_t i = 0; i < lies[_i].count; i++) {
        client_put_alloc(&liar, 0, lies[_i].address + i * lies[_i].step, lies[_i].size_bytes);
    }
    client_flush(&liar, 0);
    (void)show(&service, 2);
    ck_assert(show(&service, 1));
    (void)show(&service, 2); /* once more, over the one that it has */
    struct memlog_service_dump_reply reply;
    const int file_fd = service_dump(&service, FIXTURE_DEADLINE_MS, &reply);
    ck_assert(reply.whole);
    (void)close(file_fd);
    service_has_ten_blocks(&service, 1);
    client_close(&liar);
    client_close(&honest);
    service_stop_quietly(&service);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_test(all, drops_a_host_that_sends_garbage);
    tcase_add_test(all, drops_a_host_that_speaks_before_configuring);
    tcase_add_test(all, drops_a_host_of_another_version);
    tcase_add_test(all, drops_a_host_that_adds_a_client_twice);
    tcase_add_loop_test(all, drops_a_host_that_sends_the_wrong_kind_of_descriptor, 0, 3);
    tcase_add_test(all, loses_only_the_client_that_sends_garbage);
    tcase_add_test(all, loses_a_client_whose_staging_is_shorter_than_it_says);
    tcase_add_test(all, loses_a_client_with_more_lanes_than_there_are);
    tcase_add_test(all, survives_clients_whose_every_byte_may_be_wrong);
    tcase_add_loop_test(
        all,
        blocks_that_a_client_makes_up_harm_no_other_view,
        0,
        (int)(sizeof(lies) / sizeof(lies[0]))
    );
    return fixture_run("service/service_trust", all);
}

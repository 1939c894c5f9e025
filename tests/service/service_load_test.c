/* The real memlog-service under many clients, and under busy ones. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/service/fixture.h"
#include "tests/suite.h"

enum { MANY_CLIENTS = 1000, PATIENCE_US = 1500000, LOOKS_MAX = 40 };

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
    client_put_ten_blocks(&good);
    struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    for (int looks = 0; looks == 0 || (figures.totals.live_bytes != 600 && looks < LOOKS_MAX);
         looks++) {
        (void)usleep(PATIENCE_US); /* once will do where the service has a core */
        figures = service_client(&service, 1, NULL);
    }
    (void)kill(dawdler, SIGKILL);
    (void)waitpid(dawdler, NULL, 0);
    client_has_ten_blocks(&figures);
    ck_assert(figures.complete);
    service_stop_quietly(&service);
}
END_TEST

START_TEST(refuses_more_clients_than_it_has_descriptors_for) {
    struct service service;
    fixture_descriptors_max = 64;
    service_start(&service);
    static struct client clients[60];
    const uint32_t count = sizeof(clients) / sizeof(clients[0]);
    for (uint32_t i = 0; i < count; i++) {
        client_join(&service, &clients[i], i + 1);
        client_put_ten_blocks(&clients[i]);
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
    client_join(&service, &later, 1000);
    client_put_ten_blocks(&later);
    const struct memlog_service_client_figures figures = service_client(&service, 1000, NULL);
    ck_assert_uint_eq(service.lost_count, count - read_count);
    client_has_ten_blocks(&figures);
    service_stop_quietly(&service);
}
END_TEST

/* Far more than pipe and staging hold: who writes must not wait for ever. */
START_TEST(drains_a_busy_client_without_being_asked) {
    struct service service;
    struct client client;
    service_start(&service);
    client_join(&service, &client, 1);
    client_put_start(&client);
    const uint64_t blocks_count = 400000;
    for (uint64_t i = 0; i < blocks_count; i++) {
        client_put_alloc(&client, (uint32_t)(i % FIXTURE_LANES), 0x100000 + i * 16, 16);
    }
    const struct memlog_service_client_figures figures = service_client(&service, 1, NULL);
    ck_assert_uint_eq(figures.totals.live_blocks, blocks_count);
    ck_assert_uint_eq(figures.totals.live_bytes, blocks_count * 16);
    ck_assert(figures.complete);
    service_stop_quietly(&service);
}
END_TEST

enum { BUSY_CLIENTS = 4, BUSY_EVENTS = FEWER_IF_SANITIZED(400000), BUSY_BLOCKS = 4096 };

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
        client_join(&service, &busy[i].client, i + 1);
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
    service_stop_quietly(&service);
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
        client_join(&service, &clients[i], i + 1);
        client_put_ten_blocks(&clients[i]);
    }
    struct memlog_service_figures_reply reply;
    service_figures(&service, &reply);
    ck_assert_uint_eq(reply.clients.count, MANY_CLIENTS);
    ck_assert_uint_eq(reply.tree.live_bytes, 600 * MANY_CLIENTS);
    for (uint32_t i = 0; i < MANY_CLIENTS; i++) {
        client_has_ten_blocks(&reply.clients.items[i]);
        ck_assert(reply.clients.items[i].complete);
    }
    for (uint32_t i = 0; i < MANY_CLIENTS; i++) {
        service_end_client(&service, i + 1);
        client_close(&clients[i]);
    }
    struct memlog_service_dump_reply dumped;
    (void)close(service_dump(&service, FIXTURE_DEADLINE_MS, &dumped));
    ck_assert(dumped.complete);
    service_stop_quietly(&service);
}
END_TEST

int main(void) {
    TCase *all = tcase_create("all");
    tcase_add_test(all, does_not_let_one_client_hold_the_others_back);
    tcase_add_test(all, refuses_more_clients_than_it_has_descriptors_for);
    tcase_add_test(all, drains_a_busy_client_without_being_asked);
    tcase_add_loop_test(all, keeps_the_books_of_busy_clients_on_several_cores, 0, 3);
    tcase_add_test(all, serves_a_thousand_clients);
    return fixture_run("service/service_load", all);
}

#include "tests/service/fixture.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/service/container.h"

enum { HOST_FD = 3 };

unsigned fixture_descriptors_max;

uint64_t fixture_now(void) {
    struct timespec now;
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

struct memlog_service_moment fixture_timestamp(void) {
    const uint64_t now = fixture_now();
    return (struct memlog_service_moment
    ){.ticks = now, .monotonic_ns = now, .realtime_ns = now, .boottime_ns = now};
}

/* A program of the build, beside this one. */
static void program_path(const char *name, char *out_path, size_t size_bytes) {
    const ssize_t count = readlink("/proc/self/exe", out_path, size_bytes - 1);
    ck_assert_int_gt(count, 0);
    out_path[count] = '\0';
    char *slash = strrchr(out_path, '/');
    ck_assert_ptr_nonnull(slash);
    (void)snprintf(slash, size_bytes - (size_t)(slash - out_path), "/%s", name);
}

static void
start(struct service *service, const char *program, const char *const *words, bool contained) {
    *service = (struct service){.host_fd = -1};
    char path[4096];
    program_path(program, path, sizeof(path));
    const char *all[8] = {program};
    for (size_t i = 0; words[i] != NULL; i++) {
        ck_assert_uint_lt(i, 6);
        all[i + 1] = words[i];
    }
    int ends[2];
    int errors[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
    ck_assert_int_eq(pipe2(errors, O_CLOEXEC), 0);
    service->pid = fork();
    ck_assert_int_ge(service->pid, 0);
    if (service->pid == 0) {
        const int stderr_fd = dup(errors[1]);
        const int socket_fd = dup(ends[1]);
        (void)dup2(socket_fd, HOST_FD);
        (void)dup2(stderr_fd, STDERR_FILENO);
        (void)fcntl(HOST_FD, F_SETFD, 0);
        const struct rlimit files = {fixture_descriptors_max, fixture_descriptors_max};
        if (fixture_descriptors_max > 0 && setrlimit(RLIMIT_NOFILE, &files) != 0) {
            _exit(97);
        }
        if (contained && container_enter() != 0) {
            _exit(98);
        }
        (void)execv(path, (char *const *)(const void *)all);
        _exit(99);
    }
    (void)close(ends[1]);
    (void)close(errors[1]);
    service->host_fd = ends[0];
    service->stderr_fd = errors[0];
}

void service_start_with(struct service *service, const char *program, const char *const *words) {
    start(service, program, words, false);
}

void service_start_contained(
    struct service *service, const char *program, const char *const *words
) {
    start(service, program, words, true);
}

static void on_lost(
    void *context,
    const struct ml_call *call,
    const struct memlog_service_client_lost_request *request
) {
    (void)call;
    struct service *service = context;
    ck_assert_uint_lt(service->lost_count, FIXTURE_LOST_MAX);
    service->lost_ids[service->lost_count] = request->id;
    memcpy(
        service->lost_reasons[service->lost_count],
        request->reason.data,
        request->reason.count_bytes
    );
    service->lost_count++;
}

static void on_end(void *context, struct ml_channel *channel, const struct ml_channel_end *end) {
    (void)channel;
    struct service *service = context;
    service->end = *end;
}

void service_speak(struct service *service) {
    static const struct memlog_service_host_for_service_handlers handlers = {
        .client_lost = on_lost};
    const struct ml_channel_options options = {
        .server = memlog_service_host_for_service_server(&handlers, service),
        .on_end = on_end,
        .context = service};
    ck_assert_int_eq(ml_channel_new(service->host_fd, &options, &service->channel), ML_OK);
    service->host_fd = -1;
    service->port = ml_channel_port(service->channel);
}

struct memlog_service_configure_reply service_configure(struct service *service) {
    const struct memlog_service_configure_request request = {
        .setup = {
            .version = MEMLOG_SERVICE_SERVICE_VERSION,
            .clock = MEMLOG_SERVICE_CLOCK_MONOTONIC,
            .start = fixture_timestamp()}};
    struct memlog_service_configure_reply reply;
    ck_assert_int_eq(
        memlog_service_configure_wait(service->port, &request, FIXTURE_WAIT_MS, &reply), ML_OK
    );
    return reply;
}

void service_start(struct service *service) {
    service_start_with(service, "memlog-service", (const char *const[]){"--sandbox=auto", NULL});
    service_speak(service);
    ck_assert_uint_eq(service_configure(service).missing_sandbox.count_bytes, 0);
}

int service_wait(struct service *service) {
    int status = 0;
    ck_assert_int_eq(waitpid(service->pid, &status, 0), service->pid);
    ml_channel_free(service->channel);
    service->channel = NULL;
    return status;
}

int service_stop(struct service *service) {
    ml_channel_free(service->channel);
    service->channel = NULL;
    if (service->host_fd >= 0) {
        (void)close(service->host_fd);
    }
    return service_wait(service);
}

void service_error(struct service *service, char *out_text, size_t size_bytes) {
    size_t used = 0;
    while (used + 1 < size_bytes) {
        const ssize_t count = read(service->stderr_fd, out_text + used, size_bytes - 1 - used);
        if (count <= 0) {
            break;
        }
        used += (size_t)count;
    }
    out_text[used] = '\0';
}

void service_figures(struct service *service, struct memlog_service_figures_reply *out_reply) {
    const struct memlog_service_figures_request request = {0};
    ck_assert_int_eq(
        memlog_service_figures_wait(service->port, &request, FIXTURE_WAIT_MS, out_reply), ML_OK
    );
}

struct memlog_service_client_figures
service_client(struct service *service, uint32_t id, struct memlog_service_totals *out_tree) {
    struct memlog_service_figures_reply reply;
    service_figures(service, &reply);
    if (out_tree != NULL) {
        *out_tree = reply.tree;
    }
    for (uint32_t i = 0; i < reply.clients.count; i++) {
        if (reply.clients.items[i].id == id) {
            return reply.clients.items[i];
        }
    }
    ck_abort_msg("no figures of client %u", id);
}

void service_await_lost(struct service *service, uint32_t lost_count) {
    while (service->lost_count < lost_count) {
        ck_assert_int_eq(ml_channel_receive(service->channel, FIXTURE_WAIT_MS), ML_OK);
    }
}

void service_end_client(struct service *service, uint32_t id) {
    const struct memlog_service_end_client_request request = {
        .end = {
            .id = id, .state = MEMLOG_SERVICE_PROCESS_STATE_EXITED, .end = fixture_timestamp()}};
    ck_assert_int_eq(memlog_service_end_client(service->port, &request), ML_OK);
}

int service_dump(
    struct service *service, uint32_t deadline_ms, struct memlog_service_dump_reply *out
) {
    const int file_fd = memfd_create("dump", MFD_CLOEXEC);
    ck_assert_int_ge(file_fd, 0);
    const struct memlog_service_dump_request request = {
        .order =
            {.reason = MEMLOG_SERVICE_DUMP_REASON_MANUAL,
             .now = fixture_timestamp(),
             .deadline_ms = deadline_ms,
             .program = ml_string_of("the program")},
        .file = file_fd};
    ck_assert_int_eq(
        memlog_service_dump_wait(service->port, &request, FIXTURE_WAIT_MS, out), ML_OK
    );
    return file_fd;
}

static struct ml_staging_header *staging_header(struct client *client) {
    return (struct ml_staging_header *)client->staging;
}

struct ml_staging_lane *client_lane_header(struct client *client, uint32_t lane) {
    return (struct ml_staging_lane *)(client->staging + ML_STAGING_LANES_OFFSET) + lane;
}

void client_open(struct client *client, uint32_t id, uint32_t slots) {
    *client = (struct client){.id = id, .slots = slots};
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    client->read_fd = ends[0];
    client->write_fd = ends[1];
    const uint64_t size_bytes = ml_staging_size_bytes(slots);
    client->staging_fd = memfd_create("staging", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(client->staging_fd, 0);
    ck_assert_int_eq(ftruncate(client->staging_fd, (off_t)size_bytes), 0);
    ck_assert_int_eq(
        fcntl(client->staging_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0
    );
    client->staging =
        mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, client->staging_fd, 0);
    ck_assert_ptr_ne(client->staging, MAP_FAILED);
    *staging_header(client) = (struct ml_staging_header
    ){.magic = ML_STAGING_MAGIC, .version = ML_STAGING_VERSION, .slots = slots};
}

void client_close(struct client *client) {
    (void)munmap(client->staging, ml_staging_size_bytes(client->slots));
    (void)close(client->read_fd);
    (void)close(client->write_fd);
    (void)close(client->staging_fd);
}

void client_add_with(
    struct service *service, const struct client *client, int pipe_fd, int staging_fd
) {
    char name[32];
    (void)snprintf(name, sizeof(name), "client %u", client->id);
    const struct ml_string words[] = {ml_string_of(name), ml_string_of("--word")};
    const struct memlog_service_add_client_request request = {
        .client =
            {.id = client->id,
             .pid = 1000 + client->id,
             .parent_pid = 1,
             .role = MEMLOG_SERVICE_ROLE_OTHER,
             .from_startup = true,
             .sampling_bytes = 1,
             .start = fixture_timestamp(),
             .name = ml_string_of(name),
             .command_line = {.items = words, .count = 2}},
        .event_pipe = pipe_fd,
        .staging = staging_fd};
    ck_assert_int_eq(memlog_service_add_client(service->port, &request), ML_OK);
}

void client_add(struct service *service, const struct client *client) {
    client_add_with(service, client, client->read_fd, client->staging_fd);
}

void client_join(struct service *service, struct client *client, uint32_t id) {
    client_open(client, id, 1);
    client_add(service, client);
}

static uint8_t *chunk_of(struct client *client, uint32_t lane) {
    return client->staging +
           ml_staging_slot_offset(lane, client->lanes[lane].number, client->slots) +
           ML_FRAME_HEADER_BYTES;
}

static void publish(struct client *client, uint32_t lane) {
    const struct client_lane *own = &client->lanes[lane];
    if (staging_header(client)->lanes_used <= lane) {
        staging_header(client)->lanes_used = lane + 1;
    }
    atomic_store_explicit(
        (_Atomic uint64_t *)&client_lane_header(client, lane)->published,
        own->number << ML_PUBLISHED_SHIFT | own->used_bytes,
        memory_order_release
    );
}

void client_flush(struct client *client, uint32_t lane) {
    struct client_lane *own = &client->lanes[lane];
    if (own->used_bytes == 0) {
        return;
    }
    uint8_t frame[ML_FRAME_MAX_BYTES];
    const struct ml_frame_header header = {
        .chunk_number = own->number,
        .end_bytes = (uint16_t)own->used_bytes,
        .lane = (uint16_t)lane,
        .thread_id = 1000 + lane};
    ml_frame_header_write(frame, &header);
    memcpy(frame + ML_FRAME_HEADER_BYTES, chunk_of(client, lane), own->used_bytes);
    const size_t count_bytes = ML_FRAME_HEADER_BYTES + own->used_bytes;
    ck_assert_int_eq(write(client->write_fd, frame, count_bytes), (ssize_t)count_bytes);
    *own = (struct client_lane){.number = own->number + 1};
    atomic_store_explicit(
        (_Atomic uint64_t *)&client_lane_header(client, lane)->sent,
        own->number,
        memory_order_release
    );
    publish(client, lane);
}

void client_drop(struct client *client, uint32_t lane, uint64_t events) {
    struct client_lane *own = &client->lanes[lane];
    struct ml_staging_lane *header = client_lane_header(client, lane);
    *own = (struct client_lane){.number = own->number + 1};
    header->lost_events += events;
    header->sent = own->number;
    header->lost_chunks++;
    publish(client, lane);
}

void client_put(struct client *client, uint32_t lane, const struct ml_event *event) {
    struct client_lane *own = &client->lanes[lane];
    struct ml_writer w = ml_writer_into(
        chunk_of(client, lane) + own->used_bytes, ML_CHUNK_MAX_BYTES - own->used_bytes
    );
    enum ml_status status = ml_event_encode(&w, &own->state, event);
    if (status == ML_BUG_SPACE) {
        client_flush(client, lane);
        w = ml_writer_into(chunk_of(client, lane), ML_CHUNK_MAX_BYTES);
        status = ml_event_encode(&w, &own->state, event);
    }
    ck_assert_int_eq(status, ML_OK);
    own->used_bytes += ml_writer_count(&w);
    client_lane_header(client, lane)->produced += ml_staging_counts(event->kind) ? 1 : 0;
    publish(client, lane);
}

void client_put_start(struct client *client) {
    const uint64_t now = fixture_now();
    const struct ml_event events[] = {
        {.kind = ML_EVENT_START,
         .start =
             {.version = ML_STREAM_VERSION,
              .clock = ML_CLOCK_MONOTONIC,
              .pid = 1000 + client->id,
              .thread_id = 1000,
              .ticks = now,
              .monotonic_ns = now,
              .sampling_bytes = 1,
              .page_bytes = 4096}},
        {.kind = ML_EVENT_MODULE,
         .module =
             {.id = 1,
              .start = 0x400000,
              .end = 0x500000,
              .path = (const uint8_t *)"/bin/program",
              .path_bytes = 12}},
        {.kind = ML_EVENT_NODE, .node = {.id = 1, .module = 1, .address = 0x400100}},
        {.kind = ML_EVENT_NODE, .node = {.id = 2, .parent = 1, .module = 1, .address = 0x400200}},
    };
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        client_put(client, 0, &events[i]);
    }
}

void client_put_alloc(struct client *client, uint32_t lane, uint64_t address, uint64_t size_bytes) {
    const struct ml_event event = {
        .kind = ML_EVENT_ALLOC,
        .time = fixture_now(),
        .block = {
            .address = address,
            .size_bytes = size_bytes,
            .weight_bytes = size_bytes,
            .weight_blocks = 1,
            .node = 2}};
    client_put(client, lane, &event);
}

void client_put_free(struct client *client, uint32_t lane, uint64_t address) {
    const struct ml_event event = {
        .kind = ML_EVENT_FREE, .time = fixture_now(), .block = {.address = address}};
    client_put(client, lane, &event);
}

void service_ended_quietly(int status) {
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == 0, "wait status %x", (unsigned)status
    );
}

void service_stop_quietly(struct service *service) {
    service_ended_quietly(service_stop(service));
}

void service_ended_broken(int status) {
    ck_assert_msg(
        WIFEXITED(status) && WEXITSTATUS(status) == 1, "wait status %x", (unsigned)status
    );
}

void client_put_ten_blocks(struct client *client) {
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

void client_has_ten_blocks(const struct memlog_service_client_figures *figures) {
    ck_assert_uint_eq(figures->totals.live_bytes, 600);
    ck_assert_uint_eq(figures->totals.live_blocks, 6);
    ck_assert_uint_eq(figures->totals.peak_bytes, 1000);
    ck_assert_uint_eq(figures->totals.total_bytes, 1000);
    ck_assert_uint_eq(figures->totals.total_blocks, 10);
    ck_assert_uint_eq(figures->lost_events, 0);
}

void service_has_ten_blocks(struct service *service, uint32_t id) {
    const struct memlog_service_client_figures figures = service_client(service, id, NULL);
    client_has_ten_blocks(&figures);
    ck_assert(figures.complete);
}

int fixture_run(const char *name, TCase *take_tests) {
    Suite *suite = suite_create(name);
    tcase_set_timeout(take_tests, 60);
    suite_add_tcase(suite, take_tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}

/* A host and hand-made clients for tests of the real memlog-service, in its real sandbox. */
#ifndef MEMLOG_TESTS_SERVICE_FIXTURE_H
#define MEMLOG_TESTS_SERVICE_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <check.h>

#include "ipc/channel/channel.h"
#include "ipc/wire/event.h"
#include "ipc/wire/staging.h"
#include "mojom_like_idl/contracts/heap_service_mojom.h"

enum { FIXTURE_LANES = 4, FIXTURE_LOST_MAX = 512, FIXTURE_WAIT_MS = 60000 };

/* The time for a drain or a dump that is to find all clients read: sanitized, on a busy machine. */
enum { FIXTURE_DEADLINE_MS = 50000 };

/* The service, and what it told its host unasked. */
struct service {
    pid_t pid;
    int host_fd; /* our end, until a channel has it */
    int stderr_fd;
    struct ml_channel *channel;
    struct ml_port *port;
    struct ml_channel_end end;
    uint32_t lost_count;
    uint32_t lost_ids[FIXTURE_LOST_MAX];
    char lost_reasons[FIXTURE_LOST_MAX][257];
};

/* Most descriptors that services started from now on may have; 0: as many as this process. */
extern unsigned fixture_descriptors_max;

/* Now by CLOCK_MONOTONIC, which is the tests' clock. */
uint64_t fixture_now(void);
struct memlog_service_moment fixture_timestamp(void);

/* Start it, with words behind the program's name; no channel yet. */
void service_start_with(struct service *service, const char *program, const char *const *words);

/* The same, in a container that forbids namespaces (tests/service/container.h). */
void service_start_contained(
    struct service *service, const char *program, const char *const *words
);

/* Start it with --sandbox=auto, speak with it, configure it. */
void service_start(struct service *service);

/* The Configure call; answers the reply. */
struct memlog_service_configure_reply service_configure(struct service *service);

/* Make a channel of host_fd. */
void service_speak(struct service *service);

/* Hang up; answers the wait status. */
int service_stop(struct service *service);

/* The same, but wait only: something else is to end it. */
int service_wait(struct service *service);

/* Hang up; fails the test unless it ends as it should. Most tests end with this. */
void service_stop_quietly(struct service *service);

/* Fails the test unless a wait status says that it ended as it should, or that its host broke the
 * contract. */
void service_ended_quietly(int status);
void service_ended_broken(int status);

/* What it wrote to stderr; call after the end. */
void service_error(struct service *service, char *out_text, size_t size_bytes);

void service_figures(struct service *service, struct memlog_service_figures_reply *out_reply);

/* The row of one client; fails the test when there is none. */
struct memlog_service_client_figures
service_client(struct service *service, uint32_t id, struct memlog_service_totals *out_tree);

/* Handle what the service says unasked until it has said `lost_count` losses. */
void service_await_lost(struct service *service, uint32_t lost_count);

void service_end_client(struct service *service, uint32_t id);

/* A dump into a new memfd, which is returned. */
int service_dump(
    struct service *service, uint32_t deadline_ms, struct memlog_service_dump_reply *out
);

struct client_lane {
    uint64_t number;
    size_t used_bytes;
    struct ml_event_state state;
};

/* A hand-made client. It uses its pipe and its staging as client/stream/flush.c does. */
struct client {
    uint32_t id;
    int read_fd, write_fd; /* the pipe; read_fd is what the host keeps in spare */
    int staging_fd;
    uint8_t *staging; /* mapped */
    uint32_t slots;
    struct client_lane lanes[FIXTURE_LANES];
};

/* Make it, without telling the service. */
void client_open(struct client *client, uint32_t id, uint32_t slots);
void client_close(struct client *client);

/* Tell the service of it, with these descriptors. */
void client_add_with(
    struct service *service, const struct client *client, int pipe_fd, int staging_fd
);
void client_add(struct service *service, const struct client *client);

/* Make one with one slot and tell the service of it. Most tests begin with this. */
void client_join(struct service *service, struct client *client, uint32_t id);

/* One record into the lane's chunk, published; a full chunk is sent first. */
void client_put(struct client *client, uint32_t lane, const struct ml_event *event);

/* START, one module, and nodes 1 (root) and 2 below it. */
void client_put_start(struct client *client);
void client_put_alloc(struct client *client, uint32_t lane, uint64_t address, uint64_t size_bytes);
void client_put_free(struct client *client, uint32_t lane, uint64_t address);

/* Send the lane's chunk down the pipe; a new one begins. */
void client_flush(struct client *client, uint32_t lane);

/* The pipe is full: lose the lane's chunk, with so many events; a new one begins. */
void client_drop(struct client *client, uint32_t lane, uint64_t events);

struct ml_staging_lane *client_lane_header(struct client *client, uint32_t lane);

/* Put ten blocks of 100 bytes at one stack and free four, half of it by pipe and half in staging.
 * The other fails the test unless the service reports that. */
void client_put_ten_blocks(struct client *client);
void client_has_ten_blocks(const struct memlog_service_client_figures *figures);

/* The same of the service's own answer, which must say that nothing is missing. */
void service_has_ten_blocks(struct service *service, uint32_t id);

/* A suite of one case with a minute for each test: carry it out. Returns the exit code. */
int fixture_run(const char *name, TCase *take_tests);

#endif

#include "tests/service/session/fixture.h"

#include <string.h>

#include <check.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "service/session/session.h"
#include "tests/service/builder_reader.h"
#include "tests/service/session/check.h"

struct ml_session *session;
struct ml_client *clients[CLIENTS_MAX + 1];
struct builder *builders[CLIENTS_MAX + 1];

void session_set_up(void) {
    const struct ml_timestamp start = {.ticks = 1};
    session = ml_session_new(&start, 0);
    ck_assert_ptr_nonnull(session);
    memset(clients, 0, sizeof(clients));
    memset(builders, 0, sizeof(builders));
}

void session_tear_down(void) {
    for (int i = 1; i <= CLIENTS_MAX; i++) {
        builder_free(builders[i]);
    }
    ml_session_free(session);
}

void add_with(uint32_t id, const struct ml_client_setup *setup) {
    ck_assert_int_eq(ml_session_add(session, setup, &clients[id]), ML_OK);
    builders[id] = builder_new();
    builder_start(builders[id], setup->pid, 0);
    builder_node(builders[id], 0, 1, 0);
    builder_node(builders[id], 0, 2, 1);
}

void add_client(uint32_t id) {
    const struct ml_client_setup setup = {
        .id = id, .pid = 100 + id, .sampling_bytes = 1, .from_startup = true};
    add_with(id, &setup);
}

enum ml_status read_pipe(uint32_t id) {
    return builder_read_pipe(builders[id], clients[id]);
}

void advance(uint64_t ticks) {
    for (uint32_t i = 1; i <= CLIENTS_MAX; i++) {
        if (clients[i] != NULL && ml_client_status(clients[i]) == ML_OK) {
            (void)read_pipe(i);
            if (builders[i]->header.magic != 0) {
                builder_read_staging(builders[i], clients[i]);
            }
            ck_assert(ml_client_settled(clients[i]));
        }
    }
    ck_assert_int_eq(ml_session_advance(session, ticks), ML_OK);
    ck_assert(ml_session_check(session));
}

void end_client(uint32_t id, uint64_t ticks) {
    const struct ml_client_end end = {.state = 1, .end = {.ticks = ticks}};
    (void)read_pipe(id);
    ml_client_pipe_over(clients[id]);
    builder_read_staging(builders[id], clients[id]);
    ck_assert_int_eq(ml_client_ended(clients[id], &end), ML_OK);
    builders[id]->header.magic = 0;
}

struct ml_client_figures figures(uint32_t id) {
    return ml_client_figures(clients[id]);
}

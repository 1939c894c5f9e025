/* A session with hand-made clients. Room: tests.
 *
 * One rule: a client is named by its id, from 1. Its builder writes what it streams. */
#ifndef MEMLOG_TESTS_SERVICE_SESSION_FIXTURE_H
#define MEMLOG_TESTS_SERVICE_SESSION_FIXTURE_H

#include <stdint.h>

#include "service/session/client.h"
#include "service/session/figures.h"
#include "tests/service/stream_builder.h"

enum { CLIENTS_MAX = 4 };

extern struct ml_session *session;
extern struct ml_client *clients[CLIENTS_MAX + 1];
extern struct builder *builders[CLIENTS_MAX + 1];

/* Check's fixture, of each test. */
void session_set_up(void);
void session_tear_down(void);

/* A client that has defined nodes 1 and, below it, 2. */
void add_with(uint32_t id, const struct ml_client_setup *setup);
void add_client(uint32_t id);

/* Read all of its pipe. Returns the client's answer. */
enum ml_status read_pipe(uint32_t id);

/* Read all clients, and apply everything up to that moment. */
void advance(uint64_t ticks);

/* The process has ended at that moment, and all of it is read. */
void end_client(uint32_t id, uint64_t ticks);

struct ml_client_figures figures(uint32_t id);

#endif

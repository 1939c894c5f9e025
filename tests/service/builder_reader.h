/* Reads a client whose stream a builder writes, as a connection does. Room: tests.
 *
 * One rule: its two halves are separate, as in the service: a test may do something between pipe
 * and staging. */
#ifndef MEMLOG_TESTS_SERVICE_BUILDER_READER_H
#define MEMLOG_TESTS_SERVICE_BUILDER_READER_H

#include "ipc/wire/ml_status.h"
#include "service/session/client.h"
#include "tests/service/stream_builder.h"

/* Read all of the pipe. Returns the client's answer. */
enum ml_status builder_read_pipe(struct builder *builder, struct ml_client *client);

/* Read the lanes' headers, then the pieces that the client wants of them. Fails the test unless it
 * takes them. */
void builder_read_staging(const struct builder *builder, struct ml_client *client);

#endif

/* What a connection does with its client, for one whose stream a builder writes. Room: tests.
 *
 * One rule: the two halves are apart, as they are in the service: a test may do something between
 * pipe and staging. */
#ifndef MEMLOG_TESTS_SERVICE_BUILDER_READER_H
#define MEMLOG_TESTS_SERVICE_BUILDER_READER_H

#include "ipc/wire/ml_status.h"
#include "service/session/client.h"
#include "tests/service/stream_builder.h"

/* Read all that is in the pipe. Returns what the client says of it. */
enum ml_status builder_read_pipe(struct builder *builder, struct ml_client *client);

/* Read the lanes' headers, then the pieces that the client wants of them. Fails the test unless it
 * takes them. */
void builder_read_staging(const struct builder *builder, struct ml_client *client);

#endif

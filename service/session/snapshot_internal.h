/* What snapshot_build.c and snapshot_tables.c share. Room: service (private). Context: the
 * session's thread.
 *
 * One rule: what is allocated here is freed by ml_snapshot_free. */
#ifndef MEMLOG_SERVICE_SESSION_SNAPSHOT_INTERNAL_H
#define MEMLOG_SERVICE_SESSION_SNAPSHOT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "service/snapshot/snapshot.h"

struct ml_client;
struct ml_rest;

/* Room for `count` things, at least one; NULL when there is no memory. */
void *ml_snapshot_array(size_t count, size_t size);

/* Copy, and add a NUL; a NULL text is an empty one. False when there is no memory. */
bool ml_snapshot_copy_bytes(const void *bytes, uint32_t count, struct ml_string *out_text);
bool ml_snapshot_copy_string(const char *text, struct ml_string *out_text);

/* Copy everything of a client but its figures, as far as the content asks for it. False when there
 * is no memory; what was copied is in the process. */
bool ml_snapshot_copy_tables(
    const struct ml_client *client,
    enum memlog_service_dump_content content,
    struct ml_snapshot_process *process,
    const struct ml_rest *rest
);

#endif

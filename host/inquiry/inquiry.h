/* Asks a running memlog again and again, and never waits for it. Room: host. Context: one thread of
 * a command's own process.
 *
 * One rule: a host has gone when nobody listens at its socket. One that is busy, stands still or
 * has closed the connection is asked again. */
#ifndef MEMLOG_HOST_INQUIRY_INQUIRY_H
#define MEMLOG_HOST_INQUIRY_INQUIRY_H

#include <stdbool.h>

#include "base/error_message.h"
#include "host/sockets/socket_directory.h"
#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/heap_host_mojom.h"

struct ml_channel;

enum ml_inquiry_state {
    ML_INQUIRY_WAITS = 0, /* for an answer, or to be asked */
    ML_INQUIRY_ANSWERED,  /* the callback has had the answer */
    ML_INQUIRY_FAILED,    /* no answer comes to what was asked */
    ML_INQUIRY_GONE
};

struct ml_inquiry {
    char path[ML_SOCKET_DIRECTORY_PATH_BYTES]; /* of its command socket */
    struct ml_channel *channel;                /* NULL: not connected */
    void (*on_ps)(void *context, const struct memlog_host_ps_reply *reply);
    void *context;
    char trouble[256];           /* why the last snapshot is empty; "": it is not */
    enum ml_inquiry_state state; /* of the last turn */
    bool is_asked;
    bool has_answered; /* once at least */
};

/* Connect to the host whose command socket is `path`. The callback gets each answer, which lives
 * until it returns.
 *
 * Errors: ML_ENV_MISSING, ML_ENV_AGAIN and others with an error message.
 * Owner:  ml_inquiry_fini, also after an error. */
ML_NODISCARD enum ml_status ml_inquiry_init(
    struct ml_inquiry *inquiry,
    const char *path,
    void (*on_ps)(void *context, const struct memlog_host_ps_reply *reply),
    void *context,
    struct ml_error_message *error
);
void ml_inquiry_fini(struct ml_inquiry *inquiry);

/* Ask for the processes, unless an answer is still to come. A lost connection is made anew. */
void ml_inquiry_ask(struct ml_inquiry *inquiry);

/* Ask for a snapshot in `fd`, an empty memfd that stays the caller's, likewise. Answered without
 * the callback: `trouble` says how. */
void ml_inquiry_snapshot(struct ml_inquiry *inquiry, int fd);

/* Take what has come since. Never waits. */
enum ml_inquiry_state ml_inquiry_turn(struct ml_inquiry *inquiry);

#endif

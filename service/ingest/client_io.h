/* One client's descriptors: its event pipe and its staging, read into the session. Room: service.
 * Context: one thread at a time, which need not be the session's (ml_session_apart); never waits.
 *
 * One rule: bytes come by read and pread alone, never by a mapping, and only here. An answer of
 * ML_PEER_* or ML_ENV_* concerns this client only. */
#ifndef MEMLOG_SERVICE_INGEST_CLIENT_IO_H
#define MEMLOG_SERVICE_INGEST_CLIENT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

/* A client's state. LOST is 0, so an unset entry of the transition table drops the client. */
enum ml_io_state {
    ML_IO_LOST,      /* it broke its contract: closed, what was read stays */
    ML_IO_STREAMING, /* pipe and staging are read */
    ML_IO_SILENT,    /* its pipe has no writer any more; staging is read */
    ML_IO_ENDING,    /* its process has ended: one last reading to the end */
    ML_IO_ENDED,     /* closed, its profile kept */
    ML_IO_STATE_COUNT
};

enum ml_io_event {
    ML_IO_HANGUP, /* end of file in the pipe */
    ML_IO_END,    /* the host saw the process end */
    ML_IO_READ,   /* read to the end after that */
    ML_IO_BROKEN, /* an error of this client */
    ML_IO_EVENT_COUNT
};

struct ml_client_io {
    struct ml_client *client;
    uint32_t id;
    enum ml_io_state state;
    int pipes_fd;   /* the epoll in which its pipe is while STREAMING; borrowed */
    int pipe_fd;    /* -1 once it is closed */
    int staging_fd; /* -1 once it is closed */
    uint64_t read_bytes;
    uint64_t pipe_bytes; /* the pipe's capacity at first; its owner may change that */
    uint64_t last_bytes; /* read in the state ENDING */
    bool more;           /* then: the client was full before the pipe's end */
};

/* Scratch memory of one reading thread: nothing in it outlives a call. */
struct ml_io_scratch;
struct ml_io_scratch *ml_io_scratch_new(void);
void ml_io_scratch_free(struct ml_io_scratch *take_scratch);

/* Take the descriptors of a client of the session. The pipe becomes non-blocking and enters the
 * epoll `pipes_fd` with *io as its data.
 *
 * Errors: ML_PEER_HANDLE when the pipe does not do that, or staging cannot be read at a position.
 * Owner:  the two are *io's, on failure closed; client is the session's. *io must not move. */
ML_NODISCARD enum ml_status ml_client_io_open(
    struct ml_client_io *io,
    struct ml_client *client,
    uint32_t id,
    int pipes_fd,
    int take_pipe_fd,
    int take_staging_fd
);

/* Move to the next state and close what it does not read. */
void ml_client_io_on(struct ml_client_io *io, enum ml_io_event event);

/* Read the pipe until it is empty or `limit_bytes` are read. An end of file is ML_IO_HANGUP. */
ML_NODISCARD enum ml_status
ml_client_io_read_pipe(struct ml_client_io *io, struct ml_io_scratch *scratch, size_t limit_bytes);

/* One round's reading: the pipe, then staging, then what went into the pipe meanwhile. *out_active
 * says whether anything was new. Whether that was all: ml_client_settled. It stops early at a
 * client that is stuffed (ml_client_stuffed). */
ML_NODISCARD enum ml_status
ml_client_io_round(struct ml_client_io *io, struct ml_io_scratch *scratch, bool *out_active);

#endif

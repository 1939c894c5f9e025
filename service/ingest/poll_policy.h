/* Whether to sleep until a pipe has data, or to poll all pipes by a timer. Room: service.
 * Context: one thread; pure.
 *
 * One rule: the polling interval is less than half the time in which any pipe would fill at its
 * recent rate.
 *
 * A write into a pipe wakes its sleeping reader. That costs the writer 15 to 20 us, where the write
 * itself takes one, and the reader may take the writer's processor. So while much is written the
 * service polls. */
#ifndef MEMLOG_SERVICE_INGEST_POLL_POLICY_H
#define MEMLOG_SERVICE_INGEST_POLL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ML_POLL_LOOK_NS = 1000000, /* requested interval between polls: libev's finest */
    /* Longest real interval: libev rounds up to whole milliseconds, and a processor may not be free
     * at once. */
    ML_POLL_LOOK_MAX_NS = 2500000,
    ML_POLL_SPAN_NS = 8000000, /* length of a span, over which bytes are counted */
    /* Bytes in a span: two or three chunks. With fewer, being woken is cheaper. */
    ML_POLL_BUSY_BYTES = 8192
};

struct ml_poll_policy {
    bool by_clock;
    bool urgent; /* a pipe was half full, or was not read to its end */
    uint64_t span_start_ns;
    uint32_t span;    /* counts spans: a pipe's own count begins anew when it is read in the next */
    uint64_t bytes;   /* of all pipes in this span */
    uint32_t fullest; /* of the pipes: bytes in this span, in 1/1024 of what it holds */
};

/* One pipe's part of it; zero at first, but for what the pipe holds. */
struct ml_poll_policy_pipe {
    uint64_t capacity_bytes;
    uint64_t bytes;
    uint32_t span;
};

/* So much was read from that pipe in this poll; whether it may hold more. */
void ml_poll_policy_read(
    struct ml_poll_policy *poll_policy, struct ml_poll_policy_pipe *pipe, uint64_t bytes, bool more
);

/* A poll is over: by_clock says how to wait for the next one. */
void ml_poll_policy_looked(struct ml_poll_policy *poll_policy, uint64_t now_ns);

#endif

/* Whether to sleep until a pipe has something, or to look at all pipes by the clock. Room: service.
 * Context: one thread; pure.
 *
 * One rule: who looks by the clock is there before a pipe that goes on as lately is half full.
 *
 * A write into a pipe that somebody sleeps on wakes him: 15 to 20 us of the writer's time, where
 * the write itself takes one, and the woken one may take the writer's processor from him. So while
 * much is written nobody sleeps on the pipes. */
#ifndef MEMLOG_SERVICE_INGEST_POLL_POLICY_H
#define MEMLOG_SERVICE_INGEST_POLL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

enum {
    ML_POLL_LOOK_NS = 1000000, /* asked for between two looks: libev's finest */
    /* What may lie between two looks: libev rounds up to whole milliseconds, and a processor is not
     * always to be had at once. */
    ML_POLL_LOOK_MAX_NS = 2500000,
    ML_POLL_SPAN_NS = 8000000, /* what is read is counted for so long before it means anything */
    /* In a span: two or three chunks. With fewer it is cheaper to be woken. */
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

/* So much was read from that pipe in this look; whether it may hold more. */
void ml_poll_policy_read(
    struct ml_poll_policy *poll_policy, struct ml_poll_policy_pipe *pipe, uint64_t bytes, bool more
);

/* A look is over: by_clock says how to wait for the next one. */
void ml_poll_policy_looked(struct ml_poll_policy *poll_policy, uint64_t now_ns);

#endif

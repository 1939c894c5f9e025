/* Where a dump's bytes go. Room: service. Context: one thread. */
#ifndef MEMLOG_SERVICE_DUMP_SINK_H
#define MEMLOG_SERVICE_DUMP_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

/* The largest packet: what a reader has to hold at once. */
enum { ML_DUMP_PACKET_MAX_BYTES = 1 << 20 };

/* `write` takes all of the bytes, or returns why not. */
struct ml_dump_sink {
    enum ml_status (*write)(void *context, const uint8_t *bytes, size_t count_bytes);
    /* Called about every millisecond during long work; may be NULL. */
    void (*rest)(void *context);
    void *context;
};

/* A sink that writes everything to a descriptor. */
struct ml_dump_sink ml_dump_sink_over(const int *fd);

#endif

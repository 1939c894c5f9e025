/* Where a dump's bytes go. Room: service. Context: one thread. */
#ifndef MEMLOG_SERVICE_DUMP_SINK_H
#define MEMLOG_SERVICE_DUMP_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"

/* The largest packet: what a reader has to hold at once. */
enum { ML_DUMP_PACKET_MAX_BYTES = 1 << 20 };

/* It takes all of the bytes, or answers why not. */
struct ml_dump_sink {
    enum ml_status (*write)(void *context, const uint8_t *bytes, size_t count_bytes);
    /* Called every millisecond or so while something takes long; NULL: nobody waits meanwhile. */
    void (*rest)(void *context);
    void *context;
};

/* A sink over a descriptor: writes until all is written. */
struct ml_dump_sink ml_dump_sink_over(const int *fd);

#endif

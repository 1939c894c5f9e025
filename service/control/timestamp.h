/* Timestamps, as messages and as the session have them. Room: service. Context: any. */
#ifndef MEMLOG_SERVICE_CONTROL_TIMESTAMP_H
#define MEMLOG_SERVICE_CONTROL_TIMESTAMP_H

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/snapshot/snapshot.h"

static inline struct ml_timestamp ml_timestamp_of(const struct memlog_service_moment *timestamp) {
    return (struct ml_timestamp
    ){.ticks = timestamp->ticks,
      .monotonic_ns = timestamp->monotonic_ns,
      .realtime_ns = timestamp->realtime_ns,
      .boottime_ns = timestamp->boottime_ns};
}

#endif

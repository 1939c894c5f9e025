/* Moments, as messages and as the session have them. Room: service. Context: any. */
#ifndef MEMLOG_SERVICE_CONTROL_MOMENT_H
#define MEMLOG_SERVICE_CONTROL_MOMENT_H

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/snapshot/snapshot.h"

static inline struct ml_moment ml_moment_of(const struct memlog_service_moment *moment) {
    return (struct ml_moment
    ){.ticks = moment->ticks,
      .monotonic_ns = moment->monotonic_ns,
      .realtime_ns = moment->realtime_ns,
      .boottime_ns = moment->boottime_ns};
}

#endif

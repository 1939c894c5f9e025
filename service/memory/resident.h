/* What is resident of a part of a mapping, by the pages that the kernel told. Room: service.
 * Context: any; pure.
 *
 * One rule: of a mapping whose pages were not told, each byte counts by the share of the mapping
 * that is resident. */
#ifndef MEMLOG_SERVICE_MEMORY_RESIDENT_H
#define MEMLOG_SERVICE_MEMORY_RESIDENT_H

#include <stdbool.h>
#include <stdint.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"

/* Units: bytes, resident. */
struct ml_resident {
    uint64_t private, shared;
};

/* Add what is resident from `start` to `end`, both in that region of the view. */
void ml_resident_add(
    struct ml_resident *sum,
    const struct memlog_service_process_view *view,
    const struct memlog_service_memory_region *region,
    uint64_t start,
    uint64_t end
);

/* Whether it is not known which of its pages are resident. */
bool ml_resident_is_estimated(const struct memlog_service_memory_region *region);

#endif

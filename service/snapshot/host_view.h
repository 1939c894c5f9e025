/* What the host saw of a process, for a dump alone: its threads, what its memory is, and how much
 * of that its live blocks hold. Room: service. Context: one thread.
 *
 * One rule: once a client has it, it never changes. Whoever keeps it holds a reference, and a newer
 * one takes its place. */
#ifndef MEMLOG_SERVICE_SNAPSHOT_HOST_VIEW_H
#define MEMLOG_SERVICE_SNAPSHOT_HOST_VIEW_H

#include <stdint.h>

#include "mojom_like_idl/contracts/heap_service_mojom.h"
#include "service/memory/holdings.h"
#include "service/memory/overlay.h"

struct ml_host_view {
    uint32_t references;
    struct memlog_service_show_process_request *message; /* a copy; the view's */
    uint64_t bytes;                                      /* that it takes */
    uint64_t private_kb;         /* of all its mappings, and what is swapped out */
    struct ml_overlay overlay;   /* live blocks over its pages; without heaps: none were laid */
    struct ml_holdings holdings; /* what others hold of them */
    uint64_t files_bytes;        /* private memory of files' mappings that nobody of them holds */
    uint64_t shared_files_bytes; /* of files' mappings, what other processes have too */
};

/* Its files_bytes and shared_files_bytes: once its holdings are known. */
void ml_host_view_count_files(struct ml_host_view *view);

/* A copy of the message, with one reference. NULL: no memory. */
struct ml_host_view *ml_host_view_of(const struct memlog_service_show_process_request *message);

/* The same without its mappings, for which there was no room; it says so. NULL: no memory. */
struct ml_host_view *ml_host_view_brief(const struct ml_host_view *view);

/* Add a reference; NULL stays NULL. */
struct ml_host_view *ml_host_view_keep(struct ml_host_view *view);

/* Drop a reference; the last one frees the view. NULL is allowed. */
void ml_host_view_free(struct ml_host_view *take_view);

#endif

/* CRC-32 (IEEE 802.3, as in gzip and PNG). Room: ipc (:trace). Context: any.
 *
 * One rule: it finds accidents, not attacks. */
#ifndef MEMLOG_IPC_TRACE_CRC32_H
#define MEMLOG_IPC_TRACE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Continue from `crc`: what a call answered before, 0 at the start. */
uint32_t ml_crc32(uint32_t crc, const void *bytes, size_t count_bytes);

#endif

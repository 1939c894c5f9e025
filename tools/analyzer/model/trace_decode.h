/* Adds one of memlog's packets to a profile. Room: tools. Context: one thread; hostile bytes.
 *
 * One rule: rows that contradict the profile's rule end the packet with a status. Rows before them
 * stay. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_DECODE_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"

/* The state of reading the file. */
struct ml_trace_decoder {
    struct ml_profile *profile;
    uint32_t packets_count; /* of ours, of the dump at hand */
    uint32_t dumps_count;   /* that began so far */
    uint32_t wanted_dump;   /* from 1; 0: the last one of the file */
    bool ended;             /* the dump's end mark was read */
};

/* Decode one TracePacket. Packets without a field of ours are ignored, but for symbols. Where
 * another dump begins in the file (`cat A B`), the one before is forgotten unless it is the wanted
 * one.
 *
 * Errors: ML_PEER_FORM no protobuf, or a checksum that does not fit; ML_PEER_RANGE, ML_PEER_LIMIT,
 *         ML_PEER_REFERENCE, ML_PEER_STATE: contradicts what came before; ML_PEER_VERSION;
 *         ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status
ml_trace_decode_packet(struct ml_trace_decoder *decoder, const uint8_t *bytes, size_t count_bytes);

#endif

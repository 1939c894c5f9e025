/* Messages to bytes and back, by table. Room: mojom_like_idl. Context: any, the client inside a
 * stranger's process included: no allocation, no lock, no errno, no syscall.
 *
 * One rule: each value has exactly one form. Decode accepts what encode writes; any other bytes
 * decode to another value or to ML_PEER_*.
 *
 * A body is msgpack in its shortest forms:
 *   struct, message    array of its fields in order; an older sender's ends at its own version
 *   bool, numbers      the same; whole numbers in the shortest form, float and double in theirs
 *   enum               its number, one of those declared
 *   string, bytes      str, bin; at most `limit` bytes; no 0 in a string
 *   array              array of at most `limit` elements
 *   map                map of at most `limit` entries, keys strictly ascending
 *   union              array of two: tag, value
 *   handle             the number of its descriptor: 0, 1, 2 ... in the order of the fields
 *   nullable           nil, or the value */
#ifndef MEMLOG_MOJOM_LIKE_IDL_RUNTIME_CODEC_H
#define MEMLOG_MOJOM_LIKE_IDL_RUNTIME_CODEC_H

#include "ipc/wire/message.h"
#include "mojom_like_idl/runtime/layout.h"

/* For the channel: measures, allocates, checks by itself. */
extern const struct ml_codec ml_mojom_codec;

/* A whole message as one packet, header included, for those who own their socket (the client).
 *
 * Errors: ML_BUG_SPACE when `buffer` is too small (the generated *_MAX_BYTES never is) or the
 *         message needs more than one packet; ML_BUG_CONTRACT for a value outside its contract.
 * Owner:  `buffer` is the caller's; the descriptors in *out_handles are those of the value. */
ML_NODISCARD enum ml_status ml_codec_encode_packet(
    const struct ml_message_type *type,
    uint32_t request_id,
    const void *value,
    void *buffer,
    size_t size_bytes,
    size_t *out_count_bytes,
    struct ml_handles *out_handles
);

/* The opposite: a packet that must be exactly this message with exactly these descriptors.
 *
 * Errors: ML_PEER_STATE for another message or request id; ML_PEER_*; ML_BUG_SPACE when the arena
 *         is too small (the generated *_ARENA_BYTES never is).
 * Owner:  strings in *out_value point into the packet, arrays into the arena. The descriptors stay
 *         the caller's, also on failure. */
ML_NODISCARD enum ml_status ml_codec_decode_packet(
    const struct ml_message_type *type,
    uint32_t request_id,
    const void *packet,
    size_t packet_bytes,
    const int *fds,
    size_t fd_count,
    void *arena,
    size_t arena_bytes,
    void *out_value
);

#endif

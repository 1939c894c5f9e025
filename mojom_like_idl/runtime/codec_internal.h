/* What ml_mojom_codec encodes by. Room: mojom_like_idl, private. Context and errors: as struct
 * ml_codec in ipc/wire/message.h. */
#ifndef MEMLOG_MOJOM_LIKE_IDL_RUNTIME_CODEC_INTERNAL_H
#define MEMLOG_MOJOM_LIKE_IDL_RUNTIME_CODEC_INTERNAL_H

#include "mojom_like_idl/runtime/codec.h"

ML_NODISCARD enum ml_status ml_codec_encode(
    const struct ml_message_type *type,
    const void *value,
    void *buffer,
    size_t size_bytes,
    size_t *out_count_bytes,
    struct ml_handles *out_handles
);

#endif

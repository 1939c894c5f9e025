/* Adds rows of one process's tables to a profile. Room: tools. Context: one thread; hostile bytes.
 *
 * One rule: figures are never dropped because their stack is missing. A cell without its node
 * (whose packet was damaged) goes to "no stack", and the profile is `damaged`. */
#ifndef MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_TABLE_H
#define MEMLOG_TOOLS_ANALYZER_MODEL_TRACE_TABLE_H

#include <pb_decode.h>

#include <stdbool.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"

/* Where a text goes. */
struct ml_text_target {
    struct ml_arena *arena;
    struct ml_profile_text *out_text;
};

/* The rest of the stream as a text. False: no memory. */
bool ml_text_read(pb_istream_t *stream, struct ml_text_target *target);

/* A field's callback that reads it into *text_, which must not be NULL. */
bool ml_text_decode(pb_istream_t *stream, const pb_field_t *field, void **target);
#define ML_TEXT_INTO(arena_, text_)                                                                \
    {                                                                                              \
        .funcs.decode = ml_text_decode, .arg = &(struct ml_text_target) {                          \
            (arena_), (text_)                                                                      \
        }                                                                                          \
    }

/* Decode a MemlogTable. Errors: ML_PEER_FORM; ML_PEER_REFERENCE no such process; ML_PEER_RANGE ids
 * that do not rise, an unknown frame kind; ML_PEER_LIMIT; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_trace_decode_table(struct ml_profile *profile, pb_istream_t *stream);

#endif

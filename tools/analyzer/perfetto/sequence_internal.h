/* The parts of a sequence; tools/analyzer/perfetto/sequence.h. Room: tools. Context: one thread.
 *
 * One rule: as there. */
#ifndef MEMLOG_TOOLS_ANALYZER_PERFETTO_SEQUENCE_INTERNAL_H
#define MEMLOG_TOOLS_ANALYZER_PERFETTO_SEQUENCE_INTERNAL_H

#include "tools/analyzer/perfetto/sequence.h"

/* TracePacket.sequence_flags */
enum { ML_SEQUENCE_CLEARED = 1, ML_SEQUENCE_NEEDS_STATE = 2 };

/* The numbers of one dump, and what they are in the sequence. */
struct ml_sequence_numbers {
    struct {
        uint32_t kind;
        uint64_t theirs, ours;
    } * items;
    size_t count, capacity;
    struct ml_index index;
};

void ml_sequence_numbers_fini(struct ml_sequence_numbers *numbers);

/* Our number; 0: that one stands for nothing. */
uint64_t
ml_sequence_number(const struct ml_sequence_numbers *numbers, uint32_t kind, uint64_t theirs);

/* Take the entries of an InternedData, and add those that are new to `added`, an InternedData, too.
 * An entry that refers to a missing one is left out. False: no memory. */
bool ml_sequence_intern(
    struct ml_sequence *sequence,
    struct ml_sequence_numbers *numbers,
    struct ml_pb_span interned,
    struct ml_pb_buffer *added
);

#endif

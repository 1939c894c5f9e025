/* Many dumps of one run as one trace for Perfetto. Room: tools. Context: one thread; hostile bytes.
 *
 * One rule: each dump's own packets stay as they are, so that memlog reads the trace as it reads
 * several dumps in one file. */
#ifndef MEMLOG_TOOLS_ANALYZER_PERFETTO_JOIN_H
#define MEMLOG_TOOLS_ANALYZER_PERFETTO_JOIN_H

#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/model/profile.h"

struct ml_join;

/* A dump in a file. */
struct ml_join_dump {
    const char *path; /* borrowed */
    uint32_t number;  /* in the file, from 1 */
    uint64_t monotonic_ns;
};

/* NULL: no memory. */
struct ml_join *ml_join_new(void);
void ml_join_free(struct ml_join *join);

/* Add a dump that was read. Errors: ML_PEER_STATE: it is of another run, whose clocks and processes
 * are others; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_join_learn(
    struct ml_join *join, const struct ml_profile *profile, const char *path, uint32_t number
);

/* All that were added, in the order of their time. From now on none is added. NULL: no memory. */
const struct ml_join_dump *ml_join_settle(struct ml_join *join, size_t *out_count);

/* Write the next one. `bytes` is the file that has it, as far as it is whole.
 *
 * Errors: ML_ENV_MEMORY. A write error is reported when the file is closed. */
ML_NODISCARD enum ml_status
ml_join_write(struct ml_join *join, const uint8_t *bytes, size_t count_bytes, FILE *out);

#endif

/* Which components of a process's private memory grew between two readings. Room: tools. Context:
 * one thread.
 *
 * One rule: two readings are compared only where both tell the heap apart, or neither. */
#ifndef MEMLOG_TOOLS_ANALYZER_WHOLE_GROWN_H
#define MEMLOG_TOOLS_ANALYZER_WHOLE_GROWN_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/analyzer/memory/components.h"

struct ml_grown {
    int64_t components[ML_COMPONENTS]; /* bytes; less than 0: it shrank */
    int64_t all;                       /* their sum */
    uint64_t since_boottime_ns;        /* of the earlier reading */
};

/* Compare the process with its earlier reading. False: there are no two readings that can be
 * compared. */
bool ml_grown_of(const struct ml_profile_process *process, struct ml_grown *out);

/* "mapped +228.0 MiB, files +12.0 MiB, heap +0 B": what grew most, and the heap always.
 * Returns out_text. */
enum { ML_GROWN_TEXT_BYTES = 256 };
const char *ml_grown_text(const struct ml_grown *grown, char out_text[ML_GROWN_TEXT_BYTES]);

#endif

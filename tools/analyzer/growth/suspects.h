/* Which functions' memory grows steadily: what a dump's timeline says of leaks. Room: tools.
 * Context: one thread.
 *
 * One rule: a function is named only with a verdict of growth.h, over the stacks of it that were
 * followed. The service follows some 20 stacks of each process, those that hold most. */
#ifndef MEMLOG_TOOLS_ANALYZER_GROWTH_SUSPECTS_H
#define MEMLOG_TOOLS_ANALYZER_GROWTH_SUSPECTS_H

#include <stdbool.h>
#include <stdio.h>

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/growth/growth.h"
#include "tools/analyzer/report/internal.h"

/* A function in a process, with all of its stacks that were followed. */
struct ml_suspect {
    char name[ML_TOLD_NAME_BYTES];
    const struct ml_profile_process *process;
    struct ml_growth growth;
    uint32_t node; /* its stack that holds most */
    size_t stacks_count;
    uint64_t live_bytes, live_blocks, total_blocks; /* of those stacks, at the dump */
};

struct ml_suspect_process {
    const struct ml_profile_process *process;
    struct ml_growth growth; /* of all that it held */
    size_t followed_count;
    uint64_t followed_bytes, live_bytes; /* at the dump */
};

struct ml_suspects {
    const struct ml_report *report;
    struct ml_suspect *suspects; /* STEADY first, by slope; then by kind, the most growth first */
    size_t count;
    struct ml_suspect_process *processes; /* with a timeline, in the same order */
    size_t processes_count;
    uint64_t from_ms, to_ms; /* CLOCK_MONOTONIC; of all that is known */
};

/* The dump was loaded with processes' own live figures, neither pruned nor filtered. The report is
 * borrowed. Errors: ML_ENV_MISSING: it has no timeline; ML_ENV_MEMORY. _fini is needed even then.
 */
ML_NODISCARD enum ml_status
ml_suspects_init(struct ml_suspects *suspects, const struct ml_report *report);
void ml_suspects_fini(struct ml_suspects *suspects);

/* The forms. The text has `limit` functions of each kind (0: five). */
void ml_suspects_text(
    const struct ml_suspects *suspects, const struct ml_report_style *style, FILE *out
);
void ml_suspects_json(const struct ml_suspects *suspects, FILE *out);

#endif

/* A report as the analyzer has told it: the messages of mojom_like_idl/contracts/fleet_report.mojom
 * put together. Room: host. Context: one thread.
 *
 * One rule: the analyzer may have been taken over by the report. Numbers are checked as they come;
 * what does not fit ends the report, and nothing else. */
#ifndef MEMLOG_HOST_COLLECT_REPORT_H
#define MEMLOG_HOST_COLLECT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/wire/ml_status.h"
#include "mojom_like_idl/contracts/fleet_report_mojom.h"

/* Of all strings of a report together, and of its lists: what one report may cost. */
enum { ML_COLLECT_REPORT_TEXT_MAX = 64 << 20, ML_COLLECT_REPORT_BYTES_MAX = 160 << 20 };

/* Of all its rows together, each figure: far above any machine's, and so far below the largest
 * number that sums of many reports are numbers, too. */
#define ML_COLLECT_REPORT_FIGURE_MAX ((uint64_t)1 << 52)

enum ml_collect_report_state {
    ML_COLLECT_REPORT_AWAITS_BEGIN,
    ML_COLLECT_REPORT_COMES,
    ML_COLLECT_REPORT_WHOLE,
    ML_COLLECT_REPORT_REFUSED
};

struct ml_collect_report {
    enum ml_collect_report_state state;
    struct memlog_fleet_begin_request head;
    struct memlog_fleet_frame *frames; /* number N is at N - 1 */
    size_t frames_count, frames_capacity;
    struct memlog_fleet_stack *stacks; /* likewise; parents come first */
    size_t stacks_count, stacks_capacity;
    struct memlog_fleet_row *rows;
    size_t rows_count, rows_capacity;
    struct memlog_fleet_figures sums;     /* of its rows */
    struct ml_collect_report_text *texts; /* what the strings lie in */
    size_t text_bytes;
    char reason[MEMLOG_FLEET_REFUSED_REQUEST_REASON_LIMIT + 1]; /* of a refused one */
};

/* All zero at first. */
void ml_collect_report_fini(struct ml_collect_report *report);

/* The memory that it has. */
size_t ml_collect_report_bytes(const struct ml_collect_report *report);

/* Take a message. Errors: ML_PEER_STATE: it has no place there; ML_PEER_RANGE: a number in it is
 * none, or above ML_COLLECT_REPORT_FIGURE_MAX; ML_PEER_LIMIT; ML_ENV_MEMORY. */
ML_NODISCARD enum ml_status ml_collect_report_begin(
    struct ml_collect_report *report, const struct memlog_fleet_begin_request *message
);
ML_NODISCARD enum ml_status ml_collect_report_frames(
    struct ml_collect_report *report, const struct memlog_fleet_frames_request *message
);
ML_NODISCARD enum ml_status ml_collect_report_stacks(
    struct ml_collect_report *report, const struct memlog_fleet_stacks_request *message
);
ML_NODISCARD enum ml_status ml_collect_report_rows(
    struct ml_collect_report *report, const struct memlog_fleet_rows_request *message
);
ML_NODISCARD enum ml_status ml_collect_report_end(
    struct ml_collect_report *report, const struct memlog_fleet_end_request *message
);
ML_NODISCARD enum ml_status ml_collect_report_refused(
    struct ml_collect_report *report, const struct memlog_fleet_refused_request *message
);

#endif

/* What Chrome's traces say of themselves, the member `metadata`, and what an upload says there of
 * its dump. Room: tools. Context: one thread.
 *
 * One rule: readers of Chrome's traces find what they look for. What they do not know is in one
 * member of ours, "memlog". */
#ifndef MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_METADATA_H
#define MEMLOG_TOOLS_ANALYZER_FORMATS_CHROME_METADATA_H

#include "base/json_writer.h"
#include "tools/analyzer/formats/chrome_trace.h"
#include "tools/analyzer/model/profile.h"

/* `report` NULL: no upload. Borrowed: both.
 *
 * Shape:  "memlog": {"version": 1, "guid": HEX, "program": NAME, "build_id": HEX, "host": NAME,
 *         "program_version": TEXT, "time_ns": N, "reason": NAME, "trigger": NAME, "weight": N,
 *         "complete": BOOL, "covered": BOOL, "sampling_bytes": N, "promised_ppm": N, "cost_ppm": N,
 *         "live_bytes": N, "left_bytes": N, "peak_bytes": N, "total_bytes": N, "processes": N};
 *         cost_ppm is that of the process that memlog cost most (--overhead); what is not known is
 * left out. Units:  time_ns since 1970. */
void ml_chrome_metadata(
    struct ml_json *json, const struct ml_profile *profile, const struct ml_chrome_report *report
);

#endif

/* Private to `memlog doctor`: what it finds, said line by line as it goes. Room: host. Context: its
 * own process.
 *
 * One rule: a finding that is not well names the thing and the next step. */
#ifndef MEMLOG_HOST_CLI_DOCTOR_INTERNAL_H
#define MEMLOG_HOST_CLI_DOCTOR_INTERNAL_H

#include <stdbool.h>

#include "base/json_writer.h"
#include "host/process/never_list.h"

/* A note costs no profile; a failure does. */
enum ml_doctor_verdict { ML_DOCTOR_OK, ML_DOCTOR_NOTE, ML_DOCTOR_FAIL };

struct ml_findings {
    bool is_json;
    bool failed; /* one of them was a failure */
    struct ml_json json;
};

/* Say one finding on stdout, a line or a JSON object; `what` is the kind of check. */
__attribute__((format(printf, 4, 5))) void ml_doctor_find(
    struct ml_findings *findings,
    enum ml_doctor_verdict verdict,
    const char *what,
    const char *format,
    ...
);

/* memlog's files; kernel and libc; descriptors and pipes; where names of functions are kept; a run
 * of memlog over itself. */
void ml_doctor_parts(struct ml_findings *findings);
void ml_doctor_system(struct ml_findings *findings);
void ml_doctor_limits(struct ml_findings *findings);
void ml_doctor_cache(struct ml_findings *findings);
void ml_doctor_self_test(struct ml_findings *findings);

/* The machine's list of programs that are never recorded; empty without one. Owner: the caller's.
 */
struct ml_never_list ml_doctor_never(struct ml_findings *findings);

#endif

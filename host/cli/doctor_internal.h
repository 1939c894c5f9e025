/* Private to `memlog doctor`: its checks, each of which prints its findings at once. Room: host.
 * Context: its own process.
 *
 * One rule: a finding that is not ok names the cause and the next step. */
#ifndef MEMLOG_HOST_CLI_DOCTOR_INTERNAL_H
#define MEMLOG_HOST_CLI_DOCTOR_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json_writer.h"
#include "host/policy/command_line.h"
#include "host/process/never_list.h"

/* After a failure nothing is recorded; a note does not prevent recording. */
enum ml_doctor_verdict { ML_DOCTOR_OK, ML_DOCTOR_NOTE, ML_DOCTOR_FAIL };

struct ml_findings {
    bool is_json;
    bool failed; /* at least one finding is ML_DOCTOR_FAIL */
    struct ml_json json;
};

/* Print one finding on stdout, as a line or as a JSON object. `what` names the check. */
__attribute__((format(printf, 4, 5))) void ml_doctor_find(
    struct ml_findings *findings,
    enum ml_doctor_verdict verdict,
    const char *what,
    const char *format,
    ...
);

/* The checks: memlog's files; kernel and libc; what of the kernel is missing; descriptors and
 * pipes; the symbol cache; a run of memlog over itself. */
void ml_doctor_parts(struct ml_findings *findings);
void ml_doctor_system(struct ml_findings *findings);
void ml_doctor_kernel(struct ml_findings *findings);
void ml_doctor_limits(struct ml_findings *findings);
void ml_doctor_cache(struct ml_findings *findings);
void ml_doctor_self_test(struct ml_findings *findings);

/* What would become of an allocator inside an executable; `allocators` has further ones, fewer
 * bytes than ML_CONTROL_ALLOCATORS_BYTES. The descriptor is borrowed; -1: it could not be opened.
 * Where its path is not `named`, that is told; "": it was not named. */
void ml_doctor_allocator(
    struct ml_findings *findings, int executable_fd, const char *named, const char *allocators
);

/* The same of a process that runs. */
void ml_doctor_allocator_of(struct ml_findings *findings, uint32_t pid, const char *allocators);

/* Whether the never list forbids a program; if so, this is a finding. */
bool ml_doctor_forbidden(
    struct ml_findings *findings,
    const struct ml_never_list *list,
    const struct ml_command_line *line,
    const char *executable
);

/* Why a process that runs is not recorded, and whether it can be attached to. */
void ml_doctor_process(
    struct ml_findings *findings,
    const struct ml_never_list *never,
    uint32_t pid,
    const char *allocators
);

/* Have a tracer take out of a process what is left of memlog in it. */
void ml_doctor_repair(struct ml_findings *findings, uint32_t pid);

/* Whether functions of the program's scripts have names, by its executable and its arguments, NULL
 * behind them; of a process that runs, by what it has told. */
void ml_doctor_scripts(
    struct ml_findings *findings, const char *executable, char *const *arguments
);
void ml_doctor_scripts_of(struct ml_findings *findings, uint32_t pid);

/* The machine's never list; empty if there is none. Owner: the caller's. */
struct ml_never_list ml_doctor_never(struct ml_findings *findings);

#endif

/* The summary that a run prints at its end. Room: host. Context: the host, after its loop.
 *
 * One rule: the host reads no dump; the figures come from memlog-analyzer. If that fails, the next
 * command is still printed. */
#ifndef MEMLOG_HOST_CLI_SUMMARY_H
#define MEMLOG_HOST_CLI_SUMMARY_H

#include "host/process/launcher.h"
#include "host/process/log.h"

/* Print total, peak, the five stacks that hold most, and the exact next command to stderr. */
void ml_summary(
    const struct ml_log *log, const struct ml_inherited *inherited, const char *dump_path
);

#endif

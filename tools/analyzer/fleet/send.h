/* Rows of a report as messages to the collector. Room: tools. Context: one thread.
 *
 * One rule: a message is one packet, and a packet is one write. Only write() is asked of the kernel
 * for it. */
#ifndef MEMLOG_TOOLS_ANALYZER_FLEET_SEND_H
#define MEMLOG_TOOLS_ANALYZER_FLEET_SEND_H

#include "ipc/wire/ml_status.h"
#include "tools/analyzer/fleet/rows.h"

/* Begin, everything, End. `fd` is a connected SOCK_SEQPACKET socket. Errors: ML_ENV_SYSTEM: the
 * collector has gone. */
ML_NODISCARD enum ml_status ml_fleet_send(const struct ml_fleet_rows *rows, int fd);

/* Instead of all that. */
void ml_fleet_send_refusal(const char *reason, int fd);

#endif

/* The numbers under which a dump's standard packets show processes. Room: ipc (:trace). Context:
 * any.
 *
 * One rule: of processes with one pid the latest has it as its number. Any other has
 * ML_TRACE_PID_FORMER and its place in the dump's list behind it. */
#ifndef MEMLOG_IPC_TRACE_PID_H
#define MEMLOG_IPC_TRACE_PID_H

/* Above PID_MAX_LIMIT (2^22): no process can have it. */
enum { ML_TRACE_PID_FORMER = 1 << 30 };

#endif

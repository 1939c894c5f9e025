/* Facts about a process from /proc. Room: tracer. Context: any.
 *
 * One rule: it is the process that was meant: the one of that pid that began at that time. */
#ifndef MEMLOG_TRACER_PROCESS_TARGET_H
#define MEMLOG_TRACER_PROCESS_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "ipc/attach/block.h"

/* Whether the process of that pid began so many clock ticks after the machine did (field 22 of
 * /proc/PID/stat). */
bool ml_target_is(pid_t pid, uint64_t start_ticks);

/* When the process of that pid began, in those ticks; 0: there is none. */
uint64_t ml_target_start_ticks(pid_t pid);

/* Where the kernel put the main thread's first stack pointer; 0: it does not tell. */
uint64_t ml_target_stack_start(pid_t pid);

/* The auxiliary vector; returns how many entries. */
uint32_t ml_target_auxv(pid_t pid, struct ml_attach_auxv out_auxv[ML_ATTACH_AUX_MAX]);

/* A thread's number in its own pid namespace; 0: not known. */
uint32_t ml_target_own_id(pid_t pid, pid_t thread);

/* Who traces a thread; 0: nobody. */
pid_t ml_target_tracer(pid_t pid, pid_t thread);

/* How seccomp watches a thread's calls: 0, SECCOMP_MODE_STRICT, SECCOMP_MODE_FILTER. */
int ml_target_seccomp(pid_t pid, pid_t thread);

/* Whether a thread of it sleeps: it is in a system call, and waits. */
bool ml_target_sleeps(pid_t pid, pid_t thread);

/* Whether it sleeps where no signal and no tracer wakes it: for a disk, or for the child that vfork
 * has made. */
bool ml_target_sleeps_deep(pid_t pid, pid_t thread);

#endif

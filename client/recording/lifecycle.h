/* The lifecycle of a client: start, fork, sleep and waking, threads, end. Room: client (private).
 * Context: as each function says.
 *
 * One rule: every syscall that a sandbox may forbid later happens in the constructor, or at a
 * forked child's first event; afterwards there are write, fstat and poll, and what a program itself
 * just asked for. */
#ifndef MEMLOG_CLIENT_RECORDING_LIFECYCLE_H
#define MEMLOG_CLIENT_RECORDING_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "client/state/process.h"
#include "client/stream/lane.h"

/* Slow path of a hook: whether this thread may record now. Notices a fork, a request of the host,
 * and a thread's first event. Sets thread->gate, so that the next hook takes the fast path. */
bool ml_lifecycle_may_record(struct ml_thread *thread);

/* A lane for the calling thread, with its THREAD record; `second`: for signal handlers. NULL: none
 * free. */
struct ml_lane *ml_lifecycle_lane(bool second);

/* Take back what ended threads have, where nobody tells of their ends. */
void ml_lifecycle_find_ended(void);

/* The thread has no lane any more. */
void ml_lifecycle_give_lanes(struct ml_thread *thread);

/* Let a lane that was taken in an earlier profile continue in the present one. */
void ml_lifecycle_lane_update(struct ml_lane *lane);

/* Connect to the host at that socket. True: there is a connection, recording or dormant. Called
 * once. */
bool ml_lifecycle_connect(const char *socket_path);

/* Have libc tell of ends of threads, and of forks. */
void ml_lifecycle_ask_libc(void);

/* A thread is about to be created. Where libpthread.so.0 was loaded after the start, it is asked
 * now. Takes the loader's lock then, once. */
void ml_lifecycle_threads_came(void);

/* The end of the calling thread, which has a lane, is to be told. `value` is not NULL. */
void ml_lifecycle_watch_exit(const void *value);

/* The calling thread's name has changed. */
void ml_lifecycle_renamed(void);

/* The calling thread is about to fork: a FORK record, which the child will name. */
void ml_lifecycle_before_fork(void);

/* The fork has returned in the parent. Not every fork is reported here. */
void ml_lifecycle_after_fork_in_parent(void);

/* In a child that a signal handler forked inside a hook, which may continue in the child. The child
 * becomes a recorded process at once, so that the hook does no harm. In any other child nothing
 * happens. */
void ml_lifecycle_after_fork_in_child(void);

/* A forked child that has had no event yet has its stream from now on: before it has a second
 * thread, or asks for something. In any other process nothing happens. */
void ml_lifecycle_be_somebody(void);

/* The process has waited for the end of that child: write a record, if the process is recorded. */
void ml_lifecycle_reaped(uint32_t pid);

#endif

/* What an attachment of before has left in the process: that of another host, of a tracer that was
 * killed, or one that has been taken back. Room: tracer. Context: the tracer's one thread.
 *
 * One rule: before the next attachment all of it is put right, and no thread is in it. */
#ifndef MEMLOG_TRACER_EARLIER_H
#define MEMLOG_TRACER_EARLIER_H

#include "tracer/job.h"

/* Whether entries lead to memlog for a host that lives, and is not this tracer's. */
bool ml_earlier_has_another_host(const struct ml_job *job);

/* The next three are false, with an error message, where it was not to be had. */

/* A start that a tracer has left behind ends by itself. */
bool ml_earlier_wait_for_start(struct ml_job *job);

/* Of a process that has a thread of its own borrowed: whether what was found in it is so still.
 * Another tracer, of another mount of /proc, may have had its turn meanwhile. */
bool ml_earlier_is_as_found(const struct ml_job *job);

/* Its entries are the program's again. */
bool ml_earlier_restore(struct ml_job *job);

/* A thread that was on its way through a hook when the entries became the program's again, or
 * inside one, reads the memory of that time yet, which the next start gives back. It leaves soon.
 */
bool ml_earlier_wait_for_passers(struct ml_job *job);

#endif

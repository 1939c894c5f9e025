/* The client is put into memory, and a borrowed thread starts it. Room: tracer. Context: the
 * tracer's one thread; the plan is made, and no thread is in a client of before.
 *
 * One rule: no entry leads to it yet, so whatever goes wrong leaves the program as it was. */
#ifndef MEMLOG_TRACER_PUT_IN_H
#define MEMLOG_TRACER_PUT_IN_H

#include "tracer/job.h"

/* Whether this kernel lets a tracer take a descriptor out of a process; asked before anything is
 * changed there. False, with an error message: no. */
bool ml_put_in_can_take(struct ml_error_message *error);

/* False, with an error message: it did not come to a start. */
bool ml_put_in(struct ml_job *job);

/* How the start went, as the process says. */
enum memlog_tracer_outcome ml_put_in_judge(struct ml_job *job);

#endif

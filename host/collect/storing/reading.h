/* Has a report read: by memlog-analyzer, in a process of its own without files, network or
 * descendants, within bounds of time and memory. Room: host. Context: the loop's thread.
 *
 * One rule: what was read is one report's, and so is the harm. A report that takes the analyzer
 * over, blows it up or hangs it is refused; the next one has a new process. */
#ifndef MEMLOG_HOST_COLLECT_STORING_READING_H
#define MEMLOG_HOST_COLLECT_STORING_READING_H

#include "base/error_message.h"
#include "host/collect/report.h"

struct ev_loop;
struct ml_reading;

/* A reading takes 20 ms of a common report, and seconds of the largest ones. */
enum { ML_READING_WALL_S = 120 };

/* Tries of a report whose analyzer was killed, or could not be started: it is being installed anew,
 * or will not be for long. */
enum { ML_READING_TRIES_KILLED = 2, ML_READING_TRIES_NOT_STARTED = 720 };

struct ml_reading_setup {
    struct ev_loop *loop; /* the default one: it hears of ended children */
    const char *analyzer_path;
    /* Once, from the loop: `report` is whole or refused with a reason. It goes with the reading,
     * which may be freed in here. */
    void (*on_read
    )(void *context, struct ml_reading *reading, const struct ml_collect_report *report);
    void *context;
};

/* Start it. `body_fd` is the body from its beginning; borrowed until the return. NULL: no process,
 * with an error message. */
struct ml_reading *
ml_reading_start(const struct ml_reading_setup *setup, int body_fd, struct ml_error_message *error);

/* How often a report is read anew after what its reading came to, which was not its fault: the
 * analyzer could not be started, or somebody killed it, as the kernel does where memory is short.
 * 0: what came of it is the report's. */
unsigned ml_reading_tries(const struct ml_reading *reading);

/* Ends the process, if it is there. NULL is allowed. */
void ml_reading_free(struct ml_reading *take_reading);

#endif

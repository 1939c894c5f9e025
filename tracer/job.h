/* One attachment, or one taking back, as it goes on. Room: tracer. Context: the tracer's one
 * thread.
 *
 * One rule: whatever it holds of the process is let go by ml_job_close. */
#ifndef MEMLOG_TRACER_JOB_H
#define MEMLOG_TRACER_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "ipc/attach/block.h"
#include "tracer/attachment.h"
#include "tracer/borrow.h"
#include "tracer/found.h"
#include "tracer/place.h"
#include "tracer/plan.h"
#include "tracer/process/maps.h"
#include "tracer/process/threads.h"

/* The host ends a tracer after 20 s (host/attach/tracer.h), and can say no reason then. What
 * follows the last wait, and a last stop, fit between. */
enum { ML_JOB_MS = 14000 };

struct ml_job {
    struct ml_attachment *attachment;
    int memory_fd;
    uint64_t deadline_ns; /* no wait goes on behind it */
    bool is_watched;      /* a seccomp filter watches calls of it */
    bool is_dispatched;   /* or it takes them itself */
    bool is_traced;       /* another program traces a thread of it */
    bool has_changed;     /* its code, since it was looked at */
    struct ml_maps maps;
    struct ml_found found;
    struct ml_plan *plan;
    struct ml_threads threads;
    struct ml_borrowed borrowed;
    struct ml_attach_block *block; /* as it is to be in the process */
    struct ml_place_pages gone;    /* that it does not speak of any more */
    uint64_t block_address;
};

/* False, with an error message. Closed all the same. */
bool ml_job_open(struct ml_job *job, struct ml_attachment *attachment);
void ml_job_close(struct ml_job *job);

/* All threads. False, with an error message: none is stopped. */
bool ml_job_stop_all(struct ml_job *job);

/* All are stopped yet. */
void ml_job_note_stop(struct ml_job *job);

/* Whether system calls of a stopped thread come to a handler of the program's; with an error
 * message. A call that memlog made there would be lost, or end the program. */
bool ml_job_dispatches(const struct ml_threads *threads, struct ml_error_message *error);

/* What it comes to; GONE if the process has ended meanwhile. */
enum memlog_tracer_outcome ml_job_failed(const struct ml_job *job);
enum memlog_tracer_outcome ml_job_again(const struct ml_job *job);
enum memlog_tracer_outcome ml_job_refused(const struct ml_job *job);

uint64_t ml_job_now_ns(void);

/* When a wait of so long ends: at the job's end at the latest. */
uint64_t ml_job_wait_ends_ns(const struct ml_job *job, uint32_t most_ms);

/* Below a second. */
void ml_job_pause_us(uint32_t count);

#endif

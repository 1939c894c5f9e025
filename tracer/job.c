#include "tracer/job.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tracer/filters.h"
#include "tracer/process/memory.h"
#include "tracer/process/target.h"

uint64_t ml_job_now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t ml_job_wait_ends_ns(const struct ml_job *job, uint32_t most_ms) {
    const uint64_t at_ns = ml_job_now_ns() + (uint64_t)most_ms * 1000000u;
    return at_ns < job->deadline_ns ? at_ns : job->deadline_ns;
}

void ml_job_pause_us(uint32_t count) {
    const struct timespec pause = {.tv_nsec = (long)count * 1000};
    (void)nanosleep(&pause, NULL);
}

/* What went wrong went wrong since the process has ended, if it has. */
static enum memlog_tracer_outcome
judge(const struct ml_job *job, enum memlog_tracer_outcome outcome) {
    struct ml_attachment *attachment = job->attachment;
    if (ml_target_is(attachment->pid, attachment->start_ticks)) {
        return outcome;
    }
    attachment->error = (struct ml_error_message){.text = "it has ended"};
    return MEMLOG_TRACER_OUTCOME_GONE;
}

enum memlog_tracer_outcome ml_job_failed(const struct ml_job *job) {
    return judge(job, MEMLOG_TRACER_OUTCOME_FAILED);
}

enum memlog_tracer_outcome ml_job_again(const struct ml_job *job) {
    return judge(job, MEMLOG_TRACER_OUTCOME_AGAIN);
}

enum memlog_tracer_outcome ml_job_refused(const struct ml_job *job) {
    return judge(job, MEMLOG_TRACER_OUTCOME_REFUSED);
}

/* Two tracers in one process would run two starts at once, on one stack and with one block. */
static bool wait_for_turn(struct ml_job *job) {
    enum { LOOK_US = 2000 };
    while (!ml_memory_take_turn(job->memory_fd)) {
        if (ml_job_now_ns() >= job->deadline_ns) {
            ml_error_set(
                &job->attachment->error, "another memlog-tracer is at work in it: try again"
            );
            return false;
        }
        ml_job_pause_us(LOOK_US);
    }
    return true;
}

bool ml_job_open(struct ml_job *job, struct ml_attachment *attachment) {
    *job = (struct ml_job
    ){.attachment = attachment,
      .memory_fd = -1,
      .deadline_ns = attachment->began_ns + (uint64_t)ML_JOB_MS * 1000000u};
    ml_threads_init(&job->threads, attachment->pid);
    if (!ml_target_is(attachment->pid, attachment->start_ticks)) {
        ml_error_set(&attachment->error, "it has ended");
        return false;
    }
    job->memory_fd = ml_memory_open(attachment->pid, &attachment->error);
    if (job->memory_fd < 0 || !wait_for_turn(job) ||
        !ml_maps_read(attachment->pid, &job->maps, &attachment->error)) {
        return false;
    }
    ml_found_look(&job->found, attachment->pid, job->memory_fd, &job->maps, &attachment->image);
    job->is_watched = ml_filters_watch(attachment->pid);
    return true;
}

bool ml_job_stop_all(struct ml_job *job) {
    const bool are_stopped = ml_threads_stop_all(&job->threads, &job->attachment->error);
    if (are_stopped && job->is_watched) {
        ml_filters_mend_waits(&job->threads);
    }
    return are_stopped;
}

bool ml_job_dispatches(const struct ml_threads *threads, struct ml_error_message *error) {
    for (size_t i = 0; i < threads->count; i++) {
        const struct ml_traced *thread = &threads->list[i];
        if (thread->state == ML_TRACED_STOPPED && ml_threads_dispatch(thread)) {
            ml_error_set(
                error,
                "it takes its system calls itself (PR_SET_SYSCALL_USER_DISPATCH, as Wine does), "
                "and "
                "memlog's would be among them: memlog run records it up to there"
            );
            return true;
        }
    }
    return false;
}

void ml_job_close(struct ml_job *job) {
    ml_threads_let_go(&job->threads);
    if (job->plan != NULL) {
        ml_plan_free(job->plan);
        free(job->plan);
    }
    free(job->block);
    ml_found_free(&job->found);
    ml_maps_free(&job->maps);
    if (job->memory_fd >= 0) {
        (void)close(job->memory_fd);
    }
}

void ml_job_note_stop(struct ml_job *job) {
    struct memlog_tracer_traced *traced = &job->attachment->traced;
    const uint64_t last_ns = ml_job_now_ns() - job->threads.since_ns;
    const uint64_t took_ns = last_ns > job->threads.held_ns ? last_ns : job->threads.held_ns;
    traced->longest_stop_ns = took_ns > traced->longest_stop_ns ? took_ns : traced->longest_stop_ns;
    traced->threads = (uint32_t)job->threads.count;
    traced->tries++;
}

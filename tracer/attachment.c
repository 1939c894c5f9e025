#include "tracer/attachment.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "base/seccomp/restart.h"
#include "tracer/earlier.h"
#include "tracer/entries.h"
#include "tracer/filters.h"
#include "tracer/job.h"
#include "tracer/place.h"
#include "tracer/process/memory.h"
#include "tracer/process/target.h"
#include "tracer/put_in.h"

enum {
    TRIES_MAX = 200,     /* until no thread stands where it must not */
    PLACES_MAX = 10,     /* where memlog is put: a program that maps memory may be faster */
    SAMPLE_THREADS = 16, /* by which a thread's number is found behind its pointer */
    DESCRIPTOR_BYTES = 2304
};

/* ---- what cannot be attached */

static bool may_attach(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    if (ml_earlier_has_another_host(job)) {
        ml_error_set(
            &attachment->error,
            "another memlog (%u) is attached to it: 'memlog stop %d' lets it go",
            job->found.content->host_pid,
            (int)attachment->pid
        );
        return false;
    }
    for (size_t i = 0; i < job->maps.count; i++) {
        const char *path = ml_maps_path(&job->maps, &job->maps.list[i]);
        const char *slash = strrchr(path, '/');
        if (slash != NULL && strcmp(slash + 1, "libmemlog.so") == 0) {
            ml_error_set(
                &attachment->error, "memlog is in it already: it was started under memlog run"
            );
            return false;
        }
    }
    return ml_put_in_can_take(&attachment->error);
}

/* Filters stand in the block, for the client. */
static bool may_make_calls(struct ml_job *job) {
    struct ml_error_message *error = &job->attachment->error;
    if (!job->is_watched) {
        return true;
    }
    if (!ml_seccomp_filters_are_readable()) {
        ml_error_set(
            error,
            "a seccomp filter watches its calls, and may kill for memlog's; root alone can read "
            "it: attach as root, or start it under memlog run"
        );
        return false;
    }
    if (!ml_job_stop_all(job)) {
        return false;
    }
    const bool were_read = ml_filters_read(&job->threads, &job->block->filters, error);
    ml_job_note_stop(job);
    ml_threads_let_go(&job->threads);
    return were_read && ml_filters_permit(&job->block->filters, error);
}

/* ---- the jumps */

/* Where behind a thread pointer libc keeps the thread's number: where all threads have theirs. */
static uint32_t find_id_offset(const struct ml_job *job) {
    uint8_t descriptor[DESCRIPTOR_BYTES];
    uint8_t fits[DESCRIPTOR_BYTES / sizeof(uint32_t)];
    uint32_t seen = 0;
    memset(fits, 1, sizeof(fits));
    for (size_t i = 0; i < job->threads.count && seen < SAMPLE_THREADS; i++) {
        const struct ml_traced *thread = &job->threads.list[i];
        struct user_regs_struct registers;
        const uint32_t id = ml_target_own_id(job->attachment->pid, thread->id);
        if (id == 0 || ptrace(PTRACE_GETREGS, thread->id, NULL, &registers) != 0 ||
            !ml_memory_read(job->memory_fd, registers.fs_base, descriptor, sizeof(descriptor))) {
            continue;
        }
        for (size_t k = 0; k < sizeof(fits); k++) {
            fits[k] = fits[k] != 0 && memcmp(descriptor + k * sizeof(id), &id, sizeof(id)) == 0;
        }
        seen++;
    }
    for (size_t k = 1; seen > 0 && k < sizeof(fits); k++) {
        if (fits[k] != 0) {
            return (uint32_t)(k * sizeof(uint32_t));
        }
    }
    return 0;
}

static void write_id_offset(const struct ml_job *job) {
    const uint32_t offset = find_id_offset(job);
    (void)ml_memory_write(
        job->memory_fd,
        job->block_address + offsetof(struct ml_attach_block, id_offset),
        &offset,
        sizeof(offset)
    );
}

/* A thread that the machine has no time for does not get on in a short one: it stands in the same
 * place at the next stop. The last waits are long, five seconds in all. */
static uint32_t pause_of(uint32_t tries) {
    enum { SHORT_TRIES = TRIES_MAX / 2, STEP_US = 1000 };
    return tries < SHORT_TRIES ? 200 + tries * 37 % 1500 : (tries - SHORT_TRIES + 1) * STEP_US;
}

/* Whether the process still has what the function was planned in. */
static bool is_planned_there(
    const struct ml_job *job, const struct ml_maps *now, const struct ml_attach_function *function
) {
    const struct ml_plan *plan = job->plan;
    for (uint32_t i = 0; i < plan->answer->functions_count; i++) {
        const struct ml_plan_function *one = &plan->answer->functions[i];
        if (one->function.entry == function->entry) {
            return ml_plan_is_there(&plan->objects[one->object], now);
        }
    }
    return true;
}

/* Of all threads stopped: whether each function has its jump, but for those of libraries that the
 * program has unloaded since they were planned. */
static bool are_jumps_there(const struct ml_job *job) {
    struct ml_error_message ignored;
    struct ml_maps now;
    if (!ml_maps_read(job->attachment->pid, &now, &ignored)) {
        return false;
    }
    bool are_there = true;
    for (uint32_t i = 0; i < job->block->functions_count && are_there; i++) {
        const struct ml_attach_function *one = &job->block->functions[i];
        uint8_t bytes[ML_ATTACH_ENTRY_BYTES];
        are_there = one->is_on == 0 ||
                    (ml_memory_read(job->memory_fd, one->entry, bytes, sizeof(bytes)) &&
                     memcmp(bytes, one->jump, sizeof(bytes)) == 0) ||
                    !is_planned_there(job, &now, one);
    }
    ml_maps_free(&now);
    return are_there;
}

/* False: it was not to be had. Then nothing is written. */
static bool write_jumps(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    const struct ml_attach_block *block = job->block;
    if (!ml_place_stubs(job->memory_fd, block)) {
        ml_error_set(&attachment->error, "its memory cannot be written");
        return false;
    }
    for (uint32_t i = 0; i < TRIES_MAX && ml_job_now_ns() < job->deadline_ns; i++) {
        if (!ml_job_stop_all(job)) {
            return false;
        }
        if (ml_job_dispatches(&job->threads, &attachment->error)) {
            ml_threads_let_go(&job->threads);
            return false;
        }
        const bool is_busy = ml_entries_are_busy(
            &job->threads, job->memory_fd, block->functions, block->functions_count
        );
        struct ml_entries_result result = {.written = 0};
        bool is_done = false;
        if (!ml_filters_are(&job->threads, &block->filters)) {
            ml_threads_let_go(&job->threads);
            ml_error_set(&attachment->error, "its seccomp filters have changed: try again");
            return false;
        }
        if (!is_busy) {
            result =
                ml_entries_write(job->memory_fd, block->functions, block->functions_count, true);
            is_done = result.failed + result.foreign == 0 || are_jumps_there(job);
            if (!is_done) {
                (void
                )ml_entries_write(job->memory_fd, block->functions, block->functions_count, false);
            }
            write_id_offset(job);
        }
        ml_job_note_stop(job);
        ml_threads_let_go(&job->threads);
        if (!is_busy) {
            attachment->traced.functions = result.written;
            job->has_changed = !is_done;
            if (!is_done) {
                ml_error_set(&attachment->error, "its code changes all the time: try again");
            }
            return is_done;
        }
        ml_job_pause_us(pause_of(i));
    }
    ml_error_set(
        &attachment->error,
        ml_job_now_ns() < job->deadline_ns
            ? "its threads stand in its allocator's first bytes all the time: try again"
            : "the machine is too busy for it to stop in time: try again"
    );
    return false;
}

/* ---- all of it */

static enum memlog_tracer_outcome attach_job(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    if (!may_attach(job)) {
        return ml_job_refused(job);
    }
    job->plan = calloc(1, sizeof(*job->plan));
    job->block = aligned_alloc(4096, sizeof(*job->block));
    if (job->plan == NULL || job->block == NULL) {
        ml_error_set(&attachment->error, "memory ran out");
        return MEMLOG_TRACER_OUTCOME_FAILED;
    }
    memset(job->block, 0, sizeof(*job->block));
    if (!may_make_calls(job)) {
        return ml_job_refused(job);
    }
    if (!ml_earlier_wait_for_start(job) || !ml_earlier_restore(job) ||
        !ml_earlier_wait_for_passers(job)) {
        return ml_job_failed(job);
    }
    if (!ml_plan_make(
            job->plan,
            attachment->pid,
            job->memory_fd,
            &job->maps,
            attachment->allocators,
            &attachment->error
        )) {
        return ml_job_refused(job);
    }
    memcpy(attachment->refused, job->plan->answer->refused, sizeof(attachment->refused));
    if (!ml_put_in(job)) {
        return ml_job_failed(job);
    }
    const enum memlog_tracer_outcome started = ml_put_in_judge(job);
    if (started != MEMLOG_TRACER_OUTCOME_DONE) {
        return started;
    }
    if (write_jumps(job)) {
        return MEMLOG_TRACER_OUTCOME_DONE;
    }
    return job->has_changed ? ml_job_again(job) : ml_job_failed(job);
}

enum memlog_tracer_outcome ml_attach(struct ml_attachment *attachment) {
    enum memlog_tracer_outcome outcome = MEMLOG_TRACER_OUTCOME_FAILED;
    bool again = true;
    attachment->began_ns = ml_job_now_ns();
    for (uint32_t i = 0; again && i < PLACES_MAX; i++) {
        struct ml_job job;
        attachment->error = (struct ml_error_message){.text = ""};
        outcome = ml_job_open(&job, attachment) ? attach_job(&job) : ml_job_failed(&job);
        again = outcome == MEMLOG_TRACER_OUTCOME_FAILED && job.borrowed.is_beaten;
        ml_job_close(&job);
    }
    return outcome;
}

enum memlog_tracer_outcome ml_detach(struct ml_attachment *attachment) {
    struct ml_job job;
    attachment->began_ns = ml_job_now_ns();
    const enum memlog_tracer_outcome outcome =
        ml_job_open(&job, attachment) && ml_earlier_restore(&job) ? MEMLOG_TRACER_OUTCOME_DONE
                                                                  : ml_job_failed(&job);
    ml_job_close(&job);
    return outcome;
}

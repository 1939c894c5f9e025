#include "tracer/earlier.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "tracer/entries.h"
#include "tracer/passers.h"
#include "tracer/process/memory.h"
#include "tracer/process/target.h"

enum {
    PASSERS_WAIT_MS = 5000, /* for threads that are on their way through a hook */
    PASSERS_PAUSE_US = 2000,
    BEGIN_WAIT_MS = 5000 /* for a start that a killed tracer has left running */
};

#define STILL_INSIDE "a thread of it is still inside a call that memlog recorded: try again"

static bool is_any_patched(const struct ml_job *job) {
    const struct ml_attach_block *content = job->found.content;
    for (uint32_t i = 0; content != NULL && i < content->functions_count; i++) {
        uint8_t now[ML_ATTACH_ENTRY_BYTES];
        if (ml_memory_read(job->memory_fd, content->functions[i].entry, now, sizeof(now)) &&
            memcmp(now, content->functions[i].jump, sizeof(now)) == 0) {
            return true;
        }
    }
    return false;
}

/* What a host has left that is no more is put right. */
bool ml_earlier_has_another_host(const struct ml_job *job) {
    const struct ml_attach_block *content = job->found.content;
    return content != NULL && is_any_patched(job) && content->host_pid != (uint32_t)getppid() &&
           ml_target_is((pid_t)content->host_pid, content->host_start_ticks);
}

bool ml_earlier_wait_for_start(struct ml_job *job) {
    const uint64_t deadline_ns = ml_job_wait_ends_ns(job, BEGIN_WAIT_MS);
    uint32_t outcome = ML_ATTACH_NOT_BEGUN;
    const uint64_t at = job->found.block + offsetof(struct ml_attach_block, outcome);
    do {
        if (job->found.block == 0 ||
            !ml_memory_read(job->memory_fd, at, &outcome, sizeof(outcome)) ||
            outcome != ML_ATTACH_BEGUN) {
            return true;
        }
        ml_job_pause_us(1000);
    } while (ml_job_now_ns() < deadline_ns);
    ml_error_set(
        &job->attachment->error, "a thread of it is still in memlog's last start: try again"
    );
    return false;
}

bool ml_earlier_is_as_found(const struct ml_job *job) {
    const struct ml_attach_block *content = job->found.content;
    const uint64_t at = job->found.block + offsetof(struct ml_attach_block, turn);
    uint32_t turn = 0;
    return content == NULL || (ml_memory_read(job->memory_fd, at, &turn, sizeof(turn)) &&
                               turn == content->turn && !is_any_patched(job));
}

bool ml_earlier_restore(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    if (!is_any_patched(job)) {
        return true;
    }
    if (!ml_job_stop_all(job)) {
        return false;
    }
    const struct ml_attach_block *content = job->found.content;
    const struct ml_entries_result result =
        ml_entries_write(job->memory_fd, content->functions, content->functions_count, false);
    ml_job_note_stop(job);
    ml_threads_let_go(&job->threads);
    attachment->traced.functions = result.written;
    if (is_any_patched(job)) {
        ml_error_set(&attachment->error, "the kernel does not let its code be written");
        return false;
    }
    return true;
}

bool ml_earlier_wait_for_passers(struct ml_job *job) {
    struct ml_passers passers = {.is_outside = {0}};
    const uint64_t deadline_ns = ml_job_wait_ends_ns(job, PASSERS_WAIT_MS);
    bool are_there = job->found.is_same;
    while (are_there && ml_job_now_ns() < deadline_ns) {
        if (!ml_job_stop_all(job)) {
            return false;
        }
        are_there =
            ml_passers_are_there(&passers, &job->threads, job->memory_fd, job->found.content);
        ml_job_note_stop(job);
        ml_threads_let_go(&job->threads);
        ml_job_pause_us(are_there ? PASSERS_PAUSE_US : 0);
    }
    if (are_there) {
        ml_error_set(&job->attachment->error, STILL_INSIDE);
    }
    return !are_there;
}

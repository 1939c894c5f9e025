#include "tracer/attachment.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <unistd.h>

#include "tracer/earlier.h"
#include "tracer/entries.h"
#include "tracer/filters.h"
#include "tracer/job.h"
#include "tracer/place.h"
#include "tracer/process/memory.h"
#include "tracer/process/target.h"

enum {
    TRIES_MAX = 200,     /* until no thread stands where it must not */
    PLACES_MAX = 10,     /* where memlog is put: a program that maps memory may be faster */
    SAMPLE_THREADS = 16, /* by which a thread's number is found behind its pointer */
    DESCRIPTOR_BYTES = 2304,
    BORROW_TRIES_MAX = 50 /* passes over the threads until one can be borrowed */
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
    return true;
}

/* Filters stand in the block, for the client. */
static bool may_make_calls(struct ml_job *job) {
    struct ml_error_message *error = &job->attachment->error;
    if (!job->is_watched) {
        return true;
    }
    if (!ml_filters_are_readable()) {
        ml_error_set(
            error,
            "a seccomp filter watches its calls, and may kill for memlog's; root alone can read "
            "it: attach as root, or start it under memlog run"
        );
        return false;
    }
    const uint64_t since_ns = ml_job_now_ns();
    if (!ml_job_stop_all(job)) {
        return false;
    }
    const bool were_read = ml_filters_read(&job->threads, &job->block->filters, error);
    ml_job_note_stop(job, since_ns);
    ml_threads_let_go(&job->threads);
    return were_read && ml_filters_permit(&job->block->filters, error);
}

/* ---- borrowing a thread */

static bool borrow_one(struct ml_job *job, pid_t id, const struct ml_borrowed_code *code) {
    struct ml_error_message why = {.text = ""};
    const bool is_stopped = ml_threads_stop_one(&job->threads, id, &why);
    const bool is_safe =
        is_stopped && (job->is_watched || ml_target_seccomp(job->attachment->pid, id) == 0);
    if (is_stopped && !is_safe) {
        ml_error_set(&why, "a seccomp filter has come over a thread of it: try again");
    }
    if (is_safe && job->is_watched) {
        ml_filters_mend_waits(&job->threads);
        ml_filters_suspend(&job->threads.list[0]);
    }
    if (is_safe &&
        ml_borrow(&job->borrowed, &job->threads.list[0], job->memory_fd, &job->maps, code, &why)) {
        return true;
    }
    ml_threads_let_go(&job->threads);
    job->attachment->error = why;
    return false;
}

/* One that sleeps rather than one that works. */
static bool borrow(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    struct ml_borrowed_code code;
    if (!ml_borrow_find_code(job->memory_fd, &job->maps, &code)) {
        ml_error_set(&attachment->error, "its libc is none that memlog knows to make calls by");
        return false;
    }
    pid_t *ids = malloc(ML_THREADS_TRACED_MAX * sizeof(*ids));
    bool done = false;
    for (uint32_t pass = 0; ids != NULL && !done && pass < BORROW_TRIES_MAX; pass++) {
        const size_t count = ml_threads_list(attachment->pid, ids, ML_THREADS_TRACED_MAX);
        for (size_t i = 0; i < count && !done; i++) {
            done = (pass > 0 || ml_target_sleeps(attachment->pid, ids[i])) &&
                   borrow_one(job, ids[i], &code);
        }
        if (!done && pass > 0) {
            ml_job_pause_us(1000 + pass * 100);
        }
    }
    free(ids);
    if (done) {
        attachment->error.text[0] = '\0';
    } else {
        ml_error_set(&attachment->error, "no thread of it can be borrowed");
    }
    return done;
}

/* ---- the client in it */

static bool place_client(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    struct ml_client_image *image = &attachment->image;
    if (job->found.is_same) {
        memcpy(job->block, job->found.content, offsetof(struct ml_attach_block, frame));
        image->address = job->block->address;
        return true;
    }
    const struct ml_plan_object *near = &job->plan->objects[0];
    for (uint32_t i = 0; i < job->plan->objects_count; i++) {
        near = job->plan->objects[i].room != 0 ? &job->plan->objects[i] : near;
    }
    const uint64_t at = ml_maps_room(&job->maps, near->low, near->high, image->count_bytes);
    if (at == 0 || !ml_client_image_lay_out(image, at)) {
        ml_error_set(&attachment->error, "no memory is free in it");
        return false;
    }
    job->block->version = ML_ATTACH_VERSION;
    job->block->address = at;
    job->block->bytes = image->count_bytes;
    job->block->fingerprint = image->fingerprint;
    return ml_place_client(&job->borrowed, image, &attachment->error);
}

static const char *file_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static void fill_facts(struct ml_job *job) {
    struct ml_attach_block *block = job->block;
    const struct ml_plan_answer *answer = job->plan->answer;
    const char *owner = "";
    block->host_fd = -1;
    block->outcome = ML_ATTACH_NOT_BEGUN;
    block->find_object = answer->find_object;
    block->errno_location = answer->errno_location;
    block->stack_end = ml_target_stack_start(job->attachment->pid);
    block->host_pid = (uint32_t)getppid();
    block->host_start_ticks = ml_target_start_ticks(getppid());
    block->auxv_count = ml_target_auxv(job->attachment->pid, block->auxv);
    block->hooked = answer->allocators;
    /* The objects are in the order of their addresses: the executable is the first. */
    block->in_program = answer->malloc_object == 1;
    if (answer->malloc_object > 1) {
        owner = file_of(job->plan->objects[answer->malloc_object - 1].path);
    }
    strncpy(block->owner, owner, sizeof(block->owner) - 1);
    (void)snprintf(block->library, sizeof(block->library), "%s", job->attachment->library);
    (void
    )snprintf(block->socket_path, sizeof(block->socket_path), "%s", job->attachment->socket_path);
    memcpy(block->refused, answer->refused, sizeof(block->refused));
    memcpy(block->mark, ML_ATTACH_MARK, sizeof(ML_ATTACH_MARK));
}

/* As far as they are used. */
static bool write_filters(const struct ml_job *job) {
    const struct ml_attach_filters *filters = &job->block->filters;
    const size_t used = offsetof(struct ml_attach_filters, lines) +
                        filters->lines_count * sizeof(filters->lines[0]);
    return ml_memory_write(
        job->memory_fd,
        job->block_address + offsetof(struct ml_attach_block, filters),
        filters,
        used
    );
}

/* All but frame and stack, which the process uses. The mark is written last: from then on the block
 * counts. */
static bool write_block(const struct ml_job *job) {
    const size_t rest = offsetof(struct ml_attach_block, frame) - ML_ATTACH_MARK_BYTES;
    return write_filters(job) &&
           ml_memory_write(
               job->memory_fd,
               job->block_address + ML_ATTACH_MARK_BYTES,
               (const uint8_t *)job->block + ML_ATTACH_MARK_BYTES,
               rest
           ) &&
           ml_memory_write(
               job->memory_fd, job->block_address, job->block->mark, ML_ATTACH_MARK_BYTES
           );
}

/* The process says which descriptor it is, and might say any. */
static bool is_connection(int fd) {
    int domain = 0;
    int type = 0;
    socklen_t bytes = sizeof(domain);
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX &&
           getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_SEQPACKET;
}

static void close_opened(int fd) {
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* The process has made its socket pair, and stands behind a call of getpid. */
static void take_connection(void *context) {
    struct ml_job *job = context;
    const uint64_t at = job->block_address + offsetof(struct ml_attach_block, host_fd);
    const struct timeval bound = {.tv_sec = ML_ATTACH_SEND_WAIT_S};
    int32_t ends[2] = {-1, -1}; /* the host's, the process's own */
    const int on = 1;
    _Static_assert(
        offsetof(struct ml_attach_block, own_fd) ==
            offsetof(struct ml_attach_block, host_fd) + sizeof(ends[0]),
        "they are read together"
    );
    if (!ml_memory_read(job->memory_fd, at, ends, sizeof(ends)) || ends[0] < 0 || ends[1] < 0) {
        return;
    }
    const int process = (int)syscall(SYS_pidfd_open, job->attachment->pid, 0);
    const int hosts = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, ends[0], 0) : -1;
    const int own = process >= 0 ? (int)syscall(SYS_pidfd_getfd, process, ends[1], 0) : -1;
    if (hosts >= 0 && own >= 0 && is_connection(hosts) && is_connection(own)) {
        /* Its sends to a host that stands still end, and from now on each message says who sent
         * it. */
        (void)setsockopt(own, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
        (void)setsockopt(hosts, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
        job->attachment->on_connection(job->attachment->pid, hosts);
    }
    close_opened(own);
    close_opened(hosts);
    close_opened(process);
}

static bool run_start(struct ml_job *job) {
    const struct ml_client_image *image = &job->attachment->image;
    const uint64_t frame = job->block_address + offsetof(struct ml_attach_block, frame);
    const uint64_t stack_end =
        job->block_address + offsetof(struct ml_attach_block, stack) + ML_ATTACH_STACK_BYTES;
    return ml_borrow_run(
        &job->borrowed, image->address + image->enter_at, stack_end, frame, take_connection, job
    );
}

/* Put the client into memory, and have the borrowed thread start it. */
static bool put_in(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    if (!borrow(job)) {
        return false;
    }
    const uint64_t since_ns = ml_job_now_ns();
    bool done = place_client(job);
    job->block_address = attachment->image.address + attachment->image.block_at;
    done = done && ml_place_functions(&job->borrowed, job->plan, job->block, &attachment->error);
    if (done) {
        fill_facts(job);
        done = write_block(job) && run_start(job);
    }
    done = ml_borrow_end(&job->borrowed) && done;
    ml_threads_let_go(&job->threads);
    attachment->traced.borrowed_ns = ml_job_now_ns() - since_ns;
    if (!done) {
        ml_error_set(&attachment->error, "the kernel refused a call to it, or it has ended");
    }
    return done;
}

static enum memlog_tracer_outcome judge_start(struct ml_job *job) {
    struct ml_error_message *error = &job->attachment->error;
    if (!ml_memory_read(
            job->memory_fd, job->block_address, job->block, offsetof(struct ml_attach_block, frame)
        )) {
        ml_error_set(error, "it has ended");
        return ml_job_failed(job);
    }
    switch ((enum ml_attach_outcome)job->block->outcome) {
    case ML_ATTACH_CONNECTED:
        return MEMLOG_TRACER_OUTCOME_DONE;
    case ML_ATTACH_NO_SOCKET:
        ml_error_set(error, "it has no descriptors left (ulimit -n)");
        return ml_job_refused(job);
    case ML_ATTACH_FILTERED:
        ml_error_set(
            error,
            "its seccomp filter forbids calls that recording needs: start it under memlog run"
        );
        return ml_job_refused(job);
    default:
        ml_error_set(error, "the host did not take it, or it has no room for memlog's memory");
        return ml_job_refused(job);
    }
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

/* False: it was not to be had. Then nothing is written. */
static bool write_jumps(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    const struct ml_attach_block *block = job->block;
    if (!ml_place_stubs(job->memory_fd, block)) {
        ml_error_set(&attachment->error, "its memory cannot be written");
        return false;
    }
    for (uint32_t i = 0; i < TRIES_MAX; i++) {
        const uint64_t since_ns = ml_job_now_ns();
        if (!ml_job_stop_all(job)) {
            return false;
        }
        const bool is_busy = ml_entries_are_busy(
            &job->threads, job->memory_fd, block->functions, block->functions_count
        );
        struct ml_entries_result result = {.written = 0};
        if (!ml_filters_are(&job->threads, &block->filters)) {
            ml_threads_let_go(&job->threads);
            ml_error_set(&attachment->error, "its seccomp filters have changed: try again");
            return false;
        }
        if (!is_busy) {
            result =
                ml_entries_write(job->memory_fd, block->functions, block->functions_count, true);
            if (result.failed + result.foreign > 0) {
                (void
                )ml_entries_write(job->memory_fd, block->functions, block->functions_count, false);
            }
            write_id_offset(job);
        }
        ml_job_note_stop(job, since_ns);
        ml_threads_let_go(&job->threads);
        if (!is_busy) {
            attachment->traced.functions = result.written;
            if (result.failed + result.foreign > 0) {
                ml_error_set(&attachment->error, "its code has changed meanwhile: try again");
            }
            return result.failed + result.foreign == 0;
        }
        ml_job_pause_us(pause_of(i));
    }
    ml_error_set(
        &attachment->error, "its threads stand in its allocator's first bytes all the time"
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
    if (!put_in(job)) {
        return ml_job_failed(job);
    }
    const enum memlog_tracer_outcome started = judge_start(job);
    if (started != MEMLOG_TRACER_OUTCOME_DONE) {
        return started;
    }
    return write_jumps(job) ? MEMLOG_TRACER_OUTCOME_DONE : ml_job_failed(job);
}

enum memlog_tracer_outcome ml_attach(struct ml_attachment *attachment) {
    enum memlog_tracer_outcome outcome = MEMLOG_TRACER_OUTCOME_FAILED;
    bool again = true;
    for (uint32_t i = 0; again && i < PLACES_MAX; i++) {
        struct ml_job job;
        outcome = ml_job_open(&job, attachment) ? attach_job(&job) : ml_job_failed(&job);
        again = outcome == MEMLOG_TRACER_OUTCOME_FAILED && job.borrowed.is_beaten;
        ml_job_close(&job);
    }
    return outcome;
}

enum memlog_tracer_outcome ml_detach(struct ml_attachment *attachment) {
    struct ml_job job;
    const enum memlog_tracer_outcome outcome =
        ml_job_open(&job, attachment) && ml_earlier_restore(&job) ? MEMLOG_TRACER_OUTCOME_DONE
                                                                  : ml_job_failed(&job);
    ml_job_close(&job);
    return outcome;
}

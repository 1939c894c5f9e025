#include "tracer/put_in.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "tracer/earlier.h"
#include "tracer/filters.h"
#include "tracer/place.h"
#include "tracer/process/memory.h"
#include "tracer/process/target.h"

enum {
    BORROW_TRIES_MAX = 50, /* passes over the threads until one can be borrowed */
    TURN_SHIFT = 10        /* no two tracers write the block within a microsecond */
};

/* ---- borrowing a thread */

static bool borrow_one(struct ml_job *job, pid_t id, const struct ml_borrowed_code *code) {
    struct ml_error_message why = {.text = ""};
    const bool is_stopped = ml_threads_stop_one(&job->threads, id, &why);
    job->is_dispatched = is_stopped && ml_job_dispatches(&job->threads, &why);
    const bool is_safe = is_stopped && !job->is_dispatched &&
                         (job->is_watched || ml_target_seccomp(job->attachment->pid, id) == 0);
    if (is_stopped && !job->is_dispatched && !is_safe) {
        ml_error_set(&why, "a seccomp filter has come over a thread of it: try again");
    }
    if (is_safe && job->is_watched) {
        ml_filters_mend_waits(&job->threads);
        ml_filters_suspend(&job->threads.list[0]);
    }
    job->is_traced = job->threads.forbidden != 0;
    if (is_safe &&
        ml_borrow(&job->borrowed, &job->threads.list[0], job->memory_fd, &job->maps, code, &why)) {
        return true;
    }
    ml_threads_let_go(&job->threads);
    job->attachment->error = why;
    return false;
}

/* Whether another thread may do. Where someone traces one of them he may be a memlog-tracer in the
 * middle of its work, of another mount of /proc and so with turns of its own. */
static bool may_be_borrowed(const struct ml_job *job) {
    return !job->is_dispatched && !job->is_traced;
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
    for (uint32_t pass = 0; ids != NULL && !done && may_be_borrowed(job) && pass < BORROW_TRIES_MAX;
         pass++) {
        const size_t count = ml_threads_list(attachment->pid, ids, ML_THREADS_TRACED_MAX);
        for (size_t i = 0; i < count && !done && may_be_borrowed(job); i++) {
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
    } else if (may_be_borrowed(job)) {
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
    block->turn = (uint32_t)(ml_job_now_ns() >> TURN_SHIFT);
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

bool ml_put_in_can_take(struct ml_error_message *error) {
    const int own = (int)syscall(SYS_pidfd_open, getpid(), 0);
    const int taken = own >= 0 ? (int)syscall(SYS_pidfd_getfd, own, own, 0) : -1;
    const int why = errno;
    const bool can = taken >= 0;
    close_opened(taken);
    close_opened(own);
    if (!can) {
        ml_error_set(
            error,
            "memlog takes its end of a socket out of it by pidfd_open (Linux 5.3) and pidfd_getfd "
            "(Linux 5.6), and this kernel, or a filter, does not let it (%s): start it under "
            "memlog run",
            strerror(why)
        );
    }
    return can;
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

/* The thread is back where it stood, in the middle of a start: nobody ends that. */
static void forget_start(const struct ml_job *job) {
    const uint32_t outcome = ML_ATTACH_NOT_BEGUN;
    const uint64_t at = job->block_address + offsetof(struct ml_attach_block, outcome);
    (void)ml_memory_write(job->memory_fd, at, &outcome, sizeof(outcome));
}

bool ml_put_in(struct ml_job *job) {
    struct ml_attachment *attachment = job->attachment;
    if (!borrow(job)) {
        return false;
    }
    const uint64_t since_ns = ml_job_now_ns();
    bool done = ml_earlier_is_as_found(job);
    if (!done) {
        ml_error_set(&attachment->error, "another memlog-tracer has been at work in it: try again");
    }
    done = done && place_client(job);
    job->block_address = attachment->image.address + attachment->image.block_at;
    done =
        done &&
        ml_place_functions(&job->borrowed, job->plan, job->block, &job->gone, &attachment->error);
    bool is_written = false;
    if (done) {
        fill_facts(job);
        is_written = write_block(job);
        done = is_written && ml_place_give_back(&job->borrowed, &job->gone) && run_start(job);
    }
    const bool is_back = ml_borrow_end(&job->borrowed);
    if (is_back && is_written && !done) {
        forget_start(job);
    }
    done = is_back && done;
    ml_threads_let_go(&job->threads);
    attachment->traced.borrowed_ns = ml_job_now_ns() - since_ns;
    if (!done) {
        ml_error_set(&attachment->error, "the kernel refused a call to it, or it has ended");
    }
    return done;
}

enum memlog_tracer_outcome ml_put_in_judge(struct ml_job *job) {
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
    case ML_ATTACH_BUSY:
        ml_error_set(error, "a thread of it is unloading a library: try again");
        return ml_job_failed(job);
    case ML_ATTACH_NO_SOCKET:
        ml_error_set(error, "it has no descriptors left (ulimit -n)");
        return ml_job_refused(job);
    case ML_ATTACH_FILTERED:
        ml_error_set(
            error,
            "its seccomp filter forbids calls that recording needs: start it under memlog run"
        );
        return ml_job_refused(job);
    case ML_ATTACH_UNANSWERED:
        ml_error_set(error, "memlog was too busy to answer it in time: try again");
        return ml_job_again(job);
    case ML_ATTACH_NO_ROOM:
        ml_error_set(error, "its limits or its kernel leave memlog no memory in it (ulimit -v)");
        return ml_job_refused(job);
    default:
        ml_error_set(
            error,
            "memlog did not take it, or it or memlog has too few descriptors left (ulimit -n)"
        );
        return ml_job_refused(job);
    }
}

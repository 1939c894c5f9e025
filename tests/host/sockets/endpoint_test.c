#include "host/sockets/endpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

static const struct ml_control_page page = {
    .enabled = 1, .sampling_bytes = 1, .clock = ML_CLOCK_MONOTONIC};

/* Bytes in use of that user. */
static uint64_t used_by(const struct ml_pipe_budget *budget, uid_t uid) {
    for (uint32_t i = 0; i < budget->accounts_count; i++) {
        if (budget->accounts[i].uid == uid) {
            return budget->accounts[i].used_bytes;
        }
    }
    return 0;
}

START_TEST(makes_a_pipe_staging_and_control_that_the_contract_permits) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint endpoint;
    int write_fd = -1;
    ck_assert_int_eq(ml_endpoint_make(&endpoint, &budget, 3, &page, &write_fd), ML_OK);
    ck_assert_int_eq(fcntl(write_fd, F_GETPIPE_SZ), ML_PIPE_LARGE_BYTES);
    ck_assert_int_ne(fcntl(write_fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_eq(fcntl(write_fd, F_GETFD), FD_CLOEXEC);
    ck_assert_uint_eq(used_by(&budget, getuid()), ML_PIPE_LARGE_BYTES);
    int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    ck_assert_int_eq(fcntl(endpoint.staging_fd, F_GET_SEALS), seals);
    ck_assert_int_eq(fcntl(endpoint.control_fd, F_GET_SEALS), seals);
    struct ml_staging_header header;
    ck_assert_int_eq(pread(endpoint.staging_fd, &header, sizeof(header), 0), sizeof(header));
    ck_assert_uint_eq(header.magic, ML_STAGING_MAGIC);
    ck_assert_uint_eq(header.slots, 3);
    ck_assert_int_eq(lseek(endpoint.staging_fd, 0, SEEK_END), (off_t)ml_staging_size_bytes(3));
    (void)close(write_fd);
    ml_endpoint_close(&endpoint, &budget);
    ck_assert_uint_eq(used_by(&budget, getuid()), 0);
    ck_assert_int_eq(endpoint.pipe_read_fd, -1);
}
END_TEST

START_TEST(each_change_of_the_control_page_has_a_new_generation) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint endpoint;
    int write_fd = -1;
    ck_assert_int_eq(ml_endpoint_make(&endpoint, &budget, 1, &page, &write_fd), ML_OK);
    const struct ml_control_page *seen =
        mmap(NULL, ML_CONTROL_BYTES, PROT_READ, MAP_SHARED, endpoint.control_fd, 0);
    ck_assert_ptr_ne(seen, MAP_FAILED);
    ck_assert_uint_eq(seen->magic, ML_CONTROL_MAGIC);
    ck_assert_uint_eq(seen->generation, 1);
    ck_assert_uint_eq(seen->clock, ML_CLOCK_MONOTONIC);
    struct ml_control_page next = {.enabled = 0, .sampling_bytes = 7, .clock = ML_CLOCK_TSC};
    ck_assert_int_eq(ml_endpoint_control(&endpoint, &next), ML_OK);
    ck_assert_uint_eq(seen->generation, 2);
    ck_assert_uint_eq(seen->enabled, 0);
    ck_assert_uint_eq(seen->sampling_bytes, 7);
    ck_assert_uint_eq(seen->clock, ML_CLOCK_MONOTONIC);
    endpoint.control.generation = UINT32_MAX;
    ck_assert_int_eq(ml_endpoint_control(&endpoint, &next), ML_OK);
    ck_assert_uint_eq(seen->generation, 1);
    (void)close(write_fd);
    ml_endpoint_close(&endpoint, &budget);
    ck_assert_int_eq(ml_endpoint_control(&endpoint, &next), ML_ENV_SYSTEM);
}
END_TEST

START_TEST(the_size_of_childrens_pipes_changes_without_a_new_generation) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint endpoint;
    int write_fd = -1;
    ck_assert_int_eq(ml_endpoint_make(&endpoint, &budget, 1, &page, &write_fd), ML_OK);
    ml_endpoint_fork_pipe(&endpoint, 8192);
    struct ml_control_page seen;
    ck_assert_int_eq(pread(endpoint.control_fd, &seen, sizeof(seen), 0), sizeof(seen));
    ck_assert_uint_eq(seen.fork_pipe_bytes, 8192);
    ck_assert_uint_eq(seen.generation, 1);
    ck_assert_uint_eq(seen.enabled, 1);
    (void)close(write_fd);
    ml_endpoint_close(&endpoint, &budget);
    ml_endpoint_fork_pipe(&endpoint, 4096);
}
END_TEST

START_TEST(takes_over_a_forked_childs_handles_and_refuses_wrong_ones) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint made;
    struct ml_endpoint adopted;
    int write_fd = -1;
    ck_assert_int_eq(ml_endpoint_make(&made, &budget, 1, &page, &write_fd), ML_OK);
    int control = dup(made.control_fd);
    ck_assert_int_eq(
        ml_endpoint_adopt(
            &adopted, &budget, 7, dup(made.pipe_read_fd), dup(made.staging_fd), control
        ),
        ML_OK
    );
    ck_assert_uint_eq(adopted.control.enabled, 1);
    ck_assert_uint_eq(adopted.control.generation, 1);
    ck_assert_uint_eq(used_by(&budget, 7), ML_PIPE_LARGE_BYTES);
    ml_endpoint_close(&adopted, &budget);
    ck_assert_uint_eq(used_by(&budget, 7), 0);
    control = dup(made.control_fd);
    ck_assert_int_eq(
        ml_endpoint_adopt(&adopted, &budget, 7, dup(write_fd), dup(made.staging_fd), control),
        ML_PEER_HANDLE
    );
    ck_assert_int_eq(fcntl(control, F_GETFD), -1);
    ck_assert_int_eq(
        ml_endpoint_adopt(
            &adopted, &budget, 7, dup(made.pipe_read_fd), dup(made.staging_fd), dup(made.staging_fd)
        ),
        ML_PEER_HANDLE
    );
    (void)close(write_fd);
    ml_endpoint_close(&made, &budget);
}
END_TEST

/* What a child sends, as adopted in place of those of `made`; -1: that one's. */
static enum ml_status adopt(const struct ml_endpoint *made, int pipe_fd, int staging, int control) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint adopted;
    const enum ml_status status = ml_endpoint_adopt(
        &adopted,
        &budget,
        7,
        pipe_fd >= 0 ? pipe_fd : dup(made->pipe_read_fd),
        staging >= 0 ? staging : dup(made->staging_fd),
        control >= 0 ? control : dup(made->control_fd)
    );
    ml_endpoint_close(&adopted, &budget);
    return status;
}

START_TEST(a_child_that_keeps_its_read_end_cannot_make_ours_wait) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint made;
    struct ml_endpoint adopted;
    int write_fd = -1;
    char byte = 0;
    ck_assert_int_eq(ml_endpoint_make(&made, &budget, 1, &page, &write_fd), ML_OK);
    ck_assert_int_eq(
        ml_endpoint_adopt(
            &adopted, &budget, 7, dup(made.pipe_read_fd), dup(made.staging_fd), dup(made.control_fd)
        ),
        ML_OK
    );
    ck_assert_int_eq(fcntl(made.pipe_read_fd, F_SETFL, 0), 0);
    ck_assert_int_ne(fcntl(adopted.pipe_read_fd, F_GETFL) & O_NONBLOCK, 0);
    ck_assert_int_ne(fcntl(adopted.pipe_read_fd, F_GETFD) & FD_CLOEXEC, 0);
    (void)alarm(20); /* it would wait for ever */
    ck_assert_int_eq(read(adopted.pipe_read_fd, &byte, 1), -1);
    ck_assert_int_eq(errno, EAGAIN);
    ck_assert_int_eq(write(write_fd, "x", 1), 1);
    ck_assert_int_eq(read(adopted.pipe_read_fd, &byte, 1), 1);
    (void)close(write_fd);
    ck_assert_int_eq(read(adopted.pipe_read_fd, &byte, 1), 0);
    ml_endpoint_close(&adopted, &budget);
    ml_endpoint_close(&made, &budget);
}
END_TEST

/* Nothing that a file system, or its owner, could answer late or never. */
START_TEST(only_the_kernels_own_pipes_and_plain_memfds_are_taken) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint made;
    int write_fd = -1;
    ck_assert_int_eq(ml_endpoint_make(&made, &budget, 1, &page, &write_fd), ML_OK);
    ck_assert_int_eq(adopt(&made, -1, -1, -1), ML_OK);
    char path[] = "/tmp/endpoint-test.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(path));
    char fifo[64];
    (void)snprintf(fifo, sizeof(fifo), "%s/pipe:[7]", path);
    ck_assert_int_eq(mkfifo(fifo, 0600), 0);
    const int fifo_fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    (void)unlink(fifo);
    (void)rmdir(path);
    ck_assert_int_eq(adopt(&made, fifo_fd, -1, -1), ML_PEER_HANDLE);
    ck_assert_int_eq(fcntl(fifo_fd, F_GETFD), -1);

    const int sealed = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(pwrite(sealed, &made.control, sizeof(made.control), 0), sizeof(made.control));
    ck_assert_int_eq(adopt(&made, -1, -1, dup(sealed)), ML_OK);
    ck_assert_int_eq(fcntl(sealed, F_ADD_SEALS, F_SEAL_WRITE), 0);
    ck_assert_int_eq(adopt(&made, -1, -1, sealed), ML_PEER_HANDLE);

    const int huge = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (huge >= 0) {
        ck_assert_int_eq(adopt(&made, -1, huge, -1), ML_PEER_HANDLE);
    }
    char own[64];
    (void)snprintf(own, sizeof(own), "/proc/self/fd/%d", made.control_fd);
    ck_assert_int_eq(adopt(&made, -1, -1, open(own, O_RDONLY | O_CLOEXEC)), ML_PEER_HANDLE);
    (void)close(write_fd);
    ml_endpoint_close(&made, &budget);
}
END_TEST

START_TEST(a_pipe_of_a_user_that_may_not_be_opened_is_said_to_be_one) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint made;
    int write_fd = -1;
    ck_assert_int_eq(ml_endpoint_make(&made, &budget, 1, &page, &write_fd), ML_OK);
    if (setuid(65534) == 0) {
        ck_assert_int_eq(adopt(&made, -1, -1, -1), ML_ENV_REFUSED);
    }
    (void)close(write_fd);
    ml_endpoint_close(&made, &budget);
}
END_TEST

START_TEST(the_host_can_put_out_who_holds_the_lease) {
    const int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    const int lease_fd = ml_endpoint_lease();
    ck_assert_int_ge(lease_fd, 0);
    ck_assert_int_eq(fcntl(lease_fd, F_GET_SEALS), seals);
    struct ml_lease_page *lease =
        mmap(NULL, ML_LEASE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, lease_fd, 0);
    ck_assert_ptr_ne(lease, MAP_FAILED);
    ck_assert_uint_eq(lease->magic, ML_LEASE_MAGIC);
    ck_assert(!ml_endpoint_lease_held(lease_fd));
    lease->numbers = 3;
    lease->holder = ml_lease_self(3, 7);
    ck_assert(ml_endpoint_lease_held(lease_fd));
    ml_endpoint_lease_end(lease_fd);
    ck_assert_uint_eq(lease->holder, 0);
    ck_assert_uint_eq(lease->numbers, 3);
    ck_assert(!ml_endpoint_lease_held(lease_fd));
    (void)munmap(lease, ML_LEASE_BYTES);
    (void)close(lease_fd);
}
END_TEST

struct slow_write {
    int fd;
    void *from;
};

static void *write_slowly(void *context) {
    const struct slow_write *slow = context;
    (void)!pwrite(slow->fd, slow->from, 1, 0);
    return NULL;
}

START_TEST(reads_what_a_process_has_left_of_a_program_that_it_started_unrecorded) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint made;
    int write_fd = -1;
    uint32_t pid = 0;
    uint32_t reason = 0;
    ck_assert_int_eq(ml_endpoint_make(&made, &budget, 1, &page, &write_fd), ML_OK);
    ck_assert(!ml_left_out_read(ml_endpoint_left_out(&made), &pid, &reason));
    const uint64_t word = ml_left_out(4711, 0);
    const off_t at = offsetof(struct ml_staging_header, left_out);
    ck_assert_int_eq(pwrite(made.staging_fd, &word, sizeof(word), at), sizeof(word));
    ck_assert(ml_left_out_read(ml_endpoint_left_out(&made), &pid, &reason));
    ck_assert_uint_eq(pid, 4711);
    ck_assert_uint_eq(reason, 0);
    ml_endpoint_close(&made, &budget);
    ck_assert_uint_eq(ml_endpoint_left_out(&made), 0);
    (void)close(write_fd);
}
END_TEST

/* A page whose reader waits until somebody serves it, which nobody does; NULL: not permitted here.
 */
static void *unserved_page(void) {
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    void *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {
        .range = {.start = (uintptr_t)at, .len = 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    return fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &range) == 0
               ? at
               : NULL;
}

/* The kernel lets one at a time write into a file, and this one does not end. */
START_TEST(a_process_that_writes_for_ever_does_not_make_the_host_wait) {
    struct ml_pipe_budget budget = {.limit_bytes = UINT64_MAX};
    struct ml_endpoint made;
    int write_fd = -1;
    pthread_t threads[2];
    ck_assert_int_eq(ml_endpoint_make(&made, &budget, 1, &page, &write_fd), ML_OK);
    const int lease_fd = ml_endpoint_lease();
    struct slow_write slow[] = {{made.control_fd, unserved_page()}, {lease_fd, unserved_page()}};
    if (slow[0].from == NULL || slow[1].from == NULL) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, write_slowly, &slow[i]), 0);
    }
    (void)usleep(100000);
    (void)alarm(20); /* it would wait for ever */
    const struct ml_control_page next = {.enabled = 1, .sampling_bytes = 7};
    ck_assert_int_eq(ml_endpoint_control(&made, &next), ML_OK);
    ml_endpoint_fork_pipe(&made, 8192);
    ml_endpoint_fork_enabled(&made, true);
    ml_endpoint_lease_end(lease_fd);
    ck_assert(!ml_endpoint_lease_held(lease_fd));
    struct ml_control_page seen;
    ck_assert_int_eq(pread(made.control_fd, &seen, sizeof(seen), 0), sizeof(seen));
    ck_assert_uint_eq(seen.sampling_bytes, 7);
    ck_assert_uint_eq(seen.generation, 2);
    ck_assert_uint_eq(seen.fork_pipe_bytes, 8192);
    ck_assert_uint_eq(seen.fork_enabled, 1);
    _exit(EXIT_SUCCESS); /* the threads wait on */
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("endpoint");
    tcase_add_test(tcase, makes_a_pipe_staging_and_control_that_the_contract_permits);
    tcase_add_test(tcase, the_host_can_put_out_who_holds_the_lease);
    tcase_add_test(tcase, each_change_of_the_control_page_has_a_new_generation);
    tcase_add_test(tcase, the_size_of_childrens_pipes_changes_without_a_new_generation);
    tcase_add_test(tcase, a_child_that_keeps_its_read_end_cannot_make_ours_wait);
    tcase_add_test(tcase, only_the_kernels_own_pipes_and_plain_memfds_are_taken);
    tcase_add_test(tcase, a_pipe_of_a_user_that_may_not_be_opened_is_said_to_be_one);
    tcase_add_test(tcase, reads_what_a_process_has_left_of_a_program_that_it_started_unrecorded);
    tcase_add_test(tcase, a_process_that_writes_for_ever_does_not_make_the_host_wait);
    tcase_add_test(tcase, takes_over_a_forked_childs_handles_and_refuses_wrong_ones);
    return run_suite("host/endpoint", tcase);
}

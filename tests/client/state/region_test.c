#include "client/state/region.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

enum { PAGE = 4096, FIRST_BYTES = 64 << 10, MAX_BYTES = 256 << 20, THREADS = 8 };

static struct ml_region region;

/* Somewhere with nothing behind it for MAX_BYTES and more. */
static void map(void) {
    uint8_t *room = mmap(
        NULL, 2 * (size_t)MAX_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0
    );
    ck_assert(room != MAP_FAILED);
    ck_assert_int_eq(munmap(room, 2 * (size_t)MAX_BYTES), 0);
    region = (struct ml_region){.first_bytes = FIRST_BYTES, .max_bytes = MAX_BYTES};
    ck_assert(ml_region_map(&region, room));
    ck_assert_ptr_eq(region.start, room);
    ck_assert_uint_eq(region.mapped_bytes, FIRST_BYTES);
}

static bool is_mapped(const uint8_t *page) {
    unsigned char in_core = 0;
    return mincore((void *)(uintptr_t)page, PAGE, &in_core) == 0;
}

START_TEST(it_grows_in_place_by_sizes_of_one_sequence) {
    map();
    memset(region.start, 7, FIRST_BYTES);
    uint64_t size = FIRST_BYTES;
    while (size < MAX_BYTES) {
        const uint64_t next = ml_region_next(&region, size);
        ck_assert_uint_gt(next, size);
        ck_assert_uint_le(next, MAX_BYTES);
        ck_assert_uint_eq(next % PAGE, 0);
        ck_assert_uint_eq(ml_region_target(&region, size + 1), next);
        ck_assert(ml_region_reach(&region, size + 1));
        ck_assert_uint_eq(region.mapped_bytes, next);
        region.start[next - 1] = 1;
        size = next;
    }
    ck_assert_int_eq(region.start[FIRST_BYTES - 1], 7);
    ck_assert(ml_region_reach(&region, MAX_BYTES));
    ck_assert(!ml_region_reach(&region, (uint64_t)MAX_BYTES + 1));
    ck_assert_uint_eq(ml_region_target(&region, (uint64_t)MAX_BYTES + 1), 0);
    ml_region_unmap(&region);
}
END_TEST

START_TEST(it_reaches_far_at_once) {
    map();
    ck_assert(ml_region_reach(&region, 100 << 20));
    ck_assert_uint_ge(region.mapped_bytes, 100 << 20);
    region.start[(100 << 20) - 1] = 1;
    ml_region_unmap(&region);
}
END_TEST

START_TEST(it_leaves_its_neighbour_alone) {
    map();
    uint8_t *neighbour = region.start + ((uint64_t)1 << 20);
    ck_assert_ptr_eq(
        mmap(
            neighbour, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0
        ),
        neighbour
    );
    neighbour[0] = 9;
    uint64_t reached = 0;
    while (ml_region_reach(&region, region.mapped_bytes + 1)) {
        reached = region.mapped_bytes;
    }
    ck_assert_uint_gt(reached, FIRST_BYTES);
    ck_assert_uint_le(reached, 1 << 20);
    ck_assert_uint_eq(region.mapped_bytes, reached);
    ck_assert(!ml_region_reach(&region, 4 << 20));
    ck_assert_int_eq(neighbour[0], 9);
    ck_assert(!is_mapped(neighbour + PAGE));
    /* When it has gone there is room again. */
    ck_assert_int_eq(munmap(neighbour, PAGE), 0);
    ck_assert(ml_region_reach(&region, 4 << 20));
    ml_region_unmap(&region);
}
END_TEST

START_TEST(it_does_not_lie_where_somebody_else_does) {
    map();
    struct ml_region second = {.first_bytes = FIRST_BYTES, .max_bytes = MAX_BYTES};
    region.start[0] = 5;
    ck_assert(!ml_region_map(&second, region.start));
    ck_assert_ptr_null(second.start);
    ck_assert_int_eq(region.start[0], 5);
    ck_assert(ml_region_map(&second, NULL));
    second.start[0] = 1;
    ml_region_unmap(&second);
    ck_assert(!is_mapped(second.start) && second.start == NULL);
    ml_region_unmap(&region);
}
END_TEST

START_TEST(a_limit_is_a_refusal) {
    map();
    struct rlimit before;
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    const struct rlimit tight = {1, before.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &tight), 0);
    const bool reached = ml_region_reach(&region, FIRST_BYTES + 1);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
    ck_assert(!reached);
    ck_assert_uint_eq(region.mapped_bytes, FIRST_BYTES);
    ck_assert(ml_region_reach(&region, FIRST_BYTES + 1));
    ml_region_unmap(&region);
}
END_TEST

/* Another thread, or the parent that forked between the two, has grown it and not noted so. */
START_TEST(what_is_known_may_lag_behind_what_is) {
    map();
    const uint64_t second = ml_region_next(&region, FIRST_BYTES);
    const uint64_t third = ml_region_next(&region, second);
    ck_assert(ml_region_reach(&region, third));
    for (uint64_t known = FIRST_BYTES; known <= second; known += second - FIRST_BYTES) {
        for (uint64_t wanted = known + 1; wanted <= third + 1; wanted += PAGE / 2) {
            region.mapped_bytes = known;
            ck_assert(ml_region_reach(&region, wanted));
            ck_assert_uint_ge(region.mapped_bytes, wanted);
            region.start[wanted - 1] = 1;
            ck_assert(is_mapped(region.start + region.mapped_bytes - PAGE));
        }
    }
    /* The same with no room left behind what is. */
    const uint64_t longest = region.mapped_bytes;
    uint64_t most = third;
    while (is_mapped(region.start + most)) {
        most = ml_region_next(&region, most);
    }
    ck_assert_uint_ge(most, longest);
    ck_assert(
        mmap(
            region.start + most,
            PAGE,
            PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
            -1,
            0
        ) == region.start + most
    );
    region.mapped_bytes = FIRST_BYTES;
    ck_assert(ml_region_reach(&region, most));
    ck_assert_uint_eq(region.mapped_bytes, most);
    region.mapped_bytes = FIRST_BYTES;
    ck_assert(!ml_region_reach(&region, most + 1));
    ck_assert_uint_le(region.mapped_bytes, most);
    ml_region_unmap(&region);
}
END_TEST

/* Each writes a word into each page as soon as it has been told that it is there. */
static void *grow(void *argument) {
    const uint64_t number = (uint64_t)(uintptr_t)argument;
    for (uint64_t at = 0; at < MAX_BYTES; at += 64 * (uint64_t)PAGE) {
        if (!ml_region_reach(&region, at + PAGE)) {
            return (void *)1;
        }
        ((volatile uint64_t *)(void *)(region.start + at))[number] = number + 1;
    }
    return NULL;
}

START_TEST(threads_that_grow_it_at_once_all_get_there) {
    map();
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, grow, (void *)i), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed = NULL;
        ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
        ck_assert_ptr_null(failed);
    }
    /* Who finds it at its longest by then asks with one page more, and may get that. */
    ck_assert(!is_mapped(region.start + MAX_BYTES + PAGE));
    ml_region_unmap(&region);
}
END_TEST

START_TEST(a_forked_child_finds_all_of_it_empty_and_grows_it_on) {
    map();
    ck_assert(ml_region_reach(&region, 1 << 20));
    memset(region.start, 3, region.mapped_bytes);
    const pid_t child = fork();
    if (child == 0) {
        bool good = true;
        for (uint64_t i = 0; i < region.mapped_bytes; i++) {
            good = good && region.start[i] == 0;
        }
        good = good && ml_region_reach(&region, 8 << 20);
        region.start[(8 << 20) - 1] = 1;
        _exit(good ? 0 : 1);
    }
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(region.start[0], 3);
    ml_region_unmap(&region);
}
END_TEST

/* Refused by a filter, in the words in which the kernel refuses. */
START_TEST(a_filter_is_not_taken_for_the_kernel) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mremap, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    map();
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
    ck_assert(!ml_region_reach(&region, FIRST_BYTES + 1));
    ck_assert(!ml_region_reach(&region, 1 << 20));
    ck_assert_uint_eq(region.mapped_bytes, FIRST_BYTES);
    ck_assert(!is_mapped(region.start + FIRST_BYTES));
    ml_region_unmap(&region);
}
END_TEST

START_TEST(what_does_not_exist_does_not_grow) {
    struct ml_region none = {0};
    ck_assert(ml_region_reach(&none, 0));
    ck_assert(!ml_region_reach(&none, 1));
    ml_region_unmap(&none);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("region");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, it_grows_in_place_by_sizes_of_one_sequence);
    tcase_add_test(tcase, it_reaches_far_at_once);
    tcase_add_test(tcase, it_leaves_its_neighbour_alone);
    tcase_add_test(tcase, it_does_not_lie_where_somebody_else_does);
    tcase_add_test(tcase, a_limit_is_a_refusal);
    tcase_add_test(tcase, what_is_known_may_lag_behind_what_is);
    tcase_add_test(tcase, threads_that_grow_it_at_once_all_get_there);
    tcase_add_test(tcase, a_forked_child_finds_all_of_it_empty_and_grows_it_on);
    tcase_add_test(tcase, a_filter_is_not_taken_for_the_kernel);
    tcase_add_test(tcase, what_does_not_exist_does_not_grow);
    return run_suite("client/region", tcase);
}

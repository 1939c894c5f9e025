#include "client/stream/arena.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "client/state/process.h"
#include "client/stream/lane.h"
#include "client/stream/stack_table.h"
#include "tests/suite.h"

#define MIB ((uint64_t)1 << 20)

/* Each test runs in a process of its own. */
static void *near_page;

static void map(void) {
    near_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert(near_page != MAP_FAILED);
    ck_assert(ml_arena_map(near_page));
    ml_process.gate_page = (struct ml_gate_page *)(void *)ml_process.memory.arena.start;
    ml_process.gate_page->gate = ML_GATE_RECORDING;
    ml_process.slots = 1;
    ml_process.connected = true;
    ml_arena_begin();
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void set_limit(__rlimit_resource_t resource, uint64_t bytes) {
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(resource, &limit), 0);
    limit.rlim_cur = bytes;
    ck_assert_int_eq(setrlimit(resource, &limit), 0);
}
#endif

static uint64_t mapped(void) {
    const struct ml_memory *memory = &ml_process.memory;
    return memory->arena.mapped_bytes + memory->nodes.mapped_bytes + memory->staging.mapped_bytes;
}

START_TEST(it_begins_small_and_far_away) {
    map();
    ck_assert_uint_le(mapped(), 3 * MIB);
    const uint64_t away = (uint64_t)llabs((uint8_t *)near_page - ml_process.memory.arena.start);
    ck_assert_uint_gt(away, 1024 * 128 * MIB);
    ck_assert_uint_lt(away, 1024 * 1024 * MIB);
    ck_assert_uint_ge(ml_process.nodes_max, 16000);
}
END_TEST

START_TEST(what_is_taken_is_zero_aligned_and_nobody_elses) {
    map();
    uint8_t *end = NULL;
    for (uint64_t i = 0; i < 2000; i++) {
        const uint64_t align = (uint64_t)1 << (3 + i % 10);
        const uint64_t bytes = 1 + i * 37 % 60000;
        uint8_t *taken = ml_arena_take(bytes, align);
        ck_assert_ptr_nonnull(taken);
        ck_assert_uint_eq((uintptr_t)taken % align, 0);
        ck_assert(taken >= end);
        ck_assert(taken[0] == 0 && taken[bytes - 1] == 0);
        memset(taken, 1, bytes);
        end = taken + bytes;
    }
    ck_assert_uint_gt(ml_process.memory.arena.mapped_bytes, 40 * MIB);
    ck_assert_uint_lt(ml_process.memory.arena.mapped_bytes, 80 * MIB);
    ck_assert_ptr_null(ml_arena_take((uint64_t)1 << 30, 4096));
    ck_assert_ptr_nonnull(ml_arena_take(4096, 4096));
}
END_TEST

START_TEST(every_node_may_have_memory) {
    map();
    ck_assert(ml_arena_node(1000000));
    ck_assert_uint_gt(ml_process.nodes_max, 1000000);
    ml_process.stack_nodes[ml_process.nodes_max + ML_STACK_BLOCK_NODES - 1].key = 1;
    ck_assert(ml_arena_node(ML_NODES_MAX - 1));
    ml_process.stack_nodes[ML_NODES_MAX - 1 + ML_STACK_BLOCK_NODES].key = 1;
    ck_assert(!ml_arena_node(2 * ML_NODES_MAX));
}
END_TEST

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they map by the terabyte */
START_TEST(under_a_limit_it_grows_by_a_64th_of_it_and_no_more) {
    static const __rlimit_resource_t resources[] = {RLIMIT_AS, RLIMIT_DATA};
    map();
    const uint64_t before = mapped();
    set_limit(resources[_i], 256 * MIB);
    while (ml_arena_take(40000, 64) != NULL) {
    }
    ck_assert_uint_gt(mapped() - before, 2 * MIB);
    ck_assert_uint_le(mapped() - before, 4 * MIB);
    for (uint32_t id = 0; id < 1 << 20; id += 64) {
        (void)ml_arena_node(id);
    }
    ck_assert_uint_le(mapped() - before, 4 * MIB);
    /* Not at once, and not never. */
    set_limit(resources[_i], 4096 * MIB);
    uint32_t tries = 0;
    while (ml_arena_take(40000, 64) == NULL) {
        ck_assert_uint_lt(++tries, 100000);
    }
}
END_TEST

START_TEST(it_does_not_begin_where_a_limit_leaves_little) {
    near_page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    set_limit(RLIMIT_DATA, 16 * MIB);
    ck_assert(!ml_arena_map(near_page));
    ck_assert_uint_eq(mapped(), 0);
    set_limit(RLIMIT_DATA, 64 * MIB);
    ck_assert(ml_arena_map(near_page));
}
END_TEST
#endif

/* Somebody has mapped all that lies around. */
START_TEST(it_goes_elsewhere_where_somebody_is) {
    map();
    uint8_t *first = ml_process.memory.nodes.start;
    ml_arena_unmap();
    ck_assert_uint_eq(mapped(), 0);
    void *there = mmap(first, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ck_assert_ptr_eq(there, first);
    ck_assert(ml_arena_map(near_page));
    ck_assert_ptr_ne(ml_process.memory.nodes.start, first);
    ml_arena_unmap();
    uint8_t *low = first - ((uint64_t)1 << 38);
    there = mmap(
        low,
        (uint64_t)1 << 39,
        PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
        -1,
        0
    );
    if (there == MAP_FAILED) { /* the page is in the way: around it */
        ck_assert_int_eq(munmap(first, 4096), 0);
        there = mmap(
            low,
            ((uint64_t)1 << 38) + ((uint64_t)1 << 34),
            PROT_NONE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
            -1,
            0
        );
    }
    ck_assert_ptr_eq(there, low);
    ck_assert(ml_arena_map(near_page));
    ml_process.stack_nodes[1000].key = 1;
}
END_TEST

START_TEST(staging_is_mapped_as_lanes_come) {
    map();
    const int fd = memfd_create("staging", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, (off_t)ml_staging_size_bytes(1)), 0);
    uint8_t *staging = ml_arena_map_staging(fd, 1, false);
    ck_assert_ptr_nonnull(staging);
    ck_assert_uint_lt(ml_process.memory.staging.mapped_bytes, MIB);
    ck_assert(ml_arena_staging_lane(5000));
    staging[ml_staging_slot_offset(5000, 0, 1)] = 9;
    uint8_t seen = 0;
    ck_assert_int_eq(pread(fd, &seen, 1, (off_t)ml_staging_slot_offset(5000, 0, 1)), 1);
    ck_assert_int_eq(seen, 9);
    ck_assert(ml_arena_staging_lane(ML_LANES_MAX - 1));
    ck_assert(!ml_arena_staging_lane(ML_LANES_MAX));
    /* A child's own lies over all of it. */
    const int child_fd = memfd_create("child", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(child_fd, (off_t)ml_staging_size_bytes(1)), 0);
    ck_assert_ptr_eq(ml_arena_map_staging(child_fd, 1, true), staging);
    ck_assert_uint_eq(staging[ml_staging_slot_offset(5000, 0, 1)], 0);
}
END_TEST

START_TEST(a_forked_child_begins_with_nothing_taken) {
    map();
    memset(ml_arena_take(5 * MIB, 64), 1, 5 * MIB);
    const uint64_t used = ml_process.gate_page->arena_used;
    const pid_t child = fork();
    if (child == 0) {
        const bool wiped = ml_process.gate_page->arena_used == 0;
        ml_arena_begin();
        const uint8_t *taken = ml_arena_take(6 * MIB, 64);
        _exit(wiped && taken != NULL && taken[0] == 0 && taken[6 * MIB - 1] == 0 ? 0 : 1);
    }
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_uint_eq(ml_process.gate_page->arena_used, used);
}
END_TEST

START_TEST(before_a_filter_it_stocks_up) {
    map();
    const int fd = memfd_create("staging", MFD_CLOEXEC);
    ck_assert_int_eq(ftruncate(fd, (off_t)ml_staging_size_bytes(1)), 0);
    ck_assert_ptr_nonnull(ml_arena_map_staging(fd, 1, false));
    ml_arena_stock();
    const uint64_t before = mapped();
    ck_assert_uint_lt(before, 6 * MIB);
    ml_process.filters = ML_FILTERS_NO_GROWTH;
    ck_assert_ptr_nonnull(ml_arena_take(2 * MIB - 64, 64));
    ck_assert(ml_arena_node(65000));
    ck_assert(ml_arena_staging_lane(12));
    ck_assert_ptr_null(ml_arena_take(4 * MIB, 64));
    ck_assert(!ml_arena_node(1 << 20));
    ck_assert_uint_eq(mapped(), before);
}
END_TEST

int main(void) {
    TCase *tcase = tcase_create("arena");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, it_begins_small_and_far_away);
    tcase_add_test(tcase, what_is_taken_is_zero_aligned_and_nobody_elses);
    tcase_add_test(tcase, every_node_may_have_memory);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    tcase_add_loop_test(tcase, under_a_limit_it_grows_by_a_64th_of_it_and_no_more, 0, 2);
    tcase_add_test(tcase, it_does_not_begin_where_a_limit_leaves_little);
#endif
    tcase_add_test(tcase, it_goes_elsewhere_where_somebody_is);
    tcase_add_test(tcase, staging_is_mapped_as_lanes_come);
    tcase_add_test(tcase, a_forked_child_begins_with_nothing_taken);
    tcase_add_test(tcase, before_a_filter_it_stocks_up);
    return run_suite("client/arena", tcase);
}

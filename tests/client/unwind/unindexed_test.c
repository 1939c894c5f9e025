/* libc's own table, once by its index and once by one that is made by looking through the segment:
 * both say the same. */
#include "client/unwind/unindexed.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#include <check.h>

#include "client/unwind/modules.h"
#include "tests/suite.h"

enum { PAGE = 4096, ALIGNMENT = 8, LOOKUPS = 100000, DAMAGES = 40, PAIRS_MOST = 1 << 16 };

static struct ml_cfi_pair pairs[PAIRS_MOST];
static struct ml_image image;
static uint8_t *memory;
static size_t memory_bytes;
static uint64_t next = 88172645463325252U;

static uint64_t draw(void) {
    next ^= next << 13;
    next ^= next >> 7;
    next ^= next << 17;
    return next;
}

static void find_libc(void) {
    ck_assert(ml_image_find((uintptr_t)dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &image));
}

/* The segment of libc's table, moved to where what is around it faults. */
static struct ml_cfi_table setup_copy(void) {
    find_libc();
    const size_t bytes = image.cfi.segment_hi - image.cfi.segment_lo;
    const size_t pages = (bytes + PAGE - 1) / PAGE * PAGE;
    memory_bytes = pages + 2 * PAGE;
    memory = mmap(NULL, memory_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(memory, MAP_FAILED);
    ck_assert_int_eq(mprotect(memory + PAGE, pages, PROT_READ | PROT_WRITE), 0);
    uint8_t *copy = memory + PAGE + (pages - bytes) / ALIGNMENT * ALIGNMENT;
    memcpy(copy, (const void *)image.cfi.segment_lo, bytes);
    return (struct ml_cfi_table
    ){.segment_lo = (uintptr_t)copy, .segment_hi = (uintptr_t)copy + bytes};
}

static void teardown_copy(void) {
    ck_assert_int_eq(munmap(memory, memory_bytes), 0);
}

static size_t scan(struct ml_cfi_table *table, uintptr_t shift, size_t most) {
    table->base = image.start + shift;
    table->pairs = pairs;
    const size_t found =
        ml_unindexed_scan(table, image.start + shift, image.end + shift, table->base, pairs, most);
    table->pairs_count = found <= most ? (uint32_t)found : 0;
    return found;
}

START_TEST(it_says_what_the_index_says) {
    struct ml_cfi_table table = setup_copy();
    const uintptr_t shift = table.segment_lo - image.cfi.segment_lo;
    struct ml_cfi_scratch by_index;
    struct ml_cfi_scratch by_scan;
    uint32_t same = 0;
    ck_assert_uint_gt(scan(&table, shift, PAIRS_MOST), 1000);
    for (uint32_t i = 1; i < table.pairs_count; i++) {
        ck_assert_uint_le(pairs[i - 1].code, pairs[i].code);
    }
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        const uintptr_t at = image.start + draw() % (image.end - image.start);
        const bool has = ml_cfi_find_row(&image.cfi, at, &by_index);
        ck_assert_int_eq(has, ml_cfi_find_row(&table, at + shift, &by_scan));
        if (has) {
            ck_assert_uint_eq(by_index.row.cfa.kind, by_scan.row.cfa.kind);
            ck_assert_uint_eq(by_index.row.cfa_register, by_scan.row.cfa_register);
            ck_assert_int_eq(by_index.signal_frame, by_scan.signal_frame);
            same++;
        }
    }
    ck_assert_uint_gt(same, LOOKUPS / 10);
    teardown_copy();
}
END_TEST

START_TEST(more_functions_than_there_is_room_for_are_none) {
    struct ml_cfi_table table = setup_copy();
    const uintptr_t shift = table.segment_lo - image.cfi.segment_lo;
    struct ml_cfi_scratch scratch;
    ck_assert_uint_eq(scan(&table, shift, 100), SIZE_MAX);
    ck_assert(!ml_cfi_find_row(&table, image.start + shift, &scratch));
    teardown_copy();
}
END_TEST

START_TEST(a_table_of_other_code_is_none) {
    struct ml_cfi_table table = setup_copy();
    table.base = 0;
    ck_assert_uint_eq(ml_unindexed_scan(&table, PAGE, 2 * PAGE, 0, pairs, PAIRS_MOST), 0);
    teardown_copy();
}
END_TEST

START_TEST(it_survives_random_damage_and_each_end) {
    struct ml_cfi_table table = setup_copy();
    const uintptr_t shift = table.segment_lo - image.cfi.segment_lo;
    struct ml_cfi_scratch scratch;
    const size_t bytes = table.segment_hi - table.segment_lo;
    uint32_t found = 0;
    for (uint32_t i = 0; i < DAMAGES; i++) {
        for (uint32_t k = 0; k < 200; k++) {
            ((uint8_t *)table.segment_lo)[draw() % bytes] = (uint8_t)draw();
        }
        table.segment_hi -= draw() % 64;
        (void)scan(&table, shift, PAIRS_MOST);
        for (uint32_t k = 0; k < 1000; k++) {
            const uintptr_t at = image.start + shift + draw() % (image.end - image.start);
            found += ml_cfi_find_row(&table, at, &scratch);
        }
    }
    ck_assert_uint_gt(found, 0); /* most of it is unharmed */
    teardown_copy();
}
END_TEST

/* The table at one end, and between both what faults. */
static void expect_found_at_an_end(bool at_start) {
    const size_t bytes = image.cfi.segment_hi - image.cfi.segment_lo;
    const size_t edge = ((image.end - image.start) * 8 + (2 << 16)) / PAGE * PAGE;
    const size_t all = 4 * edge;
    uint8_t *segment = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(segment, MAP_FAILED);
    ck_assert_uint_lt(bytes, edge);
    ck_assert_int_eq(mprotect(segment, edge, PROT_READ | PROT_WRITE), 0);
    ck_assert_int_eq(mprotect(segment + all - edge, edge, PROT_READ | PROT_WRITE), 0);
    uint8_t *copy = at_start ? segment : segment + (all - bytes) / ALIGNMENT * ALIGNMENT;
    memcpy(copy, (const void *)image.cfi.segment_lo, bytes);
    struct ml_cfi_table table = {
        .segment_lo = (uintptr_t)segment, .segment_hi = (uintptr_t)segment + all};
    const uintptr_t shift = (uintptr_t)copy - image.cfi.segment_lo;
    ck_assert_uint_gt(scan(&table, shift, PAIRS_MOST), 1000);
    ck_assert_int_eq(munmap(segment, all), 0);
}

START_TEST(of_a_large_segment_the_ends_alone_are_read) {
    find_libc();
    expect_found_at_an_end(true);
    expect_found_at_an_end(false);
}
END_TEST

START_TEST(a_segment_of_a_few_bytes_has_none) {
    static const uint8_t few[24] = {20, 0, 0, 0, 0, 0, 0, 0, 1, 'z', 'R', 0};
    for (size_t bytes = 0; bytes <= sizeof(few); bytes++) {
        const struct ml_cfi_table table = {
            .segment_lo = (uintptr_t)few, .segment_hi = (uintptr_t)few + bytes};
        ck_assert_uint_eq(ml_unindexed_scan(&table, 0, UINTPTR_MAX, 0, pairs, PAIRS_MOST), 0);
    }
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("unindexed");
    tcase_set_timeout(tests, 60);
    tcase_add_test(tests, it_says_what_the_index_says);
    tcase_add_test(tests, more_functions_than_there_is_room_for_are_none);
    tcase_add_test(tests, a_table_of_other_code_is_none);
    tcase_add_test(tests, it_survives_random_damage_and_each_end);
    tcase_add_test(tests, of_a_large_segment_the_ends_alone_are_read);
    tcase_add_test(tests, a_segment_of_a_few_bytes_has_none);
    return run_suite("client/unwind/unindexed", tests);
}

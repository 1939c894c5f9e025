/* Held against what this test itself has written into a mapping of its own. */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "tests/suite.h"

#include "host/memory/words.h"

enum { PAGE = 4096, PAGES = 300, WORDS_A_PAGE = PAGE / sizeof(uint64_t) };

static struct ml_memory_regions regions;
static struct ml_memory_pages pages;
static struct ml_memory_words words;
static uint64_t *mapped;
static bool are_python;

/* In a file's mapping that nobody may write to, as a vtable. */
static const uint64_t constant[8] = {1, 2, 3, 4, 5, 6, 7, 8};
/* In one that this program writes to. */
static uint64_t written[2] = {1, 2};

static void setup(void) {
    are_python = false;
    mapped = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(mapped, MAP_FAILED);
    ck_assert_int_eq(madvise(mapped, PAGES * PAGE, MADV_NOHUGEPAGE), 0);
}

static void teardown(void) {
    ml_memory_words_fini(&words);
    ml_memory_pages_fini(&pages);
    ml_memory_regions_fini(&regions);
    (void)munmap(mapped, PAGES * PAGE);
}

static void read_of(pid_t pid) {
    ml_memory_regions_init(&regions, pid);
    ml_memory_pages_init(&pages, pid, &regions);
    ml_memory_words_init(&words, are_python, pid, &regions, &pages);
    ck_assert(words.were_read);
}

/* The word that was told of a place in the mapping; 0: none. */
static uint64_t told_at(size_t at) {
    for (uint32_t i = 0; i < words.count; i++) {
        ck_assert(i == 0 || words.items[i - 1].address < words.items[i].address);
        if (words.items[i].address == (uint64_t)(uintptr_t)&mapped[at]) {
            return words.items[i].word;
        }
    }
    return 0;
}

START_TEST(words_that_point_into_a_file_are_told_with_their_place) {
    for (size_t page = 0; page < PAGES; page += 3) {
        mapped[page * WORDS_A_PAGE + page % WORDS_A_PAGE] =
            (uint64_t)(uintptr_t)&constant[page % 8];
    }
    read_of(getpid());
    ck_assert(!words.are_cut);
    ck_assert_uint_ge(words.read_bytes, (uint64_t)PAGES / 3 * PAGE);
    for (size_t page = 0; page < PAGES; page++) {
        const size_t at = page * WORDS_A_PAGE + page % WORDS_A_PAGE;
        const uint64_t word = page % 3 == 0 ? (uint64_t)(uintptr_t)&constant[page % 8] : 0;
        ck_assert_uint_eq(told_at(at), word);
    }
}
END_TEST

START_TEST(all_other_words_stay_where_they_are) {
    mapped[0] = 0x1234;                                /* no address */
    mapped[1] = (uint64_t)(uintptr_t)&written[1];      /* of what may be written to */
    mapped[2] = (uint64_t)(uintptr_t)mapped;           /* of no file */
    mapped[3] = (uint64_t)(uintptr_t)&constant[1] + 1; /* of no word */
    mapped[4] = UINT64_MAX & ~(uint64_t)7;
    mapped[5] = (uint64_t)(uintptr_t)&constant[1];
    read_of(getpid());
    for (size_t at = 0; at < 5; at++) {
        ck_assert_uint_eq(told_at(at), 0);
    }
    ck_assert_uint_eq(told_at(5), mapped[5]);
}
END_TEST

/* As CPython has them: references, then the address of the type; the type of types is its own. */
static uint64_t type_of_types[2] = {1};
static uint64_t class_of_types[2] = {1};
static uint64_t types[3][2] = {{1}, {1}, {1}};

START_TEST(types_of_python_are_told_by_their_form) {
    type_of_types[1] = (uint64_t)(uintptr_t)type_of_types;
    class_of_types[1] = (uint64_t)(uintptr_t)type_of_types;
    types[0][1] = (uint64_t)(uintptr_t)type_of_types;
    types[1][1] = (uint64_t)(uintptr_t)class_of_types;
    types[2][1] = (uint64_t)(uintptr_t)written; /* which is of no type */
    mapped[0] = (uint64_t)(uintptr_t)types[0];
    mapped[1] = (uint64_t)(uintptr_t)types[1];
    mapped[2] = (uint64_t)(uintptr_t)types[2];
    mapped[3] = (uint64_t)(uintptr_t)type_of_types;
    mapped[4] = (uint64_t)(uintptr_t)&constant[1]; /* as a vtable lies */
    mapped[10] = 1;                                /* a type that lies in no file */
    mapped[11] = (uint64_t)(uintptr_t)type_of_types;
    mapped[5] = (uint64_t)(uintptr_t)&mapped[10];
    are_python = true;
    read_of(getpid());
    ck_assert(words.are_python);
    ck_assert_uint_eq(told_at(0), mapped[0]);
    ck_assert_uint_eq(told_at(1), mapped[1]);
    ck_assert_uint_eq(told_at(2), 0);
    ck_assert_uint_eq(told_at(3), mapped[3]);
    ck_assert_uint_eq(told_at(4), 0);
    ck_assert_uint_eq(told_at(5), 0);
    are_python = false;
    ml_memory_words_fini(&words);
    ml_memory_words_init(&words, false, getpid(), &regions, &pages);
    ck_assert_uint_eq(told_at(0), 0);
    ck_assert_uint_eq(told_at(4), mapped[4]);
}
END_TEST

START_TEST(another_process_is_read_as_it_is_and_gets_no_page) {
    int ends[2];
    char byte = 0;
    mapped[7] = (uint64_t)(uintptr_t)&constant[2];
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        mapped[8] = (uint64_t)(uintptr_t)&constant[3];
        (void)!write(ends[1], "x", 1);
        (void)pause();
        _exit(0);
    }
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    read_of(child);
    ck_assert_uint_eq(told_at(7), mapped[7]);
    ck_assert_uint_eq(told_at(8), (uint64_t)(uintptr_t)&constant[3]);
    /* Of 300 pages one was touched; reading the others would have made them resident. */
    struct ml_memory_regions after;
    ml_memory_regions_init(&after, child);
    for (uint32_t i = 0; i < after.count; i++) {
        const struct ml_memory_region *region = &after.items[i];
        if (region->start <= (uint64_t)(uintptr_t)mapped &&
            (uint64_t)(uintptr_t)mapped < region->end) {
            ck_assert_uint_lt(region->figures_kb[ML_MEMORY_RESIDENT], PAGES * 4 / 2);
        }
    }
    ml_memory_regions_fini(&after);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

START_TEST(of_a_process_that_is_gone_nothing_is_read) {
    const pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    (void)waitpid(child, NULL, 0);
    ml_memory_regions_init(&regions, child);
    ml_memory_pages_init(&pages, child, &regions);
    ml_memory_words_init(&words, false, child, &regions, &pages);
    ck_assert(!words.were_read);
    ck_assert_uint_eq(words.count, 0);
}
END_TEST

/* A page whose faults the process serves itself, and never does. It is told as resident, as one
 * that was taken back since. */
START_TEST(nobody_waits_for_a_page_that_the_process_serves_itself) {
    const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register area = {
        .range = {.start = (uint64_t)(uintptr_t)mapped, .len = (uint64_t)PAGES * PAGE},
        .mode = UFFDIO_REGISTER_MODE_MISSING};
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0 || ioctl(fd, UFFDIO_REGISTER, &area) != 0) {
        return; /* not permitted here */
    }
    ml_memory_regions_init(&regions, getpid());
    for (uint32_t i = 0; i < regions.count; i++) {
        struct ml_memory_region *region = &regions.items[i];
        const bool is_ours = region->start == (uint64_t)(uintptr_t)mapped;
        region->has_pages = is_ours;
        region->figures_kb[ML_MEMORY_RESIDENT] =
            is_ours ? 4 : region->figures_kb[ML_MEMORY_RESIDENT];
    }
    struct ml_memory_pages_run run = {.address = (uint64_t)(uintptr_t)mapped, .bytes = PAGE};
    const struct ml_memory_pages stale = {.items = &run, .count = 1, .capacity = 1};
    ml_memory_words_init(
        &words, false, getpid(), &regions, &stale
    ); /* the test's time is bounded */
    ck_assert(words.were_read);
    (void)close(fd);
}
END_TEST

START_TEST(more_words_than_the_limit_are_cut_and_it_says_so) {
    const size_t count = (size_t)ML_MEMORY_WORDS_MAX + PAGE;
    uint64_t *many = mmap(
        NULL, count * sizeof(*many), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
    );
    ck_assert_ptr_ne(many, MAP_FAILED);
    for (size_t i = 0; i < count; i++) {
        many[i] = (uint64_t)(uintptr_t)&constant[0];
    }
    read_of(getpid());
    ck_assert(words.are_cut);
    ck_assert_uint_le(words.count, ML_MEMORY_WORDS_MAX);
    (void)munmap(many, count * sizeof(*many));
}
END_TEST

int main(void) {
    TCase *tests = tcase_create("words");
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, words_that_point_into_a_file_are_told_with_their_place);
    tcase_add_test(tests, types_of_python_are_told_by_their_form);
    tcase_add_test(tests, all_other_words_stay_where_they_are);
    tcase_add_test(tests, another_process_is_read_as_it_is_and_gets_no_page);
    tcase_add_test(tests, of_a_process_that_is_gone_nothing_is_read);
    tcase_add_test(tests, nobody_waits_for_a_page_that_the_process_serves_itself);
    tcase_add_test(tests, more_words_than_the_limit_are_cut_and_it_says_so);
    return run_suite("host/words", tests);
}

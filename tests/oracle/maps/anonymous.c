/* Anonymous mappings, and what is left of them when parts of them go. */
#include <errno.h>
#include <sys/mman.h>

#include "tests/oracle/maps/claims.h"
#include "tests/zeros.h"

static void unmap(char *start, size_t pages) {
    if (munmap(start, pages * MAPS_PAGE) != 0) {
        claims_die("munmap failed");
    }
}

MAPS_PATH static void partly_touched(void);
MAPS_PATH static void untouched(void);
MAPS_PATH static void unmapped_in_front(void);
MAPS_PATH static void unmapped_behind(void);
MAPS_PATH static void unmapped_within(void);
MAPS_PATH static void gone(void);
MAPS_PATH static void fixed_over(void);
MAPS_PATH static void fixed_over_twice(void);
MAPS_PATH static void refused(void);
MAPS_PATH static void only_read(void);
MAPS_PATH static void two_at_once(void);

MAPS_PATH static void partly_touched(void) {
    char *at = map_pages(100);
    touch(at, 30 * MAPS_PAGE);
    touch(at + 90 * MAPS_PAGE, 3 * MAPS_PAGE);
    claim_pages("map_pages<partly_touched", at, 100, 33);
}

MAPS_PATH static void untouched(void) {
    claim_pages("map_pages<untouched", map_pages(1 << 18), 1 << 18, 0);
}

MAPS_PATH static void unmapped_in_front(void) {
    char *at = map_pages(64);
    touch(at, 64 * MAPS_PAGE);
    unmap(at, 20);
    claim_pages("map_pages<unmapped_in_front", at + 20 * MAPS_PAGE, 44, 44);
}

MAPS_PATH static void unmapped_behind(void) {
    char *at = map_pages(64);
    touch(at, 64 * MAPS_PAGE);
    unmap(at + 50 * MAPS_PAGE, 14);
    claim_pages("map_pages<unmapped_behind", at, 50, 50);
}

MAPS_PATH static void unmapped_within(void) {
    char *at = map_pages(64);
    touch(at, 64 * MAPS_PAGE);
    unmap(at + 10 * MAPS_PAGE, 20);
    claim_pages("map_pages<unmapped_within", at, 10, 10);
    claim_pages("map_pages<unmapped_within", at + 30 * MAPS_PAGE, 34, 34);
}

/* One call takes parts of two mappings and the hole between them. */
MAPS_PATH static void gone(void) {
    char *at = map_pages(90);
    touch(at, 90 * MAPS_PAGE);
    unmap(at + 30 * MAPS_PAGE, 30);
    unmap(at + 10 * MAPS_PAGE, 70);
    claim_pages("map_pages<gone", at, 10, 10);
    claim_pages("map_pages<gone", at + 80 * MAPS_PAGE, 10, 10);
    char *away = map_pages(33);
    touch(away, 33 * MAPS_PAGE);
    unmap(away, 33);
}

MAPS_PATH char *map_at(char *start, size_t pages);

MAPS_PATH char *map_at(char *start, size_t pages) {
    char *at = mmap(
        start,
        pages * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
        -1,
        0
    );
    if (at != start) {
        claims_die("MAP_FIXED failed");
    }
    return at;
}

MAPS_PATH static void fixed_over(void) {
    static const char below[] = "map_pages<fixed_over";
    char *at = map_pages(40);
    touch(at, 40 * MAPS_PAGE);
    touch(map_at(at + 15 * MAPS_PAGE, 10), 5 * MAPS_PAGE);
    claim_pages(below, at, 15, 15);
    claim_pages("map_at<fixed_over", at + 15 * MAPS_PAGE, 10, 5);
    claim_pages(below, at + 25 * MAPS_PAGE, 15, 15);
}

/* The second lies over the end of one mapping, a third mapping, and the head of a fourth. */
MAPS_PATH static void fixed_over_twice(void) {
    char *at = map_pages(60);
    touch(at, 60 * MAPS_PAGE);
    touch(map_at(at + 20 * MAPS_PAGE, 10), 10 * MAPS_PAGE);
    touch(map_at(at + 10 * MAPS_PAGE, 30), 7 * MAPS_PAGE);
    claim_pages("map_pages<fixed_over_twice", at, 10, 10);
    claim_pages("map_at<fixed_over_twice", at + 10 * MAPS_PAGE, 30, 7);
    claim_pages("map_pages<fixed_over_twice", at + 40 * MAPS_PAGE, 20, 20);
}

/* Calls that fail change nothing. */
MAPS_PATH static void refused(void) {
    enum { PRIVATE = MAP_PRIVATE | MAP_ANONYMOUS };
    char *at = map_pages(16);
    char *behind = at + 16 * MAPS_PAGE;
    touch(at, 16 * MAPS_PAGE);
    errno = 0;
    const bool is_refused =
        mmap(at, MAPS_PAGE, PROT_READ, PRIVATE | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED &&
        mmap(NULL, 0, PROT_READ, PRIVATE, -1, 0) == MAP_FAILED &&
        mmap(at, MAPS_PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, -1, 0) == MAP_FAILED &&
        mmap(at + 1, MAPS_PAGE, PROT_READ, PRIVATE | MAP_FIXED, -1, 0) == MAP_FAILED &&
        mmap(NULL, (size_t)1 << 60, PROT_READ, PRIVATE, -1, 0) == MAP_FAILED &&
        munmap(at + 1, MAPS_PAGE) != 0 && munmap(at, 0) != 0 &&
        mremap(at + 1, MAPS_PAGE, MAPS_PAGE, 0) == MAP_FAILED &&
        mremap(at, 16 * MAPS_PAGE, 0, 0) == MAP_FAILED &&
        mremap(at, MAPS_PAGE, (size_t)1 << 60, MREMAP_MAYMOVE) == MAP_FAILED &&
        mremap(at, MAPS_PAGE, MAPS_PAGE, MREMAP_FIXED, behind) == MAP_FAILED;
    if (!is_refused) {
        claims_die("what should be refused was granted");
    }
    claim_pages("map_pages<refused", at, 16, 16);
}

/* The page of zeros is nobody's: it is mapped, and not resident. Where there is none, whoever reads
 * a page has one. */
MAPS_PATH static void only_read(void) {
    char *at = map_pages(32);
    for (size_t i = 0; i < 20; i++) {
        (void)*(volatile char *)(at + i * MAPS_PAGE);
    }
    touch(at + 20 * MAPS_PAGE, 4 * MAPS_PAGE);
    if (has_page_of_zeros()) {
        claim((struct claim
        ){.kind = "zeros",
          .chain = "map_pages<only_read",
          .start = at,
          .mapped_bytes = (size_t)20 * MAPS_PAGE});
    } else {
        claim_pages("map_pages<only_read", at, 20, 20);
    }
    claim_pages("map_pages<only_read", at + 20 * MAPS_PAGE, 12, 4);
}

/* The kernel joins them; their owners are two all the same. */
MAPS_PATH static void two_at_once(void) {
    char *at = map_pages(30);
    unmap(at, 30);
    touch(map_at(at, 10), 8 * MAPS_PAGE);
    claim_pages("map_at<two_at_once", at, 10, 8);
    char *next = mmap(
        at + 10 * MAPS_PAGE,
        (size_t)20 * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
        -1,
        0
    );
    if (next != at + 10 * MAPS_PAGE) {
        claims_die("somebody has mapped there");
    }
    touch(next, 3 * MAPS_PAGE);
    claim_pages("two_at_once", next, 20, 3);
}

bool anonymous_case(const char *name) {
    static const struct maps_case cases[] = {
        {"partly_touched", partly_touched},
        {"untouched", untouched},
        {"unmapped_in_front", unmapped_in_front},
        {"unmapped_behind", unmapped_behind},
        {"unmapped_within", unmapped_within},
        {"gone", gone},
        {"fixed_over", fixed_over},
        {"fixed_over_twice", fixed_over_twice},
        {"refused", refused},
        {"only_read", only_read},
        {"two_at_once", two_at_once},
    };
    return maps_run(cases, sizeof(cases) / sizeof(*cases), name);
}

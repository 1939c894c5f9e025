/* What else a program tells the kernel of its mappings: how large, how used, how named. */
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "tests/oracle/maps/claims.h"

MAPS_PATH static void huge_pages(void);
MAPS_PATH static void not_needed(void);
MAPS_PATH static void freed(void);
MAPS_PATH static void reserved(void);
MAPS_PATH static void protected(void);
MAPS_PATH static void named(void);
MAPS_PATH static void locked(void);
MAPS_PATH static void populated(void);
MAPS_PATH static void grows_down(void);

static void advise(char *start, size_t pages, int advice) {
    if (madvise(start, pages * MAPS_PAGE, advice) != 0) {
        claims_die("madvise failed");
    }
}

static void protect(char *start, size_t pages, int protection) {
    if (mprotect(start, pages * MAPS_PAGE, protection) != 0) {
        claims_die("mprotect failed");
    }
}

/* One byte of each, and all of it is resident where the kernel has huge pages. */
MAPS_PATH static void huge_pages(void) {
    enum { PAGES = 4 * MAPS_HUGE / MAPS_PAGE };
    char *at = map_pages(PAGES);
    char *aligned = at + (-(uintptr_t)at & (MAPS_HUGE - 1));
    advise(at, PAGES, MADV_HUGEPAGE);
    *(volatile char *)aligned = 1;
    *(volatile char *)(aligned + MAPS_HUGE + 12345) = 1;
    claim((struct claim
    ){.kind = "mapped",
      .chain = "map_pages<huge_pages",
      .start = at,
      .mapped_bytes = (size_t)PAGES * MAPS_PAGE,
      .private_bytes = CLAIM_KERNEL});
}

MAPS_PATH static void not_needed(void) {
    char *at = map_pages(50);
    touch(at, 50 * MAPS_PAGE);
    advise(at + 5 * MAPS_PAGE, 30, MADV_DONTNEED);
    touch(at + 10 * MAPS_PAGE, 2 * MAPS_PAGE);
    claim_pages("map_pages<not_needed", at, 50, 22);
}

/* It stays until the kernel needs it, and the kernel says so. */
MAPS_PATH static void freed(void) {
    char *at = map_pages(50);
    touch(at, 50 * MAPS_PAGE);
    advise(at + 5 * MAPS_PAGE, 30, MADV_FREE);
    claim((struct claim
    ){.kind = "mapped",
      .chain = "map_pages<freed",
      .start = at,
      .mapped_bytes = (size_t)50 * MAPS_PAGE,
      .private_bytes = CLAIM_KERNEL});
}

MAPS_PATH static void reserved(void) {
    enum { PAGES = 1 << 22 }; /* 16 GiB */
    char *at = mmap(
        NULL,
        (size_t)PAGES * MAPS_PAGE,
        PROT_NONE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
        -1,
        0
    );
    if (at == MAP_FAILED) {
        claims_die("mmap failed");
    }
    protect(at + 1000 * MAPS_PAGE, 100, PROT_READ | PROT_WRITE);
    touch(at + 1010 * MAPS_PAGE, 17 * MAPS_PAGE);
    claim_pages("reserved", at, PAGES, 17);
}

/* Three regions of the kernel, one mapping of the program. */
MAPS_PATH static void protected(void) {
    char *at = map_pages(60);
    touch(at, 60 * MAPS_PAGE);
    protect(at + 20 * MAPS_PAGE, 10, PROT_READ);
    protect(at + 40 * MAPS_PAGE, 10, PROT_NONE);
    claim_pages("map_pages<protected", at, 60, 60);
}

/* Older kernels, and some of today, refuse the name. */
MAPS_PATH static void named(void) {
    char *at = map_pages(60);
    touch(at, 22 * MAPS_PAGE);
    (void
    )prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, (size_t)60 * MAPS_PAGE, "books: of an oracle");
    claim((struct claim
    ){.kind = "mapped",
      .chain = "map_pages<named",
      .name = "books: of an oracle",
      .start = at,
      .mapped_bytes = (size_t)60 * MAPS_PAGE,
      .private_bytes = (long)22 * MAPS_PAGE});
}

MAPS_PATH static void locked(void) {
    char *at = map_pages(12);
    if (mlock(at, (size_t)5 * MAPS_PAGE) != 0) {
        touch(at, 5 * MAPS_PAGE); /* a limit: its pages are touched all the same */
    }
    claim_pages("map_pages<locked", at, 12, 5);
}

MAPS_PATH static void populated(void) {
    char *at = mmap(
        NULL,
        (size_t)33 * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
        -1,
        0
    );
    if (at == MAP_FAILED) {
        claims_die("mmap failed");
    }
    claim_pages("populated", at, 33, 33);
}

/* The kernel makes it larger by itself: nobody has mapped what it gains. */
MAPS_PATH static void grows_down(void) {
    char *room = map_pages(2048);
    if (munmap(room, (size_t)2048 * MAPS_PAGE) != 0) {
        claims_die("munmap failed");
    }
    char *at = mmap(
        room + 2000 * MAPS_PAGE,
        (size_t)8 * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE,
        -1,
        0
    );
    if (at == MAP_FAILED) {
        claims_die("mmap failed");
    }
    touch(at, 8 * MAPS_PAGE);
    claim_pages("grows_down", at, 8, 8);
}

bool advice_case(const char *name) {
    static const struct maps_case cases[] = {
        {"huge_pages", huge_pages},
        {"not_needed", not_needed},
        {"freed", freed},
        {"reserved", reserved},
        {"protected", protected},
        {"named", named},
        {"locked", locked},
        {"populated", populated},
        {"grows_down", grows_down},
    };
    return maps_run(cases, sizeof(cases) / sizeof(*cases), name);
}

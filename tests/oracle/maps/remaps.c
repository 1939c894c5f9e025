/* mremap in all its ways. A mapping keeps the stack that made it, wherever it goes. */
#include <sys/mman.h>

#include "tests/oracle/maps/claims.h"

MAPS_PATH static void grown_in_place(void);
MAPS_PATH static void grown_and_moved(void);
MAPS_PATH static void shrunk(void);
MAPS_PATH static void moved_over_another(void);
MAPS_PATH static void part_moved(void);
MAPS_PATH static void left_its_room(void);
MAPS_PATH static void moved_twice(void);

/* mremap that must succeed. Not in a call path: the stack of a remap is not told. */
static char *remap(char *start, size_t old_pages, size_t new_pages, int flags, char *wanted) {
    char *at = mremap(start, old_pages * MAPS_PAGE, new_pages * MAPS_PAGE, flags, wanted);
    if (at == MAP_FAILED) {
        claims_die("mremap failed");
    }
    return at;
}

static void unmap(char *start, size_t pages) {
    if (munmap(start, pages * MAPS_PAGE) != 0) {
        claims_die("munmap failed");
    }
}

MAPS_PATH static void grown_in_place(void) {
    char *at = map_pages(64);
    unmap(at + 16 * MAPS_PAGE, 48); /* room behind it */
    touch(at, 16 * MAPS_PAGE);
    if (remap(at, 16, 48, 0, NULL) != at) {
        claims_die("it has moved");
    }
    touch(at + 16 * MAPS_PAGE, 7 * MAPS_PAGE);
    claim_pages("map_pages<grown_in_place", at, 48, 23);
}

MAPS_PATH static void grown_and_moved(void) {
    char *at = map_pages(64);
    unmap(at + 15 * MAPS_PAGE, 1);
    touch(at, 12 * MAPS_PAGE);
    touch(at + 16 * MAPS_PAGE, 48 * MAPS_PAGE); /* stands in the way */
    char *there = remap(at, 15, 300, MREMAP_MAYMOVE, NULL);
    if (there == at) {
        claims_die("it has not moved");
    }
    touch(there + 100 * MAPS_PAGE, 9 * MAPS_PAGE);
    claim_pages("map_pages<grown_and_moved", there, 300, 21);
    claim_pages("map_pages<grown_and_moved", at + 16 * MAPS_PAGE, 48, 48);
}

MAPS_PATH static void shrunk(void) {
    char *at = map_pages(100);
    touch(at, 100 * MAPS_PAGE);
    (void)remap(at, 100, 11, 0, NULL);
    claim_pages("map_pages<shrunk", at, 11, 11);
}

MAPS_PATH static void moved_over_another(void) {
    char *below = map_pages(50);
    touch(below, 50 * MAPS_PAGE);
    char *at = mmap(
        NULL, (size_t)20 * MAPS_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
    );
    if (at == MAP_FAILED) {
        claims_die("mmap failed");
    }
    touch(at, 6 * MAPS_PAGE);
    char *wanted = below + 10 * MAPS_PAGE;
    (void)remap(at, 20, 25, MREMAP_MAYMOVE | MREMAP_FIXED, wanted);
    claim_pages("map_pages<moved_over_another", below, 10, 10);
    claim_pages("moved_over_another", wanted, 25, 6);
    claim_pages("map_pages<moved_over_another", below + 35 * MAPS_PAGE, 15, 15);
}

/* The middle of a mapping goes elsewhere; its two ends stay. */
MAPS_PATH static void part_moved(void) {
    char *at = map_pages(40);
    char *wanted = map_pages(64);
    touch(at, 40 * MAPS_PAGE);
    (void)remap(at + 10 * MAPS_PAGE, 12, 12, MREMAP_MAYMOVE | MREMAP_FIXED, wanted);
    claim_pages("map_pages<part_moved", at, 10, 10);
    claim_pages("map_pages<part_moved", at + 22 * MAPS_PAGE, 18, 18);
    claim_pages("map_pages<part_moved", wanted, 64, 12);
}

MAPS_PATH static void left_its_room(void) {
    char *at = map_pages(24);
    touch(at, 24 * MAPS_PAGE);
    char *there = remap(at, 24, 24, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    claim_pages("map_pages<left_its_room", there, 24, 24);
    touch(at, 2 * MAPS_PAGE); /* what stays is mapped, and empty */
    claim_pages("map_pages<left_its_room", at, 24, 2);
}

MAPS_PATH static void moved_twice(void) {
    char *at = map_pages(8);
    char *room = map_pages(200);
    touch(at, 8 * MAPS_PAGE);
    unmap(room, 200);
    at = remap(at, 8, 8, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    at = remap(at, 8, 40, MREMAP_MAYMOVE | MREMAP_FIXED, room + 100 * MAPS_PAGE);
    at = remap(at, 40, 5, MREMAP_MAYMOVE | MREMAP_FIXED, room + 50 * MAPS_PAGE);
    claim_pages("map_pages<moved_twice", at, 5, 5);
}

bool remaps_case(const char *name) {
    static const struct maps_case cases[] = {
        {"grown_in_place", grown_in_place},
        {"grown_and_moved", grown_and_moved},
        {"shrunk", shrunk},
        {"moved_over_another", moved_over_another},
        {"part_moved", part_moved},
        {"left_its_room", left_its_room},
        {"moved_twice", moved_twice},
    };
    return maps_run(cases, sizeof(cases) / sizeof(*cases), name);
}

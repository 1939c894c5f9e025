/* Mappings made, cut, moved and mapped over at random, by eight call paths: a model knows of each
 * page who mapped it and whether it is touched. The case's name ends with its seed. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/oracle/maps/claims.h"

enum { PAGES = 1500, STEPS = 600, LONGEST = 120, PATHS = 8, NOBODY = 0xff };

/* Far below where the kernel places mappings by itself: nobody else maps in a hole. */
#define ARENA ((char *)0x200000000000)

struct page {
    uint32_t mapping; /* made by one call, or moved by one */
    uint8_t path;     /* who mapped it, or NOBODY */
    bool is_touched;
};

static struct page pages[PAGES];
static uint32_t mappings;
static uint64_t state;

static size_t drawn(size_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % below);
}

static char *address_of(size_t page) {
    return ARENA + page * MAPS_PAGE;
}

static void *map_fixed(size_t page, size_t count) {
    return mmap(
        address_of(page),
        count * MAPS_PAGE,
        PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
        -1,
        0
    );
}

/* Each a call path of its own. */
#define PATH(number)                                                                               \
    MAPS_PATH static void *path_##number(size_t page, size_t count) {                              \
        return map_fixed(page, count);                                                             \
    }
PATH(0)
PATH(1)
PATH(2)
PATH(3)
PATH(4)
PATH(5)
PATH(6)
PATH(7)

static void *(*const paths[PATHS]
)(size_t, size_t) = {path_0, path_1, path_2, path_3, path_4, path_5, path_6, path_7};
static const char *const chains[PATHS] = {
    "map_fixed<path_0",
    "map_fixed<path_1",
    "map_fixed<path_2",
    "map_fixed<path_3",
    "map_fixed<path_4",
    "map_fixed<path_5",
    "map_fixed<path_6",
    "map_fixed<path_7",
};

static void map(size_t page, size_t count) {
    const uint8_t path = (uint8_t)drawn(PATHS);
    if (paths[path](page, count) != address_of(page)) {
        claims_die("mmap failed");
    }
    mappings++;
    for (size_t i = page; i < page + count; i++) {
        pages[i] = (struct page){.mapping = mappings, .path = path};
    }
}

static void forget(size_t page, size_t count) {
    for (size_t i = page; i < page + count; i++) {
        pages[i] = (struct page){.path = NOBODY};
    }
}

static void unmap(size_t page, size_t count) {
    if (munmap(address_of(page), count * MAPS_PAGE) != 0) {
        claims_die("munmap failed");
    }
    forget(page, count);
}

static void touch_some(size_t page, size_t count) {
    for (size_t i = page; i < page + count; i++) {
        if (pages[i].path != NOBODY) {
            touch(address_of(i), 1);
            pages[i].is_touched = true;
        }
    }
}

static void drop_some(size_t page, size_t count) {
    for (size_t i = page; i < page + count; i++) {
        if (pages[i].path != NOBODY) {
            (void)madvise(address_of(i), MAPS_PAGE, MADV_DONTNEED);
            pages[i].is_touched = false;
        }
    }
}

/* How many pages from there on are of one mapping. */
static size_t length_of(size_t page, size_t most) {
    size_t count = 0;
    while (count < most && pages[page + count].path != NOBODY &&
           pages[page + count].mapping == pages[page].mapping) {
        count++;
    }
    return count;
}

/* A part of one mapping goes to another place, over whatever lies there, and may grow. */
static void move(size_t page, size_t most) {
    const size_t count = length_of(page, most);
    const size_t wanted = count + drawn(20);
    const size_t to = drawn(PAGES - wanted);
    if (count == 0 || (to < page + count && page < to + wanted)) {
        return;
    }
    struct page moved[LONGEST];
    memcpy(moved, &pages[page], count * sizeof(*moved));
    if (mremap(
            address_of(page),
            count * MAPS_PAGE,
            wanted * MAPS_PAGE,
            MREMAP_MAYMOVE | MREMAP_FIXED,
            address_of(to)
        ) != address_of(to)) {
        claims_die("mremap failed");
    }
    mappings++;
    forget(page, count);
    for (size_t i = 0; i < wanted; i++) {
        pages[to + i] = (struct page
        ){.mapping = mappings,
          .path = moved[0].path,
          .is_touched = i < count && moved[i].is_touched};
    }
}

/* In place, to less. */
static void shrink(size_t page, size_t most) {
    const size_t count = length_of(page, most);
    if (count < 2) {
        return;
    }
    const size_t left = 1 + drawn(count - 1);
    if (mremap(address_of(page), count * MAPS_PAGE, left * MAPS_PAGE, 0) != address_of(page)) {
        claims_die("mremap failed");
    }
    forget(page + left, count - left);
}

static void step(void) {
    static void (*const ways[])(size_t, size_t) = {
        map,
        map,
        map,
        unmap,
        unmap,
        touch_some,
        touch_some,
        touch_some,
        drop_some,
        move,
        move,
        shrink};
    const size_t page = drawn(PAGES - LONGEST);
    const size_t count = 1 + drawn(LONGEST - 1);
    ways[drawn(sizeof(ways) / sizeof(*ways))](page, count);
}

static void claim_all(void) {
    for (size_t i = 0; i < PAGES; i++) {
        if (pages[i].path != NOBODY) {
            claim_pages(chains[pages[i].path], address_of(i), 1, pages[i].is_touched ? 1 : 0);
        }
    }
}

bool random_case(const char *name) {
    static const char prefix[] = "random";
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0) {
        return false;
    }
    state = UINT64_C(0x9e3779b97f4a7c15) + strtoull(name + sizeof(prefix) - 1, NULL, 10);
    forget(0, PAGES);
    for (int i = 0; i < STEPS; i++) {
        step();
    }
    claim_all();
    return true;
}

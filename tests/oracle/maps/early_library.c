/* A library whose constructor maps, and runs before memlog's. */
#include <stddef.h>
#include <sys/mman.h>

#include "tests/oracle/maps/early.h"

#define EARLY_PATH __attribute__((noipa))

enum { PAGE = 4096 };

EARLY_PATH char *map_early(void);
EARLY_PATH __attribute__((constructor)) void library_begins(void);

static char *mapped;

EARLY_PATH char *map_early(void) {
    return mmap(
        NULL, (size_t)EARLY_PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
    );
}

EARLY_PATH void library_begins(void) {
    mapped = map_early();
    for (long i = 0; i < EARLY_TOUCHED; i++) {
        *(volatile char *)(mapped + i * PAGE) = 1;
    }
}

__attribute__((visibility("default"))) char *early_linked(void) {
    return mapped;
}

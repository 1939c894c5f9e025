/* jemalloc, linked in: by libc's names, and its own. */
#include <malloc.h>
#include <stdlib.h>

#include "tests/oracle/inside.h"

void *mallocx(size_t size, int flags);
void *rallocx(void *block, size_t size, int flags);
size_t xallocx(void *block, size_t size, size_t extra, int flags);
void dallocx(void *block, int flags);
void sdallocx(void *block, size_t size, int flags);

LEDGER_PATH void special(void);

void special(void) {
    static struct ledger_site site = {.chain = "special<main"};
    void *block = ledger_alloc(&site, mallocx(3000, 0), 3000);
    block = ledger_resize(&site, block, rallocx(block, 9000, 0), 9000);
    /* What does not fit where it is stays as it was. */
    if (xallocx(block, 9100, 0, 0) >= 9100) {
        ledger_resize(&site, block, block, 9100);
    }
    ledger_free(block);
    dallocx(block, 0);
    block = ledger_alloc(&site, mallocx(777, 0), 777);
    ledger_free(block);
    sdallocx(block, 777, 0);
    ledger_alloc(&site, mallocx(4321, 0), 4321);
}

const struct inside inside = {
    .allocate = malloc,
    .release = free,
    .allocate_zeroed = calloc,
    .resize = realloc,
    .allocate_aligned = posix_memalign,
    .allocate_at = memalign,
    .special = special,
};

/* tcmalloc, linked in, by its prefix. */
#include "tests/oracle/inside.h"

void *tc_malloc(size_t size);
void tc_free(void *block);
void *tc_calloc(size_t count, size_t size);
void *tc_realloc(void *block, size_t size);
int tc_posix_memalign(void **out_block, size_t alignment, size_t size);
void *tc_memalign(size_t alignment, size_t size);
void *tc_new(size_t size);
void tc_delete(void *block);
void tc_delete_sized(void *block, size_t size);
void tc_cfree(void *block);

LEDGER_PATH void special(void);

void special(void) {
    static struct ledger_site site = {.chain = "special<main"};
    void *block = ledger_alloc(&site, tc_new(3000), 3000);
    ledger_free(block);
    tc_delete(block);
    block = ledger_alloc(&site, tc_new(200), 200);
    ledger_free(block);
    tc_delete_sized(block, 200);
    block = ledger_alloc(&site, tc_new(300), 300);
    ledger_free(block);
    tc_cfree(block);
    ledger_alloc(&site, tc_new(4321), 4321);
}

const struct inside inside = {
    .allocate = tc_malloc,
    .release = tc_free,
    .allocate_zeroed = tc_calloc,
    .resize = tc_realloc,
    .allocate_aligned = tc_posix_memalign,
    .allocate_at = tc_memalign,
    .special = special,
};

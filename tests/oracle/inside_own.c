/* An allocator by libc's names. Like Firefox's it brings functions that copy texts, and they take
 * their blocks past the entry of malloc. */
#include "tests/oracle/inside.h"

INSIDE_FUNCTION char *own_strdup(const char *text) __asm__("strdup");
INSIDE_FUNCTION char *own_strndup(const char *text, size_t most) __asm__("strndup");
LEDGER_PATH void copies(void);

static char *copy(const char *text, size_t length) {
    char *block = inside_place(0, length + 1);
    if (block != NULL) {
        memcpy(block, text, length);
        block[length] = 0;
    }
    return block;
}

char *own_strdup(const char *text) {
    return copy(text, strlen(text));
}

char *own_strndup(const char *text, size_t most) {
    return copy(text, strnlen(text, most));
}

void copies(void) {
    static struct ledger_site site = {.chain = "copies<main"};
    static const char text[] = "twenty-three characters";
    void *block = ledger_alloc(&site, strdup(text), sizeof text);
    ledger_free(block);
    inside.release(block);
    ledger_alloc(&site, strdup(text), sizeof text);
    ledger_alloc(&site, strndup(text, 6), 7);
    ledger_alloc(&site, strndup(text, 100), sizeof text);
}

INSIDE_FAMILY_AND(, copies);

#include "client/unwind/foreign.h"

#include <string.h>

#include "client/unwind/arch.h"

static bool page_is_readable(struct ml_foreign *foreign, uintptr_t address) {
    const uintptr_t page = address & ~(uintptr_t)(ML_ARCH_PAGE_BYTES - 1);
    /* The probe reads one word, aligned; never the first page of all, where nothing can be. */
    if (page == 0 || (page != foreign->page && !ml_arch_readable(page))) {
        return false;
    }
    foreign->page = page;
    return true;
}

bool ml_foreign_readable(struct ml_foreign *foreign, const void *at, size_t bytes) {
    const uintptr_t first = (uintptr_t)at;
    uintptr_t last = 0;
    if (bytes == 0) {
        return true;
    }
    if (__builtin_add_overflow(first, bytes - 1, &last)) {
        return false;
    }
    for (uintptr_t address = first;;) {
        const uintptr_t end = address | (ML_ARCH_PAGE_BYTES - 1);
        if (!page_is_readable(foreign, address)) {
            return false;
        }
        if (end >= last) {
            return true;
        }
        address = end + 1;
    }
}

bool ml_foreign_string(struct ml_foreign *foreign, const char *text, size_t *out_length) {
    for (size_t length = 0; length < ML_FOREIGN_STRING_MAX_BYTES;) {
        const char *at = text + length;
        const size_t on_page =
            ML_ARCH_PAGE_BYTES - ((uintptr_t)at & (uintptr_t)(ML_ARCH_PAGE_BYTES - 1));
        if (!page_is_readable(foreign, (uintptr_t)at)) {
            return false;
        }
        const char *end = memchr(at, 0, on_page);
        if (end != NULL) {
            length = (size_t)(end - text);
            if (out_length != NULL) {
                *out_length = length;
            }
            return length < ML_FOREIGN_STRING_MAX_BYTES;
        }
        length += on_page;
    }
    return false;
}

bool ml_foreign_strings(
    struct ml_foreign *foreign, char *const *list, size_t most, size_t *out_count
) {
    struct ml_foreign texts = {0}; /* they lie elsewhere than the list */
    size_t count = 0;
    *out_count = 0;
    if (list == NULL) {
        return true;
    }
    for (;; count++) {
        if (count > most || !ml_foreign_readable(foreign, &list[count], sizeof(list[count]))) {
            return false;
        }
        const char *text = list[count];
        if (text == NULL) {
            *out_count = count;
            return true;
        }
        if (!ml_foreign_string(&texts, text, NULL)) {
            return false;
        }
    }
}

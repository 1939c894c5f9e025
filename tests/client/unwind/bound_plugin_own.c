/* What bound_test opens: a library with an allocator of its own, which it calls by name. */
#include <stdlib.h>

static char room[4096];

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name): libc's are reserved ones */
void *malloc(size_t bytes) {
    return bytes <= sizeof(room) ? room : NULL;
}

void *ml_bound_take(size_t bytes);
void *ml_bound_take(size_t bytes) {
    return malloc(bytes);
}

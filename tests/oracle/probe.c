/* A program that asks which allocator it runs on, as rocksdb, folly and others do: by weak
 * references and by dlsym. Prints the calls that it finds, each with the library that has it, and
 * uses jemalloc's where they are: blocks come from mallocx and go by free, come from malloc and go
 * by sdallocx. Prints the number of blocks last. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS(X)                                                                                   \
    X(mallocx)                                                                                     \
    X(rallocx)                                                                                     \
    X(xallocx)                                                                                     \
    X(sallocx)                                                                                     \
    X(dallocx)                                                                                     \
    X(sdallocx)                                                                                    \
    X(nallocx)                                                                                     \
    X(mallctl)                                                                                     \
    X(tc_malloc)                                                                                   \
    X(tc_calloc)                                                                                   \
    X(tc_realloc)                                                                                  \
    X(tc_memalign)                                                                                 \
    X(tc_free)                                                                                     \
    X(tc_free_sized)                                                                               \
    X(tc_new)                                                                                      \
    X(tc_delete)                                                                                   \
    X(mi_malloc)                                                                                   \
    X(mi_zalloc)                                                                                   \
    X(mi_calloc)                                                                                   \
    X(mi_realloc)                                                                                  \
    X(mi_free)                                                                                     \
    X(mi_new)                                                                                      \
    X(mi_malloc_aligned)

#define DECLARE(name) void name(void) __attribute__((weak));
CALLS(DECLARE)

enum { BLOCKS = 50 };

static void say(const char *name, void *linked) {
    void *looked_up = dlsym(RTLD_DEFAULT, name);
    Dl_info where = {.dli_fname = "nobody"};
    if (linked != NULL) {
        (void)dladdr(linked, &where);
    }
    const char *slash = strrchr(where.dli_fname, '/');
    printf(
        "%s: %s, %s by dlsym\n",
        name,
        slash != NULL ? slash + 1 : where.dli_fname,
        looked_up == linked ? "the same" : "another"
    );
}

static void use_jemalloc(void) {
    void *(*allocate)(size_t, int) = (void *(*)(size_t, int))mallocx;
    void (*release)(void *, size_t, int) = (void (*)(void *, size_t, int))sdallocx;
    void *blocks[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = allocate(1000 + i, 0);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        free(blocks[i]);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(2000 + i);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        release(blocks[i], 2000 + i, 0);
    }
    printf("%d\n", BLOCKS);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
#define SAY(name) say(#name, (void *)name);
    CALLS(SAY)
    if (mallocx != NULL && sdallocx != NULL) {
        use_jemalloc();
    }
    return 0;
}

/* libbench-pass.so: stands in front of the allocator as a profiler does, and does nothing: each
 * call goes on to the next definition by one load and one jump. What a program takes with it longer
 * than without is what standing there costs at all. Room: tools (bench).
 *
 * One rule: a call reads one pointer, and writes nothing once it is known. */
#include <dlfcn.h>
#include <stddef.h>

/* X(index, name, answer, parameters, arguments): what the measured programs call often. */
#define FUNCTIONS(X)                                                                               \
    X(0, malloc, void *, (size_t size), (size))                                                    \
    X(1, free, void, (void *block), (block))                                                       \
    X(2, calloc, void *, (size_t count, size_t size), (count, size))                               \
    X(3, realloc, void *, (void *block, size_t size), (block, size))

enum { FUNCTIONS_COUNT = 4 };

static void *next[FUNCTIONS_COUNT];

/* The first call comes from the loader, before any constructor. Finding a name that is there
 * allocates nothing. A function of its own, so that the others need no frame. */
#define PASS(index, name, answer, parameters, arguments)                                           \
    static __attribute__((noinline, cold)) answer first_##name parameters {                        \
        next[index] = dlsym(RTLD_NEXT, #name);                                                     \
        return ((answer(*) parameters)next[index])arguments;                                       \
    }                                                                                              \
    __attribute__((visibility("default"))) answer name parameters;                                 \
    answer name parameters {                                                                       \
        if (__builtin_expect(next[index] == NULL, 0)) {                                            \
            return first_##name arguments;                                                         \
        }                                                                                          \
        return ((answer(*) parameters)next[index])arguments;                                       \
    }
FUNCTIONS(PASS)

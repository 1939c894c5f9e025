/* libbench-least.so: the least that a profiler can do at a call that it passes over, if each byte
 * has the same chance and the frees of sampled blocks are seen. An allocation is taken from the
 * distance to the next sample, a free looks its block up; then they go on by a jump. It never
 * samples, starts and stops nothing, and heeds no second thread, signal or fork. What a program
 * executes with it more than alone, no such profiler gets below. Room: tools (bench).
 *
 * One rule: nothing more. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#define LEAST __attribute__((visibility("default")))

enum { GRAIN_SHIFT = 4, GLANCES = 1 << 16 };

LEAST void *malloc(size_t size);
LEAST void *calloc(size_t count, size_t size);
LEAST void *realloc(void *block, size_t size);
LEAST void free(void *block);

static __thread int64_t left __attribute__((tls_model("initial-exec"))) = INT64_MAX;

/* Of the sampled blocks: none. The compiler cannot know it. */
static uint8_t glances[GLANCES];

static __attribute__((noinline, cold)) void sample(void) {
    left = INT64_MAX;
}

static inline __attribute__((always_inline)) void pass(size_t size) {
    if (__builtin_expect((left -= (int64_t)size) < 0, 0)) {
        sample();
    }
}

static inline __attribute__((always_inline)) void look_up(const void *block) {
    const uint8_t *glance = &glances[((uintptr_t)block >> GRAIN_SHIFT) % GLANCES];
    _Bool is_counted = 0; /* by one instruction, for which compilers take two */
    __asm__("cmpb $0, %1" : "=@ccne"(is_counted) : "m"(*glance));
    if (__builtin_expect(is_counted, 0)) {
        sample();
    }
}

/* Each points to the next definition once it was called. The first call comes from the loader,
 * before any constructor; finding a name that is there allocates nothing. */
static void *first_malloc(size_t size);
static void *first_calloc(size_t count, size_t size);
static void *first_realloc(void *block, size_t size);
static void first_free(void *block);
static void *(*next_malloc)(size_t size) = first_malloc;
static void *(*next_calloc)(size_t count, size_t size) = first_calloc;
static void *(*next_realloc)(void *block, size_t size) = first_realloc;
static void (*next_free)(void *block) = first_free;

static __attribute__((cold)) void *first_malloc(size_t size) {
    *(void **)&next_malloc = dlsym(RTLD_NEXT, "malloc");
    return next_malloc(size);
}

static __attribute__((cold)) void *first_calloc(size_t count, size_t size) {
    *(void **)&next_calloc = dlsym(RTLD_NEXT, "calloc");
    return next_calloc(count, size);
}

static __attribute__((cold)) void *first_realloc(void *block, size_t size) {
    *(void **)&next_realloc = dlsym(RTLD_NEXT, "realloc");
    return next_realloc(block, size);
}

static __attribute__((cold)) void first_free(void *block) {
    *(void **)&next_free = dlsym(RTLD_NEXT, "free");
    next_free(block);
}

void *malloc(size_t size) {
    pass(size);
    return next_malloc(size);
}

void *calloc(size_t count, size_t size) {
    pass(count * size);
    return next_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    pass(size);
    look_up(block);
    return next_realloc(block, size);
}

void free(void *block) {
    look_up(block);
    next_free(block);
}

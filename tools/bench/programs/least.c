/* libbench-least.so: the least that a profiler can do at a call that it passes over, if each byte
 * has the same chance and the frees of sampled blocks are seen. An allocation is taken from the
 * distance to the next sample, a free looks its block up; then they go on by a jump. It never
 * samples, starts and stops nothing, and heeds no second thread, signal or fork. What a program
 * executes with it more than alone, no such profiler gets below. Room: tools (bench).
 *
 * One rule: nothing more. */
#include <stddef.h>
#include <stdint.h>

#define LEAST __attribute__((visibility("default")))

enum { GRAIN_SHIFT = 4, GLANCES = 1 << 16 };

/* glibc's own, so that no call has to find the next definition first. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

LEAST void *malloc(size_t size);
LEAST void *calloc(size_t count, size_t size);
LEAST void *realloc(void *block, size_t size);
LEAST void free(void *block);

static __thread int64_t left __attribute__((tls_model("initial-exec"))) = INT64_MAX;

/* Of the sampled blocks: none. The compiler cannot know it. */
static volatile uint8_t glances[GLANCES];

static __attribute__((noinline, cold)) void sample(void) {
    left = INT64_MAX;
}

static inline __attribute__((always_inline)) void pass(size_t size) {
    if (__builtin_expect((left -= (int64_t)size) < 0, 0)) {
        sample();
    }
}

static inline __attribute__((always_inline)) void look_up(const void *block) {
    if (__builtin_expect(glances[((uintptr_t)block >> GRAIN_SHIFT) % GLANCES], 0)) {
        sample();
    }
}

void *malloc(size_t size) {
    pass(size);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    pass(count * size);
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    pass(size);
    look_up(block);
    return __libc_realloc(block, size);
}

void free(void *block) {
    look_up(block);
    __libc_free(block);
}

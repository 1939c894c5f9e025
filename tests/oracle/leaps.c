/* A program whose allocator is left by siglongjmp, out of the handler of an interval timer. Its own
 * allocator is in the executable, and stays in a call until the handler has come. By a word on
 * stdin:
 *
 *   leap N    N calls are left so; all but the last are followed by one that comes back
 *   hold      a call stays until the next word is there to be read
 *
 * Each is answered by a line: the calls that were left, and those that came back. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { HEAP_BYTES = 1 << 24, ALIGNMENT = 16, WORD_BYTES = 64, DEEP_BYTES = 65536, EVERY_US = 500 };
enum wish { TO_COME_BACK, TO_BE_LEFT, TO_HOLD };

static _Alignas(ALIGNMENT) uint8_t heap[HEAP_BYTES];
static size_t used_bytes;
static volatile enum wish wish;
static volatile bool is_inside;
static volatile unsigned left;
static unsigned returned;
static volatile unsigned freed;
static sigjmp_buf outside;

static void say(const char *text) {
    (void)!write(STDOUT_FILENO, text, strlen(text));
}

void *own_malloc(size_t size) __asm__("malloc");
void own_free(void *block) __asm__("free");
void *own_calloc(size_t count, size_t size) __asm__("calloc");
void *own_realloc(void *block, size_t size) __asm__("realloc");

/* Nothing is given back: the program ends before the heap does. */
void *own_malloc(size_t size) {
    is_inside = true;
    while (wish == TO_BE_LEFT) {
    }
    if (wish == TO_HOLD) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        say("held\n");
        while (poll(&input, 1, -1) != 1) {
        }
    }
    void *block = NULL;
    if (size <= HEAP_BYTES - ALIGNMENT - used_bytes) {
        block = heap + used_bytes;
        used_bytes += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    is_inside = false;
    return block;
}

void own_free(void *block) {
    freed += block != NULL; /* an entry has room for a jump */
}

void *own_calloc(size_t count, size_t size) {
    return own_malloc(count * size);
}

void *own_realloc(void *block, size_t size) {
    void *moved = own_malloc(size);
    if (moved != NULL && block != NULL) {
        memmove(moved, block, size);
    }
    return moved;
}

static void on_time(int signal) {
    (void)signal;
    if (wish == TO_BE_LEFT && is_inside) {
        is_inside = false;
        siglongjmp(outside, 1);
    }
}

static void every_us(long us) {
    const struct itimerval every = {.it_interval = {.tv_usec = us}, .it_value = {.tv_usec = us}};
    (void)setitimer(ITIMER_REAL, &every, NULL);
}

static __attribute__((noinline)) void allocate(void) {
    if (sigsetjmp(outside, 1) != 0) {
        left++;
        return;
    }
    volatile char *block = malloc(ALIGNMENT);
    block[0] = 1;
    returned++;
}

static __attribute__((noinline)) void allocate_deep(void) {
    volatile char deep[DEEP_BYTES];
    deep[0] = 0;
    allocate();
    deep[1] = deep[0];
}

static void leave(unsigned count) {
    every_us(EVERY_US);
    for (unsigned i = 0; i < count; i++) {
        wish = TO_BE_LEFT;
        allocate_deep();
        wish = TO_COME_BACK;
        if (i + 1 < count) {
            allocate_deep();
        }
    }
    every_us(0);
}

int main(void) {
    char word[WORD_BYTES];
    ssize_t bytes = 0;
    const struct sigaction action = {.sa_handler = on_time};
    (void)sigaction(SIGALRM, &action, NULL);
    say("ready\n");
    while ((bytes = read(STDIN_FILENO, word, sizeof(word) - 1)) > 0) {
        char text[WORD_BYTES];
        word[bytes] = 0;
        if (strncmp(word, "end ", 4) == 0) {
            return (int)strtol(word + 4, NULL, 10);
        }
        if (strncmp(word, "hold", 4) == 0) {
            wish = TO_HOLD;
            allocate();
            wish = TO_COME_BACK;
            continue;
        }
        leave((unsigned)strtoul(word + sizeof("leap"), NULL, 10));
        (void)snprintf(text, sizeof(text), "%u %u\n", left, returned);
        say(text);
    }
    return 1;
}

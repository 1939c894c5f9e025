/* A program whose one thread sleeps at the very end of its stack, behind which nothing can be read,
 * and uses no registers but the general ones. Threads of musl do so, and coroutines. It says back
 * each line of stdin, and allocates meanwhile. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    STACK_BYTES = 64 << 10,
    GUARD_BYTES = 64 << 10,
    LINE_BYTES = 64,
    BLOCK_BYTES = 100,
    STATE_BYTES = 16384, /* of xsave */
    MXCSR_WORD = 6,
    MXCSR_AT_START = 0x1f80
};

/* As at a program's start: the kernel has none of them to save. */
static void forget_registers(void) {
    static uint32_t state[STATE_BYTES / sizeof(uint32_t)] __attribute__((aligned(64)));
    state[MXCSR_WORD] = MXCSR_AT_START;
    __asm__ volatile("xrstor (%0)" : : "r"(state), "a"(-1), "d"(-1) : "memory");
}

static ssize_t read_line(char line[LINE_BYTES]) {
    forget_registers();
    return read(0, line, LINE_BYTES);
}

__attribute__((used, noreturn)) static void serve(void) {
    char line[LINE_BYTES];
    ssize_t count = 0;
    (void)!write(1, "ready\n", 6);
    while ((count = read_line(line)) > 0) {
        void *volatile block = malloc(BLOCK_BYTES);
        free(block);
        (void)!write(1, line, (size_t)count);
    }
    _exit(count == 0 ? 7 : 1);
}

int main(void) {
    uint8_t *stack = mmap(
        NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0
    );
    if (stack == MAP_FAILED || mprotect(stack + STACK_BYTES, GUARD_BYTES, PROT_NONE) != 0) {
        return 2;
    }
    __asm__ volatile("mov %0, %%rsp\n\txor %%ebp, %%ebp\n\tcall serve\n\t"
                     :
                     : "r"(stack + STACK_BYTES)
                     : "memory");
    return 3;
}

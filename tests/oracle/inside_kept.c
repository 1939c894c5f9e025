/* An allocator so small that its callers know which registers its functions leave alone, as a
 * compiler's callers do that see both (GCC's -fipa-ra): all but rax and rdi. They are called with
 * every other register in use, and with a stack that is not aligned. Ends with the number of calls
 * behind which a register was another one. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 1000, FIRST_BYTES = 100, WRONG_MAX = 100 };

/* `next` begins on a page of the arena; a block is never used again. */
__attribute__((used)) static uint8_t arena[BLOCKS * 2048] __attribute__((aligned(16)));
__attribute__((used)) static uint8_t *next = arena;
__attribute__((used)) static uint64_t freed;
__attribute__((used)) static uint64_t wrong;

__attribute__((visibility("default"))) void *pool_malloc(size_t size);
__attribute__((visibility("default"))) void pool_free(void *block);
void *call_knowing(const void *function, uintptr_t argument);

__asm__(".text\n"
        ".globl pool_malloc\n"
        ".type pool_malloc, @function\n"
        "pool_malloc:\n"
        ".cfi_startproc\n"
        "mov next(%rip), %rax\n"
        "lea 15(%rax, %rdi), %rdi\n"
        "and $-16, %rdi\n"
        "mov %rdi, next(%rip)\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size pool_malloc, . - pool_malloc\n"
        ".globl pool_free\n"
        ".type pool_free, @function\n"
        "pool_free:\n"
        ".cfi_startproc\n"
        "addq $1, freed(%rip)\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size pool_free, . - pool_free\n");

#define EACH_WORD "rcx, rdx, rsi, r8, r9, r10, r11"
#define EACH_VECTOR "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15"

__asm__(".text\n"
        ".globl call_knowing\n"
        ".type call_knowing, @function\n"
        "call_knowing:\n"
        ".cfi_startproc\n"
        "push %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "mov %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "push %rbx\n"
        ".cfi_offset %rbx, -24\n"
        "push %r12\n"
        ".cfi_offset %r12, -32\n"
        "sub $8, %rsp\n" /* a call wants a multiple of 16 here */
        "mov %rdi, %rbx\n"
        "mov %rsi, %rdi\n"
        ".irp n, " EACH_VECTOR "\n"
        "mov $0x5a5a000000000000 + \\n, %rax\n"
        "movq %rax, %xmm\\n\n"
        "punpcklqdq %xmm\\n, %xmm\\n\n"
        ".endr\n"
        ".irp r, " EACH_WORD "\n"
        "lea call_knowing(%rip), %\\r\n"
        ".endr\n"
        "call *%rbx\n"
        "mov %rax, %r12\n"
        "lea call_knowing(%rip), %rbx\n"
        ".irp r, " EACH_WORD "\n"
        "cmp %rbx, %\\r\n"
        "jne 1f\n"
        ".endr\n"
        ".irp n, " EACH_VECTOR "\n"
        "mov $0x5a5a000000000000 + \\n, %rbx\n"
        "movq %xmm\\n, %rax\n"
        "cmp %rbx, %rax\n"
        "jne 1f\n"
        "punpckhqdq %xmm\\n, %xmm\\n\n"
        "movq %xmm\\n, %rax\n"
        "cmp %rbx, %rax\n"
        "jne 1f\n"
        ".endr\n"
        "jmp 2f\n"
        "1: addq $1, wrong(%rip)\n"
        "2: mov %r12, %rax\n"
        "mov -16(%rbp), %r12\n"
        "mov -8(%rbp), %rbx\n"
        "leave\n"
        ".cfi_def_cfa %rsp, 8\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size call_knowing, . - call_knowing\n");

int main(void) {
    for (uintptr_t i = 0; i < BLOCKS; i++) {
        uint8_t *block = call_knowing((const void *)(uintptr_t)pool_malloc, FIRST_BYTES + i);
        memset(block, (int)i, FIRST_BYTES + i);
        if (i % 2 == 0) {
            (void)call_knowing((const void *)(uintptr_t)pool_free, (uintptr_t)block);
        }
    }
    if (freed != BLOCKS / 2) {
        return WRONG_MAX + 1;
    }
    return wrong < WRONG_MAX ? (int)wrong : WRONG_MAX;
}
